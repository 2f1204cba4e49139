"""Selections given as text: a region, a part of the units."""

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from vnlem.large.boxes import Box, describe
from vnlem.pipeline import checks

RegionText = str | Mapping[str, Any]


def parse_region(region: RegionText | None, axes: tuple[str, ...], shape: tuple[int, ...]) -> Box:
    """The box of a region; axes that are not named are whole.

    >>> parse_region("y=0:20,x=5:", ("z", "y", "x"), (3, 40, 50))
    ((0, 3), (0, 20), (5, 50))
    >>> parse_region({"z": 1}, ("z", "y", "x"), (3, 40, 50))
    ((1, 2), (0, 40), (0, 50))
    """
    box = {axis: (0, size) for axis, size in zip(axes, shape, strict=True)}
    for name, wanted in _named(region).items():
        if name not in box:
            raise ValueError(f"region names the axis {name!r}; there are {', '.join(axes)}")
        size = box[name][1]
        start, stop = wanted
        start, stop = 0 if start is None else start, size if stop is None else stop
        if not 0 <= start < stop <= size:
            raise ValueError(
                f"region {name}={start}:{stop} does not lie in 0:{size}; the image has "
                f"{describe(tuple((0, length) for length in shape), axes)}"
            )
        box[name] = (start, stop)
    return tuple(box[axis] for axis in axes)


def _named(region: RegionText | None) -> dict[str, tuple[int | None, int | None]]:
    if region is None:
        return {}
    if isinstance(region, Mapping):
        return {str(name): _span(value) for name, value in region.items()}
    found = {}
    for text in str(region).split(","):
        match = re.fullmatch(r"\s*(\w+)\s*=\s*(?:(\d*):(\d*)|(\d+))\s*", text)
        if match is None:
            raise ValueError(f"region must look like y=0:2048,x=0:2048, got {region!r}")
        name, start, stop, index = match.groups()
        if name in found:
            raise ValueError(f"region names the axis {name!r} twice; name every axis once, got {region!r}")
        if index is not None:
            found[name] = _span(int(index))
        else:
            found[name] = (int(start) if start else None, int(stop) if stop else None)
    return found


def _span(value: Any) -> tuple[int | None, int | None]:
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return int(value), int(value) + 1
    span = (value.start, value.stop) if isinstance(value, slice) and value.step in (None, 1) else value
    try:
        start, stop = (None if end is None else checks.whole("an end", end, 0) for end in span)
    except (TypeError, ValueError):
        raise ValueError(
            f"region must give an axis its first pixel and the one after its last, such as (0, 2048), "
            f"got {checks.shown(value)}"
        ) from None
    return start, stop


def parse_part(part: str | tuple[int, int] | None) -> tuple[int, int]:
    """Number of the part, from 1, and how many parts there are.

    >>> parse_part("3/16"), parse_part(None)
    ((3, 16), (1, 1))
    """
    if part is None:
        return 1, 1
    if isinstance(part, str):
        match = re.fullmatch(r"\s*(\d+)\s*/\s*(\d+)\s*", part)
        if match is None:
            raise ValueError(f"part must look like 3/16 (the third of sixteen), got {part!r}")
        part = (int(match[1]), int(match[2]))
    number, count = part
    if count < 1:
        raise ValueError(f"part must name at least one part, such as 1/1 or 3/16, got {number}/{count}")
    if not 1 <= number <= count:
        raise ValueError(f"part must lie between 1/{count} and {count}/{count}, got {number}/{count}")
    return number, count
