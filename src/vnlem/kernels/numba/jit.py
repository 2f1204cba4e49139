"""The one way kernels are compiled."""

from collections.abc import Callable
from typing import Any

from numba import njit

from vnlem.kernels.numba.cache import store

_SETTINGS: dict[str, Any] = {
    # Tiles run on Python threads.
    "nogil": True,
    "error_model": "numpy",
    # Without nnan and ninf: reductions vectorise, NaN and infinity keep their meaning.
    "fastmath": {"reassoc", "contract", "nsz", "arcp"},
}


def kernel(function: Callable[..., Any]) -> Any:
    """What Python calls: one tile's work. A user pays for its compilation once per machine."""
    dispatcher = njit(**_SETTINGS)(function)
    store(dispatcher)
    return dispatcher


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
