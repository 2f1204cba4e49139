"""Photographs as people have them: saved as JPEG, interpolated, developed. Does the default help, or harm?

    python benchmarks/saved.py DATA --sets categories,set12 --every 4 --csv saved.csv

White noise of sigma 0, 5, 10 and 20 is added to grey photographs, and to colour ones (pictures of `colour`,
first frames of `movies_colour`, means of many shots from `photo_pairs` and `polyu` at half size). They are
saved as JPEG of quality 75 and 90, colour with half the resolution as cameras do, and read again. Other
noise is interpolated by half a pixel, or slightly correlated and stronger in the dark, or white before a tone
curve, or enlarged or turned with the picture, or demosaicked, developed and saved. `vnlem.denoise(saved)` is
compared with its input, and with the better of white noise of the true strength and
`noise_model="correlated"`. Prints a line per kind, and the worst cases.
"""

import argparse
import sys
import warnings
from collections.abc import Iterator
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

import harm
import numpy as np
import raw
from PIL import Image
from scipy import ndimage

import vnlem
from vnlem.io.demosaic import demosaic
from vnlem.pipeline.mosaic import check_pattern

CROP = 256  # pixels a side
QUALITIES = (75, 90)
QUALITY_OF_FULL = 85  # of colour at full resolution
SIGMAS = (0, 5, 10, 20)
MOST_WORSE = 0.3  # dB by which a result may lie below its input
INVISIBLE = 60.0  # dB: a smaller error does not count
MEANS = ("noisy", "blind", "best")


class Row(NamedTuple):
    """PSNR of a case in dB."""

    kind: str
    name: str
    noisy: float
    blind: float
    told: float  # white noise of the true strength, if it is known
    correlated: float
    words: str

    @property
    def change(self) -> float:
        """From the input to the default's result; errors that nobody sees are equal."""
        return min(self.blind, INVISIBLE) - min(self.noisy, INVISIBLE)

    @property
    def best(self) -> float:
        """The better of the models that a user could choose; the input if both are worse."""
        return max(self.noisy, self.told, self.correlated)


def sources(data: Path, sets: list[str], every: int) -> Iterator[tuple[Path, str]]:
    """Files, and how each is opened."""
    for folder in sets:
        yield from ((path, "grey") for path in sorted((data / folder).rglob("*.png"))[::every])
    yield from ((path, "colour") for path in sorted((data / "colour").glob("*.png")))
    yield from ((path, "frame") for path in sorted((data / "movies_colour").glob("*.tif")))
    for folder in ("photo_pairs", "polyu"):
        yield from ((path, "half") for path in sorted((data / folder).glob("*_ref.*")))


def opened(path: Path, how: str) -> np.ndarray:
    """A clean picture, of even size."""
    if how == "frame":
        image = np.asarray(next(vnlem.io.read(path).pages()), float)
    else:
        image = harm.opened(path, colour=how != "grey")
    if how == "half":
        height, width = (2 * (side // 2) for side in image.shape[:2])
        image = image[:height, :width].reshape(height // 2, 2, width // 2, 2, 3).mean(axis=(1, 3))
    height, width = (2 * (min(side, CROP) // 2) for side in image.shape[:2])
    return image[:height, :width]


def kinds(how: str) -> list[str]:
    """What happens to a picture."""
    jpeg = [f"jpeg {quality}, sigma {sigma}" for sigma in SIGMAS for quality in QUALITIES]
    full = [f"jpeg {QUALITY_OF_FULL}, sigma {sigma}, full colour" for sigma in (0, 10)]
    in_colour = [] if how == "grey" else ["developed", "developed, jpeg 85", *full]
    return [*jpeg, "interpolated", "dark noise", "tone curve", "enlarged noise", "turned noise", *in_colour]


def saved(clean: np.ndarray, kind: str, seed: int) -> tuple[np.ndarray, np.ndarray, float]:
    """The clean picture, the picture as it was saved, and the true standard deviation of its noise."""
    rng = np.random.default_rng(seed)
    noise = rng.normal(0, 1, clean.shape)
    if kind.startswith("jpeg"):
        quality, sigma = (int(word.split()[1]) for word in kind.split(", ")[:2])
        noisy = as_jpeg(as_bytes(clean + sigma * noise), quality, full="full" in kind)
    elif kind == "interpolated":
        halves = sum(np.roll(noise, (y, x), (0, 1)) for y in (0, 1) for x in (0, 1)) / 4
        noisy = as_bytes(clean + 24 * halves)
    elif kind in CHANGES:
        clean, noisy = (CHANGES[kind](each) for each in (clean, as_bytes(clean + 10 * noise)))
        clean, noisy = as_bytes(clean).astype(float), as_bytes(noisy)
    elif kind == "dark noise":
        width = (0.45, 0.45, 0)[: clean.ndim]
        noisy = as_bytes(clean + ndimage.gaussian_filter(noise, width) * (16 - 10 * clean / 255) / 0.7)
    else:
        clean, noisy = developed(clean, rng)
        if "jpeg" in kind:
            noisy = as_jpeg(noisy, 85)
    return clean, noisy, float(np.sqrt(np.mean((noisy - clean) ** 2)))


def as_bytes(image: np.ndarray) -> np.ndarray:
    return np.clip(np.round(image), 0, 255).astype(np.uint8)


def as_jpeg(image: np.ndarray, quality: int, *, full: bool = False) -> np.ndarray:
    """The image after it was saved and read; full: colours without half the resolution."""
    file = BytesIO()
    Image.fromarray(image).save(file, "JPEG", quality=quality, subsampling=0 if full else 2)
    return np.asarray(Image.open(file))


def brightened(image: np.ndarray) -> np.ndarray:
    """With a tone curve, after which noise is stronger in the dark."""
    return 255 * (image / 255) ** (1 / 1.8)


def enlarged(image: np.ndarray) -> np.ndarray:
    colours = (1.0,) * (image.ndim - 2)
    return ndimage.zoom(image[: CROP * 2 // 3, : CROP * 2 // 3].astype(float), (1.5, 1.5, *colours), order=3)


def turned(image: np.ndarray) -> np.ndarray:
    """By seven degrees, without black corners."""
    whole = ndimage.rotate(image.astype(float), 7, reshape=False, order=1)
    edge = min(image.shape[:2]) // 8
    return whole[edge:-edge, edge:-edge]


CHANGES = {"tone curve": brightened, "enlarged noise": enlarged, "turned noise": turned}


def developed(clean: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """A demosaicked picture with a gamma curve: without noise, and with the noise of a sensor."""
    pattern = check_pattern("RGGB")
    mosaic = raw.sampled(255 * (clean / 255) ** 2.2, pattern)
    noisy = rng.poisson(np.maximum(mosaic, 0)) + rng.normal(0, 1.5, mosaic.shape)
    done = [255 * (np.clip(demosaic(each, pattern), 0, 255) / 255) ** (1 / 2.2) for each in (mosaic, noisy)]
    return done[0], as_bytes(done[1])


def measured(case: tuple[Path, str, str, int], profile: str) -> Row:
    """Denoise a case with the noise estimated, as white and as correlated."""
    path, how, kind, seed = case
    return measured_picture(opened(path, how), f"{path.stem} ({how})", kind, seed, profile)


def measured_picture(picture: np.ndarray, name: str, kind: str, seed: int, profile: str) -> Row:
    clean, noisy, sigma = saved(picture, kind, seed)
    call = partial(
        vnlem.denoise, noisy, profile=profile, channel_axis=-1 if clean.ndim == 3 else None, workers=1
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        blind, info = call(return_info=True)
        others = [call(sigma=sigma), call(noise_model="correlated")]
    levels = [harm.psnr(clean, image) for image in (noisy, blind, *others)]
    return Row(kind, name, *levels, info.noise.describe())


def main() -> None:
    """Parse the options, run the cases, print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", type=Path, help="folder with the sets of images")
    parser.add_argument("--sets", default="categories,set12", help="sets of grey photographs, by commas")
    parser.add_argument("--every", type=int, default=8, help="take every n-th grey photograph")
    parser.add_argument("--profile", default="fast", choices=("best", "quality", "balanced", "fast"))
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--csv", type=Path, help="write every case here")
    options = parser.parse_args()
    files = list(sources(options.data, [name for name in options.sets.split(",") if name], options.every))
    cases = [
        (path, how, kind, 1000 + number) for number, (path, how) in enumerate(files) for kind in kinds(how)
    ]
    measure = partial(measured, profile=options.profile)
    rows = harm.measured_all(measure, cases, options.processes, options.csv)
    report(rows)
    mean = {name: np.mean([min(getattr(row, name), INVISIBLE) for row in rows]) for name in MEANS}
    print("mean of all: " + ", ".join(f"{name} {value:.2f}" for name, value in mean.items()))
    worse = [row for row in rows if row.change < -MOST_WORSE]
    print(f"worse than the input by more than {MOST_WORSE} dB: {len(worse)} of {len(rows)}")
    sys.exit(1 if worse else 0)


def report(rows: list[Row]) -> None:
    """One line per kind, grey and colour apart, then the worst cases."""
    print("| | n | input | default | best model | worse than input | worst change |")
    print("|---|---|---|---|---|---|---|")
    for grey in (True, False):
        for kind in dict.fromkeys(row.kind for row in rows):
            some = [row for row in rows if row.kind == kind and row.name.endswith("(grey)") == grey]
            if not some:
                continue
            means = " | ".join(f"{np.mean([getattr(row, name) for row in some]):.2f}" for name in MEANS)
            changes = [row.change for row in some]
            worse = sum(change < -0.1 for change in changes)
            label = f"{'grey' if grey else 'colour'}, {kind}"
            print(f"| {label} | {len(some)} | {means} | {worse} | {min(changes):+.2f} |")
    print("largest changes for the worse:")
    for row in sorted(rows, key=lambda row: row.change)[:12]:
        print(f"  {row.name}, {row.kind}: {row.noisy:.2f} -> {row.blind:.2f}; {row.words}")
    print("farthest below the best model:")
    for row in sorted(rows, key=lambda row: row.blind - row.best)[:12]:
        print(
            f"  {row.name}, {row.kind}: {row.noisy:.2f} -> {row.blind:.2f}, best {row.best:.2f}; {row.words}"
        )


if __name__ == "__main__":
    main()
