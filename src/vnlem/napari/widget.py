"""The widget of the plugin: choose, preview, run."""

from pathlib import Path
from typing import Any

from napari.layers import Image
from napari.utils.notifications import show_info
from napari.viewer import Viewer
from qtpy.QtCore import QEvent, Qt
from qtpy.QtGui import QGuiApplication
from qtpy.QtWidgets import (
    QCheckBox,
    QComboBox,
    QFileDialog,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QProgressBar,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from vnlem.napari.copies import as_command, as_python
from vnlem.napari.form import SettingsForm
from vnlem.napari.layers import colours, image_expression, layer_axes, layer_pages
from vnlem.napari.links import Links
from vnlem.napari.noise_plot import NoisePlot
from vnlem.napari.preview import LAYER_NAME, Preview, Wish
from vnlem.napari.run import Outcome, add_results, denoise_layer
from vnlem.napari.task import Task, tell
from vnlem.noise import NoiseCheck, NoiseModel


class DenoiseWidget(QWidget):
    """Denoise an image layer with vnlem.

    Parameters
    ----------
    viewer : napari.viewer.Viewer
        The viewer whose layers are offered.
    """

    def __init__(self, viewer: Viewer, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.viewer = viewer
        self.layer_choice = QComboBox()
        self.axes = QLineEdit()
        self.axes.setToolTip("One letter per dimension: T time, Z depth, C channels, N several images, Y, X")
        self.form = SettingsForm()
        self.noise_words = QLabel()
        self.noise_words.setWordWrap(True)
        self.noise_plot = NoisePlot()
        self.save_noise = QPushButton("Save this noise model")
        self.save_noise.setToolTip("For other images of the same detector and settings")
        self._noise: NoiseModel | None = None
        self.preview_box = QCheckBox("Preview what is in sight")
        self.residual_box = QCheckBox("Add the residual (what is taken away)")
        self.run_button = QPushButton("Run")
        self.cancel_button = QPushButton("Cancel")
        self.bar = QProgressBar()
        self.bar.setRange(0, 1000)
        self.state = QLabel()
        self.state.setWordWrap(True)
        self.copy_python = QPushButton("Copy as Python")
        self.copy_command = QPushButton("Copy as command")
        self.preview = Preview(viewer, self._wish)
        self._task: Task | None = None
        self._lay_out()
        self._connect()
        self._list_layers()
        self._show_running(False)

    def chosen_layer(self) -> Image | None:
        """The image layer to denoise."""
        name = self.layer_choice.currentText()
        return self.viewer.layers[name] if name and name in self.viewer.layers else None

    def run(self) -> None:
        """Denoise the whole layer in the background."""
        wish = self._wish()
        if wish is None or self._task is not None:
            if wish is None and self.chosen_layer() is None:
                tell("there is no image layer; open an image first")
            return
        self.preview.stop()
        self._task = task = Task(lambda report: denoise_layer(wish.layer, wish.pages, wish.settings, report))
        task.progressed.connect(self._show_progress)
        task.succeeded.connect(self._show_result)
        task.failed.connect(self._show_failure)
        task.ended.connect(self._end)
        self._show_running(True)
        task.start()

    def cancel(self) -> None:
        """End what is running; nothing is added."""
        if self._task is not None:
            self._task.cancel()
            self.state.setText("cancelling")

    def changeEvent(self, event: Any) -> None:  # noqa: N802 - Qt's name
        """Taken out of the window, as napari does it: end."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.ParentChange and self.parent() is None:
            self.end()

    def closeEvent(self, event: Any) -> None:  # noqa: N802 - Qt's name
        """Closed: end."""
        self.end()
        super().closeEvent(event)

    def end(self) -> None:
        """End all work; the viewer is not listened to any more."""
        self.cancel()
        self.preview.switch(False)
        self._links.cut()

    def _wish(self) -> Wish | None:
        layer = self.chosen_layer()
        if layer is None:
            return None
        try:
            return Wish(layer, layer_pages(layer, self.axes.text()), self.form.settings())
        except ValueError as error:
            tell(error)
            return None

    def _lay_out(self) -> None:
        self.form.insert_rows([("image", self.layer_choice), ("axes", self.axes)])
        row, copies = QHBoxLayout(), QHBoxLayout()
        row.addWidget(self.run_button)
        row.addWidget(self.cancel_button)
        copies.addWidget(self.copy_python)
        copies.addWidget(self.copy_command)
        column = QVBoxLayout(self)
        for part in (
            self.form,
            self.noise_words,
            self.noise_plot,
            self.save_noise,
            self.preview_box,
            self.residual_box,
        ):
            column.addWidget(part)
        column.addLayout(row)
        column.addWidget(self.bar)
        column.addWidget(self.state)
        column.addLayout(copies)
        column.setAlignment(Qt.AlignmentFlag.AlignTop)

    def _connect(self) -> None:
        layers = self.viewer.layers.events
        # napari 0.9 keeps the camera in the scene, older ones in the viewer itself.
        camera = getattr(self.viewer, "scene", self.viewer).camera.events
        self._links = links = Links()
        for event in (layers.inserted, layers.removed, layers.reordered, layers.renamed):
            links.make(event, self._list_layers)
        for event in (camera.center, camera.zoom, self.viewer.dims.events.point):
            links.make(event, self.preview.refresh)
        self.destroyed.connect(links.cut)
        self.destroyed.connect(self.preview.end)
        self.layer_choice.currentTextChanged.connect(self._show_layer)
        self.axes.editingFinished.connect(self.preview.refresh)
        self.form.changed.connect(self._change)
        self.preview_box.toggled.connect(self.preview.switch)
        self.preview.noise_found.connect(self._show_noise)
        self.preview.failed.connect(tell)
        self.preview.busy.connect(self._show_preview_state)
        self.run_button.clicked.connect(self.run)
        self.cancel_button.clicked.connect(self.cancel)
        self.save_noise.clicked.connect(self._save_noise)
        self.copy_python.clicked.connect(self._copy_python)
        self.copy_command.clicked.connect(self._copy_command)

    def _list_layers(self, *_: object) -> None:
        names = [
            layer.name
            for layer in self.viewer.layers
            if isinstance(layer, Image) and layer.name != LAYER_NAME
        ]
        listed = [self.layer_choice.itemText(place) for place in range(self.layer_choice.count())]
        if names == listed:
            return
        chosen = self.layer_choice.currentText()
        active = self.viewer.layers.selection.active
        self.layer_choice.blockSignals(True)
        self.layer_choice.clear()
        self.layer_choice.addItems(names)
        if chosen not in names:
            chosen = active.name if active is not None and active.name in names else (names or [""])[-1]
        self.layer_choice.setCurrentText(chosen)
        self.layer_choice.blockSignals(False)
        self._show_layer()

    def _show_layer(self, *_: object) -> None:
        layer = self.chosen_layer()
        self.axes.setText("" if layer is None else layer_axes(layer))
        self._show_noise(None, None)
        self.preview.refresh()

    def _change(self) -> None:
        self.preview.refresh()

    def _show_noise(self, noise: NoiseModel | None, page: Any, check: NoiseCheck | None = None) -> None:
        words = [] if noise is None else [f"Noise: {noise.describe()}"]
        if check is not None:
            words.append(check.describe().capitalize())
        self.noise_words.setText(". ".join(words))
        self._noise = noise
        self.noise_plot.setVisible(noise is not None)
        self.save_noise.setVisible(noise is not None)
        self.noise_plot.show_noise(noise, page)

    def _show_preview_state(self, busy: bool) -> None:
        if self._task is None:
            self.state.setText("preview: working" if busy else "")

    def _show_progress(self, share: float) -> None:
        if self._task is None or self._task.is_cancelled:
            return
        self.bar.setValue(round(1000 * share))
        left = self._task.seconds_left(share)
        self.state.setText("working" if left is None else f"{_duration(left)} left")

    def _show_result(self, outcome: Outcome) -> None:
        add_results(self.viewer, outcome, residual=self.residual_box.isChecked())
        self._show_noise(outcome.noise[min(outcome.noise)], outcome.sample, outcome.check)
        self.state.setText(f"done in {_duration(outcome.seconds)}")

    def _show_failure(self, words: str) -> None:
        tell(words)
        self.state.setText("")

    def _end(self) -> None:
        cancelled = self._task is not None and self._task.is_cancelled
        self._task = None
        self._show_running(False)
        if cancelled:
            self.state.setText("cancelled")
        self.preview.refresh()

    def _show_running(self, running: bool) -> None:
        self.run_button.setEnabled(not running)
        self.cancel_button.setEnabled(running)
        self.bar.setVisible(running)
        if running:
            self.bar.setValue(0)
            self.state.setText("working")

    def _save_noise(self) -> None:
        path, _ = QFileDialog.getSaveFileName(
            self, "Save the noise model", "noise.json", "Noise models (*.json)"
        )
        if path and self._noise is not None:
            try:
                self._noise.save(path)
            except OSError as error:
                tell(error)

    def _copy_python(self) -> None:
        layer = self.chosen_layer()
        if layer is not None:
            axes = self.axes.text().strip().upper()
            text = as_python(self.form.settings(), image_expression(layer), axes, colours(layer))
            QGuiApplication.clipboard().setText(text)

    def _copy_command(self) -> None:
        layer = self.chosen_layer()
        if layer is not None:
            path = layer.source.path or f"{layer.name}.tif"
            target = f"{Path(path).stem}-denoised.tif"
            axes = self.axes.text().strip().upper()
            text = as_command(self.form.settings(), path, target, axes, colours(layer))
            QGuiApplication.clipboard().setText(text)
            if not layer.source.path:
                show_info(f"vnlem: the layer is in no file yet; save it as {path} before you run the command")


def _duration(seconds: float) -> str:
    """Seconds as people say them.

    Examples
    --------
    >>> _duration(3.21), _duration(75), _duration(7300)
    ('3.2 s', '1 min 15 s', '2 h 1 min')
    """
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
