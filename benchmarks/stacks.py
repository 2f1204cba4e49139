"""Stacks against their pages and against peers: PSNR in dB, seconds, as a Markdown table.

    python benchmarks/stacks.py DATA [--peers] [--only NAME ...] [--sigmas 10 20 40] [--profile balanced]
    python benchmarks/stacks.py DATA --ablation       (parameters of movies, on crops of 128 x 128 x 8)

DATA holds the folder stacks, with the clean video_*.tif, volume_colin27.tif and the real
time_beads_real.tif, and the folder movies_colour, with clean colour movies. Noise of frame i of a video
comes from default_rng(3000 + i), of the volume at s percent from default_rng(4000 + s), of the phantoms
from default_rng(5000).
"""

import argparse
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import tifffile

import vnlem
from vnlem.bench.phantoms import half_discs

N_FRAMES, N_SLICES = 10, 48


def psnr(result: Any, clean: Any, peak: float) -> float:
    return float(10 * np.log10(peak**2 / np.mean((np.asarray(result, float) - clean) ** 2)))


def videos(
    data: Path, only: list[str], sigmas: list[int]
) -> Iterator[tuple[str, Any, Any, float, float, str]]:
    grey = [(name, data / "stacks" / f"video_{name}.tif", "TYX") for name in ("city", "bus", "walk")]
    colour = [
        (name, data / "movies_colour" / f"{name}.tif", "TYXC") for name in ("carousel", "mtb-race", "orchid")
    ]
    for name, path, axes in grey + colour:
        if not path.exists() or (only and name not in only):
            continue
        clean = tifffile.imread(path)[:N_FRAMES].astype(float)
        for sigma in sigmas:
            noise = [np.random.default_rng(3000 + i).normal(0, sigma, f.shape) for i, f in enumerate(clean)]
            yield f"{name}, sigma {sigma}", clean, clean + np.stack(noise), float(sigma), 255.0, axes


def volumes(data: Path, only: list[str]) -> Iterator[tuple[str, Any, Any, float, float, str]]:
    path = data / "stacks" / "volume_colin27.tif"
    if not path.exists() or (only and "colin27" not in only):
        return
    whole = tifffile.imread(path).astype(float)
    clean = whole[:N_SLICES] / whole.max()
    for percent in (5, 11, 19):
        noise = np.random.default_rng(4000 + percent).normal(0, percent / 100, clean.shape)
        yield f"colin27, {percent} %", clean, clean + noise, percent / 100, 1.0, "ZYX"


def particles(only: list[str]) -> Iterator[tuple[str, Any, Any, float, float, str]]:
    for count in (1, 5, 25, 100, 200):
        if only and f"phantoms{count}" not in only:
            continue
        clean = np.stack([half_discs(6, 16, 2, seed=100 + i, size=64) for i in range(count)])
        sigma = 0.3**0.5
        noisy = clean + np.random.default_rng(5000).normal(0, sigma, clean.shape)
        # Clean images have variance one: PSNR with a peak of one is their SNR.
        yield f"{count} half discs, variance 0.3", clean, noisy, sigma, 1.0, "NYX"


def variants(axes: str, sigma: float, profile: str) -> list[Callable[[Any], Any] | None]:
    """Page by page, channel by channel, at one size, and by default; None if it does not apply."""
    colour = "C" in axes

    def pages(stack: Any) -> Any:
        options: dict[str, Any] = {"channel_axis": -1} if colour else {}
        return np.stack(
            [vnlem.denoise(page, sigma, noise_model="gaussian", profile=profile, **options) for page in stack]
        )

    def together(**options: Any) -> Callable[[Any], Any]:
        return lambda stack: vnlem.denoise(
            stack, sigma, axes=axes, noise_model="gaussian", profile=profile, **options
        )

    return [
        pages,
        together(channels="separate") if colour else None,
        together(scales=1) if "T" in axes else None,
        together(),
    ]


def peers(axes: str, sigma: float) -> list[tuple[str, Callable[[Any], Any]]]:
    """bm4d for volumes, OpenCV's multi-frame NLM for movies; neither is needed to run the rest."""
    if axes == "ZYX":
        import bm4d

        return [("bm4d", lambda noisy: bm4d.bm4d(noisy, sigma))]
    if axes == "TYX":
        import cv2

        def multi(noisy: Any) -> Any:
            frames = list(np.clip(np.rint(noisy), 0, 255).astype(np.uint8))
            found = []
            for i in range(len(frames)):
                half = min(2, i, len(frames) - 1 - i)
                found.append(cv2.fastNlMeansDenoisingMulti(frames, i, 2 * half + 1, None, 0.9 * sigma, 5, 21))
            return np.stack(found)

        return [("OpenCV multi-frame NLM", multi)]
    return []


ABLATION: dict[str, dict[str, Any]] = {
    "default": {},
    "patches of two frames in all passes": {"patch_depth": 2},
    "patches of one frame in all passes": {"patch_depth": 1},
    "patches of 7 x 7": {"patch_size": 7},
    "patches of 9 x 9": {"patch_size": 9},
    "96 members": {"n_neighbors": 96},
    "windows of radius 10": {"patch_distance": 10},
    "7 frames each way": {"plane_distance": 7},
    "2 frames each way": {"plane_distance": 2},
    "6 passes": {"passes": 6},
    "a patch every 4 pixels": {"step": 4},
    "shifts only": {"group": "identity"},
    "one size": {"scales": 1},
}


def ablation(data: Path, only: list[str], sigmas: list[int], profile: str) -> None:
    """The mean over all movies, grey, and the CPU time in units of the default's."""
    cases = []
    for _, clean, noisy, sigma, peak, axes in videos(data, only, sigmas):
        weights = [0.299, 0.587, 0.114]
        pair = [(stack @ weights if "C" in axes else stack)[:8] for stack in (clean, noisy)]
        level = sigma * float(np.linalg.norm(weights)) if "C" in axes else sigma
        top, left = ((size - 128) // 2 for size in pair[0].shape[1:])
        cases.append((*(stack[:, top : top + 128, left : left + 128] for stack in pair), level, sigma, peak))
    names = [f"sigma {sigma}" for sigma in sigmas]
    print(f"| movies | {' | '.join(names)} | CPU time |\n|---|{'---|' * (len(names) + 1)}", flush=True)
    unit = None
    for name, options in ABLATION.items():
        begun = time.process_time()
        found: dict[int, list[float]] = {sigma: [] for sigma in sigmas}
        for clean, noisy, level, sigma, peak in cases:
            common: dict[str, Any] = {"axes": "TYX", "noise_model": "gaussian", "profile": profile}
            result = vnlem.denoise(noisy, level, **common, **options)
            found[int(sigma)].append(psnr(result, clean, peak))
        taken = time.process_time() - begun
        unit = unit or taken
        levels = " | ".join(f"{np.mean(values):.2f}" for values in found.values())
        print(f"| {name} | {levels} | {taken / unit:.2f} |", flush=True)


def beads(data: Path, only: list[str], profile: str) -> None:
    """Each frame of a still scene against the mean of the others."""
    path = data / "stacks" / "time_beads_real.tif"
    if not path.exists() or (only and "beads" not in only):
        return
    frames = tifffile.imread(path).astype(float)
    # A result must not contain the pixels it is compared with: each frame uses itself and its two neighbours.
    means, movies = [], []
    for i in range(len(frames)):
        low = min(max(i - 1, 0), len(frames) - 3)
        means.append(frames[low : low + 3].mean(axis=0))
        movies.append(vnlem.denoise(frames[low : low + 3], axes="TYX", profile=profile)[i - low])
    pages = [vnlem.denoise(frame, profile=profile) for frame in frames]
    held_out = [
        np.delete(frames, range(*_span(i, len(frames))), axis=0).mean(axis=0) for i in range(len(frames))
    ]

    def apart(result: Any) -> float:
        return float(np.mean([np.sqrt(np.mean((a - b) ** 2)) for a, b in zip(result, held_out, strict=True)]))

    print(f"\nbeads, rms difference from the mean of the frames that were not used ({len(frames)} frames):")
    for name, result in (("noisy", frames), ("page by page", pages), ("mean of 3", means), ("movie", movies)):
        print(f"- {name}: {apart(result):.3f}")


def _span(i: int, count: int) -> tuple[int, int]:
    low = min(max(i - 1, 0), count - 3)
    return low, low + 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--sigmas", nargs="*", type=int, default=[10, 20, 40], help="of the movies")
    parser.add_argument("--profile", default="balanced")
    parser.add_argument("--ablation", action="store_true")
    arguments = parser.parse_args()
    if arguments.ablation:
        ablation(arguments.data, arguments.only, arguments.sigmas, arguments.profile)
        return
    vnlem.denoise(np.zeros((3, 16, 16)) + np.arange(16.0), 1.0, axes="TYX", noise_model="gaussian")
    print("| stack | noisy | page by page | channel by channel | one size | stack | peer |")
    print("|---|---|---|---|---|---|---|")
    sources = [
        videos(arguments.data, arguments.only, arguments.sigmas),
        volumes(arguments.data, arguments.only),
    ]
    for source in [*sources, particles(arguments.only)]:
        for name, clean, noisy, sigma, peak, axes in source:
            row = [name, f"{psnr(noisy, clean, peak):.2f}"]
            for solve in variants(axes, sigma, arguments.profile):
                begun = time.perf_counter()
                if solve is None:
                    row.append("")
                    continue
                level = psnr(solve(noisy), clean, peak)
                row.append(f"{level:.2f} in {time.perf_counter() - begun:.1f} s")
            found = []
            for title, solve in peers(axes, sigma) if arguments.peers else []:
                begun = time.perf_counter()
                level = psnr(solve(noisy), clean, peak)
                found.append(f"{title} {level:.2f} in {time.perf_counter() - begun:.1f} s")
            print(f"| {' | '.join([*row, '; '.join(found)])} |", flush=True)
    beads(arguments.data, arguments.only, arguments.profile)


if __name__ == "__main__":
    main()
