"""Denoise one series of pages that help each other: read, whiten, solve at one or several sizes, invert.

A method with ``METHOD.stack`` gets all pages of a series; other methods get them one by one.
"""

from collections import deque
from collections.abc import Callable, Generator, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vnlem.estimate.scales import count_scales, halve, join
from vnlem.estimate.transients import Frame, restore_transients
from vnlem.noise.advice import advise
from vnlem.noise.pages import Arriving, Pages, StackNoise, page_name, planes_of
from vnlem.noise.stack_units import StackUnits, units_of
from vnlem.pipeline import checks, units_on_gpu
from vnlem.pipeline.axes import count_of, shapes_of
from vnlem.pipeline.device import lies_on_gpu, side_by_side, to_host
from vnlem.pipeline.gpu_copies import Carrier
from vnlem.pipeline.image import Planes, check_values
from vnlem.pipeline.lazy import load
from vnlem.pipeline.page_queue import Incoming, shared
from vnlem.pipeline.progress import ProgressCallback
from vnlem.pipeline.run import NEGLIGIBLE, Info
from vnlem.pipeline.sigma import halved_map
from vnlem.pipeline.stack_task import Part, StackSolver, StackTask
from vnlem.pipeline.workers import check_workers
from vnlem.registry import check_stack_params, find_function, for_one_page, stack_method


def first_pages(pages: Pages, delay: Any) -> Pages:
    """The pages on which noise and units are measured; with a delay, only the first ones.

    >>> len(first_pages([np.zeros((4, 3))] * 9, 2)), len(first_pages([np.zeros((4, 3))] * 9, None))
    (3, 9)
    """
    if delay is None:
        return pages
    return [pages[index] for index in range(min(checks.whole("delay", delay, 0) + 1, len(pages)))]


def takes_sigma_maps(method: str, kind: str, count: int, noise: StackNoise, device: str) -> bool:
    """Whether a series may be denoised with a noise that differs from pixel to pixel."""
    together = stack_method(method, kind) if kind and count != 1 else None
    return together is not None and together.sigma_maps and device == "cpu" and not noise.model.is_correlated


def denoise_series(
    pages: Arriving,
    kind: str,
    noise: StackNoise,
    *,
    method: str,
    workers: int | None,
    report: ProgressCallback | None,
    info: list[dict[str, Any]],
    units: StackUnits | None = None,
    part: Part | None = None,
    device: str = "cpu",
    same: bool = False,
    sigma_map: Pages | None = None,
    **params: Any,
) -> Generator[NDArray[Any], None, None]:
    """The denoised pages of one series, in order; only pages in flight are held as floats.

    When None, `units` are those of the pages themselves; pass them if the pages are still to arrive. `part`
    says where the pages are in a larger stack. `same`: the channels of a page are one picture, and their mean
    is denoised. `sigma_map`: pages of the standard deviation of white noise, if it varies. No page is read
    before it is needed.
    """
    count = count_of(pages)
    together = stack_method(method, kind) if kind else None
    if together is None or (count == 1 and params.get("delay") is None):
        assert not isinstance(pages, Incoming)
        params = for_one_page(method, kind, params) | {"device": device}
        yield from _page_by_page(pages, noise, method, workers, report, info, params, sigma_map)
        return
    prepare = load(together.prepare)
    check_stack_params(prepare, method, params)
    if units is None:
        assert not isinstance(pages, Incoming)
        units = units_on(device, first_pages(pages, params.get("delay")), noise)
    units = units._replace(scale=units.scale or 1.0)
    shapes = shapes_of(pages)
    sizes = [noise.size_of(shape) for shape in shapes]
    task = StackTask(
        kind,
        sizes,
        max(noise.sigma / units.scale, NEGLIGIBLE),
        check_workers(workers),
        report=report,
        device=device,
        part=part,
        peak=units.peak,
        channels=1 if same or len(shapes[0]) == 2 else shapes[0][0],
    )
    levels = None if sigma_map is None else _Levels(sigma_map, units.scale)
    if levels is not None:
        if not together.sigma_maps:
            raise ValueError(
                f"method {method!r} takes one sigma for all of a stack; pass a number, or method='vnlr'"
            )
        task = task._replace(sigma_map=levels)
    used, solver = prepare(task, **params)
    info.append(asdict(used))
    solvers = [solver]
    for _ in range(1, min(count_scales(*size, used.scales) for size in sizes)):
        task = _halved(task)
        if levels is not None:
            task = task._replace(sigma_map=replace(levels, halvings=len(solvers)))
        solvers.append(prepare(task, **params)[1])
    ahead = used.transients_ahead
    if noise.sigma <= NEGLIGIBLE * units.scale:
        solvers, ahead = [iter], None  # there is nothing to remove
    bring = _Bring(count, noise, device)
    sizes_of = _Sizes(shared(pages, len(solvers)), noise, units, bring, solvers, same, levels, ahead)
    found = sizes_of.denoised()
    for index, (given, planes, denoised) in enumerate(found):
        if index == 0 and part is None:
            _advise(noise, planes)
        yield bring.back(planes.restore(noise.backward(denoised, planes)), given)


def _halved(task: StackTask) -> StackTask:
    """The same for the pages at half the size."""
    part = task.part
    if part is not None:
        # Parts of pages are not halved: work at several sizes needs whole pages.
        (first, _, _), (count, height, width) = part
        part = Part((first, 0, 0), (count, -(-height // 2), -(-width // 2)))
    sizes = [(-(-height // 2), -(-width // 2)) for height, width in task.sizes]
    # Filters overshoot a little.
    return task._replace(sizes=sizes, sigma=task.sigma / 2, part=part, peak=2 * task.peak, report=None)


@dataclass(frozen=True)
class _Levels:
    """The standard deviation of the noise of a page, by index, in units of the scale."""

    pages: Pages
    scale: float
    halvings: int = 0

    def __call__(self, index: int) -> NDArray[np.float64]:
        page: NDArray[np.float64] = self.pages[index]
        # Channels that are denoised together have the same noise.
        found = (page[:1] if page.ndim == 3 else page[None]) / self.scale
        for _ in range(self.halvings):
            found = halved_map(found, halve)
        plane: NDArray[np.float64] = found[0]
        return plane


class _Sizes(NamedTuple):
    """A series at several sizes; each goes through its solver as a whole; see `estimate.scales`."""

    pages: list[Iterator[Any]]  # for each size
    noise: StackNoise
    units: StackUnits
    bring: "_Bring"
    solvers: list[StackSolver]  # of the pages themselves, at half the size, ...
    same: bool
    levels: "_Levels | None"  # of the noise, if it varies
    transients_ahead: int | None  # later pages that help to restore transients; None: there are none

    def denoised(self) -> Iterator[tuple[Any, Planes, Any]]:
        """Each page as given, as planes, and its denoised white values."""
        # Pages wait in their own dtype: as floats they would take several times the memory.
        waiting: deque[Any] = deque()
        done: deque[tuple[Any, Planes]] = deque()

        def joined() -> Iterator[tuple[Any, Any]]:
            coarser = self._coarser(1)
            for index, (fine, planes, values) in enumerate(self._at(0, waiting)):
                done.append((waiting.popleft(), planes))
                yield values, self._joined(fine, coarser, 0, index)

        if self.transients_ahead is None:
            estimates: Iterator[Any] = (estimate for _, estimate in joined())
        else:
            frames = (
                Frame.of(_three(values), _three(estimate), self._sigma(0, index))
                for index, (values, estimate) in enumerate(joined())
            )
            estimates = restore_transients(frames, ahead=self.transients_ahead)
        for estimate in estimates:
            given, planes = done.popleft()
            yield given, planes, estimate

    def _coarser(self, level: int) -> Iterator[Any] | None:
        """The denoised values of a size, joined with those of the smaller sizes; None if there are none."""
        return self._joined_at(level) if level < len(self.solvers) else None

    def _joined_at(self, level: int) -> Iterator[Any]:
        waiting: deque[Any] = deque()
        coarser = self._coarser(level + 1)
        for index, (fine, _, _) in enumerate(self._at(level, waiting)):
            waiting.popleft()
            yield self._joined(fine, coarser, level, index)

    def _joined(self, fine: Any, coarser: Iterator[Any] | None, level: int, index: int) -> Any:
        if coarser is None:
            return fine
        return _join(fine, next(coarser), self._sigma(level, index))

    def _sigma(self, level: int, index: int) -> Any:
        """The noise of a page at a size."""
        if self.levels is None:
            return self.noise.sigma / 2**level
        return replace(self.levels, scale=1.0, halvings=level)(index)

    def _at(self, level: int, waiting: deque[Any]) -> Iterator[tuple[Any, Planes, Any]]:
        """White values of each page at a size, denoised; the page as planes; and its white values."""
        _, scale, _ = self.units

        def entering() -> Iterator[Any]:
            for index, page in enumerate(self.pages[level]):
                waiting.append(page)
                yield self._standard(page, index, level)[2]

        for index, denoised in enumerate(self.solvers[level](entering())):
            planes, values, pixels = self._standard(waiting[0], index, level)
            # The change is added: single precision then rounds the noise, not the image.
            if units_on_gpu.usable(values) and not self.same:
                changed = units_on_gpu.with_change(values, pixels, denoised, scale)
            elif units_on_gpu.usable(values):
                changed = values + (denoised - pixels) * scale
            else:
                changed = values + (to_host(denoised).astype(np.float64) - pixels) * scale
            yield changed, planes, values

    def _standard(self, given: Any, index: int, level: int) -> tuple[Planes, Any, Any]:
        """A page as planes, its white values at a size, and these in the units of the solver."""
        planes = self.bring(given, index)
        values = self.noise.forward(planes)
        for _ in range(level):
            values = _halve(values)
        seen = values.mean(axis=0) if self.same else values
        mean, scale, _ = self.units
        if units_on_gpu.usable(seen):
            return planes, values, units_on_gpu.standardised(seen, mean, scale)
        return planes, values, ((seen - mean) / scale).astype(np.float32)


def _three(values: Any) -> Any:
    """Values (H, W) or (channels, H, W) with all three axes."""
    return values if values.ndim == 3 else values[None]


def _halve(values: Any) -> Any:
    """Values (H, W) or (channels, H, W) at half the size."""
    halved = halve(_three(values))
    return halved if values.ndim == 3 else halved[0]


def _join(fine: Any, coarse: Any, sigma: Any) -> Any:
    """The fine values with the low frequencies of the coarse ones, where the two hardly differ."""
    return join(_three(fine), _three(coarse), sigma).reshape(fine.shape)


def check_page(planes: Planes, index: int, count: int | None) -> None:
    """Refuse a page with values that no image has; an error says which page of how many it was."""
    try:
        check_values(planes)
    except ValueError as error:
        if count == 1:
            raise
        raise ValueError(f"{page_name(index, count)}: {error}") from error


def _advise(noise: StackNoise, planes: Planes) -> None:
    """Warn about a stack, from a page that is on the host."""
    if not lies_on_gpu(planes.data):
        advise(noise.model, planes, rounded=planes.dtype.kind in "iu")


class _Bring:
    """Pages of a series as planes on the device that processes them, and back."""

    def __init__(self, count: int | None, noise: StackNoise, device: str) -> None:
        self._count = count
        # Noise that is not white is stabilised on the host.
        self._carrier = Carrier(device) if device != "cpu" and noise.is_white else None

    def __call__(self, given: NDArray[Any], index: int) -> Planes:
        there = to_host(given) if self._carrier is None else self._carrier.bring(given)
        planes = planes_of(there, index, self._count)
        if not lies_on_gpu(planes.data):
            check_page(planes, index, self._count)
        return planes

    def back(self, result: NDArray[Any], given: NDArray[Any]) -> NDArray[Any]:
        """The result of a page, on the device the page came from."""
        return result if self._carrier is None else self._carrier.take_back(result, given)


def units_on(device: str, pages: Pages, noise: StackNoise) -> StackUnits:
    """The units of a series, measured on the device that solves it: its sums differ in the last digit.

    >>> from vnlem.noise.model import NoiseModel
    >>> units_on("cpu", [np.array([[0.0, 10.0]])], StackNoise(NoiseModel.white(3.0)))
    StackUnits(mean=5.0, scale=4.0, peak=1.25)
    """
    bring = _Bring(len(pages), noise, device)
    return units_of(pages, noise, lambda index: bring(pages[index], index))


def _page_by_page(
    pages: Pages,
    noise: StackNoise,
    method: str,
    workers: int | None,
    report: ProgressCallback | None,
    info: list[dict[str, Any]],
    params: dict[str, Any],
    sigma_map: Pages | None = None,
) -> Iterator[NDArray[Any]]:
    """A method for single images only."""
    function = find_function(method)
    check_stack_params(function, method, params)

    white = noise.is_white
    carrier = Carrier(params["device"])

    def one(item: tuple[int, NDArray[Any]]) -> tuple[NDArray[Any], Info]:
        index, given = item
        planes = None if white else planes_of(to_host(given), index, len(pages))
        if index == 0 or not lies_on_gpu(given):
            seen = planes or planes_of(to_host(given), index, len(pages))
            check_page(seen, index, len(pages))
            if index == 0:
                _advise(noise, seen)
        page = carrier.bring(given) if planes is None else noise.forward(planes)
        part = share(report, index, 1, len(pages)) if params["device"] == "cpu" else None
        level = noise.sigma if sigma_map is None else np.ascontiguousarray(sigma_map[index])
        try:
            denoised, used = function(
                page, level, workers=workers, progress=part or False, return_info=True, **params
            )
        except ValueError:
            planes_of(page, index, len(pages))  # raises with the number of the page
            raise
        if planes is None:
            return carrier.take_back(noise.wanted(denoised), given), used
        return planes.restore(noise.backward(denoised, planes)), used

    items = ((index, pages[index]) for index in range(len(pages)))
    for index, (denoised, used) in enumerate(side_by_side(params["device"], one, items)):
        if not info:
            info.append(used.parameters)
        if report is not None and params["device"] != "cpu":
            report(index + 1, len(pages))
        yield denoised


def share(report: ProgressCallback | None, at: int, count: int, total: int) -> ProgressCallback | None:
    """Progress of a part as progress of the whole, in thousandths."""
    if report is None:
        return None
    whole: Callable[[int, int], object] = report
    return lambda done, parts: whole(round(1000 * (at + count * done / max(parts, 1))), 1000 * total)
