"""A run in a separate process, to be killed: python large_run.py IN OUT SECONDS_PER_BLOCK."""

import sys
from pathlib import Path

from large_solver import Roughness

from vnlem.large.runner import RunOptions, denoise_source
from vnlem.large.sample import take_sample
from vnlem.large.sources import open_source


def main(source: str, target: str, seconds: str) -> None:
    opened = open_source(source)
    box = tuple((0, size) for size in opened.shape)
    solver = Roughness(seconds=float(seconds))
    settings = RunOptions(memory=400_000, resume=True)
    denoise_source(opened, solver, box, Path(target), take_sample(opened).digest, settings)


if __name__ == "__main__":
    main(*sys.argv[1:])
