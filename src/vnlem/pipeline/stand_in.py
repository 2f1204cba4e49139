"""An image that another one takes its units from.

The later rounds for few photons see a mixture of the image and of what was found in it. Units measured on
that mixture would depend on all of the first result, which an image denoised in parts never holds. So they
are measured on planes that stand for it and are made from the image alone.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np
from numpy.typing import NDArray

from vnlem.pipeline.scale import Scale

Float = NDArray[np.float64]

# Pixels may be so much brighter than those of what stands for them. Sums on a GPU are whole numbers whose
# unit follows the brightest pixel.
BRIGHTER = 2.0**4

_standing: ContextVar[Float | None] = ContextVar("standing", default=None)


@contextmanager
def standing(planes: Float | None) -> Iterator[None]:
    """Inside, images of this thread take their units from planes (C, H, W); None: from themselves.

    Examples
    --------
    >>> with standing(np.array([[[0.0, 10.0]]])):
    ...     units_standing(3.0)
    (Scale(mean=5.0, scale=4.0, noise=3.0), 20.0)
    >>> units_standing(3.0) is None
    True
    """
    token = _standing.set(planes)
    try:
        yield
    finally:
        _standing.reset(token)


@contextmanager
def standing_for_part(part: Callable[[Float], Float]) -> Iterator[None]:
    """Inside, what stands for an image stands for a part of it, such as one of its channels.

    Examples
    --------
    >>> with standing(np.array([[[0.0, 10.0]], [[7.0, 7.0]]])), standing_for_part(lambda planes: planes[:1]):
    ...     units_standing(3.0)
    (Scale(mean=5.0, scale=4.0, noise=3.0), 20.0)
    """
    planes = _standing.get()
    with standing(None if planes is None else part(planes)):
        yield


def units_standing(noise: float) -> tuple[Scale, float] | None:
    """What `units_by` gives for the planes that stand for the image; None where nothing does."""
    planes = _standing.get()
    return None if planes is None else units_by(planes, noise)


def units_by(planes: Float, noise: float) -> tuple[Scale, float]:
    """Scale of an image that planes stand for, and what its pixels do not exceed in units of it.

    Examples
    --------
    >>> units_by(np.array([[[0.0, 10.0]]]), 3.0)
    (Scale(mean=5.0, scale=4.0, noise=3.0), 20.0)
    """
    scale = Scale.measure(planes, noise)
    return scale, BRIGHTER * float(np.abs(scale.standardise(planes)).max())
