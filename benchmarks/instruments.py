"""Noise of instruments: magnitudes, speckle, lines, fields and sensors, against BM3D and BM4D.

    python benchmarks/instruments.py DATA
    python benchmarks/instruments.py DATA --only speckle --pictures 12 --crop 512

Rician: slices of stacks/volume_colin27.tif, whose corners are set to zero as air, with sigma of 5, 11 and
19 % of the maximum. The peer is BM4D between the same transform and its inverse, with true sigma.
Speckle: gamma noise of 1, 4 and 16 looks on pictures of set12. The peer is BM3D on the logarithm, with its
true variance and without its bias; both know the looks. OCT: the pairs of the folder oct, which are
logarithms already; vnlem knows only the kind. The peer is BM3D with the standard deviation of the
difference of the pair (1x) and with the best of 1, 1.25 and 1.5 times that for all pairs. The bound of a pair
is the PSNR of a perfect result: the mean still has noise, and differs slowly from the scan.
Lines: offsets of the columns of standard deviation 8 and white noise of sigma 10, on pictures of set12; the
peer is BM3D with the true spectrum. Gains: columns whose gains differ by 5 %, with the same noise. Fields:
white noise whose sigma rises from 5 to 30 over the columns, and the same denoiser with the true map. vnlem
gets no parameters in these. Sensors: 50 photons at the brightest; gains of pixels and columns differ by 2 %
each, offsets by 3 and 4; read noise is 3 grey levels in the median and up to 70; calibrated with 100 dark
frames and twice 30 flat fields of 12 bits.

Impulses, missing pixels, complex images: see single_pixels.py.

All figures are PSNR in dB. A release must reach the limits.
"""

import argparse
from pathlib import Path

import numpy as np
from single_pixels import complex_images, false_impulses, impulses, missing, psnr, verdict

import vnlem
from vnlem.noise import NoiseModel, add_rician, add_speckle

PEER_MARGIN = 0.5  # dB by which a result must exceed its peer
AIR_LIMIT = 0.3  # per cent of the maximum, of the mean result in air
AUTO_LIMIT = 0.3  # dB by which "auto" may fall below the given kind
LINES_LIMIT, FIELD_LIMIT = 31.8, 31.5  # dB
SLOW = 20.0  # pixels: differences of a scan and its mean that are this wide are not noise


def head(data: Path, slices: int) -> np.ndarray:
    """Slices from the middle of the volume, with empty corners."""
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
    print(
        f"  auto below given {max(losses):.2f} dB, limit {AUTO_LIMIT}: {verdict(max(losses) <= AUTO_LIMIT)}"
    )


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


def bound(noisy: np.ndarray, mean: np.ndarray) -> float:
    """PSNR of a perfect result, for a mean that has noise itself and differs slowly from the scan."""
    from scipy.ndimage import gaussian_filter

    rows, columns = (np.fft.fftfreq(length) for length in mean.shape)
    power = np.abs(np.fft.fft2(mean)) ** 2 / mean.size
    # Structure has no part in the highest frequencies. The power of noise has an exponential distribution.
    noise = np.median(power[np.hypot(rows[:, None], columns) > 0.35]) / np.log(2)
    slow = gaussian_filter(noisy - mean, SLOW)
    return float(10 * np.log10(255**2 / (noise + np.mean(slow**2))))


def oct_pairs(data: Path, crop: int) -> None:
    """Retinal OCT: one scan, compared with the mean of many."""
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
        rows.append([psnr(image, mean) for image in (noisy, *peers, told)] + [bound(noisy, mean)])
        print(f"  {file.stem[:6]}: {', '.join(f'{value:.2f}' for value in rows[-1])}", flush=True)
    noisy, *peers, told, perfect = np.mean(rows, axis=0)
    print(
        f"OCT, {len(rows)} pairs: noisy {noisy:.2f}, BM3D {peers[0]:.2f} (best {max(peers):.2f}), "
        f"speckle model {told:.2f}, bound {perfect:.2f}"
    )
    print(f"  limit {peers[0] + PEER_MARGIN:.2f}: {verdict(told >= peers[0] + PEER_MARGIN)}")
    print(f"  limit, best BM3D {max(peers) + PEER_MARGIN:.2f}: {verdict(told >= max(peers) + PEER_MARGIN)}")


def pictures_of(data: Path, pictures: int, crop: int) -> list[np.ndarray]:
    """Pictures of set12 as numbers."""
    files = sorted((data / "set12").glob("*.png"))[:pictures]
    return [vnlem.io.read(file).pixels[:crop, :crop].astype(float) for file in files]


def lines(data: Path, pictures: int, crop: int) -> None:
    """Columns with different offsets."""
    import bm3d

    if not hasattr(np, "trapz"):
        np.trapz = np.trapezoid  # noqa: NPY201 - the name by which BM3D with a spectrum calls it
    rows = []
    for number, clean in enumerate(pictures_of(data, pictures, crop)):
        rng = np.random.default_rng(2000 + number)
        height, width = clean.shape
        noisy = clean + rng.normal(0, 10, clean.shape) + rng.normal(0, 8, (1, width))
        power = np.full(clean.shape, 100.0 * clean.size)
        power[0] += 64.0 * height * clean.size
        peer = bm3d.bm3d(noisy, power)
        blind = vnlem.denoise(noisy)
        before = vnlem.denoise(noisy, lines=False)
        none = vnlem.denoise(clean + rng.normal(0, 10, clean.shape))
        rows.append([psnr(image, clean) for image in (noisy, peer, before, blind, none)])
    noisy, peer, before, blind, none = np.mean(rows, axis=0)
    print(
        f"Columns 8 + white 10, {len(rows)} pictures: noisy {noisy:.2f}, "
        f"BM3D with the true spectrum {peer:.2f}, lines=False {before:.2f}, "
        f"blind {blind:.2f}, the same without lines {none:.2f}"
    )
    print(f"  limit {LINES_LIMIT}: {verdict(blind >= LINES_LIMIT)}")


def gains(data: Path, pictures: int, crop: int) -> None:
    """Columns with different gains."""
    rows = []
    for number, clean in enumerate(pictures_of(data, pictures, crop)):
        rng = np.random.default_rng(2000 + number)
        white = rng.normal(0, 10, clean.shape)
        noisy = clean * (1 + rng.normal(0, 0.05, (1, clean.shape[1]))) + white
        results = (vnlem.denoise(noisy, lines=False), vnlem.denoise(noisy), vnlem.denoise(clean + white))
        rows.append([psnr(image, clean) for image in (noisy, *results)])
    noisy, before, blind, none = np.mean(rows, axis=0)
    print(
        f"Gains of columns 5 % + white 10, {len(rows)} pictures: noisy {noisy:.2f}, "
        f"lines=False {before:.2f}, blind {blind:.2f}, the same without lines {none:.2f}"
    )


def fields(data: Path, pictures: int, crop: int) -> None:
    """Noise that rises over the image."""
    rows = []
    for number, clean in enumerate(pictures_of(data, pictures, crop)):
        sigma = np.broadcast_to(np.linspace(5, 30, clean.shape[1]), clean.shape)
        noisy = clean + sigma * np.random.default_rng(3000 + number).normal(0, 1, clean.shape)
        blind = vnlem.denoise(noisy)
        level = vnlem.denoise(noisy, noise_model="gaussian")
        rows.append([psnr(image, clean) for image in (noisy, level, blind, vnlem.denoise(noisy, sigma))])
    noisy, level, blind, true = np.mean(rows, axis=0)
    print(
        f"Sigma from 5 to 30, {len(rows)} pictures: noisy {noisy:.2f}, one level {level:.2f}, "
        f"blind {blind:.2f}, the true map {true:.2f}"
    )
    print(f"  limit {FIELD_LIMIT}: {verdict(blind >= FIELD_LIMIT)}")


def sensors(data: Path, pictures: int, crop: int) -> None:
    """A camera whose pixels differ, calibrated."""
    from vnlem.noise.calibrate import calibrate_sensor

    rows = []
    for number, clean in enumerate(pictures_of(data, pictures, min(crop, 256))):
        rng = np.random.default_rng(4000 + number)
        shape = clean.shape
        gain = 2 * (1 + 0.02 * rng.normal(size=shape)) * (1 + 0.02 * rng.normal(size=(1, shape[1])))
        offset = 100 + 3 * rng.normal(size=shape) + 4 * rng.normal(size=(1, shape[1]))
        read_noise = np.exp(np.log(3) + 0.5 * rng.normal(size=shape))
        read_noise[rng.random(shape) < 0.005] *= 8

        def frame(photons: np.ndarray | float) -> np.ndarray:
            counted = rng.poisson(np.broadcast_to(photons, shape))  # noqa: B023 - called in the loop alone
            values = offset + gain * counted + read_noise * rng.normal(size=shape)  # noqa: B023
            return np.clip(np.round(values), 0, 4095).astype(np.uint16)

        model = calibrate_sensor(
            [frame(0) for _ in range(100)], [[frame(level) for _ in range(30)] for level in (100, 400)]
        )
        photons = clean / 255 * 50
        noisy = frame(photons).astype(np.float32)
        plain = {"gain": 2.0, "offset": 100.0, "read_noise": 3.0}
        even = (100 + 2 * rng.poisson(photons) + 3 * rng.normal(size=shape)).astype(np.float32)
        results = (
            (noisy, 2.0, 100.0),
            (vnlem.denoise(noisy, **plain), 2.0, 100.0),
            (vnlem.denoise(noisy, noise_model=model), model.gain.gain, model.gain.offset),
            (vnlem.denoise(even, **plain), 2.0, 100.0),
        )
        rows.append([psnr((image - level) / unit, photons, 50.0) for image, unit, level in results])
    noisy, numbers, maps, even = np.mean(rows, axis=0)
    print(
        f"sCMOS, 50 photons, {len(rows)} pictures: noisy {noisy:.2f}, three numbers {numbers:.2f}, "
        f"calibrated maps {maps:.2f}, a sensor without differences {even:.2f}"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument(
        "--only",
        choices=(
            *("rician", "speckle", "oct", "lines", "gains", "fields", "sensors"),
            *("impulses", "false", "missing", "complex"),
        ),
    )
    parser.add_argument("--slices", type=int, default=20)
    parser.add_argument("--pictures", type=int, default=12)
    parser.add_argument("--crop", type=int, default=10_000, help="most pixels a side that are used")
    parser.add_argument("--photographs", type=int, default=100, help="that are searched for impulses")
    chosen = parser.parse_args()
    if chosen.only in (None, "rician"):
        rician(chosen.data, chosen.slices)
    if chosen.only in (None, "speckle"):
        speckle(chosen.data, chosen.pictures, chosen.crop)
    if chosen.only in (None, "oct"):
        oct_pairs(chosen.data, chosen.crop)
    for name, table in (("lines", lines), ("gains", gains), ("fields", fields), ("sensors", sensors)):
        if chosen.only in (None, name):
            table(chosen.data, chosen.pictures, chosen.crop)
    if chosen.only in (None, "impulses"):
        impulses(chosen.data, chosen.pictures, chosen.crop)
    if chosen.only in (None, "false"):
        false_impulses(chosen.data, chosen.photographs)
    if chosen.only in (None, "missing"):
        missing(chosen.data, chosen.pictures, chosen.crop)
    if chosen.only in (None, "complex"):
        complex_images(chosen.data, chosen.pictures, chosen.crop)
