"""Rate and memory of a large run, compared with the same method in memory.

    python benchmarks/large_rate.py --side 16384 --profile fast

Prints the rate per pixel of the store and of a 2048 x 2048 image in memory, measured in turn, the peak memory
of the process that worked on the store, and the share of the halo.
"""

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

SMALL = 2048
TILE = 1024


def make_store(path: Path, side: int) -> None:
    """Cells on a slope with noise, tile by tile: uint16, chunks of 512, shards of 2048."""
    import zarr

    array = zarr.create_array(
        path, shape=(side, side), chunks=(512, 512), shards=(2048, 2048), dtype="uint16", fill_value=0
    )
    for top in range(0, side, SMALL):
        for left in range(0, side, SMALL):
            array[top : top + SMALL, left : left + SMALL] = scene(top, left)


def scene(top: int, left: int) -> np.ndarray:
    y, x = np.mgrid[top : top + SMALL, left : left + SMALL].astype(np.float32)
    clean = 800 + 400 * np.sin(y / 23) * np.cos(x / 31) + 600 * (np.sin(y / 7 + x / 300) > 0.8)
    noise = np.random.default_rng([top, left]).normal(0, 100, clean.shape)
    return (clean + noise).clip(0, 65535).astype(np.uint16)


def in_memory(profile: str) -> tuple[float, float]:
    """Seconds per megapixel, wall clock and of all cores, of an image that fits in memory."""
    import vnlem

    image = scene(0, 0)
    begun, used = time.perf_counter(), time.process_time()
    vnlem.denoise(image, 100, profile=profile)
    megapixels = image.size / 1e6
    return (time.perf_counter() - begun) / megapixels, (time.process_time() - used) / megapixels


def in_parts(source: Path, target: Path, profile: str, memory: str) -> dict:
    """One run over the store."""
    import vnlem

    vnlem.denoise(scene(0, 0)[:64, :64], 100, profile=profile)  # kernels are loaded
    used = time.process_time()
    summary = vnlem.denoise_large(
        source,
        target,
        100,
        profile=profile,
        memory=memory,
    )
    return {
        "seconds": summary.seconds,
        "core_seconds": time.process_time() - used,
        "units": summary.units,
        "overhead": summary.halo_overhead,
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }


def child(arguments: list) -> dict:
    command = [sys.executable, __file__, "--child", json.dumps(arguments)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--side", type=int, default=4096)
    parser.add_argument("--profile", default="fast")
    parser.add_argument("--memory", default="1GB")
    parser.add_argument("--child")
    options = parser.parse_args()
    if options.child:
        source, target, profile, memory = json.loads(options.child)
        print(json.dumps(in_parts(Path(source), Path(target), profile, memory)))
        return
    folder = Path(tempfile.mkdtemp(prefix="large-rate-"))
    try:
        make_store(folder / "in.zarr", options.side)
        megapixels = options.side**2 / 1e6
        in_memory(options.profile)  # kernels are loaded, files are in the cache
        before = in_memory(options.profile)
        places = [str(folder / name) for name in ("in.zarr", "out.zarr")]
        found = child([*places, options.profile, options.memory])
        after = in_memory(options.profile)
        print(f"{options.side} x {options.side}, profile {options.profile}, memory {options.memory}")
        for number, (what, key) in enumerate((("by the clock", "seconds"), ("of cores", "core_seconds"))):
            small, rate = (before[number] + after[number]) / 2, found[key] / megapixels
            print(
                f"seconds {what:13} per megapixel: {small:.3f} in memory ({SMALL} x {SMALL}), {rate:.3f} in "
                f"parts, {rate / small:.2f} times as much"
            )
        print(f"peak memory {found['peak'] / 2**30:.2f} GB")
        print(f"units {found['units']}, halo {found['overhead']:.0%} more work")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
