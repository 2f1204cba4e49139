"""Memory that solving takes for each pixel, method by method: `bytes_per_pixel` of the methods.

    python benchmarks/large_memory.py [--side 1536] [--only vnlr]

Each run is a separate process; the memory for a small image is subtracted.
"""

import argparse
import json
import resource
import subprocess
import sys

PHOTONS = {"noise_model": "poisson-gaussian"}
CASES = {
    "nlm": ("nlm", {}),
    "nlem": ("nlem", {}),
    "nlpr": ("nlpr", {}),
    "vnlem": ("vnlem", {}),
    "vnlr fast": ("vnlr", {"profile": "fast"}),
    "vnlr balanced": ("vnlr", {"profile": "balanced"}),
    "vnlr quality": ("vnlr", {"profile": "quality"}),
    "vnlr so2": ("vnlr", {"profile": "fast", "group": "so2"}),
    "nlm, correlated noise": ("nlm", {"noise_model": "correlated"}),
    "vnlr fast, correlated noise": ("vnlr", {"profile": "fast", "noise_model": "correlated", "scales": 1}),
    "vnlr fast, photons": ("vnlr", {"profile": "fast", **PHOTONS, "gain": 10.0, "scales": 1}),
    "vnlr fast, few photons": ("vnlr", {"profile": "fast", **PHOTONS, "gain": 300.0, "scales": 1}),
    "vnlr fast, photons, three scales": ("vnlr", {"profile": "fast", **PHOTONS, "gain": 10.0}),
    "vnlr fast, few photons, three scales": ("vnlr", {"profile": "fast", **PHOTONS, "gain": 300.0}),
    "nlm, few photons": ("nlm", {**PHOTONS, "gain": 300.0}),
}


def solve_one(side: int, case: str) -> None:
    """Solve a block as a unit of work does and print the peak memory in bytes."""
    import numpy as np

    from vnlem.large.blocks import Block
    from vnlem.large.sample import take_sample
    from vnlem.large.solvers import find_solver
    from vnlem.large.sources import open_source

    y, x = np.mgrid[:side, :side]
    noise = np.random.default_rng(0).normal(0, 100, (side, side))
    pixels = (1000 + 300 * np.sin(y / 7) * np.cos(x / 11) + noise).astype(np.uint16)
    method, params = CASES[case]
    source = open_source(pixels[:256, :256])
    sigma = None if "noise_model" in params else 100.0
    solver = find_solver(source, take_sample(source), sigma, method, dict(params), stack=False)
    box = ((0, side), (0, side))
    solver.solve(pixels, Block(box, box, (side, side)), 2)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)


def peak(side: int, case: str) -> int:
    command = [sys.executable, __file__, "--child", json.dumps([side, case])]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--side", type=int, default=1536)
    parser.add_argument("--only", default="")
    parser.add_argument("--child")
    options = parser.parse_args()
    if options.child:
        solve_one(*json.loads(options.child))
        return
    print("| method | bytes per pixel | for a small image |\n|---|---|---|")
    for case in CASES:
        if options.only in case:
            small = peak(256, case)
            each = (peak(options.side, case) - small) / (options.side**2 - 256**2)
            print(f"| {case} | {each:.0f} | {small / 2**20:.0f} MB |", flush=True)


if __name__ == "__main__":
    main()
