"""Impulses, missing pixels and complex images; `instruments.py` prints these tables.

Impulses: pictures of set12 with sigma 15, and 1 % salt and pepper or 0.2 % hot pixels. The peer knows sigma
and the values of salt and pepper: BM3D after a median of 3x3 pixels at pixels of these values. False
impulses: photographs of the folder categories, and simulated stars and beads. Missing: pixels of set12 that
are NaN, sigma 25; for comparison the same pictures with all pixels, as noisy as if every pixel had lost as
much information. Complex: pictures of set12 with a phase. vnlem gets no parameters.
"""

from pathlib import Path

import numpy as np

import vnlem

SALT_LIMIT = 32.5  # dB, of four pictures
HOT_LIMIT = 0.2  # dB below the image without hot pixels
FALSE_LIMIT = 1.0  # pixels in 100,000
MISSING = (0.1, 0.3, 0.5)  # share of the pixels
MISSING_LIMIT = 1.0  # dB below the image with all pixels


def psnr(image: np.ndarray, clean: np.ndarray, peak: float = 255.0) -> float:
    """Peak signal to noise ratio."""
    return float(10 * np.log10(peak**2 / np.mean((image - clean) ** 2)))


def verdict(holds: bool) -> str:
    """Pass or FAIL for a limit."""
    return "reached" if holds else "MISSED"


def impulses(data: Path, pictures: int, crop: int) -> None:
    """Salt and pepper, hot pixels; and false impulses."""
    import bm3d
    from scipy.ndimage import median_filter

    sigma = 15.0
    files = [data / "set12" / f"{number:02d}.png" for number in (1, 2, 5, 7, 3, 4, 6, 8, 9, 10, 11, 12)]
    rows = []
    for number, file in enumerate(files[:pictures]):
        clean = vnlem.io.read(file).pixels[:crop, :crop].astype(float)
        rng = np.random.default_rng(1000 + number)
        noisy = clean + rng.normal(0, sigma, clean.shape)
        chance = rng.random(clean.shape)
        salted = np.where(chance < 0.01, np.where(chance < 0.005, 0.0, 255.0), noisy)
        spots = np.isin(salted, (0.0, 255.0))
        peer = bm3d.bm3d(np.where(spots, median_filter(salted, 3), salted), sigma)
        row = [psnr(vnlem.denoise(noisy), clean), psnr(salted, clean), psnr(peer, clean)]
        row += [psnr(vnlem.denoise(salted, impulses=on), clean) for on in ("auto", False)]
        for hot in (noisy + 80 * (chance < 0.002), np.where(chance < 0.002, 255.0, noisy)):
            row += [psnr(vnlem.denoise(hot), clean), psnr(vnlem.denoise(hot, impulses=False), clean)]
        rows.append(row)
        print(f"  {file.name}: {', '.join(f'{value:.2f}' for value in row)}", flush=True)
    without, noisy, peer, salt, plain, hot, hot_off, white, white_off = np.mean(rows, axis=0)
    print(f"Impulses, {len(rows)} pictures of set12, sigma 15; without impulses {without:.2f}")
    print(
        f"  salt and pepper 1 %: noisy {noisy:.2f}, median + BM3D {peer:.2f}, vnlem {salt:.2f} "
        f"(impulses=False {plain:.2f}); limit {SALT_LIMIT}: {verdict(salt >= SALT_LIMIT)}"
    )
    for name, found, off in (("+80", hot, hot_off), ("at 255", white, white_off)):
        print(
            f"  hot pixels 0.2 %, {name}: {found:.2f} (impulses=False {off:.2f}); below the image without "
            f"them {without - found:.2f}, limit {HOT_LIMIT}: {verdict(without - found <= HOT_LIMIT)}"
        )


def false_impulses(data: Path, photographs: int) -> None:
    """Photographs, stars and beads: pixels that "auto" would replace."""
    from vnlem.noise.impulses import find_rule

    def called(image: np.ndarray) -> int:
        rule = find_rule(image[None], vnlem.estimate_noise(image), "auto")
        return 0 if rule is None else int(rule.find(image[None]).sum())

    files = sorted((data / "categories").glob("*/*.png"))
    files = files[:: max(1, len(files) // photographs)][:photographs]
    for sigma in (0, 5, 20):
        found, total, worst = 0, 0, (0, "")
        for number, file in enumerate(files):
            picture = vnlem.io.read(file)
            image = picture.pixels.astype(float)
            if picture.channel_axis is not None:
                image = np.take(image, 1, axis=picture.channel_axis)
            image = image + np.random.default_rng(number).normal(0, sigma, image.shape)
            count = called(image)
            found, total, worst = found + count, total + image.size, max(worst, (count, file.name))
        rate = 1e5 * found / total
        print(
            f"  {len(files)} photographs, sigma {sigma}: {found} pixels called, {rate:.2f} in 100,000 (most: "
            f"{worst[0]}, {worst[1]}), limit {FALSE_LIMIT}: {verdict(rate <= FALSE_LIMIT)}",
            flush=True,
        )
    found, total = 0, 0
    for number in range(20):
        image = point_field(number)
        found, total = found + called(image), total + image.size
    rate = 1e5 * found / total
    print(
        f"  20 fields of stars and beads: {found} pixels called, {rate:.2f} in 100,000, limit {FALSE_LIMIT}: "
        f"{verdict(rate <= FALSE_LIMIT)}"
    )


def point_field(seed: int, side: int = 256) -> np.ndarray:
    """Stars of many magnitudes whose point spread is 0.5 to 1.5 pixels; every fourth field: single pixels."""
    rng = np.random.default_rng(seed)
    sky, noise = 100.0 + 0.1 * np.arange(side), float(rng.choice([1.0, 5.0, 15.0]))
    rows, columns = np.indices((side, side))
    image = np.tile(sky, (side, 1))
    count = int(rng.integers(60, 600))
    if seed % 4 == 3:
        image[rng.integers(0, side, count), rng.integers(0, side, count)] += 150.0
        return image + rng.normal(0, noise, image.shape)
    width = rng.uniform(0.5, 1.5)
    for y, x, bright in zip(*rng.uniform(0, side, (2, count)), 30 * rng.pareto(1.2, count) + 20, strict=True):
        top, left = max(int(y) - 8, 0), max(int(x) - 8, 0)
        part = np.s_[top : top + 17, left : left + 17]
        image[part] += bright * np.exp(-((rows[part] - y) ** 2 + (columns[part] - x) ** 2) / (2 * width**2))
    return image + rng.normal(0, noise, image.shape)


def missing(data: Path, pictures: int, crop: int) -> None:
    """Pixels that are NaN, at random."""
    files = [data / "set12" / f"{number:02d}.png" for number in (1, 2, 5, 7, 3, 4, 6, 8, 9, 10, 11, 12)]
    rows = []
    for number, file in enumerate(files[:pictures]):
        clean = vnlem.io.read(file).pixels[:crop, :crop].astype(float)
        rng = np.random.default_rng(1000 + number)
        noisy = clean + rng.normal(0, 25, clean.shape)
        chance = rng.random(clean.shape)
        holes = [np.where(chance < share, np.nan, noisy) for share in MISSING]
        noisier = [clean + (noisy - clean) / np.sqrt(1 - share) for share in MISSING]
        rows.append([psnr(vnlem.denoise(image), clean) for image in (noisy, *holes, *noisier)])
        print(f"  {file.name}: {', '.join(f'{value:.2f}' for value in rows[-1])}", flush=True)
    whole, few, some, half, *noisier = np.mean(rows, axis=0)
    print(
        f"Missing pixels, {len(rows)} pictures of set12, sigma 25: all there {whole:.2f}, 10 % missing "
        f"{few:.2f}, 30 % {some:.2f}, 50 % {half:.2f}; "
        f"all there and noisier {' / '.join(f'{value:.2f}' for value in noisier)}"
    )
    print(
        f"  30 %: {whole - some:.2f} below, limit {MISSING_LIMIT}: {verdict(whole - some <= MISSING_LIMIT)}"
    )


def complex_images(data: Path, pictures: int, crop: int) -> None:
    """Complex images with a phase, compared with denoising their two parts separately."""
    rows = []
    for number, file in enumerate(sorted((data / "set12").glob("*.png"))[:pictures]):
        magnitude = vnlem.io.read(file).pixels[:crop, :crop].astype(float)
        height, width = magnitude.shape
        phase = 3 * np.add.outer(np.linspace(0, 1, height) ** 2, np.linspace(0, 1, width))
        clean = magnitude * np.exp(1j * phase)
        rng = np.random.default_rng(1000 + number)
        noisy = clean + rng.normal(0, 25, clean.shape) + 1j * rng.normal(0, 25, clean.shape)
        apart = vnlem.denoise(noisy.real) + 1j * vnlem.denoise(noisy.imag)
        rows.append([error(image, clean) for image in (noisy, apart, vnlem.denoise(noisy))])
    noisy, apart, joint = np.mean(rows, axis=0)
    print(
        f"Complex, {len(rows)} pictures of set12, sigma 25 in both parts: noisy {noisy:.2f}, parts apart "
        f"{apart:.2f}, together {joint:.2f}"
    )


def error(image: np.ndarray, clean: np.ndarray) -> float:
    """PSNR of a complex image: the mean square of both parts."""
    return float(10 * np.log10(255**2 / (np.mean(np.abs(image - clean) ** 2) / 2)))
