"""The controls of the widget and their layout; what they do is in `widget`."""

from collections.abc import Callable
from typing import Any

from napari.viewer import Viewer
from qtpy.QtCore import Qt
from qtpy.QtWidgets import (
    QCheckBox,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QProgressBar,
    QPushButton,
    QSlider,
    QVBoxLayout,
    QWidget,
)

from vnlem.napari.choice import LayerChoice
from vnlem.napari.form import SettingsForm
from vnlem.napari.noise_plot import NoisePlot


class Panel(QWidget):
    """Layer, axes, settings, noise, preview, run and copies, from top to bottom."""

    def __init__(self, viewer: Viewer, offers: Callable[[Any], bool], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.layer_choice = LayerChoice(viewer, offers)
        self.layer_choice.setToolTip("The image to denoise; it follows the layer that you select")
        self.axes = QLineEdit()
        self.axes.setToolTip("One letter per dimension: T time, Z depth, C channels, N several images, Y, X")
        self.form = SettingsForm()
        self.noise_words = _text()
        self.noise_plot = NoisePlot()
        self.save_noise = _button("Save this noise model", "For other images of the same detector")
        self.preview_box = QCheckBox("Preview what is in sight")
        self.preview_box.setToolTip("Denoise the part in sight after every change; a box shows which part")
        self.wipe = QSlider(Qt.Orientation.Horizontal)
        self.wipe.setRange(0, 100)
        self.wipe.setEnabled(False)
        self.wipe.setToolTip("Wipe over the preview: before on the left, after on the right")
        self.residual_box = QCheckBox("Add the residual (what is removed)")
        self.residual_box.setToolTip("A second layer: source minus result; it should show no structure")
        self.run_button = _button("Run", "Denoise the whole layer, or all selected layers, in the background")
        self.cancel_button = _button("Cancel", "End the run; nothing more is added")
        self.bar = QProgressBar()
        self.bar.setRange(0, 1000)
        self.state = _text()
        self.error = _text()
        self.error.setStyleSheet("color: #ff6b5e;")
        self.reset = _button("Defaults", "Put every setting back to its default")
        self.copy_python = _button("Copy as Python", "Copy lines of Python that do the same")
        self.copy_command = _button("Copy as command", "Copy a command for a shell that does the same")
        self._lay_out()

    def _lay_out(self) -> None:
        self.form.insert_rows([("image", self.layer_choice), ("axes", self.axes)])
        wipe, row, copies = QHBoxLayout(), QHBoxLayout(), QHBoxLayout()
        for line, parts in (
            (wipe, (QLabel("before"), self.wipe, QLabel("after"))),
            (row, (self.run_button, self.cancel_button)),
            (copies, (self.reset, self.copy_python, self.copy_command)),
        ):
            for part in parts:
                line.addWidget(part)
        column = QVBoxLayout(self)
        for part in (self.form, self.noise_words, self.noise_plot, self.save_noise, self.preview_box):
            column.addWidget(part)
        column.addLayout(wipe)
        column.addWidget(self.residual_box)
        column.addLayout(row)
        for part in (self.bar, self.state, self.error):
            column.addWidget(part)
        column.addLayout(copies)
        column.setAlignment(Qt.AlignmentFlag.AlignTop)


def _text() -> QLabel:
    label = QLabel()
    label.setWordWrap(True)
    label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    return label


def _button(words: str, tip: str) -> QPushButton:
    button = QPushButton(words)
    button.setToolTip(tip)
    return button
