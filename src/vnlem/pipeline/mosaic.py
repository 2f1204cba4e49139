"""Mosaics of camera raw files: each pixel has one colour, in a pattern that repeats cell by cell."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vnlem.pipeline import checks

LARGEST_CELL = 8
XTRANS = ("GBGGRG", "RGRBGB", "GBGGRG", "GRGGBG", "BGBRGR", "GRGGBG")


def check_pattern(pattern: Any) -> tuple[str, ...]:
    """The rows of a cell, such as ("RG", "GB").

    >>> check_pattern("RGGB"), check_pattern(["GR", "BG"]), len(check_pattern("X-Trans"))
    (('RG', 'GB'), ('GR', 'BG'), 6)
    """
    rows: tuple[str, ...] = ()
    if isinstance(pattern, str):
        name = pattern.upper().replace("-", "").replace(" ", "")
        rows = XTRANS if name == "XTRANS" else (name[: len(name) // 2], name[len(name) // 2 :])
    elif isinstance(pattern, Iterable) and all(isinstance(row, Iterable) for row in pattern):
        rows = tuple("".join(map(str, row)).upper() for row in pattern)
    side = len(rows)
    if not 1 <= side <= LARGEST_CELL or any(len(row) != side or not row.isalpha() for row in rows):
        raise ValueError(
            "pattern must be 'RGGB', 'BGGR', 'GRBG', 'GBRG', 'X-Trans' or the rows of a square cell of at "
            f"most {LARGEST_CELL} pixels, such as ('RG', 'GB'); got {checks.shown(pattern)}"
        )
    return rows


def places(pattern: tuple[str, ...], colour: str | None = None) -> Iterator[tuple[int, int, str]]:
    """Row, column and colour of the pixels of a cell; of one colour, or of all.

    >>> list(places(("RG", "GB"), "G"))
    [(0, 1, 'G'), (1, 0, 'G')]
    """
    for y, row in enumerate(pattern):
        for x, one in enumerate(row):
            if colour in (None, one):
                yield y, x, one


def colours(pattern: tuple[str, ...]) -> list[str]:
    """The colours of a pattern, in the order of their first pixels.

    >>> colours(("GB", "RG"))
    ['G', 'B', 'R']
    """
    return list(dict.fromkeys("".join(pattern)))


def colour_numbers(pattern: tuple[str, ...], shape: tuple[int, int]) -> tuple[NDArray[np.intp], list[str]]:
    """The number of each pixel's colour in a list of colours, and this list.

    >>> colour_numbers(("RG", "GB"), (2, 3))
    (array([[0, 1, 0], [1, 2, 1]]), ['R', 'G', 'B'])
    """
    names = colours(pattern)
    cell = np.array([[names.index(colour) for colour in row] for row in pattern])
    repeats = [-(-length // len(cell)) for length in shape]
    return np.tile(cell, repeats)[: shape[0], : shape[1]], names


def per_pixel(name: str, value: Any, pattern: tuple[str, ...], least: float = -np.inf) -> NDArray[np.float64]:
    """A number for every pixel of a cell: from one number, from one for each colour, or from the cell itself.

    >>> per_pixel("black_level", {"R": 1, "G": 2, "B": 3}, ("RG", "GB"))
    array([[1., 2.], [2., 3.]])
    """
    side = len(pattern)
    if isinstance(value, Mapping):
        missing = [colour for colour in colours(pattern) if colour not in value]
        if missing:
            raise ValueError(
                f"{name} must have a number for each of {', '.join(colours(pattern))}; got {value!r}"
            )
        found = np.array([[value[colour] for colour in row] for row in pattern], np.float64)
    else:
        given = checks.finite(name, value)
        if given.shape not in ((), (side, side)):
            raise ValueError(
                f"{name} must be a number, a number for each colour such as {{'R': 1, 'G': 1, 'B': 1}}, "
                f"or an array of the cell's shape {(side, side)}; got shape {given.shape}"
            )
        found = np.broadcast_to(given, (side, side)).copy()
    if found.min() < least or not np.isfinite(found).all():
        raise ValueError(f"{name} must be at least {least:g}, got {found.min():g}")
    return found
