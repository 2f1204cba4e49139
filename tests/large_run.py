"""A run in a process of its own, to be killed: python large_run.py IN OUT SECONDS_PER_BLOCK."""

import sys
from pathlib import Path

from large_engine import Roughness

from vnlem.large.execute import Wishes, execute
from vnlem.large.sample import take_sample
from vnlem.large.sources import open_source


def main(source: str, target: str, seconds: str) -> None:
    opened = open_source(source)
    box = tuple((0, size) for size in opened.shape)
    engine = Roughness(seconds=float(seconds))
    wishes = Wishes(memory=400_000, resume=True)
    execute(opened, engine, box, Path(target), take_sample(opened).digest, wishes)


if __name__ == "__main__":
    main(*sys.argv[1:])
