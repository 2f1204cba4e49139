"""What napari finds: a valid manifest, menu entries, commands and sample data."""

import time
from typing import Any

import numpy as np
import pytest
from conftest import LONG, noisy
from napari._app_model import get_app_model
from napari._app_model.constants import MenuId
from npe2 import PluginManifest
from qtpy.QtWidgets import QApplication

from vnlem.napari import commands, task


@pytest.fixture
def manifest() -> PluginManifest:
    return PluginManifest.from_distribution("vnlem")


def test_every_command_of_the_manifest_can_be_imported(manifest: PluginManifest) -> None:
    assert manifest.contributions.commands
    manifest.validate_imports()  # raises where one cannot


def test_the_menu_entries_are_in_menus_that_plugins_may_use(manifest: PluginManifest) -> None:
    menus = manifest.contributions.menus
    assert menus
    assert set(menus) <= {str(menu) for menu in MenuId.contributables()}


@pytest.mark.parametrize(
    ("key", "shapes"),
    [
        ("photograph", [(512, 512)]),
        ("half_discs", [(256, 256)]),
        ("fluorescence", [(512, 512), (512, 512)]),
        ("time_lapse", [(12, 256, 256)]),
    ],
)
def test_sample_data_opens(make_napari_viewer: Any, key: str, shapes: list[tuple[int, ...]]) -> None:
    viewer = make_napari_viewer()
    layers = viewer.open_sample("vnlem", key)
    assert [layer.data.shape for layer in layers] == shapes
    again = [data for data, *_ in getattr(__import__("vnlem.napari.samples", fromlist=[key]), key)()]
    assert all(np.array_equal(layer.data, data) for layer, data in zip(layers, again, strict=True))


@pytest.mark.parametrize("name", ["fast", "quality"])
def test_a_quick_command_denoises_the_selected_layer(make_napari_viewer: Any, qtbot: Any, name: str) -> None:
    viewer = make_napari_viewer()
    viewer.add_image(noisy(48, 48), name="cells")
    get_app_model().commands.execute_command(f"vnlem.denoise_{name}")
    qtbot.waitUntil(lambda: not commands._running, timeout=LONG)
    assert viewer.layers[-1].name == f"cells (vnlr {name})"
    assert viewer.layers[-1].data.std() < viewer.layers[0].data.std()


def test_progress_is_drawn_one_step_at_a_time(
    make_napari_viewer: Any, qtbot: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Bar:
        """Lets Qt work while it draws, as napari's does."""

        is_canceled, n, depth, deepest, drawn = False, 0, 0, 0, 0

        def update(self, step: int) -> None:
            self.depth += 1
            self.deepest, self.drawn = max(self.deepest, self.depth), self.drawn + 1
            QApplication.processEvents()
            self.depth -= 1

        def close(self) -> None:
            pass

    def work(layer: Any, pages: Any, settings: Any, report: Any) -> None:
        for step in range(200):
            report(step / 200)
            time.sleep(0.002)
        raise ValueError("enough")

    bar = Bar()
    monkeypatch.setattr(task, "TELL_EVERY", 0.0)
    monkeypatch.setattr(commands, "cancelable_progress", lambda **_: bar)
    monkeypatch.setattr(commands, "denoise_layer", work)
    viewer = make_napari_viewer()
    viewer.add_image(noisy(48, 48))
    commands.denoise_fast(viewer)
    time.sleep(0.3)  # signals wait
    qtbot.waitUntil(lambda: not commands._running, timeout=LONG)
    assert bar.drawn > 0
    assert bar.deepest == 1


def test_progress_is_told_a_few_times_a_second(qtbot: Any) -> None:
    told: list[float] = []
    ended: list[bool] = []

    def work(report: Any) -> None:
        for step in range(10_000):
            report(step / 10_000)

    many = task.Task(work)
    many.progressed.connect(told.append)
    many.ended.connect(lambda: ended.append(True))
    begun = time.monotonic()
    many.start()
    qtbot.waitUntil(lambda: bool(ended), timeout=LONG)
    assert 1 <= len(told) <= 2 + (time.monotonic() - begun) / task.TELL_EVERY


def test_a_quick_command_without_an_image_layer_says_what_to_do(
    make_napari_viewer: Any, told: list[str]
) -> None:
    viewer = make_napari_viewer()
    commands.denoise_fast(viewer)
    assert told == ["vnlem: select one image layer in the layer list first"]
