"""The preview: the part in sight, at its place, shortly after a change."""

from typing import Any

import dask.array
import numpy as np
import pytest
from conftest import LONG, QUICK, colour, is_busy, noisy, run

import vnlem
from vnlem.napari import preview
from vnlem.napari.layers import layer_pages, visible_crop
from vnlem.napari.settings import Settings


def show(widget: Any, qtbot: Any) -> Any:
    """Switch the preview on and wait for its layer."""
    widget.preview_box.setChecked(True)
    return wait(widget, qtbot)


def wait(widget: Any, qtbot: Any) -> Any:
    """Wait until no preview is pending or active."""
    preview = widget.preview
    qtbot.waitUntil(lambda: not preview._timer.isActive() and not is_busy(widget), timeout=LONG)
    return preview.layer()


def test_the_preview_is_the_denoised_view(open_widget: Any, qtbot: Any) -> None:
    image = noisy(60, 50)
    layer = show(open_widget(image), qtbot)
    assert np.array_equal(layer.data, vnlem.denoise(image, 20.0, method="nlm"))


def test_a_crop_lies_where_its_pixels_are(open_widget: Any, qtbot: Any) -> None:
    image = noisy(120, 120)
    widget = open_widget(image, scale=(2.0, 0.5), translate=(100, -7), rotate=20)
    source = widget.viewer.layers["source"]
    source.corner_pixels = np.array([[30, 20], [79, 99]])
    layer = show(widget, qtbot)
    assert layer.data.shape == (50, 80)
    assert np.allclose(layer.data_to_world((3, 5)), source.data_to_world((33, 25)))
    expected = vnlem.denoise(image[30:80, 20:100], 20.0, method="nlm")
    assert np.array_equal(layer.data, expected)


def test_so_many_pixels_around_the_middle_of_the_view(open_widget: Any) -> None:
    widget = open_widget(noisy(700, 900))
    source = widget.viewer.layers["source"]
    source.corner_pixels = np.array([[0, 0], [699, 899]])
    crop = visible_crop(source, layer_pages(source, "YX"), widget.viewer.dims.point, 512)
    assert crop.index == (slice(94, 606), slice(194, 706))


def test_the_page_in_sight_is_the_one_previewed(open_widget: Any, qtbot: Any) -> None:
    stack = noisy(4, 40, 40)
    widget = open_widget(stack, Settings(method="nlem", noise="gaussian", sigma=20.0))
    widget.viewer.dims.set_current_step(0, 2)
    layer = show(widget, qtbot)
    assert layer.data.shape == (1, 40, 40)
    assert np.array_equal(layer.data[0], vnlem.denoise(stack[2], 20.0, method="nlem"))
    assert layer.translate[0] == 2
    widget.viewer.dims.set_current_step(0, 1)
    layer = wait(widget, qtbot)
    assert layer.translate[0] == 1


@pytest.mark.parametrize(("here", "first"), [(0, 0), (5, 2), (9, 5), (11, 5)])
def test_a_few_pages_help_the_one_in_sight(open_widget: Any, qtbot: Any, here: int, first: int) -> None:
    stack = noisy(12, 40, 40)
    widget = open_widget(stack)
    widget.viewer.dims.set_current_step(0, here)
    layer = show(widget, qtbot)
    expected = vnlem.denoise(stack[first : first + 7], 20.0, axes="TYX", method="nlm")
    assert np.array_equal(layer.data, expected[here - first][None])
    assert layer.translate[0] == here


def test_the_preview_of_a_short_stack_is_what_running_gives(open_widget: Any, qtbot: Any) -> None:
    stack = noisy(4, 48, 48)
    widget = open_widget(stack, Settings(profile="fast"))
    widget.viewer.dims.set_current_step(0, 1)
    layer = show(widget, qtbot)
    widget.preview_box.setChecked(False)
    assert np.array_equal(layer.data[0], run(widget, qtbot).data[1])


def test_a_crop_of_a_stack_lies_where_its_pixels_are(open_widget: Any, qtbot: Any) -> None:
    stack = noisy(9, 120, 400)
    widget = open_widget(stack, scale=(3.0, 2.0, 0.5), translate=(1, 100, -7))
    source = widget.viewer.layers["source"]
    widget.viewer.dims.set_current_step(0, 6)
    source.corner_pixels = np.array([[0, 30, 0], [8, 79, 399]])
    layer = show(widget, qtbot)
    assert layer.data.shape == (1, 50, 256)
    assert np.allclose(layer.data_to_world((0, 3, 5)), source.data_to_world((6, 33, 77)))
    expected = vnlem.denoise(stack[2:, 30:80, 72:328], 20.0, axes="TYX", method="nlm")
    assert np.array_equal(layer.data[0], expected[4])


def test_a_channel_of_a_lazy_volume(open_widget: Any, qtbot: Any) -> None:
    stack = np.stack([noisy(9, 48, 48, sigma=10), noisy(9, 48, 48, sigma=40)])
    lazy = dask.array.from_array(stack, chunks=(1, 1, 48, 48))
    widget = open_widget(lazy, Settings(method="nlm", noise="gaussian"), contrast_limits=(900, 1300))
    widget.viewer.dims.set_current_step((0, 1), (1, 4))
    layer = show(widget, qtbot)
    _, info = vnlem.denoise(stack, axes="CZYX", noise_model="gaussian", method="nlm", return_info=True)
    noise = info.details["noise_models"][1]
    expected = vnlem.denoise(stack[1, 1:8], axes="ZYX", noise_model=noise, method="nlm")
    assert np.array_equal(layer.data, expected[3][None, None])
    assert tuple(layer.translate[:2]) == (1, 4)


def test_a_preview_that_is_out_of_date_ends_early(open_widget: Any, qtbot: Any) -> None:
    widget = open_widget(noisy(30, 200, 200), Settings(profile="quality", noise="gaussian", sigma=20.0))
    widget.preview_box.setChecked(True)
    qtbot.waitUntil(lambda: widget.preview._task is not None, timeout=LONG)
    stale = widget.preview._task
    widget.form.show_settings(QUICK)
    assert stale.is_cancelled
    layer = wait(widget, qtbot)
    here = widget.viewer.dims.current_step[0]
    stack = widget.viewer.layers["source"].data
    expected = vnlem.denoise(stack[here - 3 : here + 4], 20.0, axes="TYX", method="nlm")
    assert np.array_equal(layer.data[0], expected[3])


def test_the_noise_is_found_once_for_the_same_choices(
    open_widget: Any, qtbot: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    find = preview.find_stack_noise
    monkeypatch.setattr(preview, "find_stack_noise", lambda *given: found.append(1) or find(*given))
    widget = open_widget(noisy(5, 40, 40))
    show(widget, qtbot)
    widget.viewer.dims.set_current_step(0, 1)
    wait(widget, qtbot)
    assert len(found) == 1
    widget.form.show_settings(Settings(method="nlm", noise="gaussian", sigma=30.0))
    wait(widget, qtbot)
    assert len(found) == 2


def test_a_change_is_previewed_once_after_the_last_of_several(open_widget: Any, qtbot: Any) -> None:
    image = noisy(40, 40)
    widget = open_widget(image)
    layer = show(widget, qtbot)
    begun: list[bool] = []
    widget.preview.busy.connect(lambda busy: begun.append(busy) if busy else None)
    for sigma in (30.0, 40.0, 50.0):
        widget.form.show_settings(Settings(method="nlm", noise="gaussian", sigma=sigma))
    assert wait(widget, qtbot) is layer
    assert begun == [True]
    assert np.array_equal(layer.data, vnlem.denoise(image, 50.0, method="nlm"))


def test_the_noise_found_is_said_and_drawn(open_widget: Any, qtbot: Any) -> None:
    widget = open_widget(noisy(64, 64), Settings(method="nlm"))
    show(widget, qtbot)
    assert widget.noise_words.text().startswith("Noise: white noise, sigma 2")
    assert "imulated noise of this kind looks like your image: " in widget.noise_words.text()
    assert widget.noise_plot._curve is not None


def test_colour_is_previewed_in_colour(open_widget: Any, qtbot: Any) -> None:
    image = colour(40)
    layer = show(open_widget(image, rgb=True), qtbot)
    assert layer.rgb
    assert layer.data.shape == image.shape


def test_switching_off_removes_the_layer_and_keeps_the_selection(open_widget: Any, qtbot: Any) -> None:
    widget = open_widget(noisy(40, 40))
    show(widget, qtbot)
    assert widget.viewer.layers.selection.active.name == "source"
    assert widget.layer_choice.count() == 1
    widget.preview_box.setChecked(False)
    assert [layer.name for layer in widget.viewer.layers] == ["source"]


def test_a_preview_of_light_that_adds_up_hides_its_source(open_widget: Any, qtbot: Any) -> None:
    widget = open_widget(noisy(40, 40), QUICK, blending="additive")
    assert show(widget, qtbot).blending == "translucent"


def test_what_a_run_said_stays_while_the_preview_is_renewed(open_widget: Any, qtbot: Any) -> None:
    widget = open_widget(noisy(60, 50))
    show(widget, qtbot)
    assert widget.state.text() == ""
    said: list[str] = []
    widget.preview.busy.connect(lambda busy: said.append(widget.state.text()))
    run(widget, qtbot)
    wait(widget, qtbot)
    assert any("done in" in text and text.endswith("preview: working") for text in said)
    assert widget.state.text().startswith("source: done in")
    assert "preview" not in widget.state.text()
