"""What napari finds: a valid manifest, menu entries, commands and sample data."""

from typing import Any

import numpy as np
import pytest
from conftest import LONG, noisy
from napari._app_model import get_app_model
from napari._app_model.constants import MenuId
from npe2 import PluginManifest

from vnlem.napari import commands


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


def test_a_quick_command_without_an_image_layer_says_what_to_do(
    make_napari_viewer: Any, told: list[str]
) -> None:
    viewer = make_napari_viewer()
    commands.denoise_fast(viewer)
    assert told == ["vnlem: select one image layer in the layer list first"]
