"""An external program as a denoiser: it reads one TIFF file and writes another, without a shell."""

import os
import shlex
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

METHOD = "command"
PLACES = ("{in}", "{out}")  # without these words a command cannot work
ALL_PLACES = (*PLACES, "{sigma}", "{threads}")
LONGEST_WORDS = 200  # characters of a program's output that are shown


def check_command(command: str) -> list[str]:
    """The words of a command, or an error about what it lacks.

    >>> check_command("tool -i {in} -o '{out}' --noise {sigma}")
    ['tool', '-i', '{in}', '-o', '{out}', '--noise', '{sigma}']
    """
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise ValueError(f"--peer-command {command!r} cannot be read ({error}); check its quotes") from None
    missing = [place for place in PLACES if not any(place in word for word in words[1:])]
    if not words or missing:
        raise ValueError(
            f"--peer-command {command!r} lacks {missing[0] if missing else 'a program'}; it needs a program, "
            "{in} and {out}, and may hold {sigma} and {threads}"
        )
    return words


def run_command(
    command: str, noisy: NDArray[np.float64], sigma: float, threads: int, axes: str
) -> NDArray[np.float64]:
    """Denoise an image or a stack with a program; any failure is a ValueError in one sentence.

    command: its words; {in}, {out}, {sigma} and {threads} are replaced.
    noisy: written as a TIFF file of 32-bit floats.
    axes: of `noisy`.
    """
    import tifffile

    with tempfile.TemporaryDirectory(prefix="vnlem-") as folder:
        source, target = Path(folder, "noisy.tif"), Path(folder, "denoised.tif")
        colour: dict[str, Any] = {"photometric": "rgb"} if axes.endswith("C") and noisy.shape[-1] == 3 else {}
        tifffile.imwrite(
            source,
            noisy.astype(np.float32),
            **{"photometric": "minisblack", **colour},
            metadata={"axes": axes.replace("C", "S") if colour else axes},
        )
        values = dict(zip(ALL_PLACES, (str(source), str(target), f"{sigma:g}", str(threads)), strict=True))
        words = [_filled(word, values) for word in check_command(command)]
        try:
            done = subprocess.run(
                words,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                env={**os.environ, "OMP_NUM_THREADS": str(threads)},
                check=False,
            )
        except OSError as error:
            raise ValueError(f"{words[0]} could not be started: {error.strerror or error}") from None
        if done.returncode:
            raise ValueError(f"{words[0]} ended with status {done.returncode}{_said(done)}")
        if not target.exists():
            raise ValueError(f"{words[0]} ended without an error but wrote no file to {{out}}{_said(done)}")
        try:
            result = np.asarray(tifffile.imread(target), np.float64).squeeze()
        except Exception as error:
            raise ValueError(f"what {words[0]} wrote is no TIFF file that can be read ({error})") from None
    if result.shape != noisy.squeeze().shape:
        raise ValueError(f"{words[0]} was given the shape {noisy.shape} and wrote {result.shape}")
    if not np.isfinite(result).all():
        raise ValueError(f"{words[0]} wrote NaN or infinite pixels")
    return result.reshape(noisy.shape)


def _filled(word: str, values: dict[str, str]) -> str:
    for place, value in values.items():
        word = word.replace(place, value)
    return word


def _said(done: "subprocess.CompletedProcess[bytes]") -> str:
    """The last line of a program's output, after a colon."""
    lines = (done.stderr or done.stdout).decode(errors="replace").strip().splitlines()
    return f": {lines[-1].strip()[-LONGEST_WORDS:]}" if lines else ""
