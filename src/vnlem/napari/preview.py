"""The preview: the part in sight, denoised again shortly after anything changes."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from napari.layers import Image
from napari.viewer import Viewer
from numpy.typing import NDArray
from qtpy.QtCore import QObject, QTimer, Signal

from vnlem.napari.layers import Crop, crop_layer, pixels, visible_crop
from vnlem.napari.pages import Pages, Report, check_page, denoise_page, find_page_noise, read
from vnlem.napari.settings import Settings
from vnlem.napari.stacks import (
    denoise_in_sight,
    find_stack_noise,
    helping_axis,
    preview_side,
)
from vnlem.napari.task import Task
from vnlem.noise import NoiseCheck, NoiseModel

LAYER_NAME = "vnlem preview"
DELAY_MS = 300


@dataclass(frozen=True)
class Wish:
    """What is to be previewed."""

    layer: Image
    pages: Pages
    settings: Settings


@dataclass(frozen=True)
class Seen:
    """A preview that is done: where it lies, its pixels before and after, the noise found and its check."""

    layer: Image
    crop: Crop
    before: NDArray[Any]
    after: NDArray[Any]
    noise: NoiseModel
    check: NoiseCheck


class _Found(NamedTuple):
    """What was found out about a layer, and for which choices."""

    data: Any
    choices: tuple[Pages, Settings, int]
    kind: str
    noise: NoiseModel


class Preview(QObject):
    """Keeps one layer with the denoised view up to date; older work is dropped when newer is wanted."""

    noise_found = Signal(object, object, object)  # NoiseModel, the pixels before, NoiseCheck
    failed = Signal(str)
    busy = Signal(bool)

    def __init__(self, viewer: Viewer, wish: Callable[[], Wish | None]) -> None:
        super().__init__()
        self._viewer, self._wish = viewer, wish
        self._task: Task | None = None
        self._again = False
        self._found: _Found | None = None
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(DELAY_MS)
        self._timer.timeout.connect(self._begin)
        self.on = False

    def switch(self, on: bool) -> None:
        """Turn the preview on or off; off removes its layer."""
        self.on = on
        if on:
            self._found = None
            self.refresh()
            return
        self.stop()
        layer = self.layer()
        if layer is not None:
            self._viewer.layers.remove(layer)

    def refresh(self, *_: object) -> None:
        """Something changed: drop what is under way, and denoise again after a short while."""
        if self.on:
            self._timer.start()
            if self._task is not None:
                self._task.cancel()

    def stop(self) -> None:
        """Drop what is under way."""
        self._timer.stop()
        self._again = False
        if self._task is not None:
            self._task.cancel()

    def end(self, *_: object) -> None:
        """The widget is gone: no more previews."""
        self.on = False
        self.stop()

    def layer(self) -> Image | None:
        """The preview's layer, where there is one."""
        found = [layer for layer in self._viewer.layers if layer.name == LAYER_NAME]
        return found[0] if found else None

    def _begin(self) -> None:
        if self._task is not None:  # it was cancelled and has not ended yet
            self._again = True
            return
        wish = self._wish()
        if wish is None:
            return
        layer, pages, settings = wish.layer, wish.pages, wish.settings
        crop = visible_crop(layer, pages, self._viewer.dims.point, preview_side(pages, settings))
        data = pixels(layer)

        def work(report: Report) -> Seen:
            kind, found = self._kind_and_noise(data, pages, settings, pages.channel_of(crop.index))
            noise = found.evened  # maps are for whole pages
            report(0.0)
            if kind:
                before, after = denoise_in_sight(data, crop.index, pages, kind, settings, noise, report)
            else:
                before = read(data, crop.index)
                after = denoise_page(before, noise, settings, pages.channel_axis, report)
            check = check_page(before, after, noise, pages.channel_axis)
            return Seen(layer, crop, before, after, noise, check)

        self._task = task = Task(work)
        task.succeeded.connect(self._show)
        task.failed.connect(self.failed)
        task.ended.connect(self._end)
        self.busy.emit(True)
        task.start()

    def _kind_and_noise(
        self, data: Any, pages: Pages, settings: Settings, channel: int
    ) -> tuple[str, NoiseModel]:
        """Along which axis pages help each other, and their noise: found again only where that can differ."""
        choices = (pages, replace(settings, profile="", group=""), channel)
        found = self._found
        if found is None or found.data is not data or found.choices != choices:
            kind = helping_axis(data, pages, settings)
            if pages.is_stack:
                noise = find_stack_noise(data, pages, settings, channel, kind)
            else:
                noise = find_page_noise(data, pages, settings, channel)
            self._found = found = _Found(data, choices, kind, noise)
        return found.kind, found.noise

    def _end(self) -> None:
        self._task = None
        self.busy.emit(False)
        if self._again and self.on:
            self._again = False
            self._begin()

    def _show(self, seen: Seen) -> None:
        self.noise_found.emit(seen.noise, seen.before, seen.check)
        if not self.on or seen.layer not in self._viewer.layers:
            return
        data, options = crop_layer(seen.layer, seen.crop, seen.after)
        options["name"] = LAYER_NAME
        old = self.layer()
        selected = set(self._viewer.layers.selection)
        if old is not None and old.data.shape == data.shape and old.rgb == seen.layer.rgb:
            old.data = data
            old.scale, old.translate = seen.layer.scale, options["translate"]
            old.contrast_limits = seen.layer.contrast_limits
            return
        if old is not None:
            self._viewer.layers.remove(old)
        self._viewer.add_image(data, **options)
        self._viewer.layers.selection = selected - {old}
