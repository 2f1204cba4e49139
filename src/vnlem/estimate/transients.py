"""Transients of a movie: how much of them an estimate lost, and how to restore it.

A patch that is bright in a few frames has few similar ones, and its group pulls it towards the quiet frames.
The residual, noisy frame minus estimate, shows this: it should be noise, but where a transient was lowered it
looks like the transient. So the residual is regressed on the change of the estimate over time. The slope is
the share of the change that was lost; slope times change is added back. Some hundred pixels and some frames
share a slope, so it has little noise even if the residual of a single frame is not significant.

Noise left in the estimate is also a change over time, and the residual is correlated with it. So changes
below a share of the noise do not count, and both sides are smoothed before they are compared.

The arrays are NumPy's or CuPy's.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, TypeVar

import numpy as np

from vnlem.estimate.change import window_means
from vnlem.kernels.cpu.middle import MOST, middle_of_planes
from vnlem.pipeline.device import lies_on_gpu, namespace

Array = Any  # of NumPy or CuPy
Item = TypeVar("Item")

AROUND = MOST // 2  # frames before and after; the median of all of them is the quiet scene
LEAST = AROUND + 1  # frames that a median needs; with fewer the quiet scene is unknown
POOLED = 2  # frames before and after that share a slope
REACH = 9  # pixels; windows of 19 x 19 share a slope
# Smoothed changes, in units of the noise. Below the first nothing counts, above the second everything.
NOTHING, EVERYTHING = 0.25, 0.4
STEADY = 0.01  # mean square of a change, in units of the noise, at which a slope is halved
LARGEST_SLOPE = 1.0
# Planes in flight of a pass that take as much memory as the frames that wait here; from
# benchmarks/stack_memory.py.
PLANES_HELD = 6


class Frame(NamedTuple):
    """One frame of a movie, all (channels, H, W)."""

    residual: Array  # noisy frame minus estimate in units of the noise, single precision
    estimate: Array
    sigma: Any  # of the noise: a number, or an array that fits

    @classmethod
    def of(cls, noisy: Array, estimate: Array, sigma: Any) -> "Frame":
        """A frame from its noisy values."""
        return cls(((noisy - estimate) / sigma).astype(np.float32), estimate, sigma)


class _Measured(NamedTuple):
    """What a frame contributes to slopes."""

    estimate: Array
    change: Array  # of the estimate over time, as far as it counts
    product: Array  # (H, W): of smoothed residual and smoothed change, averaged over channels
    energy: Array  # (H, W): of the smoothed change


def restore_transients(frames: Iterable[Frame], *, ahead: int) -> Iterator[Array]:
    """The estimates of a movie's frames, with the lost share of their changes over time restored.

    frames: in order. None is requested before it is needed.
    ahead: frames after one that it may depend on in each of two steps: at most `AROUND`, then `POOLED`.

    Yields the restored estimates in the same order.

    >>> rng = np.random.default_rng(0)
    >>> clean = np.zeros((20, 1, 24, 24)); clean[9:11, :, 8:16, 8:16] = 2
    >>> noisy = clean + rng.normal(0, 1, clean.shape)
    >>> frames = [Frame.of(a, 0.6 * b, 1.0) for a, b in zip(noisy, clean)]
    >>> found = np.stack(list(restore_transients(frames, ahead=AROUND)))
    >>> cell = np.s_[9:11, :, 8:16, 8:16]
    >>> round(float(0.6 * clean[cell].mean()), 1), round(float(found[cell].mean()), 1)
    (1.2, 2.0)
    """
    for held, at in windows(_measured(frames, ahead), POOLED, min(ahead, POOLED)):
        own = held[at]
        product = window_means(sum(one.product for one in held), REACH)
        energy = window_means(sum(one.energy for one in held), REACH)
        slope = (product / (energy + STEADY)).clip(0, LARGEST_SLOPE)
        yield own.estimate + slope * own.change


def reach() -> int:
    """How many frames before or after one its result depends on.

    >>> reach()
    10
    """
    return AROUND + POOLED


def windows(items: Iterable[Item], before: int, after: int) -> Iterator[tuple[list[Item], int]]:
    """For every item the items around it, and its index among them.

    >>> [("".join(held), at) for held, at in windows("abcd", 1, 2)]
    [('abc', 0), ('abcd', 1), ('bcd', 1), ('cd', 1)]
    """
    held: deque[Item] = deque()
    at = 0
    for item in items:
        held.append(item)
        if len(held) > at + after:
            yield list(held), at
            at += 1
            if at > before:
                held.popleft()
                at -= 1
    while at < len(held):
        yield list(held), at
        at += 1
        if at > before:
            held.popleft()
            at -= 1


def _measured(frames: Iterable[Frame], ahead: int) -> Iterator[_Measured]:
    waiting: deque[Frame] = deque()

    def in_units() -> Iterator[Array]:
        for frame in frames:
            waiting.append(frame)
            yield (frame.estimate / frame.sigma).astype(np.float32)

    for held, at in windows(in_units(), AROUND, min(ahead, AROUND)):
        yield _measure(waiting.popleft(), held, at)


def _measure(frame: Frame, held: list[Array], at: int) -> _Measured:
    """Compare a frame with the frames around it, in units of the noise."""
    xp = namespace(held[at])
    change = held[at] - middle_of(xp.stack(held))
    smooth = _smooth(change)
    share = ((abs(smooth) - NOTHING) / (EVERYTHING - NOTHING)).clip(0, 1)
    smooth *= share
    product = (smooth * _smooth(frame.residual)).mean(axis=0)
    energy = (smooth * smooth).mean(axis=0)
    if len(held) < LEAST:
        # All was computed: kernels of a device are compiled with the first frame, not during a live picture.
        return _Measured(frame.estimate, 0 * change, 0 * product, 0 * energy)
    return _Measured(frame.estimate, change * share * frame.sigma, product, energy)


def middle_of(planes: Array) -> Array:
    """The median over the first axis of at most `MOST` planes, in single precision.

    >>> middle_of(np.float32([[1, 5], [7, 2], [3, 9]]))
    array([3., 5.], dtype=float32)
    """
    out = namespace(planes).empty(planes.shape[1:], np.float32)
    rows, into = planes.reshape(len(planes), -1), out.reshape(-1)
    if lies_on_gpu(planes):
        from vnlem.kernels.cuda import engine, middle

        middle.middle_of_planes(engine.Engine(), rows, into, MOST)
    else:
        middle_of_planes(rows, into)
    return out


def _smooth(planes: Array) -> Array:
    """Planes (channels, H, W) under a binomial filter of 5 x 5 pixels; mirrored at borders."""
    return _smooth_rows(_smooth_rows(planes).swapaxes(1, 2)).swapaxes(1, 2)


def _smooth_rows(planes: Array) -> Array:
    wide = namespace(planes).pad(planes, ((0, 0), (2, 2), (0, 0)), mode="symmetric")
    rows = [wide[:, shift : shift + planes.shape[1]] for shift in range(5)]
    return (rows[0] + rows[4] + 4 * (rows[1] + rows[3]) + 6 * rows[2]) / 16
