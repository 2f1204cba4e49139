"""`make bench-speed`: times as ratios to a peer of the same run, 512x512 camera image, 2 workers.

Each line names a limit and says pass or FAIL. Times on shared machines are noisy: every figure is the median
of several calls, and calls of a method and its peer alternate. Slow peers run once.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from cores import bytes_per_pixel
from skimage import data
from skimage.restoration import denoise_nl_means

import vnlem
from vnlem.bench.peers import available_peers
from vnlem.bench.sources import sources_hash

WORKERS = 2


def gentle() -> tuple[np.ndarray, float]:
    """Camera on 0..1 with noise of 0.1 of the range."""
    return vnlem.noise.add_gaussian(data.camera() / 255, 0.1, seed=0), 0.1


def papers() -> tuple[np.ndarray, float]:
    """Camera standardised, with noise of variance 0.3."""
    clean, _, _ = vnlem.noise.standardise(data.camera())
    sigma = float(np.sqrt(0.3))
    return vnlem.noise.add_gaussian(clean, sigma, seed=0), sigma


LEVELS = {"noise 0.1 of the range": gentle, "variance 0.3": papers}


def exact_nlm(noisy: np.ndarray, sigma: float) -> np.ndarray:
    """scikit-image's exact NLM at the paper's sizes; h = sigma, its default at noise 0.1 of the range."""
    return denoise_nl_means(noisy, patch_size=13, patch_distance=10, h=sigma, fast_mode=False)


def fast_nlm(noisy: np.ndarray, sigma: float) -> np.ndarray:
    """scikit-image's fast NLM."""
    return denoise_nl_means(
        noisy, patch_size=7, patch_distance=10, h=0.6 * sigma, sigma=sigma, fast_mode=True
    )


@dataclass(frozen=True)
class Contest:
    """A method against a peer: the ratio of their times must stay below the limit."""

    name: str
    ours: Callable[[np.ndarray, float], object]
    peer: str
    limit: float


def contests() -> list[Contest]:
    """Every speed promise of the project."""
    return [
        Contest(
            "nlm (patch 7, distance 10)",
            lambda z, s: vnlem.denoise_nlm(z, s, patch_size=7, patch_distance=10, workers=WORKERS),
            "skimage fast NLM",
            0.5,
        ),
        Contest(
            "nlem (paper)",
            lambda z, s: vnlem.denoise_nlem(z, s, preset="paper", workers=WORKERS),
            "skimage exact NLM",
            0.08,
        ),
        Contest(
            "vnlem (paper)",
            lambda z, s: vnlem.denoise_vnlem(z, s, preset="paper", workers=WORKERS),
            "skimage exact NLM",
            0.04,
        ),
        Contest(
            "vnlem-dd (paper)",
            lambda z, s: vnlem.denoise_vnlem_dd(z, s, preset="paper", workers=WORKERS),
            "vnlem (paper)",
            1.8,
        ),
        *(
            Contest(
                f"vnlr ({profile})",
                lambda z, s, profile=profile: vnlem.denoise_vnlr(z, s, profile=profile, workers=WORKERS),
                "bm3d",
                limit,
            )
            for profile, limit in (("best", 1.0), ("quality", 0.14), ("balanced", 0.065), ("fast", 0.03))
        ),
    ]


PEERS: dict[str, Callable[[np.ndarray, float], object]] = {
    "skimage fast NLM": fast_nlm,
    "skimage exact NLM": exact_nlm,
    "vnlem (paper)": lambda z, s: vnlem.denoise_vnlem(z, s, preset="paper", workers=WORKERS),
    "bm3d": lambda noisy, sigma: available_peers()["bm3d"](noisy, sigma, os.cpu_count() or 1),
}
SLOW_PEERS = ("skimage exact NLM", "bm3d")
SPENT: dict[tuple[str, float], float] = {}  # seconds of the slow peers, by noise


def seconds(call: Callable[[], object]) -> float:
    begun = time.perf_counter()
    call()
    return time.perf_counter() - begun


def measure(contest: Contest, noisy: np.ndarray, sigma: float, turns: int) -> tuple[float, float]:
    """Seconds of a method and of its peer."""
    contest.ours(noisy, sigma)  # the first call imports
    ours, peers = [], []
    for turn in range(turns):
        if turn == 0 or contest.peer not in SLOW_PEERS:
            peers.append(peer_seconds(contest.peer, noisy, sigma))
        ours.append(seconds(lambda: contest.ours(noisy, sigma)))
    return statistics.median(ours), statistics.median(peers)


def peer_seconds(peer: str, noisy: np.ndarray, sigma: float) -> float:
    """Seconds of one call; a slow peer is called only once."""
    if (peer, sigma) in SPENT:
        return SPENT[peer, sigma]
    if peer in SLOW_PEERS:
        PEERS[peer](noisy[:128, :128], sigma)  # a warm-up before its only timed call
    spent = seconds(lambda: PEERS[peer](noisy, sigma))
    if peer in SLOW_PEERS:
        SPENT[peer, sigma] = spent
    return spent


def measure_speed(repeats: int, only: str) -> list[str]:
    """Print the table of ratios; returns the lines that miss their limit."""
    print(f"sources {sources_hash()}\n")
    print("| noise | method | seconds | peer | seconds | ratio | limit | |")
    print("|---|---|---|---|---|---|---|---|")
    missed: list[str] = []
    for level, make in LEVELS.items():
        noisy, sigma = make()
        for contest in contests():
            if only not in contest.name:
                continue
            ours, peer = measure(contest, noisy, sigma, repeats)
            ratio = ours / peer
            if ratio > contest.limit:
                missed.append(f"{contest.name} against {contest.peer}: {ratio:.3f} (at most {contest.limit})")
            print(
                f"| {level} | {contest.name} | {ours:.3f} | {contest.peer} | {peer:.2f} "
                f"| {ratio:.3f} | {contest.limit} | {'pass' if ratio <= contest.limit else 'FAIL'} |",
                flush=True,
            )
    return missed


# Runs in a separate process (Linux): the peak of resident memory, minus that before the call.
MEMORY_PROBE = """
import sys
import numpy as np, vnlem

def resident(field):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(field)) / 1024

method, preset, size = sys.argv[1], sys.argv[2], int(sys.argv[3])
small = np.random.default_rng(0).random((64, 64)) + (np.arange(64) > 32)
vnlem.denoise(small, 0.3, method=method, preset=preset, workers=2)
image = np.tile(small, (size // 64, size // 64)).astype(np.float32)
before = resident("VmRSS")
with open("/proc/self/clear_refs", "w") as refs:
    refs.write("5")  # forget the peak that importing and compiling left
vnlem.denoise(image, 0.3, method=method, preset=preset, workers=2)
print(resident("VmHWM") - before)
"""


@dataclass(frozen=True)
class MemoryLimit:
    """Peak memory above the input, in MB."""

    method: str
    preset: str
    size: int
    limit: float


MEMORY_LIMITS = [
    MemoryLimit("nlm", "auto", 512, 500),
    MemoryLimit("nlem", "paper", 512, 500),
    MemoryLimit("vnlem", "paper", 512, 700),
    MemoryLimit("vnlem-dd", "paper", 512, 1500),
    MemoryLimit("vnlr", "auto", 512, 500),
    MemoryLimit("nlm", "auto", 4096, 1500),
    MemoryLimit("nlem", "auto", 4096, 1500),
    MemoryLimit("vnlem", "paper", 4096, 2000),
]


def measure_memory(only: str) -> list[str]:
    """Print peak memory above the input; returns the lines that miss their limit."""
    print("\n| method | size | peak above the input, MB | limit | |")
    print("|---|---|---|---|---|")
    missed: list[str] = []
    for case in MEMORY_LIMITS:
        if only not in case.method:
            continue
        command = [sys.executable, "-c", MEMORY_PROBE, case.method, case.preset, str(case.size)]
        peak = float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        ok = peak <= case.limit
        if not ok:
            missed.append(f"memory of {case.method} at {case.size}: {peak:.0f} MB (at most {case.limit:g})")
        print(
            f"| {case.method} ({case.preset}) | {case.size} | {peak:.0f} | {case.limit:g} "
            f"| {'pass' if ok else 'FAIL'} |",
            flush=True,
        )
    return missed


MOST_BYTES = 60.0  # of VNLR per pixel, in addition to input and output


def measure_bytes() -> list[str]:
    """Print VNLR's memory per pixel; returns the lines that miss their limit."""
    print("\n| method | size | bytes per pixel beyond input and output | limit | |")
    print("|---|---|---|---|---|")
    missed: list[str] = []
    for size in (2048, 4096):
        for profile in ("fast", "balanced", "quality", "best"):
            found = bytes_per_pixel(size, profile, WORKERS)
            ok = found <= MOST_BYTES
            if not ok:
                missed.append(
                    f"bytes per pixel of vnlr ({profile}) at {size}: {found:.1f} (at most {MOST_BYTES:g})"
                )
            print(
                f"| vnlr ({profile}) | {size} | {found:.1f} | {MOST_BYTES:g} | {'pass' if ok else 'FAIL'} |",
                flush=True,
            )
    return missed


def measure_growth() -> None:
    """Print VNLEM's time against the size of the image: it grows with the number of pixels."""
    print("\n| vnlem (paper), size | seconds | microseconds per pixel |")
    print("|---|---|---|")
    noisy, sigma = papers()
    for size in (128, 256, 512, 1024):
        image = np.tile(noisy, (2, 2))[:size, :size]
        ours = seconds(lambda: vnlem.denoise_vnlem(image, sigma, preset="paper", workers=WORKERS))  # noqa: B023
        print(f"| {size} | {ours:.2f} | {1e6 * ours / size**2:.1f} |", flush=True)


def measure_diffusion_growth() -> None:
    """Print what VNLEM-DD spends on its graph and its eigenvectors against the size of the image."""
    print("\n| vnlem-dd (paper), size | seconds | graph | eigenvectors | products |")
    print("|---|---|---|---|---|")
    noisy, sigma = papers()
    for size in (128, 256, 512, 1024):
        image = np.tile(noisy, (2, 2))[:size, :size]
        _, info = vnlem.denoise_vnlem_dd(image, sigma, preset="paper", workers=WORKERS, return_info=True)
        spent = info.details["seconds"]
        print(
            f"| {size} | {info.timings['total']:.2f} | {spent['graph']:.2f} | {spent['eigenvectors']:.2f} "
            f"| {info.details['products']} |",
            flush=True,
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", default="", help="methods whose name contains this")
    parser.add_argument("--skip-memory", action="store_true")
    options = parser.parse_args()
    missed = measure_speed(options.repeats, options.only)
    if options.only in "vnlem":
        measure_growth()
    if options.only in "vnlem-dd":
        measure_diffusion_growth()
    if not options.skip_memory:
        missed += measure_memory(options.only)
        missed += measure_bytes() if options.only in "vnlr" else []
    if missed:
        print(f"\n{len(missed)} lines miss their limit:\n" + "\n".join(f"- {line}" for line in missed))
    else:
        print("\nall lines pass")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
