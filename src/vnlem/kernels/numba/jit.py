"""The one way kernels are compiled."""

from collections.abc import Callable
from typing import Any

from numba import njit

from vnlem.kernels.numba.ahead import recording
from vnlem.kernels.numba.cache import store
from vnlem.kernels.numba.compiler import PartCompiler, WholeCompiler, guarded, noting

_SETTINGS: dict[str, Any] = {
    # Tiles run on Python threads.
    "nogil": True,
    "error_model": "numpy",
    # Without nnan and ninf: reductions vectorise, NaN and infinity keep their meaning.
    "fastmath": {"reassoc", "contract", "nsz", "arcp"},
}
_WHOLE = _SETTINGS | {"no_cfunc_wrapper": True, "pipeline_class": WholeCompiler}
_PART = _SETTINGS | {
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
    "pipeline_class": PartCompiler,
}


def kernel(function: Callable[..., Any]) -> Any:
    """What Python calls: one tile's work. A user pays for its compilation once per machine."""
    dispatcher = njit(**_WHOLE)(function)
    store(dispatcher)
    return noting(dispatcher) if recording else dispatcher


def from_python(function: Any) -> Any:
    """A function that kernels call, as tests can call it; compiled anew in every process."""
    return njit(**_WHOLE)(getattr(function, "py_func", function))


# What kernels call. Never called from Python, and compiled as a part of each kernel that calls it.
#
# Without Numba's runtime, which counts references to arrays: every view and every array of a tuple that is
# passed on would cost an atomic increment and decrement, per pixel many times the price of a short loop, and
# more still when two threads count the same array. So these functions allocate nothing, and a kernel's loops
# belong in one of them: it allocates its scratch, then calls it once.
def nested(function: Callable[..., Any]) -> Any:
    """A part of kernels, which allocates nothing."""
    return guarded(njit(**_PART | {"_nrt": False})(function))


def allocating(function: Callable[..., Any]) -> Any:
    """What kernels call to get their scratch."""
    return guarded(njit(**_PART)(function))


# For small functions that must disappear into the loop that calls them, or it will not vectorise.
inlined = njit(inline="always", **_SETTINGS)
