"""Write docs/compare.md and its pictures: wipes between noisy, denoised and clean images.

    python docs/make_compare.py DATA

DATA is the folder of sets that docs/data.md describes. Needs the extra `peers`. Only images whose licence
allows it are shown; `vnlem bench` makes a page of wipes for any folder.
"""

import sys
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from bm3d import bm3d
from PIL import Image

import vnlem
from vnlem import io
from vnlem.notebook import wipe_html

DOCS = Path(__file__).parent
PICTURES = DOCS / "_static" / "compare"
HEAD = """# Compare by eye

Drag the line. Left of it is the first picture, right of it the second. The PSNR is that of the whole picture.
Made by `docs/make_compare.py`; the report of [`vnlem bench`](bench.md) has such sliders for your own images,
every method and every peer.
"""


def scenes(data: Path) -> Any:
    """Title, clean image, and the pictures by name."""
    for name, sigma in (("kodim07", 25), ("kodim19", 50)):
        kodak = io.read(data / "colour" / f"kodak_{name}.png").pixels[:256, :256].astype(float)
        clean = np.rint(kodak @ [0.299, 0.587, 0.114])
        noisy = vnlem.noise.add_gaussian(clean, sigma, seed=0)
        yield (
            f"A photograph, white noise of sigma {sigma}",
            clean,
            {
                "noisy": noisy,
                "vnlem": vnlem.denoise(noisy, sigma),
                "BM3D": 255 * bm3d(noisy / 255, sigma / 255),
                "clean": clean,
            },
        )
    clean = io.read(data / "colour" / "kodak_kodim10.png").pixels[:256, :256]
    noisy = as_jpeg(vnlem.noise.add_gaussian(clean, 15, seed=0), 85)
    pictures = {"noisy": noisy, "vnlem": vnlem.denoise(noisy, channel_axis=-1)}
    yield "A noisy photograph saved as JPEG, noise estimated", clean, {**pictures, "clean": clean}
    for title, name, part in (
        ("Confocal microscope, real noise", "fmd/Confocal_MICE", np.s_[128:384, 128:384]),
        ("Wide-field microscope, real noise", "fmd/WideField_BPAE_G", np.s_[128:384, 128:384]),
        ("Photograph at ISO 6400, real noise", "photo_pairs/cc_d800_iso6400_1", np.s_[:256, :256]),
    ):
        noisy, reference = (io.read(data / f"{name}_{kind}.png").pixels[part] for kind in ("noisy", "ref"))
        axis = -1 if noisy.ndim == 3 else None
        pictures = {"noisy": noisy, "vnlem": vnlem.denoise(noisy, channel_axis=axis)}
        yield title, reference, {**pictures, "mean of many shots": reference}


def as_jpeg(image: Any, quality: int) -> Any:
    """An image after it was saved and read."""
    file = BytesIO()
    Image.fromarray(np.clip(np.rint(image), 0, 255).astype(np.uint8)).save(file, "JPEG", quality=quality)
    return np.asarray(Image.open(file))


def main(data: Path) -> None:
    """Write the page."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    parts = [HEAD]
    for number, (title, clean, pictures) in enumerate(scenes(data), 1):
        scale = 255 / np.percentile(clean, 99.9)
        names, addresses = {}, {}
        for name, pixels in pictures.items():
            psnr = vnlem.metrics.psnr(clean, pixels, 255) if pixels is not clean else None
            names[name] = name if psnr is None else f"{name}, {psnr:.2f} dB"
            shown = np.clip(np.rint(scale * pixels.astype(float)), 0, 255).astype(np.uint8)
            file = PICTURES / f"{number}-{name.replace(' ', '-').lower()}.jpg"
            Image.fromarray(shown).save(file, quality=92)
            addresses[name] = f"_static/compare/{file.name}"
            print(f"{title}: {names[name]}")
        parts.append(f"## {title}\n")
        last = list(pictures)[-1]
        for first, second in [("noisy", "vnlem"), ("BM3D", "vnlem"), ("vnlem", last)]:
            if first in pictures:
                wipe = wipe_html(addresses[first], addresses[second], (names[first], names[second]), 512, 256)
                parts.append(f"```{{raw}} html\n{wipe}\n```\n")
    (DOCS / "compare.md").write_text("\n".join(parts), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
