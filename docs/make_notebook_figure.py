"""Draw docs/tutorials/figures/notebook.png: the notebook of the tutorial, run and opened in Chromium.

    python docs/make_notebook_figure.py

Needs nbconvert, ipykernel and Chromium.
"""

import subprocess
import tempfile
from pathlib import Path

import nbformat
from nbconvert import HTMLExporter
from nbconvert.preprocessors import ExecutePreprocessor

ROOT = Path(__file__).parents[1]
TARGET = ROOT / "docs" / "tutorials" / "figures" / "notebook.png"
CELLS = (
    "import vnlem\n\n"
    'image = vnlem.io.read("docs/tutorials/data/confocal.tif").pixels\n'
    "denoised, info = vnlem.denoise(image, progress=True, return_info=True)\n"
    "vnlem.compare_view(image, denoised)",
    "info.noise",
    "info",
)


def main() -> None:
    """Run the cells, write the page, take its picture."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    ExecutePreprocessor(timeout=300).preprocess(notebook, {"metadata": {"path": str(ROOT)}})
    body, _ = HTMLExporter().from_notebook_node(notebook)
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "notebook.html"
        page.write_text(body, encoding="utf-8")
        subprocess.run(
            [
                "chromium",
                "--headless",
                "--no-sandbox",
                "--hide-scrollbars",
                "--window-size=900,880",
                "--virtual-time-budget=5000",
                f"--screenshot={TARGET}",
                str(page),
            ],
            check=True,
            capture_output=True,
        )
    print(TARGET)


if __name__ == "__main__":
    main()
