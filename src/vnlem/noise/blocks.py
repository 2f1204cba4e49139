"""Blocks of an image under the cosine transform: the basis of every noise estimate.

Noise that is the same everywhere has nearly independent coefficients in a block. So blocks may be chosen by
one half of their coefficients, and the noise measured in the other half, without bias from the choice.

Blocks are arrays (rows, columns, n): the same pixel of all blocks lies side by side, and every operation runs
along many of them.
"""

from collections.abc import Callable
from functools import cache
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from vnlem.pipeline.workers import Pool

Float = NDArray[np.float64]

MOST_BLOCKS = 2**14  # bounds time and memory for any image
CLIPPED_SHARE = 0.05  # a block with more pixels at the image's limits may be clipped
MOST_CLIPPED_SHARE = 0.55  # a block with more than half of its pixels clipped is not used
LEAST_UNCLIPPED = 0.25  # of the blocks must be unclipped for the others to be left out
PART = 2048  # blocks per task
EQUAL_SHARE = 0.5  # a block with more pairs of equal neighbours shows no noise
EQUAL_MARGIN = 0.2  # share of equal neighbours by which chance may exceed the expected one
LEAST_COUNTS = 4  # a part of a block may have this many times less variance than the whole block
SKIPPED = 8  # pixels along a side, in a first look at the values of a plane
SAMPLED = 512  # pixels along a side that are examined for the values of a plane


def cut(plane: NDArray[Any], side: int, step: int) -> NDArray[Any]:
    """Overlapping blocks (side, side, n); the step grows if there would be more than MOST_BLOCKS.

    >>> cut(np.zeros((32, 40)), 8, 8).shape
    (8, 8, 20)
    """
    return _listed(windows(plane, side, step))


def windows(
    plane: NDArray[Any], side: int, step: int, most: int = MOST_BLOCKS, longer: int = 1
) -> NDArray[Any]:
    """The blocks as a view (side, side, down, across) of the plane.

    The step becomes longer by `longer` until there are no more than `most`.

    >>> windows(np.zeros((32, 40)), 8, 8).shape
    (8, 8, 4, 5)
    """
    found = sliding_window_view(plane, (min(plane.shape[0], side), min(plane.shape[1], side)))
    while -(-found.shape[0] // step) * -(-found.shape[1] // step) > most:
        step += longer
    return found[::step, ::step].transpose(2, 3, 0, 1)


def _listed(found: NDArray[Any]) -> NDArray[Any]:
    return found.reshape(*found.shape[:2], -1)


def in_parts(
    work: Callable[..., tuple[NDArray[Any], ...]], given: list[NDArray[Any]], pool: Pool
) -> tuple[NDArray[Any], ...]:
    """Work on windows (side, side, down, across), some of them at a time on every worker.

    work: takes blocks (side, side, n) of each of the views and returns arrays (..., n). The result for a
        block must not depend on the others.
    given: views of windows, all with the same number down and across.

    Returns the results of `work` for all blocks.

    >>> with Pool(2) as pool:
    ...     (sums,) = in_parts(lambda b: (b.sum(axis=(0, 1)),), [windows(np.ones((9, 9)), 2, 1)], pool)
    >>> sums.shape, float(sums.max())
    ((64,), 4.0)
    """
    down, across = given[0].shape[2:]
    each = max(1, PART // across)
    bands = [slice(first, first + each) for first in range(0, down, each)]
    parts = pool.results(lambda band: work(*(_listed(view[:, :, band]) for view in given)), bands)
    whole = tuple(np.empty((*part.shape[:-1], down * across), part.dtype) for part in parts[0])

    def put(number: int) -> None:
        first = across * bands[number].start
        for target, part in zip(whole, parts[number], strict=True):
            target[..., first : first + part.shape[-1]] = part

    pool.for_each(put, range(len(bands)))
    return whole


def cosine(blocks: Float) -> Float:
    """Orthonormal cosine transform of every block (rows, columns, n).

    By matrices: blocks are small, and importing `scipy.fft` takes as long as transforming many images.

    >>> cosine(np.ones((2, 2, 1)))[:, :, 0].round(12)
    array([[2., 0.],
           [0., 0.]])
    """
    down, across = (cosine_matrix(side) for side in blocks.shape[:2])
    halfway = np.matmul(down, blocks.transpose(1, 0, 2))  # (columns, rows, n)
    coefficients: Float = np.matmul(across, halfway.transpose(1, 0, 2))
    return coefficients


@cache
def cosine_matrix(side: int) -> Float:
    """Of the transform: rows are frequencies, columns places."""
    order = np.arange(side)
    matrix: Float = np.cos(np.pi / side * np.outer(order, order + 0.5)) * np.sqrt(2 / side)
    matrix[0] = np.sqrt(1 / side)
    return matrix


def frequency(side: int) -> Float:
    """Mean over both directions of the frequency of each coefficient: 0 to 1.

    >>> frequency(2)
    array([[0. , 0.5], [0.5, 1. ]])
    """
    axis = np.arange(side) / max(side - 1, 1)
    mean: Float = np.add.outer(axis, axis) / 2
    return mean


def lattice(plane: NDArray[Any], skip: int = 1) -> float:
    """The smallest step between values of a plane: one for integers, tiny for real numbers.

    With `skip` it is seen in a part of these values, and may be larger.

    >>> lattice(np.array([[8.0, 0.0], [24.0, 8.0]]))
    8.0
    """
    rows, columns = (max(1, size // SAMPLED) for size in plane.shape)
    seen = plane[:: skip * rows, :: skip * columns]
    if skip == 1 and lattice(plane, SKIPPED) == 1 and (seen == np.rint(seen)).all():
        return 1.0  # of integers, without sorting them
    values = np.unique(seen)
    return float(np.diff(values).min()) if values.size > 1 else 0.0


def painted(blocks: NDArray[Any], variance: Float, step: float) -> NDArray[np.bool_]:
    """Whether more neighbours are equal than noise explains: text, a label, a border, padding.

    blocks: (rows, columns, n).
    variance: (n,), of the noise that a block can have.
    step: between the values that pixels can have. Two counts with this variance are equal as often as two
        Poisson variables.

    >>> painted(np.array([[[1.0, 1.0], [1.0, 2.0]], [[1.0, 3.0], [1.0, 4.0]]]), np.array([0.0, 1.0]), 1.0)
    array([ True, False])
    """
    across, down = blocks[:, 1:] == blocks[:, :-1], blocks[1:] == blocks[:-1]
    shares = [share_of(equal) for equal in (across, down) if equal.size]
    if not shares:
        return np.zeros(blocks.shape[2], bool)
    return too_equal(np.max(shares, axis=0), variance, lambda: step)


def too_equal(equal: Float, variance: Float, step: Callable[[], float]) -> NDArray[np.bool_]:
    """Whether this share (n,) of the neighbours is more than :func:`painted` allows. step: read if needed."""
    found = equal > EQUAL_SHARE
    unsure = np.flatnonzero((equal > EQUAL_MARGIN) & ~found)
    if not unsure.size:
        return found
    # Counts of few photons may differ within a block: most of it is dark, some of it holds all the noise.
    # The Bessel function i0, scaled by exp(-x); by its asymptote if it would overflow.
    x = 2 * variance[unsure] / max(LEAST_COUNTS * step() ** 2, 1e-300)
    small, large = np.minimum(x, 500.0), np.maximum(x, 500.0)
    usual = np.where(x > 500.0, 1 / np.sqrt(2 * np.pi * large), np.i0(small) * np.exp(-small))
    found[unsure] = equal[unsure] > usual + EQUAL_MARGIN
    return np.asarray(found)


def left_by_clipping(share: Float) -> Float:
    """Variance of normal noise that is left when this share of it was clipped on one side.

    >>> left_by_clipping(np.array([0.0, 0.5])).round(2)
    array([1.  , 0.34])
    """
    # Few shares differ: they are counts of the pixels of a block.
    below, which = np.unique(np.clip(share, 1e-6, MOST_CLIPPED_SHARE), return_inverse=True)
    limit = np.array([NormalDist().inv_cdf(value) for value in below])[which]
    below = below[which]
    density = np.exp(-(limit**2) / 2) / np.sqrt(2 * np.pi)
    # Mean and mean square of max(x, limit) for normal x.
    mean = density + limit * below
    square = 1 - below + limit * density + limit**2 * below
    return np.asarray(square - mean**2)


def share_of(seen: NDArray[np.bool_]) -> Float:
    """Share of the pixels of each block (rows, columns, n).

    >>> share_of(np.array([[[True, False]], [[False, False]]]))
    array([0.5, 0. ])
    """
    share: Float = seen.sum(axis=(0, 1), dtype=np.uint16) / (seen.shape[0] * seen.shape[1])
    return share


def unclipped(natural: NDArray[np.bool_], clipped: NDArray[np.bool_], enough: int) -> NDArray[np.bool_]:
    """Natural blocks that show the noise unclipped; all natural ones if too few would be left.

    >>> unclipped(np.array([True, True, False]), np.array([True, False, False]), enough=1)
    array([False,  True, False])
    """
    kept = natural & ~clipped
    # If most blocks are clipped, the unclipped ones were selected by their noise; and the clipped ones have
    # the noise to remove.
    few = max(enough, LEAST_UNCLIPPED * np.count_nonzero(natural))
    return natural if np.count_nonzero(kept) < few else kept


def order(values: Float) -> NDArray[np.intp]:
    """``np.argsort(values, kind="stable")``, several times as fast.

    Sorting numbers is much quicker than sorting indices: the last digits make room for the indices, and what
    they decide is sorted again.

    >>> order(np.array([3.0, -1.0, 3.0, 2.0])).tolist()
    [1, 3, 0, 2]
    """
    mask = (1 << int(values.size).bit_length()) - 1
    # Positive numbers are in the order of their bits.
    bits = (values - values.min()).view(np.int64)
    order = np.sort(bits & ~mask | np.arange(values.size)) & mask
    return order[np.argsort(values[order], kind="stable")]
