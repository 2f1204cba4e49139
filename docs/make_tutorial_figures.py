"""Draw the pictures of the tutorials from their sample files: docs/tutorials/figures.

    python docs/make_tutorial_figures.py [NAME ...]

For each sample a strip of three panels (before, after, what was removed), for some the picture of the noise.
Needs the extras `bench` and `formats`.
"""

import sys
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib

matplotlib.use("Agg")
import numpy as np
from PIL import Image

import vnlem
from vnlem import io

FOLDER = Path(__file__).parent / "tutorials"
WIDTH = 256  # of a panel
GAP = 6


class Sample(NamedTuple):
    """A sample file, and how the tutorial denoises it."""

    file: str
    page: int | None = None  # of a stack, shown
    options: dict[str, Any] = {}  # noqa: RUF012 - nothing changes it
    white: float = 99.9  # the percentile of the result that is drawn white


SAMPLES = {
    "confocal": Sample("confocal.tif"),
    "widefield": Sample("widefield.tif"),
    "time-lapse": Sample("movie.tif", 2, {"axes": "TYX"}),
    "volume": Sample("volume.tif", 5, {"axes": "ZYX"}),
    "em": Sample("map.mrc", 6, {"axes": "ZYX"}),
    "mri": Sample("head.nii.gz", 3, {"axes": "ZYX", "noise_model": "rician"}, 95),
    "photographs": Sample("photo.png", None, {"channel_axis": -1}),
}


def draw(name: str, sample: Sample) -> None:
    """The strip and the noise of one sample."""
    image = io.read(FOLDER / "data" / sample.file).pixels
    after, info = vnlem.denoise(image, return_info=True, **sample.options)
    print(f"{name}: {info.noise.describe()}; {info.noise_check.describe()}")
    before = image if sample.page is None else image[sample.page]
    after = after if sample.page is None else after[sample.page]
    low, high = np.percentile(after, (0.2, sample.white))
    removed = before.astype(float) - after
    spread = 3 * removed.std() or 1.0
    panels = [_panel(before, low, high), _panel(after, low, high), _panel(removed, -spread, spread)]
    height = panels[0].shape[0]
    gap = np.full((height, GAP, *panels[0].shape[2:]), 128, np.uint8)
    strip = np.concatenate([panels[0], gap, panels[1], gap, panels[2]], axis=1)
    Image.fromarray(strip).save(FOLDER / "figures" / f"{name}.jpg", quality=90)
    if sample.page is None:
        info.noise.draw(FOLDER / "figures" / f"{name}-noise.png", before, sample.options.get("channel_axis"))


def _panel(image: Any, low: float, high: float) -> Any:
    grey = np.clip(np.rint(255 * (image.astype(float) - low) / (high - low)), 0, 255).astype(np.uint8)
    times = max(1, WIDTH // image.shape[1])
    return grey.repeat(times, axis=0).repeat(times, axis=1)


def main(names: list[str]) -> None:
    """Draw all, or those named."""
    (FOLDER / "figures").mkdir(exist_ok=True)
    for name in names or SAMPLES:
        draw(name, SAMPLES[name])


if __name__ == "__main__":
    main(sys.argv[1:])
