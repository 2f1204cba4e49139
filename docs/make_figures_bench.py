"""Draw the figures of docs/bench.md: ``python docs/make_figures_bench.py [FOLDER OF BLOOD-CELL IMAGES]``.

The images are scikit-image's own, so nothing is downloaded; the cytometry figure needs a folder with a noisy
image of blood cells and is not redrawn without one. The pictures of the report need playwright and Chromium.
"""

import shutil
import sys
import tempfile
from io import BytesIO
from pathlib import Path

from PIL import Image
from skimage import data

from vnlem import io
from vnlem.bench.pick_figures import draw_figures
from vnlem.bench.protocols import Case
from vnlem.bench.report import write_report
from vnlem.bench.runner import run_bench, write_summary
from vnlem.bench.variants import parse_variants

FIGURES = Path(__file__).parent / "figures"
METHODS = ["nlem:paper", "vnlem:paper", "vnlem:auto"]
IN_REPORT = ["nlm", "nlem:paper", "vnlem:paper", "vnlr"]
PICTURES = {
    "nature": ("astronaut", "cat", "coffee", "moon", "grass"),
    "things": ("camera", "coins", "clock", "rocket", "text"),
}


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
        photograph_report(folder / "report")


def photograph_report(folder: Path) -> None:
    """The top of a report, and its gallery in the dark."""
    from playwright.sync_api import sync_playwright

    for category, names in PICTURES.items():
        (folder / category).mkdir(parents=True)
        for name in names:
            io.write(folder / category / f"{name}.png", getattr(data, name)())
    out = folder / "out"
    outcome = run_bench(folder, out, [Case("paper", 256, 0.3)], parse_variants(IN_REPORT, "paper"))
    write_report(outcome, write_summary(outcome, out), out)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name, scheme, place in (("report", "light", ""), ("gallery", "dark", "#gallery")):
            page = browser.new_page(viewport={"width": 1160, "height": 1250}, color_scheme=scheme)
            page.goto((out / "report.html").as_uri() + place)
            page.wait_for_timeout(1000)
            save(Image.open(BytesIO(page.screenshot())), name)
        browser.close()


def draw(folder, images, cases, name) -> None:
    folder.mkdir()
    for label, pixels in images.items():
        io.write(folder / f"{label}.png", pixels)
    out = folder / "out"
    outcome = run_bench(folder, out, cases, parse_variants(METHODS, cases[0].protocol))
    drawn = next(path for path in draw_figures(outcome, out) if Path(path).name.startswith(name))
    save(Image.open(out / drawn), name)


def save(figure: Image.Image, name: str) -> None:
    figure.thumbnail((1000, 1100))
    # A palette: noise makes files large, and a repository keeps them for ever.
    figure.convert("RGB").quantize(256).save(FIGURES / f"bench-{name}.png", optimize=True)


if __name__ == "__main__":
    main()
