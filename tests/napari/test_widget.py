"""The widget in a real napari: run, cancel, errors, what a result inherits."""

from typing import Any

import dask.array
import numpy as np
import pytest
from conftest import LONG, QUICK, colour, is_busy, noisy, run
from qtpy.QtWidgets import QFileDialog

import vnlem
from vnlem.napari.settings import Settings


def test_a_result_is_what_the_library_gives(open_widget: Any, qtbot: Any) -> None:
    image = noisy(64, 64)
    widget = open_widget(image, Settings(profile="fast", noise="gaussian", sigma=20.0))
    layer = run(widget, qtbot)
    assert layer.data.dtype == np.uint16
    assert np.array_equal(layer.data, vnlem.denoise(image, 20.0, profile="fast"))


def test_a_result_keeps_place_units_contrast_and_colours(open_widget: Any, qtbot: Any) -> None:
    widget = open_widget(
        noisy(48, 40),
        scale=(0.5, 0.25),
        translate=(10, -3),
        rotate=30,
        units=("micrometer", "micrometer"),
        contrast_limits=(900, 1300),
        colormap="magma",
        metadata={"stage": 7},
    )
    source = widget.viewer.layers["source"]
    layer = run(widget, qtbot)
    assert layer is not source
    for name in ("scale", "translate", "rotate", "units", "contrast_limits"):
        assert np.all(np.asarray(getattr(layer, name)) == np.asarray(getattr(source, name))), name
    assert layer.colormap.name == "magma"
    assert layer.metadata["stage"] == 7
    assert layer.metadata["vnlem"]["settings"]["method"] == "nlm"
    assert layer.metadata["vnlem"]["version"] == vnlem.__version__


def test_colour(open_widget: Any, qtbot: Any) -> None:
    image = colour(48)
    widget = open_widget(image, rgb=True)
    assert widget.axes.text() == "YXC"
    layer = run(widget, qtbot)
    assert layer.rgb
    assert np.array_equal(layer.data, vnlem.denoise(image, 20.0, method="nlm", channel_axis=-1))


def test_transparency_stays_as_it_is(open_widget: Any, qtbot: Any) -> None:
    colours = colour(32)
    alpha = np.random.default_rng(1).integers(0, 255, (32, 32, 1), np.uint8)
    layer = run(open_widget(np.concatenate([colours, alpha], axis=-1), rgb=True), qtbot)
    assert np.array_equal(layer.data[..., 3:], alpha)
    assert np.array_equal(layer.data[..., :3], vnlem.denoise(colours, 20.0, method="nlm", channel_axis=-1))


def test_the_frames_of_a_time_lapse_help_each_other(open_widget: Any, qtbot: Any) -> None:
    stack = noisy(3, 40, 48)
    widget = open_widget(stack, Settings(profile="fast", noise="gaussian", sigma=20.0))
    assert widget.axes.text() == "TYX"
    layer = run(widget, qtbot)
    assert np.array_equal(layer.data, vnlem.denoise(stack, 20.0, axes="TYX", profile="fast"))


def test_channels_and_depth_have_the_noise_of_their_channel(open_widget: Any, qtbot: Any) -> None:
    stack = np.stack([noisy(2, 64, 64, sigma=10), noisy(2, 64, 64, sigma=40)])
    widget = open_widget(stack, Settings(method="nlm", noise="gaussian"))
    assert widget.axes.text() == "CZYX"
    layer = run(widget, qtbot)
    expected = vnlem.denoise(stack, axes="CZYX", noise_model="gaussian", method="nlm")
    assert np.array_equal(layer.data, expected)
    levels = [model["curves"][0]["variances"][0] for model in layer.metadata["vnlem"]["noise_models"]]
    assert levels == pytest.approx([10**2, 40**2], rel=0.2)


def test_a_lazy_array_is_read_one_page_at_a_time(open_widget: Any, qtbot: Any) -> None:
    stack = noisy(4, 32, 32)
    read = []

    def block(at: Any) -> Any:
        read.append(at.shape)
        return at

    lazy = dask.array.from_array(stack, chunks=(1, 32, 32)).map_blocks(block, dtype=stack.dtype)
    widget = open_widget(lazy, contrast_limits=(900, 1300))
    layer = run(widget, qtbot)
    assert np.array_equal(layer.data, vnlem.denoise(stack, 20.0, method="nlm", axes="TYX"))
    assert set(read) <= {(1, 32, 32), (0, 0, 0), (1, 1, 1)}


def test_pages_of_a_method_without_stacks_stand_alone(open_widget: Any, qtbot: Any) -> None:
    stack = noisy(2, 32, 32)
    layer = run(open_widget(stack, Settings(method="nlem", noise="gaussian", sigma=20.0)), qtbot)
    assert np.array_equal(layer.data[1], vnlem.denoise(stack[1], 20.0, method="nlem"))


def test_a_pyramid_is_denoised_at_full_resolution(open_widget: Any, qtbot: Any) -> None:
    image = noisy(64, 64)
    widget = open_widget([image, image[::2, ::2]], multiscale=True, contrast_limits=(900, 1300))
    layer = run(widget, qtbot)
    assert np.array_equal(layer.data, vnlem.denoise(image, 20.0, method="nlm"))


def test_the_residual_is_what_was_taken_away(open_widget: Any, qtbot: Any) -> None:
    image = noisy(2, 40, 40)
    widget = open_widget(image)
    widget.residual_box.setChecked(True)
    result = run(widget, qtbot)
    residual = widget.viewer.layers["source (residual)"]
    assert np.array_equal(residual.data, image.astype(np.float32) - result.data.astype(np.float32))


def test_cancelling_adds_nothing_and_leaves_the_widget_ready(open_widget: Any, qtbot: Any) -> None:
    widget = open_widget(noisy(500, 64, 64))
    widget.run()
    qtbot.waitUntil(lambda: widget.bar.value() > 0, timeout=LONG)
    assert widget.bar.value() < widget.bar.maximum()
    widget.cancel_button.click()
    qtbot.waitUntil(lambda: not is_busy(widget), timeout=LONG)
    assert [layer.name for layer in widget.viewer.layers] == ["source"]
    assert widget.state.text() == "cancelled"
    assert widget.run_button.isEnabled()


def test_the_time_left_is_shown(open_widget: Any, qtbot: Any) -> None:
    widget = open_widget(noisy(60, 64, 64))
    widget.run()
    qtbot.waitUntil(lambda: widget.state.text().endswith("left"), timeout=LONG)
    qtbot.waitUntil(lambda: not is_busy(widget), timeout=LONG)
    assert widget.state.text().startswith("source: done in")


def test_an_error_is_told_in_full_in_the_panel(open_widget: Any, qtbot: Any, told: list[str]) -> None:
    widget = open_widget(noisy(4, 4), Settings(noise="gaussian", sigma=20.0))
    widget.run()
    qtbot.waitUntil(lambda: not is_busy(widget), timeout=LONG)
    assert widget.error.text() == (
        "source: the image (4x4) is smaller than the patch (8); take a larger image, or another method"
    )
    assert told == []
    assert len(widget.viewer.layers) == 1
    assert widget.state.text() == ""
    assert widget.run_button.isEnabled()


def test_axes_that_do_not_fit_are_told(open_widget: Any) -> None:
    widget = open_widget(noisy(3, 40, 40))
    widget.axes.setText("YX")
    widget.run()
    assert "names 2 axes, but the array has 3" in widget.error.text()
    assert not is_busy(widget)


def test_running_without_a_layer_is_told(open_widget: Any) -> None:
    widget = open_widget(noisy(40, 40))
    widget.viewer.layers.clear()
    widget.run()
    assert widget.error.text() == "there is no image layer; open an image first"


def test_layers_come_and_go_in_the_list(open_widget: Any) -> None:
    widget = open_widget(noisy(40, 40))
    widget.viewer.add_image(noisy(2, 8, 40, 40), name="second")
    widget.layer_choice.setCurrentText("second")
    assert widget.axes.text() == "CZYX"
    widget.viewer.layers.remove("second")
    assert widget.chosen_layer().name == "source"
    assert widget.axes.text() == "YX"


def test_a_closed_widget_is_silent(open_widget: Any, qtbot: Any) -> None:
    widget = open_widget(noisy(40, 40))
    viewer = widget.viewer
    widget.preview_box.setChecked(True)
    viewer.window.remove_dock_widget("all")
    viewer.add_image(noisy(40, 40), name="later")
    viewer.dims.ndisplay = 3
    viewer.dims.ndisplay = 2
    qtbot.wait(500)
    assert [layer.name for layer in viewer.layers] == ["source", "later"]


def test_the_controls_give_back_what_they_were_set_to(open_widget: Any) -> None:
    widget = open_widget(noisy(40, 40))
    for settings in (
        Settings(),
        QUICK,
        Settings(noise="correlated"),
        Settings(profile="fast", group="so2", noise="poisson-gaussian", gain=2.0, offset=5.0, read_noise=3.0),
    ):
        widget.form.show_settings(settings)
        assert widget.form.settings().arguments() == settings.arguments()


def test_a_saved_noise_model_is_used(open_widget: Any, qtbot: Any, tmp_path: Any) -> None:
    path = tmp_path / "noise.json"
    vnlem.NoiseModel.camera(gain=0.4, offset=100.0, read_noise=2.0).save(path)
    image = noisy(48, 48)
    layer = run(open_widget(image, Settings(method="nlm", noise="file", model_file=str(path))), qtbot)
    expected = vnlem.denoise(image, method="nlm", noise_model=vnlem.NoiseModel.load(path))
    assert np.array_equal(layer.data, expected)
    saved = vnlem.NoiseModel.from_dict(layer.metadata["vnlem"]["noise_models"][0])
    assert saved == vnlem.NoiseModel.load(path)


def test_a_file_that_is_no_noise_model_is_told(open_widget: Any, qtbot: Any, tmp_path: Any) -> None:
    path = tmp_path / "other.json"
    path.write_text("[]")
    widget = open_widget(noisy(48, 48), Settings(method="nlm", noise="file", model_file=str(path)))
    widget.run()
    qtbot.waitUntil(lambda: not is_busy(widget), timeout=LONG)
    assert "not a noise model" in widget.error.text()


def test_the_noise_found_can_be_saved(
    open_widget: Any, qtbot: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    widget = open_widget(noisy(48, 48))
    run(widget, qtbot)
    path = tmp_path / "noise.json"
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(path), ""))
    widget.save_noise.click()
    assert vnlem.NoiseModel.load(path) == vnlem.NoiseModel.white(20.0)
