"""Blocks on a GPU: which one, one after the other, and in the units that the whole image has there."""

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vnlem.pipeline.device import choose, current, placed, why_no_gpu
from vnlem.pipeline.scale import Scale
from vnlem.pipeline.stand_in import BRIGHTER as BRIGHTER_THAN_STAND_IN
from vnlem.pipeline.stand_in import StandIn

# Pixels of a large image may be so much brighter than those of its sample. Sums on a GPU are whole numbers
# whose unit follows the brightest pixel; with this margin it is still finer than single precision.
BRIGHTER = 2.0**12
_lock = threading.Lock()


def find_device(device: str | None, *, elsewhere: bool) -> str:
    """Where blocks are solved: "cpu", "cuda" or "cuda:N"; a GPU of others need not be here.

    Examples
    --------
    >>> find_device(None, elsewhere=False), find_device("cuda", elsewhere=True)
    ('cpu', 'cuda')
    """
    if elsewhere and re.fullmatch(r"cuda(:\d+)?", str(device)):
        return str(device)
    found = choose(device)
    return found if found == "cpu" or device != "cuda" else "cuda"


def kind_of(device: str) -> str:
    """The kind of a device, whichever of several it is.

    Examples
    --------
    >>> kind_of("cuda:1"), kind_of("cpu")
    ('cuda', 'cpu')
    """
    return device.partition(":")[0]


@contextmanager
def one_at_a_time(device: str) -> Iterator[None]:
    """Inside, solvers run on a device; a GPU has its memory for one block of this process.

    Examples
    --------
    >>> with one_at_a_time("cpu"):
    ...     pass
    """
    if device == "cpu":
        yield
        return
    with _lock, current(choose(device)):
        yield


class Units(NamedTuple):
    """How the units of an image are measured on its sample."""

    device: str
    all_seen: bool  # whether the sample is the image

    def of(self, planes: NDArray[Any], noise: float) -> tuple[Scale, float | None]:
        """Scale and, for a GPU, the largest absolute value in its units.

        Sums on a GPU have another order and the scale another last digit, so it is measured there, if one is
        here.

        Examples
        --------
        >>> Units("cpu", True).of(np.array([[[0.0, 10.0]]]), 3.0)
        (Scale(mean=5.0, scale=4.0, noise=3.0), None)
        """
        if self.device == "cpu":
            return Scale.measure(planes, noise), None
        if why_no_gpu() is None:
            with placed(planes, self.device) as place:
                scale = Scale.measure(place.array, noise)
        else:
            scale = Scale.measure(planes, noise)
        peak = float(np.abs(scale.standardise(planes)).max())
        return scale, peak if self.all_seen else BRIGHTER * peak

    def by(self, planes: NDArray[Any], noise: float) -> tuple[Scale, float | None]:
        """The same for an image that these planes stand for, see `vnlem.pipeline.stand_in`.

        Examples
        --------
        >>> Units("cpu", True).by(np.array([[[0.0, 10.0]]]), 3.0)
        (Scale(mean=5.0, scale=4.0, noise=3.0), None)
        """
        scale, peak = StandIn(noise, planes).units()
        if self.device == "cpu":
            return scale, None
        return scale, peak if self.all_seen else peak * BRIGHTER / BRIGHTER_THAN_STAND_IN
