"""Draw docs/figures/instruments-*.png, one for each kind of noise of docs/instruments.md.

    python docs/make_figures_instruments.py DATA

DATA holds the folders stacks (volume_colin27.tif), oct and set12.
"""

import sys
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import vnlem
from vnlem.noise import add_rician
from vnlem.noise.calibrate import calibrate_sensor

FIGURES = Path(__file__).parent / "figures"
PERCENT = 11  # of the maximum, sigma of the noise
SLICES = 8


def main(data: Path) -> None:
    """Draw all figures."""
    magnitudes(data)
    speckle(data)
    photograph = vnlem.io.read(data / "set12" / "01.png").pixels.astype(float)
    lines(photograph)
    field(photograph)
    sensor(photograph)
    impulses(data)
    missing(data)
    complex_image(data)


def magnitudes(data: Path) -> None:
    """Slices with Rician noise: white noise of the true sigma leaves the floor, the right model does not."""
    volume = vnlem.io.read(data / "stacks" / "volume_colin27.tif").pixels.astype(float)
    first = (len(volume) - SLICES) // 2
    _, height, width = volume.shape
    rows, columns = np.indices((height, width))
    radius = np.hypot((2 * rows + 1) / height - 1, (2 * columns + 1) / width - 1)
    clean = np.where(radius > 1.03, 0.0, volume[first : first + SLICES])
    peak = clean.max()
    noisy = add_rician(clean, PERCENT / 100 * peak, seed=0)
    white = vnlem.denoise(noisy, PERCENT / 100 * peak, noise_model="gaussian", axes="ZYX")
    found, info = vnlem.denoise(noisy, axes="ZYX", return_info=True)
    print(info.noise.describe())
    middle = SLICES // 2
    pictures = {
        "without noise": clean,
        f"noisy, {PERCENT} %": noisy,
        "as white noise": white,
        "as Rician noise": found,
    }
    figure, axes = plt.subplots(1, 4, figsize=(10, 2.95), layout="constrained")
    for axis, (title, image) in zip(axes, pictures.items(), strict=True):
        air = 100 * image[clean == 0].mean() / peak
        score = "" if image is clean else f"{psnr(image, clean, peak):.1f} dB, "
        show(axis, image[middle], f"{title}\n{score}air at {air:.1f} %", peak)
    save(figure, "instruments-rician.png")


def speckle(data: Path) -> None:
    """A scan denoised as speckle, next to the mean of about forty scans."""
    noisy, mean = (
        vnlem.io.read(data / "oct" / f"oct_06_{name}.png").pixels.astype(float) for name in ("noisy", "ref")
    )
    part = np.s_[20:230, 240:540]
    found, info = vnlem.denoise(noisy, noise_model="speckle", return_info=True)
    print(info.noise.describe())
    figure, axes = plt.subplots(1, 3, figsize=(10, 2.75), layout="constrained")
    show(axes[0], noisy[part], f"one scan, {psnr(noisy, mean, 255):.1f} dB", 220)
    show(axes[1], found[part], f"vnlem, {psnr(found, mean, 255):.1f} dB", 220)
    show(axes[2], mean[part], "mean of about 40 scans", 220)
    save(figure, "instruments-speckle.png")


def lines(clean: np.ndarray) -> None:
    """Columns with offsets: mistaken for structure, and removed."""
    rng = np.random.default_rng(0)
    noisy = clean + rng.normal(0, 10, clean.shape) + rng.normal(0, 8, (1, clean.shape[1]))
    found, info = vnlem.denoise(noisy, return_info=True)
    print(info.noise.describe())
    pictures = {
        "columns differ by 8, white noise of 10": noisy,
        "lines=False": vnlem.denoise(noisy, lines=False),
        "no parameters": found,
    }
    beside(pictures, clean, 255, "instruments-lines.png")
    info.noise.draw(FIGURES / "instruments-noise-picture.png", noisy)


def field(clean: np.ndarray) -> None:
    """Noise that rises over the image."""
    sigma = np.broadcast_to(np.linspace(5, 30, clean.shape[1]), clean.shape)
    noisy = clean + sigma * np.random.default_rng(0).normal(0, 1, clean.shape)
    found, info = vnlem.denoise(noisy, return_info=True)
    print(info.noise.describe())
    pictures = {
        "sigma 5 at the left, 30 at the right": noisy,
        "as one level": vnlem.denoise(noisy, noise_model="gaussian"),
        "no parameters": found,
    }
    beside(pictures, clean, 255, "instruments-field.png")


def sensor(clean: np.ndarray) -> None:
    """A camera whose pixels differ."""
    rng = np.random.default_rng(0)
    shape = clean.shape
    gain = 2 * (1 + 0.02 * rng.normal(size=shape)) * (1 + 0.02 * rng.normal(size=(1, shape[1])))
    offset = 100 + 3 * rng.normal(size=shape) + 4 * rng.normal(size=(1, shape[1]))
    read_noise = np.exp(np.log(3) + 0.5 * rng.normal(size=shape))
    read_noise[rng.random(shape) < 0.005] *= 8

    def frame(photons: Any) -> np.ndarray:
        counted = rng.poisson(np.broadcast_to(photons, shape))
        return np.round(offset + gain * counted + read_noise * rng.normal(size=shape)).astype(np.float32)

    model = calibrate_sensor([frame(0) for _ in range(100)], [[frame(400) for _ in range(30)]])
    print(model.describe())
    photons = clean / 255 * 50
    noisy = frame(photons)
    camera = model.gain
    results = {
        "sCMOS, 50 photons": noisy,
        "gain, offset, read noise as numbers": vnlem.denoise(noisy, gain=2.0, offset=100.0, read_noise=3.0),
        "as maps": vnlem.denoise(noisy, noise_model=model),
    }
    pictures = {title: (image - camera.offset) / camera.gain for title, image in results.items()}
    beside(pictures, photons, 50, "instruments-sensor.png")


def beside(pictures: dict[str, np.ndarray], clean: np.ndarray, peak: float, name: str) -> None:
    """Pictures side by side, with their PSNR."""
    figure, axes = plt.subplots(1, len(pictures), figsize=(10, 3.6), layout="constrained")
    for axis, (title, image) in zip(axes, pictures.items(), strict=True):
        show(axis, image, f"{title}\n{psnr(image, clean, peak):.1f} dB", peak)
    save(figure, name)


def impulses(data: Path) -> None:
    """Salt and pepper plus noise, with and without detection of impulses."""
    clean = vnlem.io.read(data / "set12" / "01.png").pixels.astype(float)
    rng = np.random.default_rng(1000)
    noisy = clean + rng.normal(0, 15, clean.shape)
    chance = rng.random(clean.shape)
    salted = np.where(chance < 0.01, np.where(chance < 0.005, 0.0, 255.0), noisy)
    row(
        {
            "1 % salt and pepper, sigma 15": salted,
            "impulses=False": vnlem.denoise(salted, impulses=False),
            'impulses="auto"': vnlem.denoise(salted),
            "without salt and pepper": vnlem.denoise(noisy),
        },
        clean,
        "instruments-impulses.png",
    )


def missing(data: Path) -> None:
    """Pixels that are missing at random."""
    clean = vnlem.io.read(data / "set12" / "05.png").pixels.astype(float)
    rng = np.random.default_rng(1000)
    noisy = clean + rng.normal(0, 25, clean.shape)
    holes = rng.random(clean.shape) < 0.3
    given = np.where(holes, np.nan, noisy)
    row(
        {
            "30 % missing, sigma 25": given,
            "fill=False": vnlem.denoise(given, fill=False),
            "fill=True": vnlem.denoise(given),
            "nothing missing": vnlem.denoise(noisy),
        },
        clean,
        "instruments-missing.png",
    )


def complex_image(data: Path) -> None:
    """The phase of a complex image; its magnitude is a photograph."""
    magnitude = vnlem.io.read(data / "set12" / "07.png").pixels.astype(float)
    height, width = magnitude.shape
    phase = 3 * np.add.outer(np.linspace(0, 1, height) ** 2, np.linspace(0, 1, width)) - 3
    clean = magnitude * np.exp(1j * phase)
    rng = np.random.default_rng(1000)
    noisy = clean + rng.normal(0, 25, clean.shape) + 1j * rng.normal(0, 25, clean.shape)
    found = vnlem.denoise(noisy)
    figure, axes = plt.subplots(1, 4, figsize=(10, 2.75), layout="constrained")
    for axis, (title, image) in zip(axes[::2], (("noisy", noisy), ("denoised", found)), strict=True):
        show(axis, np.abs(image), f"{title}: magnitude", 255)
    for axis, (title, image) in zip(axes[1::2], (("noisy", noisy), ("denoised", found)), strict=True):
        apart = np.abs(np.angle(image * np.conj(clean))).mean()
        axis.imshow(np.angle(image), cmap="twilight", vmin=-np.pi, vmax=np.pi)
        axis.set_title(f"{title}: phase, {apart:.2f} rad off", fontsize=9)
        axis.axis("off")
    save(figure, "instruments-complex.png")


def row(pictures: dict[str, np.ndarray], clean: np.ndarray, name: str) -> None:
    """A part of each picture; missing pixels are red and do not count in the PSNR."""
    part = np.s_[40:200, 60:220]
    figure, axes = plt.subplots(1, len(pictures), figsize=(10, 2.75), layout="constrained")
    for axis, (title, image) in zip(axes, pictures.items(), strict=True):
        valid = np.isfinite(image)
        axis.set_facecolor("tab:red")
        show(axis, image[part], f"{title}\n{psnr(image[valid], clean[valid], 255):.2f} dB", 255)
        axis.images[0].cmap = axis.images[0].cmap.with_extremes(bad="tab:red")
    save(figure, name)


def psnr(image: np.ndarray, clean: np.ndarray, peak: float) -> float:
    """Peak signal to noise ratio, of all slices."""
    return float(10 * np.log10(peak**2 / np.mean((image - clean) ** 2)))


def show(axis: Any, image: np.ndarray, title: str, peak: float) -> None:
    """A grey picture with a title."""
    axis.imshow(image, cmap="gray", vmin=0, vmax=peak)
    axis.set_title(title, fontsize=9)
    axis.axis("off")


def save(figure: Any, name: str) -> None:
    """Write a figure."""
    figure.savefig(FIGURES / name, dpi=100)
    plt.close(figure)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
