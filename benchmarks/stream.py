"""Frames per second, delay and memory of vnlem.Stream on a drifting picture, as a Markdown table.

    python benchmarks/stream.py [--side 512] [--frames 40] [--delays 0 2 8] [--profile fast] [--device cpu]

The frames are uint16 with white noise, and the noise level is given. Frames per second: of all frames but the
first ones, which load or compile what is needed. Latency: from a push to the returned frame, the median and
the longest. Memory: of the whole program after a third of the frames and after all. PSNR: of all frames
but the first eight. Each delay runs in a separate process.
"""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

import vnlem

SIGMA = 25.0
WARM_UP = 8  # frames that are not timed


def frames_of(side, count):
    """Clean and noisy frames of a picture that moves by two pixels a frame and turns back."""
    from skimage import data

    picture = np.pad(data.camera().astype(float), ((0, max(0, side - 512)),) * 2, mode="reflect")
    picture = np.concatenate([picture, picture[:, ::-1]], axis=1)
    rng = np.random.default_rng(0)
    for number in range(count):
        at = abs(2 * number % (2 * side) - side)
        clean = 100 + picture[:side, at : at + side]
        yield clean, np.clip(np.rint(clean + rng.normal(0, SIGMA, clean.shape)), 0, 65535).astype(np.uint16)


def resident():
    """MB that this program holds; on Linux."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def measure(arguments, delay):
    stream = vnlem.Stream(
        sigma=SIGMA,
        delay=delay,
        profile=arguments.profile,
        device=arguments.device,
        workers=arguments.workers,
    )
    clean, times, errors, memory = [], [], [], []
    for number, (scene, frame) in enumerate(frames_of(arguments.side, arguments.frames)):
        clean.append(scene)
        begun = time.perf_counter()
        out = stream.push(frame)
        if number >= delay + WARM_UP:
            times.append(time.perf_counter() - begun)
        for result in out:
            errors.append(np.mean((result - clean.pop(0)) ** 2))
        if number == arguments.frames // 3:
            memory.append(resident())
    memory.append(resident())
    psnr = 10 * np.log10(255**2 / np.mean(errors[WARM_UP:]))
    rate, middle, longest = len(times) / sum(times), 1000 * np.median(times), 1000 * max(times)
    latency, held = f"{middle:.0f} ms, {longest:.0f} ms", f"{memory[0]:.0f} MB, {memory[1]:.0f} MB"
    print(f"| {delay} | {rate:.1f} | {latency} | {held} | {psnr:.2f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--side", type=int, default=512)
    parser.add_argument("--frames", type=int, default=40)
    parser.add_argument("--delays", type=int, nargs="+", default=[0, 2, 8])
    parser.add_argument("--profile", default="fast")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--workers", type=int)
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        measure(arguments, arguments.delays[0])
        return
    least = max(arguments.delays) + 2 * WARM_UP
    if arguments.frames < least:
        parser.error(f"--frames must be at least {least} for these delays")
    print("| delay | frames per second | latency | memory | PSNR |\n|---|---|---|---|---|", flush=True)
    for delay in arguments.delays:
        given = ["--side", "--frames", "--profile", "--device"]
        words = [word for name in given for word in (name, str(getattr(arguments, name[2:])))]
        words += [] if arguments.workers is None else ["--workers", str(arguments.workers)]
        subprocess.run([sys.executable, __file__, "--one", "--delays", str(delay), *words], check=True)


if __name__ == "__main__":
    main()
