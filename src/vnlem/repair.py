"""Options for single pixels: which are missing, which are defective, which stay unchanged.

Missing and defective pixels are left out of all estimates and filled (`vnlem.estimate.missing`), and the
image is denoised with the knowledge that they are filled. The result is mixed with the input where requested.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vnlem.estimate import missing as holes_of
from vnlem.estimate.missing import Repair
from vnlem.noise.impulses import ImpulseRule, check_impulses, find_rule
from vnlem.noise.model import NoiseModel
from vnlem.pipeline import checks
from vnlem.pipeline.device import namespace, to_host
from vnlem.pipeline.dtypes import as_dtype
from vnlem.pipeline.image import Planes
from vnlem.plan import Plan
from vnlem.registry import find_method

Mask = NDArray[np.bool_]
Float = NDArray[np.float64]

MAPS = ("mask", "defects", "protect")  # the options that are arrays


@dataclass(frozen=True)
class PixelOptions:
    """The arguments of `denoise` for single pixels."""

    impulses: str | bool = False
    mask: Any = None  # True for missing pixels
    fill: bool = True
    defects: Any = None  # True for broken pixels of the detector
    protect: Any = None  # weights: with 1 the result keeps the input
    strength: float = 1.0

    def each(self, change: Callable[[str, Any], Any]) -> "PixelOptions":
        """The same with changed arrays; `change` gets name and array."""
        return replace(self, **{name: change(name, values) for name, values in self.maps.items()})

    @property
    def maps(self) -> dict[str, Any]:
        """The arrays that were given, by their names."""
        return {name: values for name in MAPS if (values := getattr(self, name)) is not None}

    @property
    def keeps_input(self) -> bool:
        """Whether a part of the input stays in the result."""
        return self.protect is not None or self.strength < 1

    def describe(self) -> dict[str, Any]:
        """Everything the result depends on, except the search for impulses, as plain values."""
        given = {
            name: f"{values.shape} {sha256(values.tobytes()).hexdigest()[:32]}"
            for name, values in self.maps.items()
        }
        return {"strength": self.strength, "fill": self.fill, **dict.fromkeys(MAPS), **given}


EVERY_PIXEL = PixelOptions()  # no option was given
NAMES = tuple(vars(EVERY_PIXEL))


def check_options(
    impulses: Any, mask: Any, fill: Any, defects: Any, protect: Any, strength: Any
) -> PixelOptions:
    """The options, or a clear error.

    >>> check_options("auto", None, True, None, None, 0.5).keeps_input
    True
    """
    return PixelOptions(
        check_impulses(impulses),
        None if mask is None else _as_mask("mask", mask),
        checks.flag("fill", fill),
        None if defects is None else _as_mask("defects", defects),
        None if protect is None else _as_weights(protect),
        checks.real("strength", strength, 0, 1),
    )


def _as_mask(name: str, given: Any) -> Mask:
    array = to_host(checks.as_array(name, given))
    if array.dtype.kind not in "biu" or (array.dtype.kind != "b" and not np.isin(array, (0, 1, 255)).all()):
        raise TypeError(
            f"{name} must be True where a pixel is {'missing' if name == 'mask' else 'defective'} and False "
            f"elsewhere, got dtype {array.dtype}; pass e.g. {name} > 0"
        )
    return np.asarray(array != 0)


def _as_weights(given: Any) -> Float:
    weights = checks.finite("protect", to_host(checks.as_array("protect", given)))
    if weights.min() < 0 or weights.max() > 1:
        raise ValueError(
            f"protect must lie between 0 (denoised) and 1 (kept), got values from {weights.min():g} to "
            f"{weights.max():g}"
        )
    return weights


def without_mask(image: Any, mask: Any) -> tuple[Any, Any]:
    """A masked array as its data, and its mask together with one that was given.

    >>> without_mask(np.ma.masked_greater([1.0, 9.0], 5), None)[1]
    array([False,  True])
    """
    if not np.ma.isMaskedArray(image):
        return image, mask
    own = np.ma.getmaskarray(image)
    if mask is None:
        return image.data, own
    return image.data, own | fitting("mask", _as_mask("mask", mask), own.shape, None)


def fitting(name: str, values: Any, shape: tuple[int, ...], channel_axis: int | None) -> Any:
    """Values for every pixel of an image: of its shape, of its last axes, or without its channels."""
    if channel_axis is not None and values.ndim == len(shape) - 1:
        values = np.expand_dims(values, channel_axis)
    try:
        if np.broadcast_shapes(values.shape, shape) == shape and values.ndim >= min(2, len(shape)):
            return np.broadcast_to(values, shape)
    except ValueError:
        pass
    raise ValueError(
        f"{name} must have the shape of the image {shape}, or of its last axes, got shape {values.shape}"
    )


def as_planes(values: Any, channel_axis: int | None) -> Any:
    if channel_axis is not None:
        return np.ascontiguousarray(np.moveaxis(values, channel_axis, 0))
    return values.reshape((1, 1, -1) if values.ndim == 1 else (1, *values.shape))


def split(image: Any, options: PixelOptions, channel_axis: int | None = None) -> tuple[Any, Mask | None]:
    """An image without NaN, and its missing pixels, in its shape; None if there are none.

    Infinite values stay, and are refused later with other invalid values.

    >>> split(np.array([[1.0, np.nan]]), PixelOptions())
    (array([[1., 0.]]), array([[False,  True]]))
    """
    array = checks.as_array("the image", image)
    found: Any = None
    if array.dtype.kind == "f" and array.size and bool(np.isnan(float(array.min()))):  # one value shows all
        found = to_host(namespace(array).isnan(array))
    for name, values in (("mask", options.mask), ("defects", options.defects)):
        if values is not None:
            whole = fitting(name, values, array.shape, channel_axis)
            found = whole if found is None else found | whole
    if found is None or not found.any():
        return image, None
    if found.all():
        raise ValueError(
            f"all {found.size} pixels of the image are NaN or masked; pass an image with valid pixels"
        )
    whole = to_host(array).copy()  # in its own byte order, which np.where would change
    whole[found] = 0
    return whole, found


@dataclass(frozen=True)
class Holes:
    """Missing pixels, (channels, height, width), and which of them are impulses."""

    missing: Mask
    filled: Float  # the planes with a first guess there
    impulses: Mask | None = None


# Gives the noise of planes.
Estimate = Callable[[Planes], NoiseModel]


def without_missing(planes: Planes, missing: Mask, estimate: Estimate | None) -> tuple[Planes, Holes]:
    """Planes whose missing pixels are filled and as noisy as the others, and the holes.

    missing: (channels, height, width).
    estimate: None if the noise is known: then only the contrast of the planes is estimated.
    """
    filled = holes_of.first_guess(planes.data, missing, holes_of.levels_of(planes.data, missing))
    seen = replace(planes, data=holes_of.stand_in(filled, missing, _rough_sigma(planes.data, missing)))
    if estimate is not None:
        noise = estimate(seen)
        deviation = np.sqrt(np.stack([noise.variance(plane, number) for number, plane in enumerate(filled)]))
        seen = replace(planes, data=holes_of.stand_in(filled, missing, deviation))
    return seen, Holes(missing, filled)


def impulse_rule(
    planes: Planes,
    missing: Mask | None,
    noise: NoiseModel,
    asked: str | bool,
    estimate: Estimate | None,
    levels: Any = None,
    workers: int | None = 1,
) -> ImpulseRule | None:
    """How the impulses of an image, or of its sample, are found; None if there are none.

    The noise of the rule is that of the image without them; levels: that of each pixel, if known.
    """
    rule = find_rule(planes.data, noise, asked, missing, levels, workers)
    if rule is None or estimate is None:
        return rule
    found = rule.find(planes.data, levels)
    if not found.any():
        return rule
    seen, _ = without_missing(planes, found if missing is None else found | missing, estimate)
    return replace(rule, noise=estimate(seen))


def without_impulses(
    planes: Planes,
    holes: Holes | None,
    rule: ImpulseRule,
    estimate: Estimate | None,
    even: Any = None,
    levels: Any = None,
) -> tuple[Planes, Holes] | None:
    """The same as :func:`without_missing` for impulses as well; None if there are none.

    even: the planes in the units of the rule's noise, if maps of a sensor have corrected them; levels: the
    noise of each pixel, if it is known.
    """
    filled = planes.data if holes is None else holes.filled
    found = rule.find(filled if even is None else even, levels)
    missing = found
    if holes is not None:
        found &= ~holes.missing
        missing = found | holes.missing
    if not found.any():
        return None
    seen, all_holes = without_missing(planes, missing, estimate)
    return seen, replace(all_holes, impulses=found)


def _rough_sigma(data: Float, holes: Mask) -> float:
    """Noise of neighbours that are both valid: from differences of differences, which slopes do not raise."""
    found = []
    for axis in (1, 2):
        if data.shape[axis] < 3:
            continue
        first, middle, last = (np.take(data, range(k, data.shape[axis] - 2 + k), axis=axis) for k in range(3))
        gone = [np.take(holes, range(k, data.shape[axis] - 2 + k), axis=axis) for k in range(3)]
        valid = ~(gone[0] | gone[1] | gone[2])
        if valid.any():
            found.append(float(np.median(np.abs(first - 2 * middle + last)[valid])) / 0.6745 / np.sqrt(6.0))
    return min(found, default=0.0)


def with_repair(
    plan: Plan, planes: Float, holes: Mask | None, quick: Callable[[dict[str, Any]], Plan]
) -> Plan:
    """A plan that fills holes first.

    planes, holes: the image or a sample of it; holes None if none were found.
    quick: gives the plan of a guessing round, from parameters that make it quick or careful.
    """
    if holes is None:
        holes = np.zeros(planes.shape, bool)
    if "profile" in find_method(plan.method).parameters:
        profiles = holes_of.profiles_of_guesses(holes, plan.groups()[0].params.profile)
        guesses = tuple(quick({"profile": profile, "aim": "fidelity"}) for profile in profiles)
    else:
        guesses = (quick({}),)
    return replace(plan, repair=Repair(guesses, holes_of.levels_of(planes, holes)))


def finish(given: Any, done: Any, options: PixelOptions, missing: Mask | None, protect: Any = None) -> Any:
    """The result, mixed with the input where requested; missing pixels have no input to keep.

    >>> finish(np.array([0.0, 8.0]), np.array([4.0, 4.0]), PixelOptions(strength=0.5), None)
    array([2., 6.])
    """
    if not options.keeps_input:
        return done
    xp = namespace(done)
    weight: Any = np.asarray(options.strength)
    if protect is not None:
        weight = weight * (1 - protect)
    if missing is not None:
        weight = np.where(missing, 1.0, weight)
    weight = xp.asarray(weight)
    # Exactly the input at weight 0, exactly the result at weight 1.
    return xp.where(weight == 1, done, given + weight * (done - given))


def protect_of(options: PixelOptions, shape: tuple[int, ...], channel_axis: int | None) -> Any:
    """Weights for every pixel of an image of this shape, as planes; None if nothing is protected."""
    if options.protect is None:
        return None
    return as_planes(fitting("protect", options.protect, shape, channel_axis), channel_axis)


def kept(result: Any, image: Any, missing: Mask, options: PixelOptions) -> Any:
    """A result whose missing pixels keep their input; defective pixels stay filled."""
    if options.defects is not None:
        missing = missing & ~fitting("defects", options.defects, missing.shape, None)
    whole = np.where(missing, to_host(image), to_host(result)).astype(result.dtype, copy=False)
    return namespace(result).asarray(whole)


def finish_pages(
    done: NDArray[Any],
    given: NDArray[Any],
    image: NDArray[Any],
    holes: Mask | None,
    missing: Mask | None,
    options: PixelOptions,
) -> NDArray[Any]:
    """Denoised pages in their dtype, mixed with the input; missing pixels stay if that was requested.

    given: the pages that were denoised, their holes filled; image: the pages as they came; holes: all that
    was filled; missing: those of them that may stay.
    """
    if options.keeps_input:
        protect = options.protect
        protect = None if protect is None else fitting("protect", protect, image.shape, None)
        mixed = finish(given.astype(np.float64), done.astype(np.float64), options, holes, protect)
        done = as_dtype(mixed, done.dtype)
    return done if missing is None or options.fill else kept(done, image, missing, options)


def with_image(result: Any, change: Callable[[Any], Any]) -> Any:
    """A result, an image or (image, Info), with another image."""
    return (change(result[0]), *result[1:]) if isinstance(result, tuple) else change(result)


def is_complex(image: Any) -> bool:
    """Whether an image holds complex numbers.

    >>> is_complex(np.zeros((2, 2), np.complex64)), is_complex([[1.0]])
    (True, False)
    """
    return getattr(getattr(image, "dtype", None), "kind", "") == "c"


def denoise_complex(
    denoise: Callable[..., Any], image: Any, sigma: Any, noise_model: Any, dtype: Any, rest: dict[str, Any]
) -> Any:
    """Complex numbers as two channels, their real and imaginary parts, which share their groups of patches.

    In a stack the two parts are two channels with separate series of pages.
    """
    if rest["channel_axis"] is not None:
        raise ValueError(
            "a complex image has its real and imaginary parts as channels; leave channel_axis out and "
            "denoise other channels one by one"
        )
    if dtype is not None:
        raise ValueError("a complex image comes back complex; leave dtype out")
    if noise_model not in ("auto", "gaussian"):
        raise ValueError(
            "complex images have white noise in both parts, and noise_model must be 'auto' or 'gaussian', "
            f"got {checks.shown(noise_model)}; take numpy.abs(image) for noise_model='rician'"
        )
    axes = rest["axes"]
    if axes is not None and "C" in str(axes).upper():
        raise ValueError(f"axes {axes!r} names channels, which a complex stack has already; leave C out")
    xp = namespace(image)
    parts = xp.stack([image.real, image.imag], axis=-1)
    options = rest | ({"channel_axis": -1} if axes is None else {"axes": f"{axes}C"})
    for name in MAPS:
        if options[name] is not None:
            options[name] = checks.as_array(name, options[name])[..., None]
    if axes is None and "channels" in find_method(rest["method"]).parameters:
        options = {"channels": "joint"} | options
    done = denoise(parts, sigma, noise_model="gaussian", **options)
    return with_image(done, lambda found: (found[..., 0] + 1j * found[..., 1]).astype(image.dtype))
