"""Times of stacks on a CUDA device and on the CPU: movies, volumes and sets of images, as a Markdown table.

    python benchmarks/gpu_stacks.py [--frames 16] [--side 512] [--repeat 5] [--cpu 2 16] [--kernels]

NumPy arrays in and out, the noise level given: medians after a call that compiles. On the CPU one run, after
a call on a small stack that compiles. PSNR of the device's result, and its difference from the CPU's.
"""

import argparse
import time

import numpy as np
from gpu import kernels_table, sources

import vnlem

CALLS = {
    "movie, VNLR fast": {"axes": "TYX", "profile": "fast"},
    "movie, VNLR balanced": {"axes": "TYX"},
    "movie, VNLR quality": {"axes": "TYX", "profile": "quality"},
    "volume, VNLR balanced": {"axes": "ZYX"},
    "set of images, VNLR balanced": {"axes": "NYX"},
    "movie, NLM": {"axes": "TYX", "method": "nlm"},
}
SIGMA = 25


def drifting(n_frames, side):
    """A picture that moves by two pixels from frame to frame, clean and noisy."""
    from skimage import data

    picture = data.camera().astype(float)
    repeats = -(-(side + 2 * n_frames) // 512)
    whole = np.tile(
        np.block([[picture, picture[:, ::-1]], [picture[::-1], picture[::-1, ::-1]]]), (repeats,) * 2
    )
    clean = np.stack([whole[t : t + side, 2 * t : 2 * t + side] for t in range(n_frames)])
    noisy = clean + np.random.default_rng(0).normal(0, SIGMA, clean.shape)
    return clean.astype(np.float32), noisy.astype(np.float32)


def psnr(result, clean):
    return 10 * np.log10(255**2 / np.mean((np.asarray(result, float) - clean) ** 2))


def seconds(call):
    begun = time.perf_counter()
    result = call()
    return time.perf_counter() - begun, result


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=16)
    parser.add_argument("--side", type=int, default=512)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--calls", nargs="+", default=list(CALLS))
    parser.add_argument(
        "--cpu", type=int, nargs="*", default=[], help="numbers of workers to time on the CPU too"
    )
    parser.add_argument("--kernels", action="store_true", help="also time each kernel")
    given = parser.parse_args()
    import cupy

    card = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    size = f"{given.frames} pages of {given.side}x{given.side}"
    print(f"{card}, CuPy {cupy.__version__}, sources {sources()}, {size}")
    on_cpu = "".join(f" CPU, {workers} workers, s |" for workers in given.cpu)
    print(f"| | on the device, s | memory, GB | PSNR, dB |{on_cpu} difference, dB |")
    pool = cupy.get_default_memory_pool()
    for name in given.calls:
        options = CALLS[name]
        clean, noisy = drifting(given.frames, given.side)
        pool.free_all_blocks()
        times = [
            seconds(lambda o=options, n=noisy: vnlem.denoise(n, SIGMA, device="cuda", **o))
            for _ in range(given.repeat + 1)
        ]
        there = psnr(times[-1][1], clean)
        taken = np.median([t for t, _ in times[1:]])
        line = f"| {name} | {taken:.3f} | {pool.total_bytes() / 1e9:.1f} | {there:.2f} |"
        if given.cpu:
            vnlem.denoise(noisy[:3, :64, :64], SIGMA, **options)
        for workers in given.cpu:
            taken, here = seconds(
                lambda o=options, n=noisy, w=workers: vnlem.denoise(n, SIGMA, workers=w, **o)
            )
            line += f" {taken:.2f} |"
        print(line + (f" {psnr(here, clean) - there:+.4f} |" if given.cpu else ""), flush=True)
        if given.kernels:
            kernels_table(cupy, noisy, options | {"device": "cuda"})


if __name__ == "__main__":
    main()
