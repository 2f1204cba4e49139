"""Magnitude images (Rician noise) and speckle: vnlem, told the kind of noise alone, beside BM3D and BM4D.

    python benchmarks/instruments.py DATA
    python benchmarks/instruments.py DATA --only speckle --pictures 12 --crop 512

Rician: slices of stacks/volume_colin27.tif, whose corners are set to zero so that there is air, with sigma of
5, 11 and 19 % of the maximum. The peer is BM4D between the same transform and its inverse, told sigma.
Speckle: gamma noise of 1, 4 and 16 looks on pictures of set12. The peer is BM3D on the logarithm, told its
variance and freed of its bias; both are told the looks. OCT: the pairs of the folder oct, which are
logarithms already; nothing is told but the kind. The peer is BM3D, told the standard deviation of the
difference of the pair (1x) and the best of 1, 1.25 and 1.5 times that for all pairs.

Impulses, missing pixels, complex images: see single_pixels.py.

All figures are PSNR in dB. The limits are what a release has to reach.
"""

import argparse
from pathlib import Path

import numpy as np
from single_pixels import complex_images, false_impulses, impulses, missing

import vnlem
from vnlem.noise import NoiseModel, add_rician, add_speckle

PEER_MARGIN = 0.5  # dB that a result must lie above its peer
AIR_LIMIT = 0.3  # per cent of the maximum, of the mean result in air
AUTO_LIMIT = 0.3  # dB that "auto" may lie below the told kind


def psnr(image: np.ndarray, clean: np.ndarray, peak: float = 255.0) -> float:
    """Peak signal to noise ratio."""
    return float(10 * np.log10(peak**2 / np.mean((image - clean) ** 2)))


def verdict(holds: bool) -> str:
    """A word for a limit."""
    return "reached" if holds else "MISSED"


def head(data: Path, slices: int) -> np.ndarray:
    """Slices from the middle of the volume, without what lies in the corners."""
    volume = vnlem.io.read(data / "stacks" / "volume_colin27.tif").pixels.astype(float)
    first = (len(volume) - slices) // 2
    volume = volume[first : first + slices]
    _, height, width = volume.shape
    rows, columns = np.indices((height, width))
    radius = np.hypot((2 * rows + 1) / height - 1, (2 * columns + 1) / width - 1)
    return np.where(radius > 1.03, 0.0, volume)


def rician(data: Path, slices: int) -> None:
    """Volumes of magnitudes."""
    import bm4d

    clean = head(data, slices)
    air, peak = clean == 0, clean.max()
    print(
        f"Rician, {slices} slices, {100 * air.mean():.0f} % air: whole field (tissue), air in % of the peak"
    )
    gains, biases, losses = [], [], []
    for percent in (5, 11, 19):
        sigma = percent / 100 * peak
        noisy = add_rician(clean, sigma, seed=percent)
        law = NoiseModel.rician(sigma)  # takes (C, H, W), and works pixel by pixel
        peer = law.unstabilise(bm4d.bm4d(law.stabilise(noisy), 1.0))
        told = vnlem.denoise(noisy, noise_model="rician", axes="ZYX")
        auto = vnlem.denoise(noisy, axes="ZYX")
        row = [
            f"{name} {psnr(image, clean, peak):.2f} ({psnr(image[~air], clean[~air], peak):.2f})"
            for name, image in (("noisy", noisy), ("BM4D", peer), ("told", told), ("auto", auto))
        ]
        bias = 100 * float(told[air].mean()) / peak
        print(f"  {percent:2d} %: {', '.join(row)}; air {bias:.2f} %", flush=True)
        gains.append(psnr(told, clean, peak) - psnr(peer, clean, peak))
        biases.append(bias)
        losses.append(psnr(told, clean, peak) - psnr(auto, clean, peak))
    print(
        f"  above BM4D {np.mean(gains):.2f} dB, limit {PEER_MARGIN}: {verdict(np.mean(gains) >= PEER_MARGIN)}"
    )
    print(f"  bias of the air {max(biases):.2f} %, limit {AIR_LIMIT}: {verdict(max(biases) < AIR_LIMIT)}")
    print(f"  auto below told {max(losses):.2f} dB, limit {AUTO_LIMIT}: {verdict(max(losses) <= AUTO_LIMIT)}")


def speckle(data: Path, pictures: int, crop: int) -> None:
    """Gamma noise on photographs."""
    import bm3d
    from scipy.special import polygamma, psi

    files = sorted((data / "set12").glob("*.png"))[:pictures]
    print(f"Speckle, {len(files)} pictures of set12")
    for looks in (1, 4, 16):
        rows = []
        for number, file in enumerate(files):
            clean = np.maximum(vnlem.io.read(file).pixels[:crop, :crop].astype(float), 1.0)
            noisy = add_speckle(clean, looks, seed=1000 + number)
            logs = bm3d.bm3d(np.log(np.maximum(noisy, 1e-3)), float(np.sqrt(polygamma(1, looks))))
            peer = np.exp(logs - psi(looks) + np.log(looks))
            told = vnlem.denoise(noisy, noise_model="speckle", looks=looks)
            kind = vnlem.denoise(noisy, noise_model="speckle")
            rows.append([psnr(image, clean) for image in (noisy, peer, told, kind)])
        noisy, peer, told, kind = np.mean(rows, axis=0)
        print(
            f"  {looks:2d} looks: noisy {noisy:.2f}, log + BM3D {peer:.2f}, told {told:.2f}, looks estimated "
            f"{kind:.2f}; limit {peer + PEER_MARGIN:.2f}: {verdict(told >= peer + PEER_MARGIN)}",
            flush=True,
        )


def oct_pairs(data: Path, crop: int) -> None:
    """Retinal OCT, one scan beside the mean of many."""
    import bm3d

    rows = []
    for file in sorted((data / "oct").glob("*_noisy.png")):
        noisy, mean = (
            vnlem.io.read(path).pixels[:, :crop].astype(float)
            for path in (file, file.with_name(file.name.replace("noisy", "ref")))
        )
        sigma = float(np.std(noisy - mean))
        peers = [bm3d.bm3d(noisy, factor * sigma) for factor in (1.0, 1.25, 1.5)]
        told = vnlem.denoise(noisy, noise_model="speckle")
        rows.append([psnr(image, mean) for image in (noisy, *peers, told)])
        print(f"  {file.stem[:6]}: {', '.join(f'{value:.2f}' for value in rows[-1])}", flush=True)
    noisy, *peers, told = np.mean(rows, axis=0)
    print(
        f"OCT, {len(rows)} pairs: noisy {noisy:.2f}, BM3D {peers[0]:.2f} (best {max(peers):.2f}), "
        f"told {told:.2f}"
    )
    print(f"  limit {peers[0] + PEER_MARGIN:.2f}: {verdict(told >= peers[0] + PEER_MARGIN)}")
    print(
        f"  beside the best BM3D {max(peers) + PEER_MARGIN:.2f}: {verdict(told >= max(peers) + PEER_MARGIN)}"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument(
        "--only", choices=("rician", "speckle", "oct", "impulses", "false", "missing", "complex")
    )
    parser.add_argument("--slices", type=int, default=20)
    parser.add_argument("--pictures", type=int, default=12)
    parser.add_argument("--crop", type=int, default=10_000, help="pixels a side that are used at the most")
    parser.add_argument("--photographs", type=int, default=100, help="that are searched for impulses")
    chosen = parser.parse_args()
    if chosen.only in (None, "rician"):
        rician(chosen.data, chosen.slices)
    if chosen.only in (None, "speckle"):
        speckle(chosen.data, chosen.pictures, chosen.crop)
    if chosen.only in (None, "oct"):
        oct_pairs(chosen.data, chosen.crop)
    if chosen.only in (None, "impulses"):
        impulses(chosen.data, chosen.pictures, chosen.crop)
    if chosen.only in (None, "false"):
        false_impulses(chosen.data, chosen.photographs)
    if chosen.only in (None, "missing"):
        missing(chosen.data, chosen.pictures, chosen.crop)
    if chosen.only in (None, "complex"):
        complex_images(chosen.data, chosen.pictures, chosen.crop)
