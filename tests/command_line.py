"""A method that is quick and easy to foresee, and a terminal, for tests of the command line."""

import io as stdio
import warnings
from dataclasses import dataclass

import numpy as np
import pytest
from PIL import Image

from vnlem import io
from vnlem.pipeline.method import Method


@dataclass(frozen=True)
class HalvingParams:
    patch_size: int
    shape: str


def denoise_halving(
    image,
    sigma=None,
    *,
    patch_size=3,
    shape="square",
    preset="auto",
    channel_axis=None,
    workers=None,
    progress=False,
    return_info=False,
    device=None,
):
    """Halve every deviation from the mean: quick and predictable."""
    return METHOD.denoise(**locals())


def solve(job):
    if job.params.shape == "interrupt":
        raise KeyboardInterrupt
    if job.params.shape == "warn":
        warnings.warn("this is\nodd", stacklevel=1)
    for step in range(4):
        if job.progress is not None:
            job.progress(step + 1, 4)
    return job.pixels / 2


METHOD = Method(
    name="halving",
    function="command_line:denoise_halving",
    resolve=lambda noise, ndim, *, patch_size, shape, **given: HalvingParams(patch_size, shape),
    engines={"fast": "command_line:solve"},
)


def noise(shape, dtype="uint8", low=50, high=200):
    return np.random.default_rng(3).integers(low, high, shape).astype(dtype)


def halved(image):
    values = image.astype(float)
    return values.mean() + (values - values.mean()) / 2


def status_of(*arguments):
    """The exit status of a command."""
    from vnlem.cli import main

    with pytest.raises(SystemExit) as left:
        main([str(argument) for argument in arguments])
    return left.value.code


def prepare(folder):
    """Valid and invalid files."""
    io.write(folder / "grey.png", noise((20, 30)))
    io.write(folder / "deep.png", noise((20, 30), "uint16"))
    io.write(folder / "float.npy", noise((20, 30), "float32"))
    io.write(folder / "stack.npy", noise((4, 20, 30)))
    io.write(folder / "tiny.png", noise((2, 2)))
    bad = noise((20, 30), "float64")
    bad[3, 4] = np.inf
    io.write(folder / "infinite.npy", bad)
    io.write(folder / "infinite-stack.npy", np.stack([noise((20, 30), "float64"), bad]))
    np.save(folder / "complex.npy", np.zeros((20, 30), complex))
    np.save(folder / "empty.npy", np.zeros((0, 30)))
    np.save(folder / "line.npy", np.zeros(30))
    Image.fromarray(noise((20, 30)) > 100).save(folder / "bits.png")
    (folder / "cut.png").write_bytes((folder / "grey.png").read_bytes()[:100])
    (folder / "text.png").write_text("hello")
    (folder / "folder.png").mkdir()


class Terminal(stdio.StringIO):
    def isatty(self):
        return True
