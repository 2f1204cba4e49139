"""Write docs/compare.md and its pictures: wipes between noisy, denoised and clean images.

    python docs/make_compare.py DATA

DATA is the folder of sets that docs/data.md describes. Needs the extra `peers`. Only images whose licence
allows it are shown; `vnlem bench` makes a page of wipes for any folder.
"""

import sys
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
    kodak = io.read(data / "colour" / "kodak_kodim07.png").pixels[:256, :256].astype(float)
    clean = np.rint(kodak @ [0.299, 0.587, 0.114])
    noisy = vnlem.noise.add_gaussian(clean, 25, seed=0)
    yield (
        "A photograph, white noise of sigma 25",
        clean,
        {
            "noisy": noisy,
            "vnlem": vnlem.denoise(noisy, 25),
            "BM3D": 255 * bm3d(noisy / 255, 25 / 255),
            "clean": clean,
        },
    )
    for title, name, part in (
        ("Confocal microscope, real noise", "fmd/Confocal_MICE", np.s_[128:384, 128:384]),
        ("Wide-field microscope, real noise", "fmd/WideField_BPAE_G", np.s_[128:384, 128:384]),
        ("Photograph at ISO 6400, real noise", "photo_pairs/cc_d800_iso6400_1", np.s_[:256, :256]),
    ):
        noisy, reference = (io.read(data / f"{name}_{kind}.png").pixels[part] for kind in ("noisy", "ref"))
        axis = -1 if noisy.ndim == 3 else None
        pictures = {"noisy": noisy, "vnlem": vnlem.denoise(noisy, channel_axis=axis)}
        yield title, reference, {**pictures, "mean of many shots": reference}


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
