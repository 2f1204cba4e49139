"""Amounts of memory: as text, and the limit of this process."""

import os
import re
from pathlib import Path

UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
MOST = 2.0**63
SHARE_OF_FREE = 0.5  # the rest is left to the file cache and to other programs


def parse_bytes(text: str | int | float) -> int:
    """An amount of memory in bytes.

    >>> parse_bytes("1.5GB"), parse_bytes("512 MiB"), parse_bytes("1e9"), parse_bytes(1000)
    (1610612736, 536870912, 1000000000, 1000)
    """
    if isinstance(text, bool) or not isinstance(text, str | int | float):
        raise TypeError(f"memory must be a number of bytes or a text like '4GB', got {text!r}")
    number = r"[0-9]*\.?[0-9]+(?:e[+-]?[0-9]+)?"
    match = re.fullmatch(rf"\s*({number})\s*([KMGT]?)(?:i?B)?\s*", str(text), re.IGNORECASE)
    value = float(match[1]) * UNITS[match[2].upper()] if match else 0.0
    if not 1 <= value < MOST:
        raise ValueError(f"memory must be a number of bytes or a text like '4GB' or '800MB', got {text!r}")
    return int(value)


def human_bytes(count: float) -> str:
    """Bytes in the usual notation.

    >>> human_bytes(1610612736), human_bytes(1020 * 1024), human_bytes(999)
    ('1.5 GB', '0.996 MB', '999 bytes')
    """
    for name in ("T", "G", "M", "K"):
        if count >= 0.9765 * UNITS[name]:  # from here on three digits of the smaller unit are not enough
            return f"{count / UNITS[name]:.3g} {name}B"
    return f"{count:.0f} bytes"


def free_memory() -> int:
    """Bytes that new work may take: the free memory of the system, or what the control group leaves.

    >>> free_memory() > 0
    True
    """
    amounts = [_available(), _left_in_group()]
    return min((amount for amount in amounts if amount is not None), default=4 * 2**30)


def default_memory() -> int:
    """The share of the free memory that is used by default."""
    return int(SHARE_OF_FREE * free_memory())


def _available() -> int | None:
    try:
        text = Path("/proc/meminfo").read_text()
        return 1024 * int(re.search(r"MemAvailable:\s*(\d+)", text)[1])  # type: ignore[index]
    except (OSError, TypeError):
        pass
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None


def _left_in_group() -> int | None:
    """What a batch system or a container leaves to this process (control groups, version 2)."""
    try:
        group = Path("/proc/self/cgroup").read_text().rsplit("::", 1)[1].strip()
        folder = Path("/sys/fs/cgroup") / group.lstrip("/")
        limit, used = ((folder / name).read_text().strip() for name in ("memory.max", "memory.current"))
        return None if limit == "max" else int(limit) - int(used)
    except (OSError, IndexError, ValueError):
        return None
