"""The controls of the widget: what the user chooses about noise and method, as a Settings value."""

from collections.abc import Sequence

from qtpy.QtCore import Signal
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

from vnlem.napari.settings import CAUTIONS, DEVICES, GROUPS, NOISE_KINDS, PROFILES, WITH_PROFILES, Settings
from vnlem.registry import DEFAULT_METHOD, names

_NOISE_WORDS = {
    "auto": "auto: find out",
    "gaussian": "white (sigma)",
    "poisson-gaussian": "photons and read noise",
    "correlated": "alike in neighbouring pixels",
    "rician": "Rician: magnitudes (MRI)",
    "speckle": "speckle (OCT, ultrasound, radar)",
    "file": "a saved model",
}
_GROUP_WORDS = {
    "d4": "quarter turns and reflections",
    "identity": "none",
    "c4": "quarter turns",
    "so2": "any angle (slower)",
    "similarity": "any angle, wide window (slowest)",
}
_CAUTION_WORDS = {"auto": "auto", "safe": "safe: texture stays", "strong": "strong: known to be noisy"}
_ESTIMATED = "estimated"


class SettingsForm(QWidget):
    """Noise, method, profile, rotations and device, one under the other."""

    changed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._noise = _combo([(_NOISE_WORDS[kind], kind) for kind in NOISE_KINDS])
        self._caution = _combo([(_CAUTION_WORDS[name], name) for name in CAUTIONS])
        self._caution.setToolTip("What to take for noise where texture looks like it")
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
        self._method = _combo([(name, name) for name in names()])
        self._method.setCurrentIndex(self._method.findData(DEFAULT_METHOD))
        self._profile = _combo([(name, name) for name in PROFILES])
        self._profile.setCurrentIndex(self._profile.findData("balanced"))
        self._group = _combo([(_GROUP_WORDS[name], name) for name in GROUPS])
        self._device = _combo([(name, name) for name in DEVICES])
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
            ("device", self._device),
        ]
        for label, control in rows:
            self._form.addRow(label, control)
            if isinstance(control, QComboBox):
                control.currentIndexChanged.connect(self._update)
            elif isinstance(control, QDoubleSpinBox):
                control.valueChanged.connect(self._update)
            else:
                control.changed.connect(self._update)
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
        ):
            control.setCurrentIndex(control.findData(choice))
        for control, value in (
            (self._sigma, settings.sigma),
            (self._gain, settings.gain),
            (self._offset, settings.offset),
            (self._read_noise, settings.read_noise),
            (self._coils, settings.coils),
            (self._looks, settings.looks),
        ):
            control.setValue(value or 0.0)
        self._file.set_text(settings.model_file)

    def _update(self, *_: object) -> None:
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
        button = QPushButton("...")
        button.setFixedWidth(28)
        button.clicked.connect(self._choose)
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

    def _choose(self) -> None:
        path, _ = QFileDialog.getOpenFileName(self, "A saved noise model", "", "Noise models (*.json)")
        if path:
            self.set_text(path)


def _combo(choices: Sequence[tuple[str, str]]) -> QComboBox:
    control = QComboBox()
    for words, value in choices:
        control.addItem(words, value)
    return control


def _number(tip: str) -> QDoubleSpinBox:
    """A number that is estimated while it is 0."""
    control = QDoubleSpinBox()
    control.setDecimals(4)
    control.setRange(0.0, 1e9)
    control.setStepType(QDoubleSpinBox.StepType.AdaptiveDecimalStepType)
    control.setSpecialValueText(_ESTIMATED)
    control.setKeyboardTracking(False)
    control.setToolTip(tip)
    return control
