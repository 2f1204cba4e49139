"""The controls of the widget: what the user chooses about noise and method, as a Settings value."""

from collections.abc import Sequence

from qtpy.QtCore import Qt, Signal
from qtpy.QtWidgets import (
    QComboBox,
    QDoubleSpinBox,
    QFileDialog,
    QFormLayout,
    QHBoxLayout,
    QLineEdit,
    QPushButton,
    QWidget,
)
from superqt import QLabeledDoubleSlider  # napari brings it

from vnlem.napari import words
from vnlem.napari.settings import WITH_PROFILES, Settings
from vnlem.registry import names

_ESTIMATED = "estimated"


class SettingsForm(QWidget):
    """Noise, method, profile, rotations and device, one below another."""

    changed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._noise = _combo(words.NOISE, "What the noise is; found from the image, or named")
        self._noise_before = "auto"
        self._caution = _combo(words.CAUTIONS, "Whether to keep what could be fine texture or noise")
        self._sigma = _number("Standard deviation of the noise, in the units of the pixels")
        self._gain = _number("Pixel units per photon")
        self._offset = _number("Pixel value of no light")
        self._offset.setSpecialValueText("")
        self._read_noise = _number("Standard deviation of the read noise, in the units of the pixels")
        self._read_noise.setSpecialValueText("")
        self._coils = _number("Coils whose squares were added up")
        self._coils.setDecimals(0)
        self._coils.setSpecialValueText("one")
        self._looks = _number("Pictures whose intensities were averaged")
        self._file = _FileLine()
        others = {name: name for name in names() if name not in words.METHODS}
        self._method = _combo(words.METHODS | others, "How to denoise; the first is best")
        self._profile = _combo(words.PROFILES, "How much time to spend on the result")
        self._group = _combo(
            words.ROTATIONS, "How similar patches may be turned; any angle helps cells and particles"
        )
        self._device = _combo(words.DEVICES, "Where to compute; a graphics card needs CUDA and CuPy")
        self._lines = _combo(words.LINES, "Rows and columns that differ by offsets or gains")
        self._impulses = _combo(words.IMPULSES, "Hot, dead and stuck pixels, salt and pepper, cosmic rays")
        self._strength = QLabeledDoubleSlider(Qt.Orientation.Horizontal)
        self._strength.setRange(0.0, 1.0)
        self._strength.setSingleStep(0.05)
        self._strength.setDecimals(2)
        for part in (self._strength, *self._strength.findChildren(QWidget)):
            part.setToolTip("Share of the noise that is removed; less than 1 leaves a part of it")
        self.show_settings(Settings())
        self._form = QFormLayout(self)
        self._form.setContentsMargins(0, 0, 0, 0)
        rows: list[tuple[str, QWidget]] = [
            ("noise", self._noise),
            ("caution", self._caution),
            ("sigma", self._sigma),
            ("gain", self._gain),
            ("offset", self._offset),
            ("read noise", self._read_noise),
            ("coils", self._coils),
            ("looks", self._looks),
            ("model", self._file),
            ("method", self._method),
            ("profile", self._profile),
            ("rotations", self._group),
            ("lines", self._lines),
            ("hot pixels", self._impulses),
            ("strength", self._strength),
            ("device", self._device),
        ]
        for label, control in rows:
            self._form.addRow(label, control)
            if isinstance(control, QComboBox):
                control.currentIndexChanged.connect(self._update)
            elif isinstance(control, QDoubleSpinBox | QLabeledDoubleSlider):
                control.valueChanged.connect(self._update)
            else:
                control.changed.connect(self._update)
        self._noise.activated.connect(self._ask_for_a_file)
        self._show_what_applies()

    def insert_rows(self, rows: Sequence[tuple[str, QWidget]]) -> None:
        """Put more controls above these, in the same columns."""
        for place, (label, control) in enumerate(rows):
            self._form.insertRow(place, label, control)

    def settings(self) -> Settings:
        """What is chosen."""
        return Settings(
            method=self._method.currentData(),
            profile=self._profile.currentData(),
            group=self._group.currentData(),
            device=self._device.currentData(),
            strength=round(self._strength.value(), 2),
            lines=self._lines.currentData(),
            impulses=self._impulses.currentData(),
            noise=self._noise.currentData(),
            caution=self._caution.currentData(),
            sigma=self._sigma.value() or None,
            gain=self._gain.value() or None,
            offset=self._offset.value(),
            read_noise=self._read_noise.value(),
            coils=int(self._coils.value()) or None,
            looks=self._looks.value() or None,
            model_file=self._file.text(),
        )

    def show_settings(self, settings: Settings) -> None:
        """Set the controls."""
        for control, choice in (
            (self._method, settings.method),
            (self._profile, settings.profile),
            (self._group, settings.group),
            (self._device, settings.device),
            (self._noise, settings.noise),
            (self._caution, settings.caution),
            (self._lines, settings.lines),
            (self._impulses, settings.impulses),
        ):
            control.setCurrentIndex(max(0, control.findData(choice)))
        for control, value in (
            (self._sigma, settings.sigma),
            (self._gain, settings.gain),
            (self._offset, settings.offset),
            (self._read_noise, settings.read_noise),
            (self._coils, settings.coils),
            (self._looks, settings.looks),
        ):
            control.setValue(value or 0.0)
        self._strength.setValue(settings.strength)
        self._file.set_text(settings.model_file)

    def _ask_for_a_file(self, *_: object) -> None:
        """A saved model was chosen by hand: ask for its file; without one the choice is reverted."""
        if self._noise.currentData() == "file" and not self._file.text() and not self._file.choose():
            self._noise.setCurrentIndex(self._noise.findData(self._noise_before))

    def _update(self, *_: object) -> None:
        if self._noise.currentData() != "file":
            self._noise_before = self._noise.currentData()
        self._show_what_applies()
        self.changed.emit()

    def _show_what_applies(self) -> None:
        noise, method = self._noise.currentData(), self._method.currentData()
        shown = {
            self._caution: noise == "auto",
            self._sigma: noise == "gaussian",
            self._gain: noise == "poisson-gaussian",
            self._offset: noise == "poisson-gaussian" and self._gain.value() > 0,
            self._read_noise: noise == "poisson-gaussian" and self._gain.value() > 0,
            self._coils: noise == "rician",
            self._looks: noise == "speckle",
            self._file: noise == "file",
            self._profile: method in WITH_PROFILES,
            self._group: method in WITH_PROFILES,
        }
        for control, wanted in shown.items():
            self._form.setRowVisible(control, wanted)


class _FileLine(QWidget):
    """The path of a saved noise model."""

    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._line = QLineEdit()
        self._line.setPlaceholderText("noise.json")
        self._line.setToolTip("The file of a noise model that was saved here or by vnlem noise")
        button = QPushButton("...")
        button.setFixedWidth(28)
        button.setToolTip("Choose the file of a noise model")
        button.clicked.connect(self.choose)
        self._line.editingFinished.connect(self.changed)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(self._line)
        row.addWidget(button)

    def text(self) -> str:
        return str(self._line.text())

    def set_text(self, text: str) -> None:
        self._line.setText(text)
        self.changed.emit()

    def choose(self, *_: object) -> bool:
        """Ask for a file; False if none was chosen."""
        path, _ = QFileDialog.getOpenFileName(self, "A saved noise model", "", "Noise models (*.json)")
        if path:
            self.set_text(path)
        return bool(path)


def _combo(meanings: dict[str, str], tip: str) -> QComboBox:
    control = QComboBox()
    for value, meaning in meanings.items():
        control.addItem(meaning, value)
    control.setToolTip(tip)
    return control


def _number(tip: str) -> QDoubleSpinBox:
    """A number; 0 means estimate it."""
    control = QDoubleSpinBox()
    control.setDecimals(4)
    control.setRange(0.0, 1e9)
    control.setStepType(QDoubleSpinBox.StepType.AdaptiveDecimalStepType)
    control.setSpecialValueText(_ESTIMATED)
    control.setKeyboardTracking(False)
    control.setToolTip(tip)
    return control
