"""The coarser levels of an image: means over the pixels each coarse pixel covers."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vnlem.large.boxes import Box, Span


def level_shapes(shape: tuple[int, ...], smallest: int) -> list[tuple[int, ...]]:
    """Shapes of a pyramid that halves rows and columns until they fit in `smallest`.

    >>> level_shapes((5, 1000, 700), 512)
    [(5, 1000, 700), (5, 500, 350)]
    """
    shapes = [shape]
    while max(shapes[-1][-2:]) > smallest:
        *leading, height, width = shapes[-1]
        shapes.append((*leading, -(-height // 2), -(-width // 2)))
    return shapes


def sources_of(start: int, stop: int, fine: int, coarse: int) -> list[Span]:
    """Which fine pixels each coarse pixel start..stop is the mean of, along one axis.

    Usual pyramids have an integer factor, and a last pixel that covers fewer or leaves some out. In others a
    coarse pixel covers the whole fine pixels under it.

    >>> sources_of(0, 3, 5, 3), sources_of(0, 2, 5, 2), sources_of(0, 2, 3, 2)
    ([(0, 2), (2, 4), (4, 5)], [(0, 2), (2, 4)], [(0, 2), (2, 3)])
    >>> sources_of(0, 4, 6, 4)
    [(0, 2), (1, 3), (3, 5), (4, 6)]
    """
    factor = max(1, round(fine / coarse))
    if coarse in (fine // factor, -(-fine // factor)):
        return [(i * factor, min((i + 1) * factor, fine)) for i in range(start, stop)]
    return [(i * fine // coarse, -(-(i + 1) * fine // coarse)) for i in range(start, stop)]


def covered(box: Box, fine: tuple[int, ...], coarse: tuple[int, ...]) -> Box:
    """The box of the finer level that a box of the coarser one is made from.

    >>> covered(((0, 2), (2, 3)), (4, 5), (2, 3))
    ((0, 4), (4, 5))
    """
    spans = []
    for (start, stop), a, b in zip(box, fine, coarse, strict=True):
        parts = sources_of(start, stop, a, b)
        spans.append((parts[0][0], parts[-1][1]))
    return tuple(spans)


def downsample(
    pixels: NDArray[Any], box: Box, fine: tuple[int, ...], coarse: tuple[int, ...]
) -> NDArray[Any]:
    """A box of the coarser level from the pixels that `covered` names; integers are rounded.

    >>> downsample(np.array([[1, 2, 3], [3, 2, 5]]), ((0, 1), (0, 2)), (2, 3), (1, 2))
    array([[2, 4]])
    """
    exact_enough = np.float32 if pixels.dtype.itemsize <= 2 else np.float64  # for sums of a few pixels
    values = pixels.astype(exact_enough)
    for axis, ((start, stop), a, b) in enumerate(zip(box, fine, coarse, strict=True)):
        parts = np.array(sources_of(start, stop, a, b))
        parts -= parts[0, 0]
        lengths = parts[:, 1] - parts[:, 0]
        if (lengths == 1).all():
            continue
        if (parts[1:, 0] == parts[:-1, 1]).all():
            sums = np.add.reduceat(values.take(range(parts[-1, 1]), axis), parts[:, 0], axis)
        else:
            sums = np.stack([values.take(range(*part), axis).sum(axis) for part in parts], axis)
        across = [1] * values.ndim
        across[axis] = -1
        values = sums / lengths.reshape(across).astype(exact_enough)
    if pixels.dtype.kind in "iu":
        values = np.rint(values)
    return values.astype(pixels.dtype)
