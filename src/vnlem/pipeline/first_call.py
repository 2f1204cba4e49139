"""The call that is under way, small enough for another process to repeat.

Kernels are compiled when they are called for the first time. Which ones a call needs, and for which types, is
known to whoever has made it once: see `vnlem.kernels.numba.ahead`.
"""

import functools
import importlib
import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from vnlem.pipeline.run import Job

RECORD = "VNLEM_RECORD_KERNELS"
_rehearsing = bool(os.environ.get(RECORD))
_SIDE = 96  # pixels, at most
Solver = TypeVar("Solver", bound=Callable[..., Any])


def is_rehearsing() -> bool:
    """Whether kernels note their calls in this process and do nothing else."""
    return _rehearsing


def rehearse() -> None:
    """From now on kernels note their calls in this process and do nothing else."""
    global _rehearsing
    _rehearsing = True


def _corner(planes: NDArray[Any]) -> NDArray[Any]:
    """A part of an image, contiguous as the image is: kernels are compiled for that."""
    return np.array(planes[..., :_SIDE, :_SIDE], order="C")


class Call:
    """A solver, by the names of its module and of itself, and the job it is given."""

    def __init__(self, module: str, name: str, job: Job[Any]) -> None:
        self._module, self._name, self._job = module, name, job

    def made_small(self) -> "Call":
        """The same call for a part of the image: what another process needs to learn its kernels."""
        noise = self._job.sigma_map
        small = replace(
            self._job,
            pixels=_corner(self._job.pixels),
            workers=1,
            progress=None,
            details={},
            sigma_map=None if noise is None else _corner(noise),
            region=None,
        )
        return Call(self._module, self._name, small)

    def make(self) -> Any:
        """What the solver returns."""
        return getattr(importlib.import_module(self._module), self._name)(self._job)


_under_way: list[Call] = []


def repeatable(kernel: Any) -> Callable[[Solver], Solver]:
    """A solver whose kernels can be learned by making its call without them.

    So its Python code must not depend on what kernels write, other than on numbers it would report, or it
    asks whether it `is_rehearsing`. kernel: one that all its calls need. Where it was never compiled others
    are missing too, and their compilation begins before the call does.
    """

    def with_kernel(solve: Solver) -> Solver:
        @functools.wraps(solve)
        def with_note(job: Job[Any], *args: Any, **kwargs: Any) -> Any:
            call = Call(solve.__module__, solve.__name__, job)
            _under_way.append(call)
            try:
                if hasattr(kernel, "expect"):  # not where kernels are compiled as Numba does by itself
                    kernel.expect()
                return solve(job, *args, **kwargs)
            finally:
                _under_way.remove(call)

        return with_note  # type: ignore[return-value]

    return with_kernel


def call_under_way() -> Call | None:
    """The latest call that is not finished."""
    return _under_way[-1] if _under_way else None
