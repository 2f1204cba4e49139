"""Kernels that a release of Numba or of llvmlite cannot compile our way are compiled its own way.

What these libraries lack, and what they mean differently, may show only while a kernel is compiled. Then the
modules of all kernels are imported once more, with VNLEM_PLAIN_KERNELS set: the kernel has a twin there that
uses nothing but what Numba offers to everybody.
"""

import importlib
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import numba

from vnlem.pipeline.warn import warn

PLAIN_KERNELS = "VNLEM_PLAIN_KERNELS"
_PACKAGE = __name__.rpartition(".")[0]
_HOW = "install another release of Numba, or set " + PLAIN_KERNELS + "=1 to hide this"
_plain_modules: dict[str, ModuleType] = {}
_lock = threading.RLock()
_told = False


def tell(reason: object) -> None:
    """One warning in a process."""
    global _told
    if not _told:
        _told = True
        warn(
            f"Numba {numba.__version__} lacks what kernels are compiled with ({reason}): they are compiled "
            f"its own way, and slower; {_HOW}",
            RuntimeWarning,
        )


def plain_twin(function: Any, types: Any, error: Exception) -> tuple[Any, Any]:
    """The plain twin of the kernel `function`, whose compilation has ended in an error, and its code."""
    with _lock, _plain_imports():
        twin: Any = getattr(importlib.import_module(function.__module__), function.__name__, None)
    if not function.__module__.startswith(f"{_PACKAGE}.") or not hasattr(twin, "compile"):
        raise error
    try:
        code = twin.compile(types)
    except Exception:
        raise error from None  # a fault of the kernel, or of its call
    tell(error)
    return twin, code


@contextmanager
def _plain_imports() -> Iterator[None]:
    """Inside, modules of kernels are their plain twins."""
    package = sys.modules[_PACKAGE]
    names = dict(vars(package))
    usual = {name: module for name, module in sys.modules.items() if name.startswith(f"{_PACKAGE}.")}
    switch = os.environ.get(PLAIN_KERNELS)
    try:
        for name in usual:
            del sys.modules[name]
        sys.modules.update(_plain_modules)
        vars(package).update({name.rpartition(".")[2]: module for name, module in _plain_modules.items()})
        os.environ[PLAIN_KERNELS] = "1"
        yield
    finally:
        for name in [name for name in sys.modules if name.startswith(f"{_PACKAGE}.")]:
            _plain_modules[name] = sys.modules.pop(name)
        sys.modules.update(usual)
        vars(package).update(names)
        if switch is None:
            del os.environ[PLAIN_KERNELS]
        else:
            os.environ[PLAIN_KERNELS] = switch
