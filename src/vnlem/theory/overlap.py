"""Which noise values two patches of one image share: the index sets K_O, K_S and K_I of the paper.

The moments and the bounds depend on overlap only through the sizes of these three sets.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vnlem.pipeline import checks

Offset = tuple[int, int]


@dataclass(frozen=True)
class OverlapSets:
    """The shared noise values of a patch and a second, rotated patch at an offset.

    All indices count the pixels of a patch from 0 in reading order (``patch.ravel()``).

    Attributes
    ----------
    patch_size : int
        Side q of the patches.
    overlap : ndarray of shape (n, 2)
        K_O: pairs (a, b) such that pixel a of the first patch and pixel b of the rotated second patch are the
        same pixel of the image.
    swapped : ndarray of shape (m, 2)
        K_S: those pairs (a, b) of K_O, a different from b, for which (b, a) is in K_O too.
    identical : ndarray of shape (l,)
        K_I: the pixels a with (a, a) in K_O.

    Examples
    --------
    >>> sets = overlap_sets(3, (0, 2), 180)
    >>> sets.sizes, sets.overlap.tolist()
    ((3, 2, 1), [[2, 8], [5, 5], [8, 2]])
    """

    patch_size: int
    overlap: NDArray[np.intp]
    swapped: NDArray[np.intp]
    identical: NDArray[np.intp]

    @property
    def sizes(self) -> tuple[int, int, int]:
        """The cardinalities (|K_O|, |K_S|, |K_I|)."""
        return len(self.overlap), len(self.swapped), len(self.identical)

    def labels(self, which: str = "overlap") -> set[Any]:
        """One of the sets in the paper's numbering: from 1, down the columns.

        Examples
        --------
        >>> sorted(overlap_sets(3, (0, 1), 180).labels("swapped"))
        [(4, 9), (5, 8), (6, 7), (7, 6), (8, 5), (9, 4)]
        """
        indices = getattr(self, checks.choice("which", which, ("overlap", "swapped", "identical")))
        rows, columns = np.divmod(indices, self.patch_size)
        numbers = columns * self.patch_size + rows + 1
        return set(numbers.tolist()) if which == "identical" else set(map(tuple, numbers.tolist()))


def check_rotation(rotation: Any) -> int:
    """Quarter turns of a rotation in degrees, or an error for one that moves pixels off the grid.

    >>> check_rotation(-90)
    3
    """
    degrees = checks.real("rotation", rotation)
    if degrees % 90:
        raise ValueError(
            f"rotation must be a multiple of 90 degrees, got {rotation!r}: the exact sets exist only where "
            "pixels fall on pixels; for other angles use overlap_bounds(q)"
        )
    return int(degrees // 90) % 4


def check_offset(offset: Any, q: int) -> Offset:
    """Offset (rows, columns) between the centres of two patches that share at least one pixel."""
    values = np.asarray(offset)
    if values.shape != (2,):
        raise ValueError(f"offset must be a pair (rows, columns), got {offset!r}")
    rows, columns = (checks.whole("offset", value, smallest=-(10**9)) for value in values.tolist())
    if max(abs(rows), abs(columns)) >= q:
        raise ValueError(
            f"offset {(rows, columns)} lies beyond the patch of size {q}, so the two patches share no pixel; "
            "pass offset=None for patches that do not overlap"
        )
    return rows, columns


def overlap_sets(q: int, offset: Offset | None, rotation: float = 0) -> OverlapSets:
    """The sets K_O, K_S and K_I of two patches of one image, the second one rotated.

    Parameters
    ----------
    q : int
        Patch size, odd.
    offset : (int, int) or None
        Centre of the second patch minus centre of the first (rows, columns), less than `q` in both.
        None: patches that do not overlap, all sets empty.
    rotation : float
        Rotation O of the second patch in degrees, counterclockwise as displayed; a multiple of 90.

    Returns
    -------
    OverlapSets

    Notes
    -----
    Pixel s of the first patch is pixel x + s of the image and pixel t of the rotated second one is pixel
    x + offset + O^-1 t, so (s, t) is in K_O where s = offset + O^-1 t. Three facts follow:

    - on the square grid |K_O| = (q - |rows|)(q - |columns|) for each of the four rotations;
    - s = t means (1 - O^-1) s = offset, which has at most one solution for a rotation other than the
      identity, and none for the identity with an offset other than zero: |K_I| <= 1;
    - (s, t) and (t, s) together give s - t = -O^-1 (s - t), so K_S is empty unless O turns by 180 degrees.

    Examples
    --------
    The paper's example with three shared pixels (q = 3, two columns apart, half a turn):

    >>> sets = overlap_sets(3, (0, 2), 180)
    >>> sets.sizes, sets.labels("identical")
    ((3, 2, 1), {8})
    """
    q = checks.odd("q", q)
    turns = check_rotation(rotation)
    if offset is None:
        none = np.empty((0, 2), dtype=np.intp)
        return OverlapSets(q, none, none, np.empty(0, dtype=np.intp))
    rows, columns = check_offset(offset, q)
    row, column = np.mgrid[:q, :q]
    stride = 4 * q  # wide enough to recover row and column from one label
    first = (row + q) * stride + column + q
    second = np.rot90((row + rows + q) * stride + column + columns + q, turns)
    _, a, b = np.intersect1d(first, second, assume_unique=True, return_indices=True)
    partner = np.full(q * q, -1, dtype=np.intp)
    partner[a] = b
    # (b, a) is in K_O where the partner of b is a.
    mutual = (a != b) & (partner[b] == a)
    pairs = np.stack([a, b], axis=1)
    return OverlapSets(q, pairs, pairs[mutual], a[a == b])


@dataclass(frozen=True)
class OverlapBounds:
    """Upper bounds of the sizes of K_O, K_S and K_I, for any offset other than zero.

    Examples
    --------
    >>> bounds = overlap_bounds(5)
    >>> bounds.overlap, bounds.swapped, bounds.identical
    (20, 20, 1)
    """

    overlap: int
    swapped: int
    identical: int


def overlap_bounds(q: int, rotation: float | None = None) -> OverlapBounds:
    """The paper's bounds on the sizes of the sets, for any rotation and any offset other than zero.

    Parameters
    ----------
    q : int
        Patch size, odd.
    rotation : float, optional
        Rotation in degrees. None: the bounds hold for all rotations at once.

    Returns
    -------
    OverlapBounds
        |K_O| <= q(q-1), |K_S| <= q(q-1) and 0 unless the rotation is 180 degrees, |K_I| <= 1 and 0 for the
        identity.

    Examples
    --------
    >>> overlap_bounds(3)
    OverlapBounds(overlap=6, swapped=6, identical=1)
    >>> overlap_bounds(3, rotation=0)
    OverlapBounds(overlap=6, swapped=0, identical=0)
    """
    q = checks.odd("q", q)
    most = q * (q - 1)
    if rotation is None:
        return OverlapBounds(most, most, 1)
    degrees = checks.real("rotation", rotation) % 360
    return OverlapBounds(most, most if degrees == 180 else 0, 0 if degrees == 0 else 1)
