"""Warnings that point at the line of the caller's program, however deep in the package they come from."""

import importlib
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

_PACKAGE = str(Path(__file__).parents[1])
# Importing a module of the package passes through these.
_IMPORTING = ("<frozen importlib", importlib.__file__)

_silent = ContextVar("silent", default=False)


@contextmanager
def silent() -> Iterator[None]:
    """No warnings from this thread: what they would name, the user has not given.

    Examples
    --------
    >>> with warnings.catch_warnings(), silent():
    ...     warnings.simplefilter("error")
    ...     warn("check the units of sigma")
    """
    token = _silent.set(True)
    try:
        yield
    finally:
        _silent.reset(token)


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn about the innermost line that is not the package's own.

    Examples
    --------
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     warn("check the units")
    >>> caught[0].filename.startswith(_PACKAGE)
    False
    """
    if _silent.get():
        return
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith((_PACKAGE, *_IMPORTING)):
        frame = frame.f_back
    place = frame.f_globals
    warnings.warn_explicit(
        message,
        category,
        frame.f_code.co_filename,
        frame.f_lineno,
        module=place.get("__name__", "<unknown>"),
        registry=place.setdefault("__warningregistry__", {}),
    )
