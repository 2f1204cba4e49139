"""The one way kernels are compiled."""

from pathlib import Path
from typing import Any

from numba import njit

_SETTINGS: dict[str, Any] = {
    # Tiles run on Python threads.
    "nogil": True,
    "error_model": "numpy",
    # Without nnan and ninf: reductions vectorise, NaN and infinity keep their meaning.
    "fastmath": {"reassoc", "contract", "nsz", "arcp"},
}

# What Python calls: one tile's work. A user pays for its compilation once per machine.
kernel = njit(cache=True, **_SETTINGS)

# What kernels call. Not cached, so a kernel is always compiled together with all it calls: were a callee
# taken from the cache, it would be optimised apart from its caller, and the last bits of a result would
# depend on what had been called before.
#
# Without Numba's runtime, which counts references to arrays: every view and every array of a tuple that is
# passed on would cost an atomic increment and decrement, per pixel many times the price of a short loop, and
# more still when two threads count the same array. So these functions allocate nothing, and a kernel's loops
# belong in one of them: it allocates its scratch, then calls it once.
nested = njit(**_SETTINGS | {"_nrt": False})

# What kernels call to get their scratch.
allocating = njit(**_SETTINGS)

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
