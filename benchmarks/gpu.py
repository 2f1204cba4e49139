"""Times on a CUDA device: whole calls, each kernel, and what share of the card's peak a kernel reaches.

    python benchmarks/gpu.py [--repeat 20] [--sizes 512 2048] [--cpu 2 16] [--kernels] [--pages 32] [--first]

A call is timed with arrays on the device, and with NumPy arrays in and out; medians after two warm-up
calls, for slow methods (SLOW) of a quarter of the calls. With `--cpu` also on the CPU with that many workers,
for images of at most 512 x 512 pixels: medians of three calls after one on a small image that compiles.
`--kernels`: each kernel, its share of the card's peak in single precision, and of its bandwidth if each of
its arrays were moved once. `--pages`: pages per second of a stack of uint16 in NumPy arrays, and of single
calls. `--first`: the first calls of new processes without compiled kernels. The first line names the card and
a hash of the sources that run on it. Operations are counted as if every reference were compared under all
symmetries: matching skips some of them.
"""

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import ClassVar

import numpy as np

import vnlem
from vnlem.kernels.cuda import engine as engines

CALLS = {
    "VNLR fast": {"method": "vnlr", "profile": "fast"},
    "VNLR balanced": {"method": "vnlr", "profile": "balanced"},
    "VNLR quality": {"method": "vnlr", "profile": "quality"},
    "VNLR best": {"method": "vnlr", "profile": "best"},
    "VNLR balanced, one scale": {"method": "vnlr", "scales": 1},
    "VNLR, noise estimated": {"method": "vnlr", "sigma": None},
    "VNLR balanced, so2": {"method": "vnlr", "group": "so2"},
    "VNLEM paper": {"method": "vnlem", "preset": "paper"},
    "VNLEM auto": {"method": "vnlem", "preset": "auto"},
    "VNLEM auto, adapt=False": {"method": "vnlem", "preset": "auto", "adapt": False},
    "VNLEM-DD paper": {"method": "vnlem-dd", "preset": "paper"},
    "NLEM paper": {"method": "nlem", "preset": "paper"},
    "NLPR auto": {"method": "nlpr"},
    "NLM (7, 10)": {"method": "nlm", "patch_size": 7, "patch_distance": 10},
}


LARGEST_ON_CPU = 512
SIGMA = {"sigma": 25}
CALLS_ON_CPU = 3
SLOW = ("VNLR balanced, so2", "VNLEM auto", "VNLEM auto, adapt=False", "VNLEM-DD paper")
IN_PAGES = {"VNLEM paper": (512,), "NLM (7, 10)": (512, 2048)}
FIRST = ("VNLR balanced", "VNLR, noise estimated", "VNLEM paper", "NLM (7, 10)")
BYTES_A_SECOND = 4.8e12  # memory bandwidth of an H200


def sources():
    """A short hash of the kernels and of the methods on a device."""
    package = Path(vnlem.__file__).parent
    found = hashlib.blake2b(digest_size=6)
    for folder in ("kernels/cuda", "methods/cuda"):
        for path in sorted((package / folder).glob("*.*")):
            if path.suffix in (".py", ".cu", ".cuh"):
                found.update(path.name.encode() + path.read_bytes())
    return found.hexdigest()


def scene(size):
    """A picture with edges, texture and flat parts, with noise of standard deviation 25."""
    from skimage import data
    from skimage.transform import resize

    clean = 255 * resize(data.camera() / 255, (512, 512))
    clean = np.tile(clean, (-(-size // 512), -(-size // 512)))[:size, :size]
    return clean + np.random.default_rng(0).normal(0, 25, clean.shape)


def median_ms(call, repeat):
    import cupy

    times = []
    for number in range(repeat + 2):
        cupy.cuda.Device().synchronize()
        begun = time.perf_counter()
        call()
        cupy.cuda.Device().synchronize()
        if number >= 2:
            times.append(time.perf_counter() - begun)
    return 1000 * float(np.median(times))


class TimedEngine(engines.Engine):
    """Records when each kernel begins and ends, and its operations."""

    notes: ClassVar[list] = []

    def launch(self, name, grid, argument, *, kernel=None, **options):
        if self._rehearsed is not None:
            super().launch(name, grid, argument, kernel=kernel, **options)
            return
        begun, ended = self.xp.cuda.Event(), self.xp.cuda.Event()
        moved = sum(value.nbytes for value in argument.values() if hasattr(value, "nbytes"))
        begun.record()
        super().launch(name, grid, argument, kernel=kernel, **options)
        ended.record()
        self.notes.append((kernel or name, operations(name, grid, argument, options), moved, begun, ended))


def operations(name, grid, argument, options):
    """Floating point operations of a launch, a multiply-add as two; 0 if memory is the limit."""
    if name == "match":
        window = (2 * argument["radius"] + 1) ** 2 * argument["n_windows"] * argument["n_references"]
        return 2 * window * options["P"] ** 2 * options["LAYERS"] * options["TRANSFORMS"]
    if name == "ridge":
        k, n = options["K"], options["DEPTH"] * options["P"] ** 2
        return 2 * grid[0] * grid[1] * (k**3 + 2 * k**2 * n)
    if name == "nlm":
        window = (2 * argument["reach_y"] + 1) * (2 * argument["reach_x"] + 1)
        return (
            argument["n_planes"] * argument["height"] * argument["width"] * window * 10 * options["CHANNELS"]
        )
    if name == "rings":
        samples, _, orders = argument["rows"].shape
        return 2 * argument["lengths"].size * argument["channels"] * samples * (4 + 2 * orders)
    if name == "rid":
        side = 2 * argument["reach"] + options["TILE"]
        pixels = (argument["bottom"] - argument["top"]) * argument["width"]
        dim, columns = 2 * options["HALF"], 8 * options["BLOCKS"]
        first = side**2 * dim * (1 + options["WITH_MARGIN"])
        second = argument["n_candidates"] * (3 * dim + 2 * columns * argument["n_angles"])
        second *= 1 - options["GRAPH"]
        return 2 * pixels * (first + second)
    return 0


def peak(cupy):
    """Single precision operations per second: multiprocessors * 128 lanes * 2 * clock."""
    properties = cupy.cuda.runtime.getDeviceProperties(0)
    clock = cupy.cuda.Device().attributes["ClockRate"] * 1e3
    return properties["multiProcessorCount"] * 128 * 2 * clock


def kernels_table(cupy, image, options):
    TimedEngine.notes = []
    engines.Engine, plain = TimedEngine, engines.Engine
    try:
        vnlem.denoise(image, **options)
        TimedEngine.notes.clear()
        vnlem.denoise(image, **options)
        cupy.cuda.Device().synchronize()
    finally:
        engines.Engine = plain
    total = defaultdict(lambda: [0, 0.0, 0.0, 0.0])
    for kernel, count, moved, begun, ended in TimedEngine.notes:
        entry = total[kernel]
        entry[0] += 1
        entry[1] += cupy.cuda.get_elapsed_time(begun, ended)
        entry[2] += count
        entry[3] += moved
    for kernel, (calls, ms, count, moved) in sorted(total.items(), key=lambda item: -item[1][1]):
        share = f"{100 * count / (ms / 1000) / peak(cupy):.0f} % of peak" if count else ""
        bandwidth = f"{100 * moved / (ms / 1000) / BYTES_A_SECOND:.0f} % of bandwidth"
        print(f"    {kernel:18} {calls:3} x {ms:8.2f} ms  {bandwidth}  {share}")


def pages_table(count):
    """Pages per second: as a stack, and one by one."""
    print("| | pages | size | a stack, pages a second | single calls, pages a second |")
    for name, sizes in IN_PAGES.items():
        for size in sizes:
            page = np.clip(10 * scene(size), 0, 65535)
            stack = np.stack([page + i for i in range(count if size == 512 else count // 4)]).astype(
                np.uint16
            )
            options = {"device": "cuda", "sigma": 250, **CALLS[name]}
            rates = []
            for work in (
                lambda stack=stack, options=options: vnlem.denoise(stack, axes="NYX", **options),
                lambda stack=stack, options=options: [vnlem.denoise(page, **options) for page in stack],
            ):
                rates.append(1000 * len(stack) / median_ms(work, 3))
            print(f"| {name} | {len(stack)} | {size} | {rates[0]:.0f} | {rates[1]:.0f} |", flush=True)


def first_calls():
    """Seconds of the first call of a process without compiled kernels."""
    code = (
        "import sys, time, numpy, vnlem; sys.path[:0] = [sys.argv[1]]; import gpu; "
        "image = gpu.scene(512).astype('float32'); begun = time.perf_counter(); "
        "vnlem.denoise(image, device='cuda', **gpu.SIGMA | gpu.CALLS[sys.argv[2]]); "
        "print(time.perf_counter() - begun)"
    )
    for name in FIRST:
        with tempfile.TemporaryDirectory() as folder:
            found = subprocess.run(
                [sys.executable, "-c", code, str(Path(__file__).parent), name],
                env={**os.environ, "CUPY_CACHE_DIR": folder, "CUDA_CACHE_DISABLE": "1"},
                capture_output=True,
                text=True,
                check=True,
            )
        print(f"| {name} | first call, s | {float(found.stdout.split()[-1]):.1f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=20)
    parser.add_argument("--sizes", type=int, nargs="+", default=[512, 2048])
    parser.add_argument("--calls", nargs="+", default=list(CALLS))
    parser.add_argument(
        "--cpu", type=int, nargs="*", default=[], help="numbers of workers to time on the CPU too"
    )
    parser.add_argument("--kernels", action="store_true", help="also time each kernel")
    parser.add_argument("--pages", type=int, default=0, help="pages of a stack to time too")
    parser.add_argument("--first", action="store_true", help="also first calls, without compiled kernels")
    given = parser.parse_args()
    import cupy

    card = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    print(f"{card}, CuPy {cupy.__version__}, sources {sources()}")
    on_cpu = "".join(f" CPU, {workers} workers, ms |" for workers in given.cpu)
    print(f"| | size | on the device, ms | NumPy in and out, ms |{on_cpu}")
    for name in given.calls:
        options = SIGMA | CALLS[name]
        repeat = max(given.repeat // 4, 3) if name in SLOW else given.repeat
        for size in given.sizes:
            image = scene(size).astype(np.float32)
            there = cupy.asarray(image)
            on_device = median_ms(
                lambda there=there, options=options: vnlem.denoise(there, **options), repeat
            )
            around = median_ms(
                lambda image=image, options=options: vnlem.denoise(image, device="cuda", **options),
                max(repeat // 3, 3),
            )
            line = f"| {name} | {size} | {on_device:.2f} | {around:.2f} |"
            if size <= LARGEST_ON_CPU and given.cpu:
                vnlem.denoise(image[200:264, 200:264], **options)
            for workers in given.cpu if size <= LARGEST_ON_CPU else ():
                times = []
                for _ in range(CALLS_ON_CPU):
                    begun = time.perf_counter()
                    vnlem.denoise(image, workers=workers, **options)
                    times.append(time.perf_counter() - begun)
                line += f" {1000 * float(np.median(times)):.0f} |"
            print(line, flush=True)
            if given.kernels:
                kernels_table(cupy, there, options)
    if given.pages:
        pages_table(given.pages)
    if given.first:
        first_calls()


if __name__ == "__main__":
    main()
