"""A run in a separate process, to be killed: python large_run.py IN OUT SECONDS_PER_BLOCK."""

import sys
from pathlib import Path

from large_solver import Roughness, run

if __name__ == "__main__":
    source, target, seconds = sys.argv[1:]
    run(source, Path(target), Roughness(seconds=float(seconds)), resume=True)
