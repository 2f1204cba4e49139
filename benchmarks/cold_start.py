"""How long a first call takes on a machine that has no compiled kernels.

    python benchmarks/cold_start.py [--cores 2] [--methods vnlr vnlem]

Each method is called once in a new process with an empty folder for compiled kernels, then once more in
another process, which finds them there. Seconds of the call, imports included, on two cores that nobody else
uses. The exit status is 1 where a limit is passed. Beside them the processor's seconds of the first
call in all its processes, which other work on the machine changes less.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time

# Seconds on two cores.
LIMITS = {"vnlr": 6.0, "vnlem": 10.0, "vnlem-dd": 20.0, "nlem": 6.0, "nlm": 4.0}
CALL = """
import sys, warnings
import numpy as np
warnings.simplefilter("ignore")
import vnlem
image = np.random.default_rng(0).normal(0, 0.5, (64, 64)) + (np.arange(64) > 31)
vnlem.denoise(image, 0.5, method=sys.argv[1])
"""


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--methods", nargs="+", choices=list(LIMITS), default=list(LIMITS))
    options = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: options.cores])
    print(f"{'method':10}{'first s':>9}{'limit':>8}{'cpu s':>8}{'second s':>10}")
    late = False
    for method in options.methods:
        with tempfile.TemporaryDirectory(prefix="cold-start-") as folder:
            seconds, busy = call(method, folder)
            again, _ = call(method, folder)
        late |= seconds > LIMITS[method]
        print(f"{method:10}{seconds:9.1f}{LIMITS[method]:8.0f}{busy:8.1f}{again:10.1f}", flush=True)
    return int(late)


def call(method: str, folder: str) -> tuple[float, float]:
    """Seconds of a call in a new process, and of the processor, helpers included (0 on Windows)."""
    environment = os.environ | {"NUMBA_CACHE_DIR": folder, "VNLEM_QUIET": "1"}
    begun, busy = time.perf_counter(), os.times()
    subprocess.run([sys.executable, "-c", CALL, method], env=environment, check=True)
    then = os.times()
    spent = then.children_user - busy.children_user + then.children_system - busy.children_system
    return time.perf_counter() - begun, spent


if __name__ == "__main__":
    sys.exit(main())
