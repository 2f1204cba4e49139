"""Take frames one by one and return them denoised a few frames later: a live picture, or an endless movie.

frames -> one series of pages, or one for each channel -> `vnlem.series.denoise_series` -> frames
"""

import math
from collections.abc import Generator, Iterable, Iterator
from types import TracebackType
from typing import Any

from numpy.typing import DTypeLike, NDArray

from vnlem.features.channels import CHANNELS
from vnlem.noise.find import ABOUT_NOISE, check_noise_model
from vnlem.noise.model import NoiseModel
from vnlem.noise.pages import StackNoise, planes_of
from vnlem.pipeline import checks
from vnlem.pipeline.axes import PageSeries, PagesOf, check_axes, series_of
from vnlem.pipeline.device import choose, current, lies_on_gpu, namespace
from vnlem.pipeline.dtypes import as_dtype, check_dtype, taken_up
from vnlem.pipeline.lazy import load
from vnlem.pipeline.page_queue import ENDLESS, Incoming
from vnlem.pipeline.run import Info
from vnlem.pipeline.stack_input import sigma_per_channel
from vnlem.pipeline.stack_task import StackTask
from vnlem.pipeline.warn import said_once
from vnlem.pipeline.workers import check_workers
from vnlem.registry import check_stack_params, stack_method
from vnlem.series import check_page, denoise_series, units_on
from vnlem.stack_plan import GivenNoise, StackPlan, plan_stack, varied_channels

METHOD = "vnlr"
NO_NOISE = NoiseModel.white(0.0)
LARGE = 10_000  # pixels: no patch is larger than such a frame


class Stream:
    """Denoise a movie while it is recorded: VNLR with a delay of a few frames and memory that does not grow.

    Parameters
    ----------
    axes : str
        The letters of the movie: T, Y, X, and C if frames have channels. A frame has all axes except T, in
        this order.
    sigma : float or one number per channel, optional
        Standard deviation of white noise. When None the noise is estimated from the first ``delay + 1``
        frames and then kept.
    delay : int
        Number of later frames to wait for before a frame is returned. A longer delay gives a better result.
    profile : {"fast", "balanced", "quality"}
        How much time a frame may take.
    device, workers, noise_model, dtype
        As in :func:`vnlem.denoise`.
    **options
        ``gain``, ``offset``, ``read_noise`` and the other noise parameters of :func:`vnlem.denoise`,
        ``channels``, and the parameters of VNLR on stacks, such as ``plane_distance``.

    Notes
    -----
    The frames equal those of ``vnlem.denoise(movie, sigma, axes=axes, delay=delay, profile=profile,
    impulses=False)``, byte for byte, if all other options agree: a stream does not search for impulses. Both
    measure the noise, and the mean and scale of the pixels, on the first ``delay + 1`` frames. A channel that
    has one value in all of these, such as alpha or a black stain, is returned as it came, also in later
    frames.

    Examples
    --------
    >>> import numpy as np, vnlem
    >>> movie = 4 * np.arange(32) + np.random.default_rng(0).normal(0, 5, (6, 32, 32))
    >>> stream = vnlem.Stream(sigma=5.0, delay=2, workers=1)
    >>> [len(stream.push(frame)) for frame in movie], len(stream.finish())
    ([0, 0, 1, 1, 1, 1], 2)

    Or with a loop over any iterable of frames:

    >>> live = vnlem.Stream(sigma=5.0, delay=2, workers=1).denoise(frame for frame in movie)
    >>> next(live).shape
    (32, 32)
    """

    def __init__(
        self,
        axes: str = "TYX",
        sigma: Any = None,
        *,
        delay: int = 2,
        profile: str = "fast",
        device: str | None = None,
        workers: int | None = None,
        noise_model: Any = "auto",
        dtype: DTypeLike | None = None,
        **options: Any,
    ) -> None:
        letters = check_axes(axes, (1,) * len(axes) if isinstance(axes, str) else ())
        if "T" not in letters or set(letters) - set("TCYX"):
            raise ValueError(f"the axes of a stream are T, Y, X and perhaps C, such as 'TYX', got {axes!r}")
        self._letters = "T" + letters.replace("T", "")
        check_noise_model(noise_model)
        self._sigma, self._noise_model = checks.listed("sigma", sigma), noise_model
        self._device = device
        self.delay = checks.whole("delay", delay, 0)
        self._workers = check_workers(workers)
        self._dtype = None if dtype is None else check_dtype(dtype)
        self._about_noise = {name: options.pop(name, None) for name in ABOUT_NOISE}
        self._handling = options.pop("channels", "auto")
        checks.choice("channels", self._handling, CHANNELS)
        self._params = {"profile": profile, "delay": self.delay, **options}
        _check_params(self._params)
        self._first: list[NDArray[Any]] = []  # until there are enough to start
        self._like: Any = None  # the first frame's shape and dtype
        self._count = 0
        self._series: list[_Series] = []  # those that are denoised, then those of constant channels
        self._plan: StackPlan | None = None
        self._where = "cpu"
        self._ended = False

    def push(self, frame: Any) -> list[NDArray[Any]]:
        """Take the next frame and return the finished one, in a list that is empty at the beginning.

        Parameters
        ----------
        frame : ndarray
            It must have the size and the dtype of the first frame. A refused frame does not change the
            stream.

        Returns
        -------
        list of ndarray
        """
        if self._ended:
            raise ValueError("the stream has ended; make a new Stream")
        array = self._checked(frame)
        self._count += 1
        if self._series:
            for series in self._series:
                series.pages.put(series.page_of(array))
        else:
            self._first.append(array)
            if self._count > self.delay:
                self._begin()
        return [self._next()] if self._count > self.delay else []

    def finish(self) -> list[NDArray[Any]]:
        """Return the remaining frames and end the stream."""
        if self._ended:
            return []
        self._ended = True
        if self._count <= self.delay:
            raise ValueError(
                f"the stream ended after {self._count} frames, and a delay of {self.delay} needs at least "
                f"{self.delay + 1}; pass a smaller delay, or give the frames to vnlem.denoise"
            )
        for series in self._series:
            series.pages.end()
        rest = [self._next() for _ in range(self.delay)]
        self.close()
        return rest

    def denoise(self, frames: Iterable[Any]) -> Iterator[NDArray[Any]]:
        """Yield the denoised frames of any iterable of frames, each as soon as it is finished.

        Parameters
        ----------
        frames : iterable of ndarray

        Yields
        ------
        ndarray
        """
        with self:
            for frame in frames:
                yield from self.push(frame)
            yield from self.finish()

    def close(self) -> None:
        """Discard the frames in flight and free threads and memory."""
        self._ended = True
        for series in self._series:
            series.done.close()

    def __enter__(self) -> "Stream":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def info(self) -> Info:
        """The noise and the parameters, known once the first frame is returned."""
        if not self._series:
            raise ValueError(
                f"the noise is measured when {self.delay + 1} frames have arrived, and {self._count} have; "
                "ask for info later"
            )
        assert self._plan is not None
        models, levels = [noise.model for noise in self._plan.noises.values()], self._plan.sigmas
        details = {
            "axes": self._letters,
            "delay": self.delay,
            "noise_from": "sigma" if self._sigma is not None else f"the first {self.delay + 1} frames",
            "frames": self._count,
            **self._plan.describe(models),
        }
        level = math.sqrt(sum(value**2 for value in levels) / len(levels))
        parameters = self._series[0].used[0]
        return Info(METHOD, level, parameters, {}, details, device=self._where, noise=models[0])

    def _checked(self, frame: Any) -> Any:
        """A frame like the first one, in the dtype in which it is read."""
        array = frame if lies_on_gpu(frame) else checks.as_array("the frame", frame)
        number = self._count + 1
        if self._like is None:
            letters = self._letters[1:]
            if array.ndim != len(letters) or 0 in array.shape:
                raise ValueError(
                    f"a frame of a stream with axes {self._letters!r} needs the axes {letters}, "
                    f"got an array of shape {array.shape}"
                )
        elif (array.shape, array.dtype) != self._like:
            shape, dtype = self._like
            raise ValueError(
                f"frame {number} has the shape {array.shape} and the dtype {array.dtype}, and the first one "
                f"had {shape} and {dtype}; make a new Stream for other frames"
            )
        if not lies_on_gpu(array):
            # Values are checked before the frame is accepted: a later error would end the stream.
            for page in (one.page_of(array) for one in self._layouts(array)):
                check_page(planes_of(page, self._count, None), self._count, None)
        self._like = array.shape, array.dtype
        return array if self._dtype is None else taken_up(array, self._dtype)

    def _layouts(self, frame: Any) -> "list[_Layout]":
        """Of each channel."""
        every = series_of(self._letters, (1, *frame.shape), "T")
        return [_Layout(self._letters, one) for one in every]

    def _n_channels(self) -> int:
        shape, _ = self._like
        return int(shape[self._letters.index("C") - 1]) if "C" in self._letters else 1

    def _begin(self) -> None:
        """Measure noise and units on the first frames, and create the solvers."""
        first = self._first
        where = choose(self._device, first[0])
        model = self._noise_model
        if where != "cpu" and self._sigma is not None and model == "auto":
            model = "gaussian"  # as in `vnlem.denoise`
        sigmas = sigma_per_channel(self._sigma, self._n_channels())
        found = []
        with said_once(), current(where):
            movie = namespace(first[0]).stack(first)
            varied = varied_channels(movie, self._letters, model)
            given = GivenNoise(sigmas, model, self._about_noise)
            asked = {"channels": self._handling}
            plan = plan_stack(movie, self._letters, "T", varied, METHOD, asked, given)
            for layout in (_Layout(self._letters, one) for one in plan.series):
                pages, noise = [layout.page_of(frame) for frame in first], plan.noises[layout.channel]
                series = _Series(layout, noise, Incoming(pages[0].shape))
                series.done = denoise_series(
                    series.pages,
                    "T",
                    noise,
                    method=METHOD,
                    workers=self._workers,
                    report=None,
                    info=series.used,
                    units=units_on(where, pages, noise),
                    device=where,
                    same=plan.handling == "same",
                    **self._params,
                )
                found.append(series)
        for layout in self._layouts(first[0]):
            if layout.channel in plan.denoised:
                continue
            series = _Series(layout, StackNoise(NO_NOISE), Incoming(layout.page_of(first[0]).shape))
            series.done = (page for page in series.pages)
            found.append(series)
        for series in found:
            for frame in first:
                series.pages.put(series.page_of(frame))
        self._plan, self._where, self._series, self._first = plan, where, found, []

    def _next(self) -> NDArray[Any]:
        """The next finished frame."""
        try:
            with said_once(), current(self._where):
                pages = [next(one.done) for one in self._series]
        except BaseException:
            self.close()  # frames in flight are lost
            raise
        if self._dtype is not None:
            pages = [as_dtype(page, self._dtype) for page in pages]
        shape, _ = self._like
        frame: NDArray[Any] = namespace(pages[0]).empty(shape, pages[0].dtype)
        for series, page in zip(self._series, pages, strict=True):
            series.put(frame, page)
        return frame


def _check_params(params: dict[str, Any]) -> None:
    """Refuse parameters that do not work for any frame."""
    if params.get("engine", "fast") != "fast":
        raise ValueError(f"a stream has the engine 'fast' only, got {params['engine']!r}; use vnlem.denoise")
    prepare = load(stack_method(METHOD, "T").prepare)
    check_stack_params(prepare, METHOD, params)
    prepare(StackTask("T", [(LARGE, LARGE)] * ENDLESS, 1.0), **params)


class _Layout:
    """Where the pages of a series lie in frames."""

    def __init__(self, letters: str, series: PageSeries) -> None:
        self._letters, self._at, self.channel = letters, series, series.channel

    def page_of(self, frame: Any) -> NDArray[Any]:
        """The page of one frame."""
        return PagesOf(frame[None], self._letters, self._at)[0]

    def put(self, frame: Any, page: Any) -> None:
        """Write a page into a frame."""
        PagesOf(frame[None], self._letters, self._at).put(0, page)


class _Series(_Layout):
    """A series of pages in flight: of one channel, or of all."""

    done: Generator[NDArray[Any], None, None]

    def __init__(self, layout: _Layout, noise: StackNoise, pages: Incoming) -> None:
        super().__init__(layout._letters, layout._at)
        self.noise, self.pages = noise, pages
        self.used: list[dict[str, Any]] = []
