"""The one way kernels are compiled."""

from pathlib import Path
from typing import Any

from numba import njit

_SETTINGS: dict[str, Any] = {
    # Tiles run on Python threads.
    "nogil": True,
    # A user pays for compilation once per machine.
    "cache": True,
    "error_model": "numpy",
    # Without nnan and ninf: reductions vectorise, NaN and infinity keep their meaning.
    "fastmath": {"reassoc", "contract", "nsz", "arcp"},
}

kernel = njit(**_SETTINGS)

# For small functions that must disappear into the loop that calls them, or it will not vectorise.
inlined = njit(inline="always", **_SETTINGS)


def _drop_stale_caches(folder: Path) -> None:
    """Delete cached machine code older than the newest kernel source.

    Numba renews a function's cache when its own file changes, not when a function it calls does; in a
    working copy that is being edited or updated this would run old code without a word.
    """
    newest = max(source.stat().st_mtime_ns for source in folder.glob("*.py"))
    for cached in folder.glob("__pycache__/*.nb[ic]"):
        try:
            if cached.stat().st_mtime_ns < newest:
                cached.unlink(missing_ok=True)
        except OSError:  # another process was quicker, or the folder is read-only
            continue


_drop_stale_caches(Path(__file__).parent)
