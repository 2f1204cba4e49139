"""How long a user waits for the first result.

    python benchmarks/first_call.py [--runs 5]

In new processes: the import, the first and the second call of `vnlem.denoise` on the camera image (512x512,
noise estimated) and of every method on a small image, and the command line on a 512x512 TIFF file. Medians in
seconds. The exit status is 1 if a limit is exceeded: 0.1 for the import, 0.5 for the first call minus the
second, 1.5 for the command line. The bytecode of all packages exists, as after `pip install`: one run that is
not counted writes it to a separate folder.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

IMPORT = "import time; begun = time.perf_counter(); import vnlem; print(time.perf_counter() - begun)"
CALLS = """
import sys, time
import numpy as np
from skimage.data import camera
import vnlem
method, large = sys.argv[1], sys.argv[1] == "vnlr"
image = camera() if large else camera()[200:296, 200:296]
noisy = image + np.random.default_rng(0).normal(0, 20, image.shape)
for _ in range(2):
    begun = time.perf_counter()
    vnlem.denoise(noisy, None if large else 20.0, method=method)
    print(time.perf_counter() - begun)
"""
COMMAND = """
import sys, time, subprocess
begun = time.perf_counter()
command = [sys.executable, "-m", "vnlem", "denoise", *sys.argv[1:], "--quiet", "--overwrite"]
subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
print(time.perf_counter() - begun)
"""
METHODS = ("vnlr", "vnlem", "vnlem-dd", "nlpr", "nlem", "nlm")


def medians(runs: int, folder: str, program: str, *arguments: str) -> list[float]:
    """The numbers that a program prints, each the median of some runs; folder: for bytecode."""
    command = [sys.executable, "-c", program, *arguments]
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": folder, "PYTHONDONTWRITEBYTECODE": ""}

    def printed() -> list[float]:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        return [float(line) for line in done.stdout.split()]

    printed()
    return [statistics.median(column) for column in zip(*(printed() for _ in range(runs)), strict=True)]


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5)
    runs = parser.parse_args().runs
    late = False

    def show(what: str, seconds: float, limit: float) -> None:
        nonlocal late
        late |= seconds > limit
        print(f"{what:34}{seconds:8.2f}{limit:8.1f}", flush=True)

    print(f"{'':34}{'seconds':>8}{'limit':>8}")
    with tempfile.TemporaryDirectory() as folder:
        show("import vnlem", medians(runs, folder, IMPORT)[0], 0.1)
        for method in METHODS:
            first, second = medians(runs, folder, CALLS, method)
            show(f"first call of {method}, beyond the second", first - second, 0.5)
        import numpy as np
        import tifffile
        from skimage.data import camera

        source, target = Path(folder, "noisy.tif"), Path(folder, "out.tif")
        noisy = camera() + np.random.default_rng(0).normal(0, 20, camera().shape)
        tifffile.imwrite(source, np.clip(np.rint(noisy), 0, 255).astype(np.uint8))
        show("vnlem denoise noisy.tif", medians(runs, folder, COMMAND, str(source), str(target))[0], 1.5)
    return int(late)


if __name__ == "__main__":
    sys.exit(main())
