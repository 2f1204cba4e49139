"""Draw the figures of docs/vnlr.md.

    python docs/make_figures_vnlr.py --blood blood_bccd__00101.png

Needs the extras `bench` and `peers`, and a blood smear of the BCCD data set (MIT licence) in grey.
"""

import argparse
import io
import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np
from PIL import Image
from skimage import data

import vnlem
from vnlem.bench.peers import available_peers
from vnlem.bench.phantoms import half_discs
from vnlem.neighbours.groups import symmetries

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from groups_in_image import groups_in

mpl.use("Agg")
import matplotlib.pyplot as plt

FIGURES = Path(__file__).parent / "figures"
SIGMA = 25.0


def save(figure: plt.Figure, name: str) -> None:
    """Write a figure as a PNG with a palette, a third of the size."""
    buffer = io.BytesIO()
    figure.savefig(buffer, dpi=80, bbox_inches="tight")
    plt.close(figure)
    Image.open(buffer).convert("RGB").quantize(96).save(FIGURES / name, optimize=True)


def noisy_coins() -> tuple[np.ndarray, np.ndarray]:
    """Part of scikit-image's coins, clean and noisy."""
    clean = data.coins()[20:212, 20:276].astype(float)
    return clean, vnlem.noise.add_gaussian(clean, SIGMA, seed=0)


def groups(pilot: np.ndarray, corners: np.ndarray, patch_size: int, n_members: int) -> tuple:
    """Groups under the eight symmetries on a denoised image, as in a pilot pass."""
    standard = ((pilot - pilot.mean()) / pilot.std())[None].astype(np.float32)
    return groups_in(
        standard,
        corners,
        patch_size=patch_size,
        radius=26,
        n_members=n_members,
        group="d4",
        factor=1.3,
        penalty=0.04,
        variance=float((SIGMA / pilot.std()) ** 2),
    )


def draw_group() -> None:
    """One group of the coins: its members where they lie, aligned, and combined."""
    _, noisy = noisy_coins()
    pilot = np.asarray(vnlem.denoise_vnlr(noisy, SIGMA))
    size, corner = 12, (40, 86)
    places, transforms = groups(pilot, np.array([corner]), size, 24)
    table = symmetries("d4", size)
    figure, axes = plt.subplots(5, 10, figsize=(10, 5.2))
    for axis in axes.ravel():
        axis.axis("off")
    for j in range(24):
        y, x = places[0, j]
        patch = noisy[y : y + size, x : x + size]
        aligned = patch.ravel()[table[transforms[0, j]]].reshape(size, size)
        for shown, column in ((patch, j % 5), (aligned, 5 + j % 5)):
            axes[j // 5, column].imshow(shown, cmap="gray", vmin=0, vmax=255)
        axes[j // 5, j % 5].set_title(f"{y},{x}", fontsize=6, pad=1)
    figure.suptitle("A group on noisy coins: members as they lie (left) and aligned (right)", fontsize=10)
    save(figure, "vnlr_group.png")


def draw_shares() -> None:
    """Where turned members are used."""
    _, noisy = noisy_coins()
    pilot = np.asarray(vnlem.denoise_vnlr(noisy, SIGMA))
    rows = np.arange(0, pilot.shape[0] - 7, 4)
    columns = np.arange(0, pilot.shape[1] - 7, 4)
    corners = np.stack(np.meshgrid(rows, columns, indexing="ij"), axis=-1).reshape(-1, 2)
    _, transforms = groups(pilot, corners, 8, 64)
    share = (transforms > 0).mean(axis=1).reshape(rows.size, columns.size)
    figure, axes = plt.subplots(1, 3, figsize=(10, 2.8))
    axes[0].imshow(noisy, cmap="gray", vmin=0, vmax=255)
    axes[0].set_title("noisy, sigma 25", fontsize=9)
    axes[1].imshow(pilot, cmap="gray", vmin=0, vmax=255)
    axes[1].set_title("VNLR", fontsize=9)
    shown = axes[2].imshow(
        share, cmap="viridis", vmin=0, vmax=1, extent=(0, pilot.shape[1], pilot.shape[0], 0)
    )
    axes[2].set_title("share of turned members", fontsize=9)
    figure.colorbar(shown, ax=axes[2], fraction=0.035)
    for axis in axes:
        axis.axis("off")
    save(figure, "vnlr_shares.png")


def draw_particles() -> None:
    """Half discs at random angles: shifts alone, the eight symmetries, any angle."""
    clean = half_discs(6, 16, 2, seed=1)
    sigma = float(np.sqrt(0.3))
    noisy = clean + sigma * np.random.default_rng(1001).standard_normal(clean.shape)
    images = {"clean": clean, "noisy": noisy}
    for group in ("identity", "d4", "so2"):
        images[f"VNLR {group}"] = np.asarray(vnlem.denoise_vnlr(noisy, sigma, group=group, profile="quality"))
    figure, axes = plt.subplots(1, len(images), figsize=(12, 2.8))
    for axis, (title, image) in zip(axes, images.items(), strict=True):
        axis.imshow(image, cmap="gray", vmin=-1.5, vmax=2.5)
        gain = (
            10 * np.log10(np.mean(clean**2) / np.mean((image - clean) ** 2)) if title != "clean" else np.inf
        )
        axis.set_title(title if title == "clean" else f"{title}: {gain:.1f} dB", fontsize=9)
        axis.axis("off")
    save(figure, "vnlr_particles.png")


def draw_beside_bm3d(blood: Path) -> None:
    """A photograph, coins and a blood smear at two noise levels, next to BM3D."""
    images = {
        "camera": data.camera()[90:250, 180:360].astype(float),
        "coins": data.coins()[20:180, 150:330].astype(float),
        "blood smear": vnlem.io.read(blood).pixels[120:280, 60:240].astype(float),
    }
    bm3d = available_peers()["bm3d"]
    figure, axes = plt.subplots(2 * len(images), 4, figsize=(10, 13.2), layout="constrained")
    cases = [(name, clean, sigma) for name, clean in images.items() for sigma in (25.0, 50.0)]
    for line, (name, clean, sigma) in zip(axes, cases, strict=True):
        noisy = vnlem.noise.add_gaussian(clean, sigma, seed=1)
        panels = {
            f"{name}, sigma {sigma:.0f}": noisy,
            "BM3D": np.asarray(bm3d(noisy, sigma, 2)),
            "VNLR": np.asarray(vnlem.denoise_vnlr(noisy, sigma, profile="quality")),
            "clean": clean,
        }
        for axis, (title, image) in zip(line, panels.items(), strict=True):
            axis.imshow(image, cmap="gray", vmin=clean.min() - 10, vmax=clean.max() + 10)
            axis.axis("off")
            gain = "" if image is clean else f" {vnlem.metrics.psnr(clean, image, 255):.2f} dB"
            axis.set_title(title + gain, fontsize=8)
    save(figure, "vnlr_beside_bm3d.png")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--blood", type=Path, required=True, help="a blood smear")
    options = parser.parse_args()
    FIGURES.mkdir(exist_ok=True)
    draw_beside_bm3d(options.blood)
    draw_group()
    draw_shares()
    draw_particles()
