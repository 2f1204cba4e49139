"""The widget in everyday use: several layers, corrections, errors, settings that stay."""

import inspect
import re
from typing import Any

import numpy as np
import pytest
from conftest import LONG, QUICK, is_busy, noisy, run
from qtpy.QtWidgets import (
    QAbstractSpinBox,
    QCheckBox,
    QComboBox,
    QFileDialog,
    QLineEdit,
    QPushButton,
    QSlider,
)

import vnlem
from vnlem.napari import words
from vnlem.napari.settings import Settings
from vnlem.napari.task import one_sentence


def type_axes(widget: Any, letters: str) -> None:
    """Type letters for the dimensions, and leave the field."""
    widget.axes.setText(letters)
    widget.axes.editingFinished.emit()


def test_corrected_axes_stay_and_are_used_again(open_widget: Any, qtbot: Any) -> None:
    widget = open_widget(noisy(3, 40, 40))
    assert widget.axes.text() == "TYX"
    type_axes(widget, "zyx")
    first = run(widget, qtbot)
    assert widget.axes.text().upper() == "ZYX"
    second = run(widget, qtbot)
    assert first.metadata["vnlem"]["axes"] == second.metadata["vnlem"]["axes"] == "ZYX"


def test_corrected_axes_come_back_with_their_layer(open_widget: Any) -> None:
    widget = open_widget(noisy(3, 40, 40))
    type_axes(widget, "NYX")
    widget.viewer.add_image(noisy(5, 40, 40), name="other")
    assert widget.chosen_layer().name == "other"
    assert widget.axes.text() == "TYX"
    widget.viewer.layers.selection.active = widget.viewer.layers["source"]
    assert widget.axes.text() == "NYX"


def test_a_change_of_the_layer_list_leaves_the_choice_and_the_texts(open_widget: Any, qtbot: Any) -> None:
    widget = open_widget(noisy(3, 40, 40))
    type_axes(widget, "ZYX")
    run(widget, qtbot)
    said = widget.noise_words.text(), widget.state.text()
    assert all(said)
    widget.viewer.add_points(np.zeros((1, 3)))
    widget.viewer.layers.selection.active = None
    widget.viewer.layers.move(0, 2)
    assert widget.chosen_layer().name == "source"
    assert widget.axes.text() == "ZYX"
    assert (widget.noise_words.text(), widget.state.text()) == said


def test_a_renamed_layer_stays_chosen(open_widget: Any, qtbot: Any) -> None:
    widget = open_widget(noisy(3, 40, 40))
    source = widget.viewer.layers["source"]
    type_axes(widget, "ZYX")
    run(widget, qtbot)
    source.name = "cells"
    assert widget.chosen_layer() == source
    assert widget.layer_choice.currentText() == "cells"
    assert widget.axes.text() == "ZYX"


def test_the_choice_follows_the_selected_layer_but_not_to_a_result(open_widget: Any, qtbot: Any) -> None:
    widget = open_widget(noisy(40, 40))
    source = widget.viewer.layers["source"]
    result = run(widget, qtbot)
    assert widget.chosen_layer() == source
    widget.viewer.layers.selection.active = result
    assert widget.chosen_layer() == source
    other = widget.viewer.add_image(noisy(48, 48), name="other")
    assert widget.chosen_layer() == other
    widget.viewer.layers.selection.active = source
    assert widget.chosen_layer() == source


def test_what_was_said_of_one_layer_is_not_said_of_another(open_widget: Any, qtbot: Any) -> None:
    widget = open_widget(noisy(40, 40))
    run(widget, qtbot)
    assert not widget.save_noise.isHidden()
    widget.viewer.add_image(noisy(48, 48), name="other")
    assert widget.noise_words.text() == widget.state.text() == ""
    assert widget.save_noise.isHidden()
    assert widget._noise is None


@pytest.mark.parametrize("change", ["noise", "pixels", "axes"])
def test_what_was_found_is_forgotten_when_it_no_longer_holds(
    open_widget: Any, qtbot: Any, change: str
) -> None:
    widget = open_widget(noisy(3, 40, 40))
    run(widget, qtbot)
    assert widget._noise is not None
    if change == "noise":
        widget.form.show_settings(Settings(method="nlm", noise="gaussian", sigma=5.0))
    elif change == "pixels":
        widget.viewer.layers["source"].data = noisy(3, 40, 40, seed=1)
    else:
        type_axes(widget, "ZYX")
    assert widget._noise is None
    assert widget.noise_words.text() == ""


def test_selected_layers_are_denoised_one_after_the_other(open_widget: Any, qtbot: Any) -> None:
    widget = open_widget(noisy(40, 40))
    viewer = widget.viewer
    other = viewer.add_image(noisy(3, 32, 32), name="other")
    viewer.add_image(noisy(32, 32), name="not selected")
    viewer.layers.selection = {viewer.layers["source"], other}
    assert widget.run_button.text() == "Run on 2 layers"
    run(widget, qtbot)
    made = {layer.name: layer for layer in viewer.layers if "vnlem" in layer.metadata}
    assert set(made) == {"source (nlm)", "other (nlm)"}
    expected = vnlem.denoise(other.data, 20.0, method="nlm", axes="TYX")
    assert np.array_equal(made["other (nlm)"].data, expected)


def test_a_layer_that_fails_does_not_stop_the_others(open_widget: Any, qtbot: Any) -> None:
    broken = noisy(40, 40).astype(np.float32)
    broken[3, 3] = np.inf
    widget = open_widget(broken, contrast_limits=(900, 1300))
    viewer = widget.viewer
    viewer.add_image(noisy(32, 32), name="other")
    viewer.layers.selection = set(viewer.layers)
    run(widget, qtbot)
    assert widget.error.text().startswith("source: the image holds 1 NaN")
    assert "other (nlm)" in viewer.layers


@pytest.mark.parametrize("axes", ["YX", "TYX", "ZYX"])
@pytest.mark.parametrize("strength", [1.0, 0.5])
def test_missing_pixels_are_filled(open_widget: Any, qtbot: Any, axes: str, strength: float) -> None:
    holed = noisy(3, 40, 40).astype(np.float32)[:: 3 if axes == "YX" else 1].squeeze()
    holed[..., 3:6, 3:6] = np.nan
    settings = Settings(noise="gaussian", sigma=20.0, profile="fast", strength=strength)
    widget = open_widget(holed, settings, contrast_limits=(900, 1300))
    type_axes(widget, axes)
    result = run(widget, qtbot).data
    assert widget.error.text() == ""
    expected = vnlem.denoise(holed, 20.0, profile="fast", axes=axes, strength=strength)
    assert np.abs(result - expected).max() < 5


@pytest.mark.parametrize("axes", ["YX", "TYX"])
def test_the_noise_around_missing_pixels_is_found(open_widget: Any, qtbot: Any, axes: str) -> None:
    holed = noisy(3, 64, 64).astype(np.float32)[:: 3 if axes == "YX" else 1].squeeze()
    holed[..., 3:6, 3:6] = np.nan
    widget = open_widget(holed, Settings(profile="fast"), contrast_limits=(900, 1300))
    widget.preview_box.setChecked(True)
    qtbot.waitUntil(lambda: widget.preview.layer() is not None and not is_busy(widget), timeout=LONG)
    assert np.isfinite(widget.preview.layer().data).all()
    assert 18 < widget._noise.sigma < 22
    result = run(widget, qtbot)
    assert widget.error.text() == ""
    assert np.isfinite(result.data).all()


def test_a_composite_stays_one(open_widget: Any, qtbot: Any) -> None:
    widget = open_widget(noisy(40, 40), blending="translucent_no_depth")
    viewer = widget.viewer
    first = viewer.layers["source"]
    second = viewer.add_image(noisy(40, 40), name="second", blending="additive")
    viewer.layers.selection.active = first
    result = run(widget, qtbot)
    assert result.visible
    assert second.visible
    order = [first, result, second]
    assert list(viewer.layers) == order
    again = run(widget, qtbot)
    assert list(viewer.layers) == [first, result, again, second]


def test_the_preview_lies_above_a_result(open_widget: Any, qtbot: Any) -> None:
    widget = open_widget(noisy(40, 40))
    viewer = widget.viewer
    result = run(widget, qtbot)
    widget.preview_box.setChecked(True)
    qtbot.waitUntil(lambda: widget.preview.layer() is not None and not is_busy(widget), timeout=LONG)
    preview = widget.preview.layer()
    assert viewer.layers.index(preview) > viewer.layers.index(result)
    assert preview.bounding_box.visible
    newer = run(widget, qtbot)
    assert viewer.layers.index(preview) > viewer.layers.index(newer)


def test_the_wipe_shows_the_source_on_the_left(open_widget: Any, qtbot: Any) -> None:
    image = noisy(40, 60)
    widget = open_widget(image)
    widget.preview_box.setChecked(True)
    qtbot.waitUntil(lambda: widget.preview.layer() is not None and not is_busy(widget), timeout=LONG)
    denoised = vnlem.denoise(image, 20.0, method="nlm")
    widget.wipe.setValue(50)
    layer = widget.preview.layer()
    assert np.array_equal(layer.data[:, :30], image[:, :30])
    assert np.array_equal(layer.data[:, 30:], denoised[:, 30:])
    widget.wipe.setValue(0)
    assert np.array_equal(layer.data, denoised)


def test_every_control_says_what_it_is_for(open_widget: Any) -> None:
    widget = open_widget(noisy(40, 40))
    kinds = (QComboBox, QAbstractSpinBox, QCheckBox, QPushButton, QSlider)
    controls = [control for kind in kinds for control in widget.findChildren(kind)]
    controls += [
        line for line in widget.findChildren(QLineEdit) if not line.parent().inherits("QAbstractSpinBox")
    ]
    assert len(controls) > 20
    assert not [control for control in controls if not control.toolTip()]


def test_the_default_method_comes_first_and_every_method_has_words(open_widget: Any) -> None:
    from vnlem.registry import DEFAULT_METHOD, METHODS

    control = open_widget(noisy(40, 40)).form._method
    assert control.itemData(0) == DEFAULT_METHOD
    assert {control.itemData(place) for place in range(control.count())} == set(METHODS)
    assert all(control.itemText(place) != control.itemData(place) for place in range(control.count()))


@pytest.mark.parametrize("path", ["", "noise.json"])
def test_a_saved_model_asks_for_its_file(open_widget: Any, monkeypatch: Any, path: str) -> None:
    form = open_widget(noisy(40, 40)).form
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: (path, ""))
    form._noise.setCurrentIndex(form._noise.findData("file"))
    form._noise.activated.emit(form._noise.currentIndex())
    assert form.settings().noise == ("file" if path else "gaussian")
    assert form.settings().model_file == path


def test_settings_stay_but_numbers_of_one_image_do_not(open_widget: Any, qtbot: Any) -> None:
    chosen = Settings(profile="fast", group="so2", noise="gaussian", sigma=12.0)
    widget = open_widget(noisy(40, 40), chosen)
    viewer = widget.viewer
    viewer.window.remove_dock_widget("all")
    _, again = viewer.window.add_plugin_dock_widget("vnlem", "Denoise")
    kept = again.form.settings()
    assert (kept.profile, kept.group, kept.noise, kept.sigma) == ("fast", "so2", "gaussian", None)
    again.reset.click()
    assert again.form.settings().arguments() == Settings().arguments()
    again.end()


NAN = np.full((32, 32), np.nan)
FAILING: list[tuple[Any, dict[str, Any]]] = [
    (noisy(4, 4), {"sigma": 1.0}),
    (NAN, {}),
    (np.full((32, 32), np.inf), {}),
    (np.ones((32, 32), bool), {}),
    (-noisy(32, 32).astype(float), {"noise_model": "rician"}),
    (np.ones((32, 32)), {"device": "cuda"}),
    (noisy(3, 32, 32), {"axes": "TYX", "group": "so2"}),
]


@pytest.mark.parametrize(("image", "arguments"), FAILING)
def test_errors_speak_of_controls_and_not_of_python(image: Any, arguments: dict[str, Any]) -> None:
    with pytest.raises((ValueError, TypeError)) as caught:
        vnlem.denoise(image, **arguments)
    said = one_sentence(caught.value)
    parameters = {name for name in inspect.signature(vnlem.denoise).parameters if "_" in name}
    parameters |= {"patch_size", "numpy", "astype"}
    assert not [name for name in parameters if re.search(rf"\b{name}\b", said)]
    assert not re.search(r"\w+='", said)


def test_all_words_name_choices_that_exist() -> None:
    chosen = Settings()
    for value, meanings in (
        (chosen.profile, words.PROFILES),
        (chosen.group, words.ROTATIONS),
        (chosen.caution, words.CAUTIONS),
        (chosen.noise, words.NOISE),
        (chosen.device, words.DEVICES),
        (chosen.lines, words.LINES),
        (chosen.impulses, words.IMPULSES),
    ):
        assert value == next(iter(meanings))  # the first choice is the default
    assert QUICK.method in words.METHODS
