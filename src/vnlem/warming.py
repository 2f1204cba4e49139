"""Compile kernels ahead of their first use, in processes of their own, into the cache.

Numba compiles one function at a time in a process; with one process per core a cold start takes as long as
the slowest method.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from vnlem.pipeline import checks
from vnlem.registry import METHODS, METHODS_WITH_PAPER_PRESET, SLOW_TO_COMPILE, find_method

_CHILD = """
import sys, time
import numpy as np
import vnlem
image = np.random.default_rng(0).normal(0, 0.5, (64, 64)) + (np.arange(64) > 31)
for task in sys.argv[1:]:
    method, _, preset = task.partition(":")
    begun = time.perf_counter()
    vnlem.denoise(image, 0.5, method=method, preset=preset or "auto", workers=1)
    print(method, time.perf_counter() - begun, flush=True)
"""


def warm_up(methods: Iterable[str] | None = None, processes: int | None = None) -> dict[str, float]:
    """Compile the kernels of some methods ahead, so that their first call is quick.

    Machine code is kept in Numba's cache, for this machine and this version of the package, and later
    processes find it there: worth a line in the recipe of a container. NUMBA_CACHE_DIR sets the folder.

    Parameters
    ----------
    methods : iterable of str, optional
        Names as in :func:`vnlem.denoise`; all methods when None.
    processes : int, optional
        Processes that compile side by side; as many as cores when None.

    Returns
    -------
    dict
        Method -> seconds of its process, next to nothing where the kernels were there already.

    Examples
    --------
    >>> import vnlem
    >>> list(vnlem.warm_up(["nlm"]))
    ['nlm']
    """
    if isinstance(methods, str):
        raise TypeError(f"methods must be a list of names, got {methods!r}; pass [{methods!r}]")
    names = list(METHODS) if methods is None else [str(name).lower().replace("_", "-") for name in methods]
    for name in names:
        find_method(name)
    count = checks.whole("processes", (os.cpu_count() or 1) if processes is None else processes)
    # The longest first, so that no process is left with it at the end.
    order = sorted(dict.fromkeys(names), key=lambda name: (name not in SLOW_TO_COMPILE, names.index(name)))
    with ThreadPoolExecutor(count) as pool:
        seconds = dict(zip(order, pool.map(_compile, order), strict=True))
    return {name: seconds[name] for name in dict.fromkeys(names)}


def _compile(method: str) -> float:
    """Call a method with each of its presets in a process of its own; returns the seconds it took."""
    tasks = [method, f"{method}:paper"] if method in METHODS_WITH_PAPER_PRESET else [method]
    begun = time.perf_counter()
    command = [sys.executable, "-W", "ignore", "-c", _CHILD, *tasks]
    quiet = os.environ | {"VNLEM_QUIET": "1"}
    found = subprocess.run(command, capture_output=True, text=True, env=quiet, check=False)
    if found.returncode:
        reason = (found.stderr.strip().splitlines() or [f"status {found.returncode}"])[-1]
        raise RuntimeError(f"the kernels of {method} could not be compiled: {reason}")
    return time.perf_counter() - begun


class WarmUp:
    """A child process that calls each method once on a small image, in this order.

    Examples
    --------
    >>> with WarmUp([]) as warm_up:
    ...     warm_up.wait_for("nlm")
    """

    def __init__(self, methods: list[str]) -> None:
        self._waiting = list(methods)
        self._seen: set[str] = set()
        self._child = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", _CHILD, *methods],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def __enter__(self) -> "WarmUp":
        return self

    def __exit__(self, *_: object) -> None:
        self._child.kill()
        self._child.communicate()

    def is_warm(self, method: str) -> bool:
        """Whether this method has been asked for before, so that its kernels are compiled."""
        return method in self._seen

    def wait_for(self, method: str) -> float | None:
        """Seconds the method's first call took over there; None where it was not asked for or failed."""
        self._seen.add(method)
        while method in self._waiting:
            line = self._child.stdout.readline() if self._child.stdout else ""
            if not line:  # the child has ended early: this process will compile for itself
                self._waiting.clear()
                return None
            name, seconds = line.split()
            self._waiting.remove(name)
            if name == method:
                return float(seconds)
        return None
