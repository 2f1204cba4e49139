"""The preview: the part in sight, at its place, shortly after a change."""

from typing import Any

import numpy as np
from conftest import LONG, QUICK, colour, is_busy, noisy

import vnlem
from vnlem.napari.layers import layer_pages, visible_crop
from vnlem.napari.settings import Settings


def show(widget: Any, qtbot: Any) -> Any:
    """Switch the preview on and wait for its layer."""
    widget.preview_box.setChecked(True)
    return wait(widget, qtbot)


def wait(widget: Any, qtbot: Any) -> Any:
    """Wait until no preview is waiting or under way."""
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


def test_at_most_512_pixels_around_the_middle_of_the_view(open_widget: Any) -> None:
    widget = open_widget(noisy(700, 900))
    source = widget.viewer.layers["source"]
    source.corner_pixels = np.array([[0, 0], [699, 899]])
    crop = visible_crop(source, layer_pages(source, "YX"), widget.viewer.dims.point)
    assert crop.index == (slice(94, 606), slice(194, 706))


def test_the_page_in_sight_is_the_one_previewed(open_widget: Any, qtbot: Any) -> None:
    stack = noisy(4, 40, 40)
    widget = open_widget(stack)
    widget.viewer.dims.set_current_step(0, 2)
    layer = show(widget, qtbot)
    assert layer.data.shape == (1, 40, 40)
    assert np.array_equal(layer.data[0], vnlem.denoise(stack[2], 20.0, method="nlm"))
    assert layer.translate[0] == 2
    widget.viewer.dims.set_current_step(0, 1)
    layer = wait(widget, qtbot)
    assert layer.translate[0] == 1


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
