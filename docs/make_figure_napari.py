"""Draw docs/figures/napari.png and napari-run.png: the plugin in use.

Needs napari and a screen (or xvfb-run):

xvfb-run -s "-screen 0 1400x1000x24" python docs/make_figure_napari.py
"""

import time
from collections.abc import Callable
from pathlib import Path

import napari
from PIL import Image
from qtpy.QtTest import QTest

FIGURES = Path(__file__).parent / "figures"


def main() -> None:
    """Preview the fluorescence sample, with the wipe at a third; then run, and show what was removed."""
    viewer = napari.Viewer(show=True)
    viewer.window.resize(1280, 800)
    viewer.open_sample("vnlem", "fluorescence")
    viewer.layers["noisy granules"].visible = False
    source = viewer.layers["noisy nuclei"]
    source.colormap = "inferno"
    source.contrast_limits = (100, 210)
    _, widget = viewer.window.add_plugin_dock_widget("vnlem", "Denoise")
    widget.residual_box.setChecked(True)
    viewer.layers.selection.active = source
    source.corner_pixels = source.corner_pixels // 2 + 60
    widget.preview_box.setChecked(True)
    wait(lambda: widget.preview.layer() is not None and not widget.preview._timer.isActive())
    widget.wipe.setValue(33)
    picture(viewer, "napari.png")
    widget.preview_box.setChecked(False)
    layers = len(viewer.layers)
    widget.run_button.click()
    wait(lambda: widget.run_button.isEnabled() and len(viewer.layers) == layers + 2)
    viewer.layers.selection.active = source
    picture(viewer, "napari-run.png")
    viewer.close()


def picture(viewer: napari.Viewer, name: str) -> None:
    """Write what the window shows, in few colours to keep the file small."""
    QTest.qWait(500)
    shown = Image.fromarray(viewer.screenshot(canvas_only=False, flash=False)).convert("RGB")
    shown.quantize(128).save(FIGURES / name, optimize=True)
    print(FIGURES / name)


def wait(condition: Callable[[], bool], seconds: float = 300) -> None:
    """Let Qt work until the condition holds."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError("napari took too long")
        QTest.qWait(50)


if __name__ == "__main__":
    main()
