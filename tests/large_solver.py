"""A filter with a halo whose blocks have the bytes of the whole, for the tests of large images."""

import os
import signal
import time
from contextlib import closing
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from vnlem.large.blocks import Block
from vnlem.large.boxes import inside, slices
from vnlem.large.runner import RunOptions, Summary, denoise_source
from vnlem.large.sample import take_sample
from vnlem.large.selection import parse_region
from vnlem.large.sources import open_source


@dataclass(frozen=True)
class Roughness:
    """Largest minus smallest pixel within a radius: exact in integers, and nothing like the input."""

    radius: int = 3
    axes: tuple[str, ...] = ("y", "x")
    seconds: float = 0.0  # the least time of a block
    die_once: Path | None = None  # the first process to find this file removes it and dies
    cure: str = "allow more memory"
    fills: bool = False

    @property
    def halo(self) -> tuple[int, ...]:
        return tuple(self.radius if axis in "zyx" else 0 for axis in self.axes)

    @property
    def work_halo(self) -> tuple[int, ...]:
        return self.halo

    def solve(self, pixels: Any, block: Block, workers: int | None) -> Any:
        if self.die_once is not None:
            try:
                self.die_once.unlink()
                os.kill(os.getpid(), signal.SIGKILL)
            except FileNotFoundError:
                pass
        time.sleep(self.seconds)
        assert pixels.shape == tuple(stop - start for start, stop in block.read)
        result = self.whole(pixels)
        return result[slices(inside(block.write, block.read))]

    def whole(self, pixels: Any) -> Any:
        """The same for a whole array."""
        from scipy.ndimage import maximum_filter, minimum_filter

        size = [1 if axis == "c" else 2 * self.radius + 1 for axis in self.axes]
        size = [1] * (pixels.ndim - len(size)) + size
        return maximum_filter(pixels, size, mode="nearest") - minimum_filter(pixels, size, mode="nearest")

    def memory(self, shape: tuple[int, ...]) -> int:
        return 16 * prod(shape)

    def describe(self) -> dict[str, Any]:
        return {"method": "roughness", "parameters": {"radius": self.radius}}


def noise(shape: tuple[int, ...], dtype: Any = np.uint16, seed: int = 0) -> Any:
    """Random pixels."""
    values = np.random.default_rng(seed).normal(1000, 200, shape)
    return values.clip(0, 60000).astype(dtype)


def run(
    path: Any, target: Path, solver: Any = None, memory: int = 400_000, region: Any = None, **settings: Any
) -> Summary:
    """Filter a file or a store as `vnlem.denoise_large` denoises it; settings are those of RunOptions."""
    source = open_source(path)
    solver = solver or Roughness(axes=("c", "y", "x") if source.colour else ("y", "x"))
    box = parse_region(region, source.axes, source.shape)
    options = RunOptions(memory, **settings)
    with closing(source):
        return denoise_source(source, solver, box, target, take_sample(source).digest, options)
