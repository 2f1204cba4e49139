"""Two commands without a widget: denoise the selected layer with estimated noise."""

from napari.layers import Image
from napari.utils import cancelable_progress
from napari.viewer import Viewer

from vnlem.napari.layers import layer_axes, layer_pages
from vnlem.napari.run import add_results, denoise_layer
from vnlem.napari.settings import Settings
from vnlem.napari.task import Task, tell

STEPS = 100
_running: set[Task] = set()  # keeps tasks alive while they run


def denoise_fast(viewer: Viewer) -> None:
    """Denoise the selected image layer with the profile "fast"."""
    _denoise(viewer, "fast")


def denoise_quality(viewer: Viewer) -> None:
    """Denoise the selected image layer with the profile "quality"."""
    _denoise(viewer, "quality")


def _denoise(viewer: Viewer, profile: str) -> None:
    layer = viewer.layers.selection.active
    if not isinstance(layer, Image):
        tell("select one image layer in the layer list first")
        return
    try:
        pages = layer_pages(layer, layer_axes(layer))
    except ValueError as error:
        tell(error)
        return
    settings = Settings(profile=profile)
    task = Task(lambda report: denoise_layer(layer, pages, settings, report))
    bar = cancelable_progress(total=STEPS, desc=f"vnlem: {layer.name}")

    drawing = False

    def advance(share: float) -> None:
        nonlocal drawing
        if bar.is_canceled:
            task.cancel()
        if drawing:  # the bar lets Qt deliver pending events, which may call this again
            return
        drawing = True
        bar.update(round(STEPS * share) - bar.n)
        drawing = False

    def end() -> None:
        bar.close()
        _running.discard(task)

    task.progressed.connect(advance)
    task.succeeded.connect(lambda outcome: add_results(viewer, outcome))
    task.failed.connect(tell)
    task.ended.connect(end)
    _running.add(task)
    task.start()
