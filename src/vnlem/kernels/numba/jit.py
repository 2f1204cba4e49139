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


# What kernels call. Not cached, and always made part of the kernel that calls them. A function that is
# called by its name may be this kernel's copy or another's, optimised in other surroundings, and then the
# last bits of a result depend on which kernel was compiled or loaded first.
#
# Without Numba's runtime, which counts references to arrays: every view and every array of a tuple that is
# passed on would cost an atomic increment and decrement, per pixel many times the price of a short loop, and
# more still when two threads count the same array. So these functions allocate nothing, and a kernel's loops
# belong in one of them: it allocates its scratch, then calls it once.
nested = njit(forceinline=True, **_SETTINGS | {"_nrt": False})

# What kernels call to get their scratch.
allocating = njit(forceinline=True, **_SETTINGS)

# For small functions that must disappear into the loop that calls them, or it will not vectorise.
inlined = njit(inline="always", **_SETTINGS)
