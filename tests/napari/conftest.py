"""Small noisy arrays, and the notifications of napari."""

import os

# Before Qt: the tests also run without a screen, see `make test-napari`.
os.environ.setdefault("QT_API", "pyqt6")

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from napari.utils.notifications import Notification, notification_manager
from qtpy.QtCore import QSettings

from vnlem.napari.settings import Settings
from vnlem.napari.widget import DenoiseWidget

LONG = 120_000  # milliseconds: kernels may have to be compiled first
QUICK = Settings(method="nlm", noise="gaussian", sigma=20.0)


def noisy(*shape: int, seed: int = 0, sigma: float = 20.0) -> Any:
    """A bright square in noise, in the last two dimensions, as uint16."""
    clean = np.full(shape, 1000.0)
    clean[..., shape[-2] // 4 : shape[-2] // 2, shape[-1] // 4 : shape[-1] // 2] = 1200.0
    values = clean + np.random.default_rng(seed).normal(0, sigma, shape)
    return np.rint(values).astype(np.uint16)


def colour(size: int) -> Any:
    """A colour image in noise of standard deviation 20, as uint8."""
    return np.moveaxis(np.clip(noisy(3, size, size) - 950, 0, 255), 0, -1).astype(np.uint8)


@pytest.fixture(autouse=True)
def _nothing_remembered(tmp_path: Path) -> None:
    """Settings are remembered in a folder of the test."""
    QSettings.setPath(QSettings.Format.IniFormat, QSettings.Scope.UserScope, str(tmp_path / "settings"))


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The messages shown by napari."""
    messages: list[str] = []

    def keep(notification: Notification) -> None:
        messages.append(notification.message)

    notification_manager.notification_ready.connect(keep)
    yield messages
    notification_manager.notification_ready.disconnect(keep)


@pytest.fixture
def open_widget(make_napari_viewer: Any, qtbot: Any) -> Iterator[Callable[..., DenoiseWidget]]:
    """Open the widget in a viewer that holds one layer."""
    opened: list[DenoiseWidget] = []

    def opener(data: Any, settings: Settings = QUICK, **options: Any) -> DenoiseWidget:
        viewer = make_napari_viewer()
        viewer.add_image(data, name="source", **options)
        _, widget = viewer.window.add_plugin_dock_widget("vnlem", "Denoise")
        widget.form.show_settings(settings)
        opened.append(widget)
        return widget

    yield opener
    for widget in opened:
        widget.close()
        qtbot.waitUntil(lambda widget=widget: not is_busy(widget), timeout=LONG)


def is_busy(widget: DenoiseWidget) -> bool:
    """Whether a run or a preview is active."""
    return widget._task is not None or widget.preview._task is not None


def run(widget: DenoiseWidget, qtbot: Any) -> Any:
    """Run and return the last result."""
    before = set(widget.viewer.layers)
    widget.run()
    assert not widget.run_button.isEnabled()
    assert widget.cancel_button.isEnabled()
    qtbot.waitUntil(lambda: not is_busy(widget), timeout=LONG)
    return [layer for layer in widget.viewer.layers if layer not in before and "residual" not in layer.name][
        -1
    ]
