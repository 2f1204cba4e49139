"""A check of a fresh installation, on any system: run it with the Python of that installation.

python tests/smoke.py
"""

import os
import subprocess
import sys
import tempfile
from importlib.metadata import entry_points
from importlib.resources import files
from pathlib import Path

import numpy as np

import vnlem


def main() -> None:
    """Denoise an image from Python and a file from the command line; find the data files of the package."""
    clean = np.zeros((64, 64)) + 100.0 * (np.arange(64) > 31)
    noisy = clean + np.random.default_rng(0).normal(0, 20, clean.shape)
    denoised = vnlem.denoise(noisy, 20, profile="fast")
    assert np.std(denoised - clean) < 0.5 * np.std(noisy - clean)

    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "noisy.tif", Path(folder) / "denoised.tif"
        vnlem.io.write(source, np.clip(noisy + 100, 0, 65535).astype(np.uint16))
        # An emulated Python cannot start itself.
        python = os.environ.get("PYTHON_COMMAND", sys.executable).split()
        command = [
            *python,
            "-m",
            "vnlem.cli",
            "denoise",
            str(source),
            str(target),
            "--profile",
            "fast",
        ]
        subprocess.run([*command, "--quiet"], check=True)
        assert vnlem.io.read(target).pixels.dtype == np.uint16

    for name in ("py.typed", "napari/napari.yaml", "io/camera.png", "bench/assets/report.html"):
        assert files("vnlem").joinpath(name).is_file(), name
    assert "vnlem" in {point.name for point in entry_points(group="napari.manifest")}
    print(f"vnlem {vnlem.__version__} from {Path(vnlem.__file__).parent}: the smoke test passed")


if __name__ == "__main__":
    main()
