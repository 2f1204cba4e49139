"""Speed-up of `vnlem denoise --cluster local:N` over one worker, each with one thread, as a Markdown table.

    python benchmarks/large_workers.py [--side 4096] [--workers 1 2] [--profile fast]

The time is that of the units, without the start of the cluster. If other programs use the machine, the time
says little; the core seconds of the workers show the speed-up with one core for each.
"""

import argparse
import os
import tempfile
import time
from pathlib import Path

import numpy as np
import zarr
from distributed import Client, LocalCluster

import vnlem


def make(path: Path, side: int) -> None:
    array = zarr.create_array(
        path, shape=(side, side), chunks=(512, 512), shards=(1024, 1024), dtype=np.uint16
    )
    rng = np.random.default_rng(0)
    for top in range(0, side, 1024):
        rows = np.arange(top, min(top + 1024, side))
        clean = 1000 + 300 * np.sin(rows[:, None] / 9) * np.cos(np.arange(side) / 13)
        array[rows[0] : rows[-1] + 1] = (clean + rng.normal(0, 60, clean.shape)).astype(np.uint16)


def cpu_seconds() -> float:
    times = os.times()
    return times.user + times.system


def run(source: Path, target: Path, count: int, profile: str) -> tuple[float, float]:
    """Seconds of the units, and core seconds of the workers."""
    with (
        LocalCluster(
            n_workers=count, threads_per_worker=1, dashboard_address=":0", memory_limit=0
        ) as cluster,
        Client(cluster) as client,
    ):
        warm = target.with_name(f"warm-{target.name}")
        options = {"profile": profile, "cluster": client, "memory": "1GB", "workers": 1}
        vnlem.denoise_large(source, warm, 60.0, region="y=0:1024,x=0:1024", **options)  # kernels are loaded
        before = sum(client.run(cpu_seconds).values())
        begun = time.perf_counter()
        vnlem.denoise_large(source, target, 60.0, **options)
        return time.perf_counter() - begun, sum(client.run(cpu_seconds).values()) - before


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--side", type=int, default=4096)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--profile", default="fast")
    arguments = parser.parse_args()
    print("| workers | seconds | speed-up | seconds of cores | speed-up with a core for each |")
    print("|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "in.zarr"
        make(source, arguments.side)
        first = None
        for count in arguments.workers:
            wall, cores = run(source, Path(folder) / f"out{count}.zarr", count, arguments.profile)
            first = first or (wall, cores)
            quiet = count * first[1] / cores
            print(f"| {count} | {wall:.1f} | {first[0] / wall:.2f} | {cores:.1f} | {quiet:.2f} |", flush=True)


if __name__ == "__main__":
    main()
