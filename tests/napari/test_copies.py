"""Copy as Python, copy as command: the pasted code does what the widget does."""

import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
from conftest import colour, noisy, run
from qtpy.QtGui import QGuiApplication

from vnlem.napari.settings import Settings


def films(count: int) -> Any:
    return np.stack([colour(32), colour(32)[::-1]] * (count // 2))


LAYERS = {
    "YX": (noisy(40, 40), {}),
    "colour": (colour(40), {"rgb": True}),
    "TYX": (noisy(5, 40, 40), {}),
    "CYX": (np.stack([noisy(40, 40), noisy(40, 40, sigma=40)]), {"axis_labels": ("c", "y", "x")}),
    "CZYX": (noisy(2, 3, 40, 40), {}),
    "film in colour": (films(2), {"rgb": True}),
}
CHOICES = [
    Settings(profile="fast"),
    Settings(method="nlem", noise="gaussian", sigma=20.0),
    Settings(method="nlm", noise="poisson-gaussian", gain=0.5, offset=900.0, read_noise=5.0),
]


@pytest.mark.parametrize("kind", LAYERS)
@pytest.mark.parametrize("settings", CHOICES, ids=lambda chosen: chosen.method)
def test_the_copied_python_gives_what_running_gives(
    open_widget: Any, qtbot: Any, kind: str, settings: Settings
) -> None:
    data, options = LAYERS[kind]
    widget = open_widget(data, settings, **options)
    widget.copy_python.click()
    names = {"viewer": widget.viewer}
    exec(QGuiApplication.clipboard().text(), names)
    result = run(widget, qtbot).data
    if kind == "film in colour" and settings.noise == "auto":
        # The widget estimates the noise once, in the middle.
        assert names["result"].shape == result.shape
    else:
        assert np.array_equal(names["result"], result)


def test_python_for_an_image_with_transparency_leaves_it_out(open_widget: Any, qtbot: Any) -> None:
    image = np.concatenate([colour(32), np.full((32, 32, 1), 200, np.uint8)], axis=-1)
    widget = open_widget(image, rgb=True)
    widget.copy_python.click()
    names = {"viewer": widget.viewer}
    exec(QGuiApplication.clipboard().text(), names)
    assert np.array_equal(names["result"], run(widget, qtbot).data[..., :3])


@pytest.mark.parametrize("kind", LAYERS)
def test_the_copied_command_writes_what_running_gives(
    open_widget: Any, qtbot: Any, tmp_path: Path, kind: str
) -> None:
    data, options = LAYERS[kind]
    widget = open_widget(noisy(32, 32), Settings(method="nlm", noise="gaussian", sigma=20.0))
    path = tmp_path / "my cells.tif"
    tifffile.imwrite(path, data, photometric="rgb" if options.get("rgb") else "minisblack")
    (layer,) = widget.viewer.open(path, **options)
    widget.layer_choice.setCurrentText(layer.name)
    widget.copy_command.click()
    words = shlex.split(QGuiApplication.clipboard().text())
    assert words[0] == "vnlem"
    subprocess.run([sys.executable, "-m", *words, "--quiet"], cwd=tmp_path, check=True)
    written = tifffile.imread(tmp_path / words[3])
    assert np.array_equal(written, run(widget, qtbot).data)


def test_the_copied_command_of_a_layer_without_a_file_says_what_to_save(
    open_widget: Any, told: list[str]
) -> None:
    widget = open_widget(noisy(40, 40))
    widget.copy_command.click()
    line = QGuiApplication.clipboard().text()
    assert line == "vnlem denoise source.tif source-denoised.tif --method nlm --sigma 20.0"
    assert len(told) == 1
    assert "save it as source.tif" in told[0]
