"""Camera raw: denoise the mosaic of a sensor, before demosaicking correlates its noise.

The noise of every colour is whitened. Then VNLR denoises three images. The first is the mosaic itself: a
group of patches keeps the phase of the colour filter array, by shifts of whole cells and by symmetries that
map each colour to itself. The result gives the differences between the colours. The second is the mosaic
without these differences, a grey image (`vnlem.estimate.luminance`). Its result and the differences give all
colours at all pixels. The third is this colour image with the noisy pixels of the mosaic in their places. A
denoised mosaic is a mean of the first result and the third, whose errors differ.
"""

import time
from dataclasses import asdict, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vnlem.estimate import luminance
from vnlem.execute import Share, execute
from vnlem.noise.auto import estimate_of_planes
from vnlem.noise.curve import Curve
from vnlem.noise.model import NoiseModel
from vnlem.noise.poisson_gaussian import check_model
from vnlem.pipeline import checks, mosaic
from vnlem.pipeline.choices import Profile
from vnlem.pipeline.device import run_where_asked, to_host
from vnlem.pipeline.image import check_values, to_planes
from vnlem.pipeline.progress import Progress, reporting
from vnlem.pipeline.run import Info, Result
from vnlem.pipeline.sigma import root_mean_square
from vnlem.pipeline.workers import Pool, check_workers
from vnlem.plan import Plan, Sample, make_plan
from vnlem.registry import find_method

# Odd patches have a central pixel, about which a Bayer pattern can be reflected and turned.
PATCH = 7
SMALLEST = 16
# A colour with at least this many pixels has its own noise model. With fewer, one model for all colours is
# more accurate, because one sensor has one gain.
OWN_NOISE = 1_000_000
# Share of saturated pixels up to which noise is also estimated on the brightness, where they are not plain.
FEW_SATURATED = 0.01

LAST_SHARE = 2 / 3  # of the third result in a denoised mosaic

Float = NDArray[np.float64]
Cell = dict[tuple[int, int], Curve]  # noise of the pixels at each place of a cell


def denoise_raw(
    mosaic_image: ArrayLike,
    pattern: Any,
    *,
    black_level: Any = 0.0,
    white_level: float | None = None,
    gain: Any = None,
    read_noise: Any = None,
    profile: Profile = "balanced",
    workers: int | None = None,
    progress: Progress = False,
    return_info: bool = False,
    device: str | None = None,
    colour: bool = False,
) -> Result:
    """Denoise the mosaic of a camera raw file.

    Parameters
    ----------
    mosaic_image : array_like
        (H, W), as the sensor records it: linear, one colour per pixel, not demosaicked, no white balance.
    pattern : str or sequence of str
        Colours of the upper left pixels: "RGGB" (or "BGGR", "GRBG", "GBRG"), "X-Trans", or the rows of a
        square cell, such as ("RG", "GB").
    black_level : float, mapping or array_like
        Value of a dark pixel: one number, one for each colour such as ``{"R": 64, "G": 64, "B": 65}``, or one
        for each pixel of a cell.
    white_level : float, optional
        Value at which pixels are saturated. Saturated pixels do not change, and no pixel becomes brighter
        than this.
    gain, read_noise : float, mapping or array_like, optional
        The noise of a pixel: variance = gain * (mean - black_level) + read_noise^2, given like `black_level`.
        Estimated when gain is None: separately for each colour with a million pixels, otherwise for all
        together. read_noise is 0 when only gain is given.
    profile : {"balanced", "quality", "fast"}
        How much work is done.
    workers : int, optional
        Threads; all cores when None. The result does not depend on it.
    progress : bool or callable(done, total)
        Show a bar, or call your own function.
    return_info : bool
        Return (mosaic, info); ``info.details["noise"]`` is the noise model of each colour.
    device : {None, "cpu", "cuda", "cuda:1", "auto"}
        Where to run, see :func:`vnlem.denoise`.
    colour : bool
        Return a colour image (H, W, 3), red, green and blue, instead of the mosaic. It is more accurate than
        a demosaicked result, because the brightness is known at every pixel.

    Returns
    -------
    ndarray, or (ndarray, Info) with `return_info`
        The denoised mosaic, in the units and the dtype of the input, to be demosaicked by your own program.
        With `colour`, the colour image in the same units, black level included.

    Notes
    -----
    Demosaicking spreads the noise of a pixel over its neighbours and over the other colours, so a denoiser
    can remove less of it afterwards. Patches of the mosaic are compared and combined only if every pixel
    meets one of its own colour: at shifts by whole cells, and under the reflections and quarter turns that
    map the pattern to itself. All colours of a patch share one combination. The result gives the
    differences between the colours and the brightness, which are subtracted from the noisy mosaic. This
    leaves a grey image, which is denoised in the usual way. With the brightness and the differences all
    colours are known at all pixels; this colour image, with the measured pixels in their places, is
    denoised last.

    Examples
    --------
    >>> import numpy as np, vnlem
    >>> rng = np.random.default_rng(0)
    >>> clean = np.tile([[100.0, 400.0], [400.0, 200.0]], (32, 32))
    >>> noisy = 64 + 4 * rng.poisson(clean / 4)
    >>> result = vnlem.denoise_raw(noisy, "RGGB", black_level=64, gain=4.0, profile="fast")
    >>> bool(np.std(result - 64 - clean) < 0.3 * np.std(noisy - 64 - clean))
    True
    """
    rows = mosaic.check_pattern(pattern)
    if colour and {*mosaic.colours(rows)} != {*"RGB"}:
        raise ValueError(
            f"colour=True needs red, green and blue pixels, got {rows!r}; leave it out for a mosaic"
        )
    threads = check_workers(workers)

    def at(array: Any, _: Any, where: str) -> Result:
        begun = time.perf_counter()
        planes = to_planes(array)
        pixels = to_host(planes.data)[0]
        if min(pixels.shape) < max(SMALLEST, 2 * len(rows)):
            smallest = max(SMALLEST, 2 * len(rows))
            raise ValueError(
                f"the mosaic is {pixels.shape[0]}x{pixels.shape[1]} pixels; it must have at least "
                f"{smallest}x{smallest}"
            )
        check_values(replace(planes, data=pixels[None], statistics=None))
        white = None if white_level is None else checks.real("white_level", white_level)
        models = noise_of_mosaic(pixels, rows, black_level, gain, read_noise, white, threads)
        estimated = time.perf_counter()
        details: dict[str, Any] = {"noise": models[1]}
        sigma = float(np.mean([model.sigma for model in models[1].values()]))
        plan = None
        parameters: dict[str, Any] = {}
        which, names = mosaic.colour_numbers(rows, pixels.shape)
        wanted = [names.index(name) for name in "RGB"] if colour else []
        if sigma == 0:
            every = luminance.colours(pixels, pixels, which, lambda grey, _: grey) if colour else None
            result = pixels
        else:
            stable = _each(pixels, models[0], len(rows), Curve.stabilise)
            every = None
            with reporting(progress, "vnlr") as report:
                run = _Run(rows, profile, where, threads, Share(report, 3, 3.0), details)
                plan, result = run.keeping_phase(stable)
                parameters = asdict(plan.sizes[0].groups[0].params)
                if len(names) > 1:
                    every = luminance.colours(stable, result, which, run.grey)
                    every = run.colours(*luminance.completed(stable, every, which))
                    result += LAST_SHARE * (luminance.sampled(every, which) - result)
            result = _each(result, models[0], len(rows), Curve.unstabilise)
            for number in wanted:
                assert every is not None
                y, x, _ = next(mosaic.places(rows, names[number]))
                every[number] = models[0][y, x].unstabilise(every[number])
        if every is not None and colour:
            shown = [_limited(every[number], pixels, which == number, white) for number in wanted]
            restored = np.stack([planes.restore(one[None]) for one in shown], axis=-1)
        else:
            restored = planes.restore(_limited(result, pixels, which >= 0, white)[None])
        if not return_info:
            return restored
        ended = time.perf_counter()
        timings = {"estimate_noise": estimated - begun, "denoise": ended - estimated, "total": ended - begun}
        noise = next(iter(models[1].values()))
        return restored, Info("vnlr", sigma, parameters, timings, details, where, noise, plan)

    return run_where_asked(at, mosaic_image, None, device)


def noise_of_mosaic(
    pixels: Float,
    pattern: tuple[str, ...],
    black_level: Any,
    gain: Any,
    read_noise: Any,
    white: float | None,
    workers: int,
) -> tuple[Cell, dict[str, NoiseModel]]:
    """The noise at every place of a cell, and that of every colour."""
    black = mosaic.per_pixel("black_level", black_level, pattern)
    if black.min() > pixels.max():
        raise ValueError(
            f"black_level must not be above the brightest pixel {pixels.max():g}, got {black.min():g}"
        )
    if gain is None:
        if read_noise is not None:
            raise ValueError("read_noise needs gain too; pass gain=, or neither of them to estimate both")
        found = _estimated(pixels, pattern, white, workers)
        return {(y, x): found[colour].curves[0] for y, x, colour in mosaic.places(pattern)}, found
    gains = mosaic.per_pixel("gain", gain, pattern, 0.0)
    reads = mosaic.per_pixel("read_noise", 0.0 if read_noise is None else read_noise, pattern, 0.0)
    cell: Cell = {}
    models: dict[str, NoiseModel] = {}
    for y, x, colour in mosaic.places(pattern):
        camera = check_model(gains[y, x], black[y, x], reads[y, x])
        cell[y, x] = Curve.of_camera(camera)
        models.setdefault(colour, NoiseModel.camera(camera.gain, camera.offset, camera.read_noise))
    return cell, models


def _estimated(
    pixels: Float, pattern: tuple[str, ...], white: float | None, workers: int
) -> dict[str, NoiseModel]:
    """The noise of every colour, from its own pixels if there are enough, otherwise from all colours."""
    together = _of_pixels(pixels, pattern, None, white, workers)
    few_saturated = white is None or np.mean(pixels >= white) <= FEW_SATURATED
    if together.sigma > 0 and len(mosaic.colours(pattern)) > 1 and few_saturated:
        together = _lower(together, _of_brightness(pixels, pattern, workers), pixels)
    found = dict.fromkeys(mosaic.colours(pattern), together)
    for colour in found:
        share = len(list(mosaic.places(pattern, colour))) / len(pattern) ** 2
        if share * pixels.size >= OWN_NOISE and together.sigma > 0:
            own = _of_pixels(pixels, pattern, colour, white, workers)
            found[colour] = own if own.sigma > 0 else together
    return found


def _lower(model: NoiseModel, other: NoiseModel, pixels: Float) -> NoiseModel:
    """The photon model with less noise, because texture only adds to it; `model` if neither is one."""
    of_photons = [one for one in (model, other) if one.curves[0].gain is not None]
    return min(of_photons or [model], key=lambda one: float(np.mean(one.variance(pixels, 0))))


def _of_brightness(pixels: Float, pattern: tuple[str, ...], workers: int) -> NoiseModel:
    """The photon noise of a mosaic without its colour differences: of all pixels side by side.

    Texture that looks like noise in every second pixel is resolved here.
    """
    which, _ = mosaic.colour_numbers(pattern, pixels.shape)
    differences = luminance.smooth_differences(pixels, which, luminance.SMOOTHER)
    grey = pixels - luminance.sampled(differences, which)
    return estimate_of_planes(to_planes(grey), "poisson-gaussian", workers, warns=False)


def _of_pixels(
    pixels: Float, pattern: tuple[str, ...], colour: str | None, white: float | None, workers: int
) -> NoiseModel:
    """The photon and read noise of one colour or of all; pixels do not share it."""
    side = len(pattern)
    height, width = (length // side for length in pixels.shape)
    parts = [pixels[y::side, x::side][:height, :width] for y, x, _ in mosaic.places(pattern, colour)]
    page = np.concatenate(parts)
    if white is not None:
        page = np.minimum(page, white)
    model = estimate_of_planes(to_planes(page), "auto", workers, warns=False)
    if model.is_correlated or model.curves[0].law is not None:
        model = estimate_of_planes(to_planes(page), "poisson-gaussian", workers, warns=False)
    return model


def _limited(result: Float, pixels: Float, own: NDArray[np.bool_], white: float | None) -> Float:
    """A result within the range of the mosaic, no brighter than white; saturated pixels keep their value."""
    result = result.clip(pixels.min(), pixels.max())
    if white is None:
        return result
    return np.where(own & (pixels >= white), pixels, np.minimum(result, white))


def _each(pixels: Float, cell: Cell, side: int, transform: Any) -> Float:
    """A transform of every pixel by the noise at its place of a cell."""
    result = np.empty_like(pixels)
    for (y, x), curve in cell.items():
        result[y::side, x::side] = transform(curve, pixels[y::side, x::side])
    return result


class _Run(NamedTuple):
    """How the mosaic is denoised after its noise is whitened to standard deviation one."""

    pattern: tuple[str, ...]
    profile: str
    device: str
    workers: int
    share: Share
    details: dict[str, Any]

    def keeping_phase(self, stable: Float) -> tuple[Plan, Float]:
        """The plan and its result: groups of patches keep their colours."""
        plan = self._plan(stable[None], None, patch_size=PATCH, scales=1)
        if len(self.pattern) > 1:
            (one,) = plan.rounds
            (size,) = one.sizes
            (group,) = size.groups
            group = replace(group, params=replace(group.params, pattern=self.pattern))
            plan = replace(plan, rounds=(replace(one, sizes=(replace(size, groups=(group,)),)),))
        return plan, self._execute(plan, stable[None], None, self.details)[0]

    def grey(self, image: Float, spread: Float) -> Float:
        """A grey image, denoised in the usual way; spread: a map of its noise."""
        result: Float = self.colours(image[None], spread[None])[0]
        return result

    def colours(self, planes: Float, spread: Float) -> Float:
        """Planes of an image in colour, denoised together; spread: a map of their noise."""
        return self._execute(self._plan(planes, spread), planes, spread, {})

    def _plan(self, planes: Float, spread: Float | None, **options: int) -> Plan:
        params = find_method("vnlr").with_defaults({"profile": self.profile, **options})
        noise = NoiseModel.white(1.0 if spread is None else root_mean_square(spread))
        with Pool(self.workers) as pool:
            sample = Sample(planes, planes.shape[1:], sigma_map=spread)
            return make_plan(
                "vnlr", params, sample, noise, device=self.device, warns=False, pool=pool, channels="joint"
            )

    def _execute(self, plan: Plan, planes: Float, spread: Float | None, details: dict[str, Any]) -> Float:
        progress = self.share.next(1.0)
        result: Float = to_host(
            execute(plan, planes, workers=self.workers, progress=progress, sigma_map=spread, details=details)
        )
        return result
