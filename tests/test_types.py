"""Types reach the user: a user's own file under mypy --strict, against the package's stub."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

GOOD = """
from typing import Any

import numpy as np
from numpy.typing import NDArray

import vnlem

image: NDArray[np.uint16] = np.zeros((8, 8), np.uint16)
result: NDArray[Any] = vnlem.denoise(image, 25.0)
both: tuple[NDArray[Any], vnlem.Info] = vnlem.denoise(image, return_info=True)
sigma: float = both[1].sigma
cells: NDArray[Any] = vnlem.denoise_vnlr(image, 25, group="so2", profile="fast")
level: float = vnlem.estimate_sigma(image)
distance: float = vnlem.rid(image, image)
with_angle: tuple[float, float] = vnlem.rid(image, image, return_angle=True)
quality: float = vnlem.metrics.snr(image, result)
profile: vnlem.Profile = "balanced"
"""

# Statement -> mypy's expected output.
WRONG = {
    "vnlem.nonsense(3)": "has no attribute",
    "vnlem.denoise()": "overload variant",
    "vnlem.denoise_vnlr(image, profile='quick')": "overload variant",
    "text: str = vnlem.denoise(image)": "Incompatible types in assignment",
    "number: int = vnlem.denoise(image, return_info=True)": "Incompatible types in assignment",
    "vnlem.denoise_nlm(image, patch_sise=3)": "overload variant",
    "vnlem.estimate_sigma(image, channels=3)": "Unexpected keyword argument",
}


def check(source, folder):
    """The output of mypy for a user's file; it reuses the cache of `make lint`, which saves time."""
    pytest.importorskip("mypy")
    path = folder / "users_file.py"
    path.write_text(source)
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", str(ROOT / "pyproject.toml")]
    found = subprocess.run(
        [*command, "--cache-dir", str(ROOT / ".mypy_cache"), str(path)],
        capture_output=True,
        text=True,
        cwd=folder,
        env={"MYPYPATH": str(ROOT / "src"), "PATH": "/usr/bin:/bin"},
    )
    return [line for line in found.stdout.splitlines() if line.startswith("users_file.py")]


@pytest.mark.slow
def test_a_users_file_passes_and_every_slip_in_it_is_found(tmp_path):
    lines = check(GOOD + "\n".join(WRONG) + "\n", tmp_path)
    first = GOOD.count("\n") + 1
    assert [line for line in lines if int(line.split(":")[1]) < first] == []
    for number, (statement, sentence) in enumerate(WRONG.items(), first):
        said = [line for line in lines if line.startswith(f"users_file.py:{number}:")]
        assert any(sentence in line for line in said), (statement, said)


def test_the_stub_is_what_its_maker_writes():
    try:
        import make_stub
    finally:
        sys.path.pop(0)
    assert make_stub.STUB.read_text() == make_stub.formatted(make_stub.stub_text()), "run `make stub`"
