"""Draw the figures of docs/theory.md: ``python docs/make_figures_theory.py`` (a few minutes)."""

import io
from pathlib import Path
from typing import Any

import numpy as np
import pywt
from matplotlib.lines import Line2D
from PIL import Image
from skimage import data

import vnlem
from vnlem import theory
from vnlem.theory.plot import CLOSE_COLOUR, FAR_COLOUR, draw_bounds, new_figure

FOLDER = Path(__file__).parent / "figures"
SIZES = [3, 5, 7, 9, 11, 13, 15]
NOISE = {10: "#1f5fa8", 25: "#2e8b57", 50: "#c2571a"}  # on the 0..255 scale


def image() -> np.ndarray:
    """A part of scikit-image's camera with sky, edges and texture."""
    return data.camera()[90:250, 150:310].astype(float)


def save(figure: Any, name: str) -> None:
    """Write a figure as a PNG with a palette: enough for curves, and half the size."""
    buffer = io.BytesIO()
    figure.savefig(buffer)
    Image.open(buffer).convert("RGB").quantize(256).save(FOLDER / f"{name}.png", optimize=True)


def recovery() -> None:
    """Share of true neighbours found: measured, and what the theory guarantees."""
    figure = new_figure(9.0, 4.2)
    measured, guaranteed = figure.subplots(1, 2, sharey=True)
    clean = image()
    for sigma, colour in NOISE.items():
        for metric, style in (("euclidean", "-"), ("rid", "--")):
            found = [theory.neighbor_recovery(clean, sigma, q, metric=metric) for q in SIZES]
            measured.plot(SIZES, [f.share for f in found], style, color=colour, marker=".")
            measured.axhline(found[0].chance, color="0.5", linewidth=1, linestyle=":")
    _keys(measured, NOISE, {"Euclidean": "-", "RID": "--", "chance": ":"})
    measured.set_title("16 nearest of 440, found under noise", fontsize=10)
    low_noise = {2: "#7a4ca0", 5: "#444444", 10: NOISE[10]}
    for sigma, colour in low_noise.items():
        found = [theory.neighbor_recovery(clean, sigma, q) for q in SIZES]
        for field, style in (("share", "-"), ("gaussian_bound", "--"), ("chebyshev_bound", ":")):
            guaranteed.plot(SIZES, [getattr(f, field) for f in found], style, color=colour)
    _keys(guaranteed, low_noise, {"found": "-", "guarantee, Gaussian": "--", "guarantee, Chebyshev": ":"})
    guaranteed.set_title("Euclidean: found and guaranteed", fontsize=10)
    for axes in (measured, guaranteed):
        axes.set_xlabel("patch size q")
        axes.set_xticks(SIZES)
        axes.set_ylim(0, 1)
    measured.set_ylabel("share of true neighbours")
    save(figure, "theory-recovery")


def _keys(axes: Any, noise: dict[int, str], styles: dict[str, str]) -> None:
    """A legend below the axes: colours for the noise, line styles for the rest."""
    colours = [Line2D([], [], color=colour, label=f"sigma {sigma}") for sigma, colour in noise.items()]
    lines = [Line2D([], [], color="k", linestyle=style, label=name) for name, style in styles.items()]
    axes.legend(
        handles=[*colours, *lines], fontsize=8, ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.16)
    )


def tightness() -> None:
    """The theorem's two probabilities: bound, exact value, and pairs of patches of a real image."""
    q, epsilon = 3, 1.0
    ratios = np.linspace(0.05, 0.99, 60)
    figure = new_figure(9.0, 3.6)
    for axes, side, colour in zip(
        figure.subplots(1, 2), ("close", "far"), (CLOSE_COLOUR, FAR_COLOUR), strict=True
    ):
        for overlap, style in ((False, "-"), (True, "--")):
            misses = [1 - getattr(theory.neighbor_bounds(q, r / q, epsilon, overlap), side) for r in ratios]
            axes.semilogy(
                ratios,
                misses,
                style,
                color=colour,
                label=f"bound, {'may overlap' if overlap else 'no overlap'}",
            )
        exact = [getattr(theory.neighbor_probabilities(q, r / q, epsilon), f"{side}_miss") for r in ratios]
        axes.semilogy(ratios, exact, ":", color="k", label="exact, no overlap")
        axes.semilogy(*_measured_misses(q, side), "x", color="0.4", label="pairs of the camera image")
        axes.set_ylim(1e-6, 1.5)
        axes.set_xlabel("sigma q / epsilon")
        axes.set_title(f"{side} patches that do not stay {side} (q = {q})", fontsize=10)
        axes.legend(fontsize=8, loc="lower right" if side == "close" else "lower left")
        axes.set_ylabel("probability, at most")
    save(figure, "theory-tightness")


def _measured_misses(q: int, side: str) -> tuple[list[float], list[float]]:
    """Pairs of patches at clean distance epsilon (close) or 2 epsilon (far), with many draws of noise."""
    clean = image()
    rng = np.random.default_rng(0)
    ratios = [0.6, 0.7, 0.8, 0.9, 0.98]
    shares = []
    for ratio in ratios:
        misses = 0
        pairs, draws = 60, 4000
        for _ in range(pairs):
            row, column = rng.integers(12, 130, 2)
            down, right = rng.integers(-10, 11, 2)
            if (down, right) == (0, 0):
                right = 1
            height, width = abs(down) + q, abs(right) + q
            top, left = min(row, row + down), min(column, column + right)
            block = clean[top : top + height, left : left + width]
            first, second = (max(0, -down), max(0, -right)), (max(0, down), max(0, right))
            distance = np.linalg.norm(_cut(block, first, q) - _cut(block, second, q))
            epsilon = distance if side == "close" else distance / 2
            noise = ratio * epsilon / q * rng.standard_normal((draws, *block.shape))
            difference = _cut(block + noise, first, q) - _cut(block + noise, second, q)
            squared = np.sum(difference**2, axis=(1, 2))
            misses += np.sum(squared >= 4 * epsilon**2 if side == "close" else squared <= epsilon**2)
        shares.append(misses / (pairs * draws))
    return [r for r, s in zip(ratios, shares, strict=True) if s], [s for s in shares if s]


def _cut(block: np.ndarray, corner: tuple[int, int], q: int) -> np.ndarray:
    return block[..., corner[0] : corner[0] + q, corner[1] : corner[1] + q]


def bounds_over_size() -> None:
    """The two bounds over q at the paper's noise level."""
    figure = new_figure(6.0, 3.8)
    draw_bounds(figure.subplots(), 0.3**0.5, 11.0, list(range(3, 20, 2)))
    save(figure, "theory-bounds")


def advice() -> None:
    """Estimated risk over q on a noisy image, with the true one."""
    figure = new_figure(6.0, 3.6)
    axes = figure.subplots()
    clean = data.camera()[::2, ::2].astype(float)
    for sigma, colour in NOISE.items():
        noisy = clean + sigma * np.random.default_rng(1).standard_normal(clean.shape)
        found = theory.suggest_patch_size(noisy, sigma)
        axes.plot(
            found.sizes,
            found.risk / sigma**2,
            color=colour,
            marker=".",
            label=f"sigma {sigma}: q = {found.q}",
        )
        axes.plot(found.q, found.risk.min() / sigma**2, "o", color=colour, fillstyle="none", markersize=10)
    axes.set_xticks(SIZES)
    axes.set_xlabel("patch size q")
    axes.set_ylabel("estimated risk / sigma²")
    axes.set_title("suggest_patch_size(image, sigma), camera 256 x 256", fontsize=10)
    axes.legend(fontsize=8)
    save(figure, "theory-advice")


def orientation() -> None:
    """The proposition's claim, and how often the orientation of its counterexample really survives."""
    figure = new_figure(9.0, 3.4)
    picture, shares = figure.subplots(1, 2, width_ratios=(1, 2))
    case = theory.orientation_counterexample(16)
    picture.imshow(case.patch, cmap="gray")
    angle = np.linspace(0, 2 * np.pi, 200)
    middle = (case.patch.shape[0] - 1) / 2
    picture.plot(
        middle + case.radius * np.cos(angle), middle + case.radius * np.sin(angle), "w--", linewidth=1
    )
    picture.set_axis_off()
    levels = np.geomspace(0.005, 0.15, 10)
    claims = [theory.orientation_bound(sigma, epsilon=case.margin).probability for sigma in levels]
    shares.semilogx(levels, claims, "k-", label="claimed, at least")
    for slack, colour in ((0.2, FAR_COLOUR), (1.0, "#2e8b57"), (4.0, CLOSE_COLOUR)):
        case = theory.orientation_counterexample(16, slack)
        found = [
            theory.orientation_errors(case.patch, s, 200, delta=case.delta, radius=case.radius)
            for s in levels
        ]
        label = f"found, directions {slack:g} deg inside the arc"
        shares.semilogx(levels, [f.within(case.delta) for f in found], ".--", color=colour, label=label)
    shares.set_xlabel("sigma (the patch has slope 1)")
    shares.set_ylabel("orientation moves less than delta")
    shares.set_xticks([0.005, 0.01, 0.02, 0.05, 0.1], ["0.005", "0.01", "0.02", "0.05", "0.1"])
    shares.legend(fontsize=8)
    save(figure, "theory-orientation")


def ecg() -> None:
    """An ECG, noisy and denoised, as a signal and as a lag map."""
    clean = pywt.data.ecg().astype(float)
    noisy = clean + np.random.default_rng(0).normal(0, 15, clean.size)
    denoised = vnlem.denoise(noisy, 15, method="nlem", patch_size=9)
    figure = new_figure(9.0, 3.4)
    signal, loop = figure.subplots(1, 2, width_ratios=(2, 1))
    curves = (
        ("noisy", noisy, "#c9c9c9", 1.0),
        ("NLEM", denoised, FAR_COLOUR, 1.2),
        ("clean", clean, "k", 0.6),
    )
    for name, values, colour, width in curves:
        signal.plot(values[:600], color=colour, linewidth=width, label=name)
        rows = theory.lag_map(values, dim=2, step=4)
        loop.plot(*rows.T, color=colour, linewidth=width)
    signal.set_xlabel("sample")
    signal.legend(fontsize=8)
    loop.set_xlabel("x(k)")
    loop.set_ylabel("x(k + 4)")
    loop.set_title("lag map", fontsize=10)
    save(figure, "theory-ecg")


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for draw in (bounds_over_size, tightness, recovery, advice, orientation, ecg):
        draw()
        print(draw.__name__)
