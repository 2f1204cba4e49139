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

_said: ContextVar[set[tuple[str, int]] | None] = ContextVar("said", default=None)


@contextmanager
def said_once() -> Iterator[None]:
    """Each place of the package warns at most once: a call may reach it for every scale, channel and page.

    >>> with warnings.catch_warnings(record=True) as caught, said_once():
    ...     warnings.simplefilter("always")
    ...     for scale in range(3):
    ...         warn(f"scale {scale} has no structure")
    >>> [str(one.message) for one in caught]
    ['scale 0 has no structure']
    """
    token = _said.set(set()) if _said.get() is None else None
    try:
        yield
    finally:
        if token is not None:
            _said.reset(token)


def warn(message: str) -> None:
    """Warn about the innermost line that is not the package's own.

    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     warn("check the units")
    >>> caught[0].filename.startswith(_PACKAGE)
    False
    """
    frame = sys._getframe(1)
    said, origin = _said.get(), (frame.f_code.co_filename, frame.f_lineno)
    if said is not None:
        if origin in said:
            return
        said.add(origin)
    while frame.f_back is not None and frame.f_code.co_filename.startswith((_PACKAGE, *_IMPORTING)):
        frame = frame.f_back
    place = frame.f_globals
    warnings.warn_explicit(
        message,
        UserWarning,
        frame.f_code.co_filename,
        frame.f_lineno,
        module=place.get("__name__", "<unknown>"),
        registry=place.setdefault("__warningregistry__", {}),
    )
