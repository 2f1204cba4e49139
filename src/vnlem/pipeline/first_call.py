"""The call that is under way, small enough for another process to repeat.

Kernels are compiled when they are called for the first time. Which ones a call needs, and for which types, is
known to whoever has made it once: see `vnlem.kernels.numba.ahead`.
"""

import functools
import os
import pickle
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from vnlem.pipeline.run import Job

RECORD = "VNLEM_RECORD_KERNELS"
# Whether kernels note their calls in this process and do nothing else.
rehearsing = bool(os.environ.get(RECORD))
_SIDE = 96  # pixels, at most
_under_way: list[tuple[str, str, Job[Any]]] = []
Solver = TypeVar("Solver", bound=Callable[..., Any])


def repeatable(solve: Solver) -> Solver:
    """A solver whose kernels can be learned by making its call without them.

    So its Python code must not depend on what kernels write, other than on numbers it would report, or it
    asks for `rehearsing`.
    """

    @functools.wraps(solve)
    def with_note(job: Job[Any], *args: Any, **kwargs: Any) -> Any:
        call = (solve.__module__, solve.__name__, job)
        _under_way.append(call)
        try:
            return solve(job, *args, **kwargs)
        finally:
            _under_way.remove(call)

    return with_note  # type: ignore[return-value]


def call_under_way() -> bytes | None:
    """The latest call that is not finished, pickled: module and name of its solver, and a job for it."""
    if not _under_way:
        return None
    module, name, job = _under_way[-1]
    noise = job.sigma_map
    small = replace(
        job,
        pixels=job.pixels[:, :_SIDE, :_SIDE],
        workers=1,
        progress=None,
        details={},
        sigma_map=None if noise is None else noise[..., :_SIDE, :_SIDE],
        region=None,
    )
    return pickle.dumps((module, name, small))
