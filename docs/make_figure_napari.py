"""Draw docs/figures/napari.png: the plugin at work. Needs napari and a screen (or xvfb-run).

xvfb-run -s "-screen 0 1400x1000x24" python docs/make_figure_napari.py
"""

import time
from collections.abc import Callable
from pathlib import Path

import napari
from qtpy.QtTest import QTest

TARGET = Path(__file__).parent / "figures" / "napari.png"


def main() -> None:
    """Preview the fluorescence sample, with the noise found and the wipe at a third."""
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
    QTest.qWait(500)
    viewer.screenshot(str(TARGET), canvas_only=False, flash=False)
    print(TARGET)
    viewer.close()


def wait(condition: Callable[[], bool], seconds: float = 300) -> None:
    """Let Qt work until the condition holds."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError("napari took too long")
        QTest.qWait(50)


if __name__ == "__main__":
    main()
