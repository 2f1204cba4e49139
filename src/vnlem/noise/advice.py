"""Warnings about an image and its noise before the work: one sentence each, with the remedy."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vnlem.noise.model import NoiseModel
from vnlem.pipeline.image import Planes
from vnlem.pipeline.warn import warn

# Rounding to integers adds a variance of 1/12. That is little if the noise has at least this variance, or the
# image at least this standard deviation.
LEAST_NOISE_VARIANCE = 6.0
LEAST_CONTRAST = 5.0
BELOW_OFFSET = 3.0  # times the read noise: if most pixels lie this far below the offset, it is wrong


def advise(model: NoiseModel, planes: Planes, *, rounded: bool) -> None:
    """Warn about an offset above the image, and about integers that cannot hold the result.

    planes: the image, or a page or a sample of it, as given.
    rounded: whether the result will be rounded to integers although no dtype was given.

    >>> import warnings
    >>> from vnlem.pipeline.image import to_planes
    >>> counts = to_planes(np.random.default_rng(0).poisson(0.5, (64, 64)))
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     advise(NoiseModel.camera(1.0), counts, rounded=True)
    >>> str(caught[0].message).partition(";")[2]
    " pass dtype='float32' (--dtype float32)"
    """
    _check_offset(model, planes)
    if rounded:
        _check_rounding(model, planes)


def _check_offset(model: NoiseModel, planes: Planes) -> None:
    for number, plane in enumerate(planes.data):
        camera = model.curves[min(number, len(model.curves) - 1)].gain
        if camera is None:
            continue
        middle = float(np.median(plane))
        if middle < camera.offset - camera.gain - BELOW_OFFSET * camera.read_noise:
            warn(
                f"the offset {camera.offset:g} lies above most of the image, whose median is {middle:g}: "
                "there are no photons below the offset; check offset (--offset)"
            )
            return


def check_copies(planes: Planes) -> None:
    """Warn if neighbouring pixels are copies of each other, which hides the noise."""
    down, across = (copies(planes.data, axis) for axis in (1, 2))
    if down > 1 and across > 1:
        warn(
            f"every pixel is repeated {down} x {across} times, which hides the noise: denoise the image as "
            f"it was before it was enlarged, image[::{down}, ::{across}]"
        )


def copies(data: NDArray[Any], axis: int) -> int:
    """How many neighbours along an axis are always equal; one if none are, or all.

    >>> copies(np.arange(4.0).repeat(3)[None], 1), copies(np.arange(12.0)[None], 1)
    (3, 1)
    """
    moved = np.moveaxis(data, axis, 0)
    step, last = 0, 0
    for place in range(1, len(moved)):
        if (moved[place] != moved[place - 1]).any():
            step = math.gcd(step, place - last) if last else 0
            last = place
            if step == 1:
                break
    return step or 1


def _check_rounding(model: NoiseModel, planes: Planes) -> None:
    seen = planes.data if model.varies else planes.data[:, :1, :1]
    noise = np.mean([model.variance(plane, number).mean() for number, plane in enumerate(seen)])
    if not 0 < noise < LEAST_NOISE_VARIANCE:
        return
    variance = float(planes.data.var(axis=(1, 2)).mean())
    if variance < LEAST_CONTRAST**2 + noise:
        warn(
            f"the pixels are small whole numbers (standard deviation {variance**0.5:.2g}), and as "
            f"{planes.dtype} most of the result is rounded away; pass dtype='float32' (--dtype float32)"
        )
