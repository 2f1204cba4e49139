"""The widget of the plugin: choose, preview, run."""

from pathlib import Path
from typing import Any

from napari.layers import Image
from napari.utils.notifications import show_info
from napari.viewer import Viewer
from qtpy.QtCore import QEvent
from qtpy.QtGui import QGuiApplication
from qtpy.QtWidgets import QFileDialog, QWidget

from vnlem.napari.as_code import as_command, as_python
from vnlem.napari.choice import AxesMemory
from vnlem.napari.layers import colours, image_expression, layer_pages
from vnlem.napari.links import Links
from vnlem.napari.panel import Panel
from vnlem.napari.preview import LAYER_NAME, Preview, Request, Seen
from vnlem.napari.run import Outcome, add_results, denoise_layer
from vnlem.napari.saved_settings import remember, remembered
from vnlem.napari.settings import Settings
from vnlem.napari.task import Task, one_sentence
from vnlem.noise import NoiseCheck, NoiseModel

PREVIEWING = "preview: working"


class DenoiseWidget(Panel):
    """Denoise image layers with vnlem.

    viewer: the viewer whose layers are offered.
    """

    def __init__(self, viewer: Viewer, parent: QWidget | None = None) -> None:
        super().__init__(viewer, _is_offered, parent)
        self.viewer = viewer
        self.preview = Preview(viewer, self._request)
        self._typed_axes = AxesMemory()
        self._noise: NoiseModel | None = None
        self._noise_choice: object = None
        self._task: Task | None = None
        self._waiting: list[Request] = []
        self._count = 0
        self.form.show_settings(remembered())
        self._connect()
        self.layer_choice.list_layers()
        self._show_layer()
        self._show_running(False)

    def chosen_layer(self) -> Image | None:
        """The image layer to denoise."""
        return self.layer_choice.layer()

    def run(self) -> None:
        """Denoise the chosen layer, or all selected ones, in the background, one after the other."""
        if self._task is not None:
            return
        self.error.clear()
        targets = self.layer_choice.targets()
        if not targets:
            self._show_failure("there is no image layer; open an image first")
            return
        requests = [self._request_for(layer) for layer in targets]
        self._waiting = [request for request in requests if request is not None]
        self._count = len(self._waiting)
        if self._waiting:
            self.preview.stop()
            self._show_running(True)
            self._start_next()

    def cancel(self) -> None:
        """Cancel what is running; nothing more is added."""
        self._waiting.clear()
        if self._task is not None:
            self._task.cancel()
            self.state.setText("cancelling")

    def changeEvent(self, event: Any) -> None:  # noqa: N802 - Qt's name
        """End when napari removes the widget from the window."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.ParentChange and self.parent() is None:
            self.end()

    def closeEvent(self, event: Any) -> None:  # noqa: N802 - Qt's name
        """End when the widget is closed."""
        self.end()
        super().closeEvent(event)

    def end(self) -> None:
        """End all work and disconnect from the viewer."""
        self.cancel()
        self.preview.switch(False)
        self._links.cut()
        self._layer_links.cut()

    def _connect(self) -> None:
        layers, selection = self.viewer.layers.events, self.viewer.layers.selection.events
        # napari 0.9 keeps the camera in the scene, older ones in the viewer itself.
        camera = getattr(self.viewer, "scene", self.viewer).camera.events
        self._links, self._layer_links = links, _ = Links(), Links()
        for event in (layers.inserted, layers.removed, layers.reordered, layers.renamed):
            links.make(event, self.layer_choice.list_layers)
        for event in (selection.active, selection.changed):
            links.make(event, self.layer_choice.follow_selection)
            links.make(event, self._name_the_run)
        for event in (camera.center, camera.zoom, self.viewer.dims.events.point):
            links.make(event, self.preview.refresh)
        self.destroyed.connect(links.cut)
        self.destroyed.connect(self.preview.end)
        self.layer_choice.chosen.connect(self._show_layer)
        self.axes.editingFinished.connect(self._keep_axes)
        self.form.changed.connect(self._change)
        self.reset.clicked.connect(lambda: self.form.show_settings(Settings()))
        self.preview_box.toggled.connect(self.preview.switch)
        self.preview_box.toggled.connect(self.wipe.setEnabled)
        self.wipe.valueChanged.connect(lambda value: self.preview.wipe(value / self.wipe.maximum()))
        self.preview.noise_found.connect(self._show_seen)
        self.preview.failed.connect(self.error.setText)
        self.preview.busy.connect(self._show_preview_state)
        self.run_button.clicked.connect(self.run)
        self.cancel_button.clicked.connect(self.cancel)
        self.save_noise.clicked.connect(self._save_noise)
        self.copy_python.clicked.connect(self._copy_python)
        self.copy_command.clicked.connect(self._copy_command)

    def _request(self) -> Request | None:
        layer = self.chosen_layer()
        return None if layer is None else self._request_for(layer)

    def _request_for(self, layer: Image) -> Request | None:
        axes = self.axes.text() if layer is self.chosen_layer() else self._typed_axes.of(layer)
        try:
            return Request(layer, layer_pages(layer, axes), self.form.settings())
        except ValueError as error:
            self._show_failure(one_sentence(error))
            return None

    def _start_next(self) -> None:
        request = self._waiting.pop(0)
        self._task = task = Task(
            lambda report: denoise_layer(request.layer, request.pages, request.settings, report)
        )
        task.progressed.connect(self._show_progress)
        task.succeeded.connect(self._show_result)
        task.failed.connect(lambda words: self._show_failure(f"{request.layer.name}: {words}"))
        task.ended.connect(self._end)
        task.start()

    def _show_layer(self) -> None:
        """After another layer is chosen: clear what was shown about the last one."""
        layer = self.chosen_layer()
        self.axes.setText("" if layer is None else self._typed_axes.of(layer))
        self._layer_links.cut()
        if layer is not None:
            self._layer_links.make(layer.events.data, self._forget_findings)
        self._forget_findings()
        self._name_the_run()

    def _forget_findings(self, *_: object) -> None:
        self._show_noise(None, None)
        self.error.clear()
        if self._task is None:
            self.state.clear()
        self.preview.refresh()

    def _keep_axes(self) -> None:
        layer = self.chosen_layer()
        if layer is not None and self.axes.text().strip().upper() != self._typed_axes.of(layer):
            self._typed_axes.keep(layer, self.axes.text())
            self._forget_findings()

    def _change(self) -> None:
        settings = self.form.settings()
        remember(settings)
        choice = (settings.noise_arguments(), settings.model_file)
        if choice != self._noise_choice:  # the result is for an older choice
            self._noise_choice = choice
            self._show_noise(None, None)
        self.error.clear()
        self.preview.refresh()

    def _name_the_run(self, *_: object) -> None:
        count = len(self.layer_choice.targets())
        self.run_button.setText(f"Run on {count} layers" if count > 1 else "Run")

    def _show_seen(self, seen: Seen) -> None:
        if seen.layer is self.chosen_layer():
            self.error.clear()
            self._show_noise(seen.noise, seen.before, seen.check)

    def _show_noise(self, noise: NoiseModel | None, page: Any, check: NoiseCheck | None = None) -> None:
        said = [] if noise is None else [f"Noise: {noise.describe()}"]
        if check is not None:
            said.append(check.describe().capitalize())
        self.noise_words.setText(". ".join(said))
        self._noise = noise
        self.noise_plot.setVisible(noise is not None)
        self.save_noise.setVisible(noise is not None)
        self.noise_plot.show_noise(noise, page)

    def _show_preview_state(self, busy: bool) -> None:
        if self._task is None:  # keep the message of a run
            said = self.state.text().removesuffix(PREVIEWING).rstrip()
            self.state.setText(f"{said}\n{PREVIEWING}".strip() if busy else said)

    def _show_progress(self, share: float) -> None:
        if self._task is None or self._task.is_cancelled:
            return
        self.bar.setValue(round(1000 * share))
        left = self._task.seconds_left(share)
        which = f"layer {self._count - len(self._waiting)} of {self._count}: " if self._count > 1 else ""
        self.state.setText(which + ("working" if left is None else f"{_duration(left)} left"))

    def _show_result(self, outcome: Outcome) -> None:
        selected = set(self.viewer.layers.selection)
        add_results(self.viewer, outcome, residual=self.residual_box.isChecked())
        self.viewer.layers.selection = selected
        self.preview.lift()
        if outcome.layer is self.chosen_layer():
            self._show_noise(outcome.noise[min(outcome.noise)], outcome.sample, outcome.check)
        self.state.setText(f"{outcome.layer.name}: done in {_duration(outcome.seconds)}")

    def _show_failure(self, said: str) -> None:
        self.error.setText("\n".join(filter(None, [self.error.text(), said])))
        self.state.clear()

    def _end(self) -> None:
        if self._task is not None and self._task.is_cancelled:
            self.state.setText("cancelled")
        self._task = None
        if self._waiting:
            self.bar.setValue(0)
            self._start_next()
            return
        said = self.state.text()
        self._show_running(False)
        self.state.setText(said)
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
                self._show_failure(one_sentence(error))

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


def _is_offered(layer: Any) -> bool:
    return isinstance(layer, Image) and layer.name != LAYER_NAME


def _duration(seconds: float) -> str:
    """Seconds as people say them.

    >>> _duration(3.21), _duration(75), _duration(7300)
    ('3.2 s', '1 min 15 s', '2 h 1 min')
    """
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
