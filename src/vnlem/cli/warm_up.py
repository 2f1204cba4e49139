"""Compile the kernels of some methods in a second process, into the cache, while this one works.

Numba compiles one function at a time in a process; the second core would idle through a cold start.
"""

import subprocess
import sys

_CHILD = """
import sys, time
import numpy as np
import vnlem
image = np.random.default_rng(0).normal(0, 0.5, (64, 64)) + (np.arange(64) > 31)
for method in sys.argv[1:]:
    begun = time.perf_counter()
    vnlem.denoise(image, 0.5, method=method, workers=1)
    print(method, time.perf_counter() - begun, flush=True)
"""


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
