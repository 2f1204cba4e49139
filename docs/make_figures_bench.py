"""Draw the figures of docs/bench.md: ``python docs/make_figures_bench.py [FOLDER OF BLOOD-CELL IMAGES]``.

The images are scikit-image's own, so nothing is downloaded; the cytometry figure needs a folder with a noisy
image of blood cells and is not redrawn without one. The screenshots of the report are taken by hand.
"""

import sys
import tempfile
from pathlib import Path

from PIL import Image
from skimage import data

from vnlem import io
from vnlem.bench.pick_figures import draw_figures
from vnlem.bench.protocols import Case
from vnlem.bench.runner import run_bench
from vnlem.bench.variants import parse_variants

FIGURES = Path(__file__).parent / "figures"
METHODS = ["nlem:paper", "vnlem:paper", "vnlem:auto"]


def main() -> None:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        draw(folder / "coins", {"coins": data.coins()}, [Case("paper", 256, 0.3)], "example")
        sizes = [Case("paper", size, 0.3) for size in (96, 160, 256)]
        draw(folder / "astronaut", {"astronaut": data.astronaut()}, sizes, "resolution")
        if len(sys.argv) > 1:
            picture = sorted(Path(sys.argv[1]).glob("blood_*.png"))[0]
            cells = io.read(picture).pixels[:300, :400]
            draw(folder / "cells", {picture.stem: cells}, [Case("real", 0, 4.0)], "cytometry")


def draw(folder, images, cases, name) -> None:
    folder.mkdir()
    for label, pixels in images.items():
        io.write(folder / f"{label}.png", pixels)
    out = folder / "out"
    outcome = run_bench(folder, out, cases, parse_variants(METHODS, cases[0].protocol))
    drawn = next(path for path in draw_figures(outcome, out) if Path(path).name.startswith(name))
    with Image.open(out / drawn) as figure:
        figure.thumbnail((1000, 1000))
        # A palette: noise makes files large, and a repository keeps them for ever.
        figure.convert("RGB").quantize(256).save(FIGURES / f"bench-{name}.png", optimize=True)


if __name__ == "__main__":
    main()
