"""The preview: the part in sight, denoised again shortly after anything changes."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from napari.layers import Image
from napari.viewer import Viewer
from numpy.typing import NDArray
from qtpy.QtCore import QObject, QTimer, Signal

from vnlem.napari.layers import Crop, crop_layer, lift_above, pixels, visible_crop
from vnlem.napari.pages import (
    Pages,
    Report,
    check_page,
    denoise_page,
    find_page_noise,
    has_missing,
    read,
)
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
class Request:
    """What to preview."""

    layer: Image
    pages: Pages
    settings: Settings


@dataclass(frozen=True)
class Seen:
    """A finished preview: where it lies, its pixels before and after, the noise found and its check."""

    layer: Image
    crop: Crop
    before: NDArray[Any]
    after: NDArray[Any]
    x_axis: int  # of the pixels
    noise: NoiseModel
    check: NoiseCheck

    def wiped(self, share: float) -> NDArray[Any]:
        """The pixels before on the left `share` of the width, those after on the rest."""
        edge = round(share * self.after.shape[self.x_axis])
        left, right = (
            np.moveaxis(pixels, self.x_axis, 0)[part]
            for pixels, part in ((self.before, slice(edge)), (self.after, slice(edge, None)))
        )
        return np.moveaxis(np.concatenate([left, right]), 0, self.x_axis)


class _Found(NamedTuple):
    """What was found about a layer, and for which choices."""

    data: Any
    choices: tuple[Pages, Settings, int]
    kind: str
    noise: NoiseModel


class Preview(QObject):
    """Keeps one layer with the denoised view up to date; new requests cancel older work."""

    noise_found = Signal(object)  # Seen
    failed = Signal(str)
    busy = Signal(bool)

    def __init__(self, viewer: Viewer, request: Callable[[], Request | None]) -> None:
        super().__init__()
        self._viewer, self._request = viewer, request
        self._task: Task | None = None
        self._again = False
        self._found: _Found | None = None
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(DELAY_MS)
        self._timer.timeout.connect(self._begin)
        self.on = False
        self._wipe = 0.0
        self._seen: Seen | None = None

    def switch(self, on: bool) -> None:
        """Turn the preview on or off; off removes its layer."""
        self.on = on
        if on:
            self._found = None
            self.refresh()
            return
        self.stop()
        self._seen = None
        layer = self.layer()
        if layer is not None:
            self._viewer.layers.remove(layer)

    def wipe(self, share: float) -> None:
        """Show the source on the left `share` of the preview."""
        self._wipe = share
        if self._seen is not None:
            self._draw(self._seen)

    def lift(self) -> None:
        """Move the preview to where it is visible."""
        layer = self.layer()
        if layer is not None and self._seen is not None and self._seen.layer in self._viewer.layers:
            lift_above(self._viewer, layer, self._seen.layer)

    def refresh(self, *_: object) -> None:
        """After a change: cancel the work in progress, and denoise again after a short delay."""
        if self.on:
            self._timer.start()
            if self._task is not None:
                self._task.cancel()

    def stop(self) -> None:
        """Cancel the work in progress."""
        self._timer.stop()
        self._again = False
        if self._task is not None:
            self._task.cancel()

    def end(self, *_: object) -> None:
        """The widget is gone: no more previews."""
        self.on = False
        self.stop()

    def layer(self) -> Image | None:
        """The preview's layer, if there is one."""
        found = [layer for layer in self._viewer.layers if layer.name == LAYER_NAME]
        return found[0] if found else None

    def _begin(self) -> None:
        if self._task is not None:  # it was cancelled and has not ended yet
            self._again = True
            return
        request = self._request()
        if request is None:
            return
        layer, pages, settings = request.layer, request.pages, request.settings
        crop = visible_crop(layer, pages, self._viewer.dims.point, preview_side(pages, settings))
        data = pixels(layer)
        x_axis = [letter for letter in pages.axes if letter in "YXC"[: 3 if pages.rgb else 2]].index("X")

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
            return Seen(layer, crop, before, after, x_axis, noise, check)

        self._task = task = Task(work)
        task.succeeded.connect(self._show)
        task.failed.connect(self.failed)
        task.ended.connect(self._end)
        self.busy.emit(True)
        task.start()

    def _kind_and_noise(
        self, data: Any, pages: Pages, settings: Settings, channel: int
    ) -> tuple[str, NoiseModel]:
        """The axis along which pages help each other, and their noise: found again only if needed."""
        choices = (pages, replace(settings, profile="", group=""), channel)
        found = self._found
        if found is None or found.data is not data or found.choices != choices:
            kind = helping_axis(data, pages, settings)
            if pages.is_stack and not has_missing(data, pages):
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
        self.noise_found.emit(seen)
        if not self.on or seen.layer not in self._viewer.layers:
            return
        self._seen = seen
        self._draw(seen)
        self.lift()

    def _draw(self, seen: Seen) -> None:
        data, options = crop_layer(seen.layer, seen.crop, seen.wiped(self._wipe))
        options["name"] = LAYER_NAME
        old = self.layer()
        if old is not None and old.data.shape == data.shape and old.rgb == seen.layer.rgb:
            old.data = data
            old.scale, old.translate = seen.layer.scale, options["translate"]
            old.contrast_limits = seen.layer.contrast_limits
            return
        selected = set(self._viewer.layers.selection)
        if old is not None:
            self._viewer.layers.remove(old)
        layer = self._viewer.add_image(data, **options)
        layer.bounding_box.visible = True  # an outline of what the preview covers
        layer.bounding_box.points = False
        self._viewer.layers.selection = selected - {old}
