"""The one way kernels are compiled.

`compiler.py`, `shortcuts.py` and `cache.py` reach into Numba; `arrays.py`, `simd.py`, `masks.py`,
`squares.py`, `panel.py` and `correlations.py` are written in LLVM's instructions. With
VNLEM_PLAIN_KERNELS=1, and where a release of Numba lacks what these need, kernels are compiled and stored as
Numba does by itself, with loops (`loops.py`, `panel_loops.py`) for the instructions. Results agree to
rounding; calls take longer.
"""

import os
from collections.abc import Callable
from typing import Any

from numba import config as numba_config
from numba import njit

from vnlem.kernels.numba.fallback import PLAIN_KERNELS, tell


def _is_plain() -> bool:
    if os.environ.get(PLAIN_KERNELS, "0") not in ("", "0"):
        return True
    try:
        from vnlem.kernels.numba import (  # noqa: F401
            arrays,
            cache,
            compiler,
            correlations,
            masks,
            panel,
            simd,
            squares,
        )
    except (ImportError, AttributeError) as error:
        tell(error)
        return True
    return False


PLAIN = _is_plain()
config: Any = numba_config
BOUNDSCHECK = bool(config.BOUNDSCHECK)  # whether every index is checked: for tests

_SETTINGS: dict[str, Any] = {
    # Tiles run on Python threads.
    "nogil": True,
    "error_model": "numpy",
    # Without nnan and ninf: reductions vectorise, NaN and infinity keep their meaning.
    "fastmath": {"reassoc", "contract", "nsz", "arcp"},
}
_WHOLE = dict(_SETTINGS)
_AT_ONCE: dict[str, Any] = {}
# Made part of the kernel that calls it: what is called by its name may be another kernel's copy, optimised in
# other surroundings, and then the last bits of a result depend on which kernel was compiled first.
_ALLOCATING = _SETTINGS | {"forceinline": True}
_NESTED = dict(_ALLOCATING)
if not PLAIN:
    from vnlem.kernels.numba.cache import store
    from vnlem.kernels.numba.compiler import AtOnceCompiler, PartCompiler, WholeCompiler, guarded, whole

    _WHOLE |= {"no_cfunc_wrapper": True, "pipeline_class": WholeCompiler}
    _AT_ONCE |= {"pipeline_class": AtOnceCompiler}
    _ALLOCATING = _SETTINGS | {
        "no_cpython_wrapper": True,
        "no_cfunc_wrapper": True,
        "pipeline_class": PartCompiler,
    }
    # Without Numba's runtime, which counts references to arrays: every view and every array of a tuple that
    # is passed on would cost an atomic increment and decrement, per pixel many times the price of a short
    # loop, and more still when two threads count the same array.
    _NESTED = _ALLOCATING | {"_nrt": False}


def kernel(function: Callable[..., Any]) -> Any:
    """What Python calls: one tile's work. A user pays for its compilation once per machine."""
    return _stored(function, _WHOLE)


def quick_kernel(function: Callable[..., Any]) -> Any:
    """A kernel that LLVM optimises once and not twice, which takes a seventh less time.

    For kernels that count few references and call no elementary functions in their loops, where results and
    speed stay the same.
    """
    return _stored(function, _WHOLE | _AT_ONCE)


def brief_kernel(function: Callable[..., Any]) -> Any:
    """What Python calls for some microseconds: it keeps Python's lock, which takes longer to get back."""
    return _stored(function, _WHOLE | _AT_ONCE | {"nogil": False})


def _stored(function: Callable[..., Any], settings: dict[str, Any]) -> Any:
    if PLAIN:
        try:
            return njit(cache=True, **settings)(function)
        except RuntimeError:  # no folder can be written to
            return njit(**settings)(function)
    dispatcher = njit(**settings)(function)
    store(dispatcher)
    return whole(dispatcher)


def from_python(function: Any) -> Any:
    """A function that kernels call, as tests can call it; compiled anew in every process."""
    return njit(**_WHOLE)(getattr(function, "py_func", function))


def nested(function: Callable[..., Any]) -> Any:
    """What kernels call: never called from Python, and compiled as a part of each kernel that calls it.

    It allocates nothing, and a kernel's loops belong in one of these: it allocates its scratch, then calls it
    once.
    """
    dispatcher = njit(**_NESTED)(function)
    return dispatcher if PLAIN else guarded(dispatcher)


def allocating(function: Callable[..., Any]) -> Any:
    """What kernels call to get their scratch."""
    dispatcher = njit(**_ALLOCATING)(function)
    return dispatcher if PLAIN else guarded(dispatcher)


# For small functions that must disappear into the loop that calls them, or it will not vectorise.
inlined = njit(inline="always", **_SETTINGS)
