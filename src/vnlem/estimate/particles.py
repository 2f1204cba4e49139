"""A set of images of one kind of particle, centred and at any angle: the Wiener filter of their covariance.

The covariance of the pictures of a particle at all angles is invariant under rotations about the centre and
reflections. In Fourier-Bessel functions, which a rotation multiplies by a phase, it splits into one small
matrix for each angular order. A few dozen noisy images are enough to estimate them.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy import fft
from scipy.linalg import solve_triangular
from scipy.special import jn_zeros, jv

Float = NDArray[np.float64]

# The fewest images of a set, and the least noise in units of the standard deviation of what they show: with
# less noise the patches of VNLR do better.
FEWEST, LEAST_NOISE = 16, 0.7
# Highest frequency of the functions, in cycles per pixel; above it such noise hides everything.
BAND = 0.25
# The filter is used if its risk is below the first share of the risk of a filter that is the same everywhere,
# and lower by the second share of the noise's variance.
GAIN, LEAST_GAIN = 0.9, 0.003


def may_filter(sizes: list[tuple[int, int]], noise: float) -> bool:
    """Whether a set may show particles: images of one size, many of them, and noisy.

    >>> may_filter([(64, 64)] * 30, 2.0), may_filter([(64, 64)] * 30, 0.2), may_filter([(64, 64)] * 3, 2.0)
    (True, False, False)
    """
    return noise >= LEAST_NOISE and len(sizes) >= FEWEST and len(set(sizes)) == 1 and min(sizes[0]) >= 16


def filter_set(images: Float, sigma: float) -> Float | None:
    """The denoised images; None if their covariance about the centre adds nothing to their spectrum.

    images: (images, H, W), with white noise.
    sigma: its standard deviation.

    The eigenvalues of a covariance from few samples are too large, and noise turns the eigenvectors. The
    formulas of the spiked model correct both [2]_. Outside of the largest disc about the centre the filter of
    the spectrum is used.

    .. [1] Z. Zhao, Y. Shkolnisky, A. Singer, "Fast steerable principal component analysis", IEEE Transactions
       on Computational Imaging 2, 2016. doi:10.1109/TCI.2016.2514700
    .. [2] D. Donoho, M. Gavish, I. Johnstone, "Optimal shrinkage of eigenvalues in the spiked covariance
       model", Annals of Statistics 46, 2018. doi:10.1214/17-AOS1601
    .. [3] T. Bhamre, T. Zhang, A. Singer, "Denoising and covariance estimation of single particle cryo-EM
       images", Journal of Structural Biology 195, 2016. doi:10.1016/j.jsb.2016.04.013

    >>> filter_set(np.random.default_rng(0).normal(size=(20, 24, 24)), 1.0) is None
    True
    """
    height, width = images.shape[1:]
    smooth, smooth_risk, share = _by_spectrum(images, sigma)
    y, x = np.mgrid[:height, :width] - np.array([height - 1, width - 1])[:, None, None] / 2
    inside = np.hypot(y, x) < min(height, width) / 2
    pixels = images[:, inside]
    found = np.zeros_like(pixels)
    trace = 0.0
    for order, functions in _functions(y[inside], x[inside], min(height, width) / 2):
        estimate, kept = _filtered(pixels, functions, order, sigma)
        found += estimate
        trace += kept
    # Stein's estimate of the risk of a linear filter.
    risk = np.mean((pixels - found) ** 2) - sigma**2 + 2 * sigma**2 * trace / pixels.shape[1]
    if not risk < min(GAIN * smooth_risk, smooth_risk - LEAST_GAIN * sigma**2):
        return None
    result = np.empty_like(images)
    result[:, inside] = found
    result[:, ~inside] = _shrunken(images[:, ~inside], smooth[:, ~inside], sigma, share)
    return result


def _shrunken(pixels: Float, smooth: Float, sigma: float, share: float) -> Float:
    """Filtered pixels, shrunk towards zero by Stein's estimate of the risk: corners show little."""
    energy = float(np.mean(smooth**2))
    factor = (float(np.mean(pixels * smooth)) - sigma**2 * share) / energy if energy > 0 else 0.0
    return smooth * min(max(factor, 0.0), 1.0)


def _by_spectrum(images: Float, sigma: float) -> tuple[Float, float, float]:
    """Images after one filter for all, from their mean power on rings; its risk, and the noise it keeps."""
    height, width = images.shape[1:]
    side = max(height, width)
    spectra = fft.fft2(images)
    power = np.mean(np.abs(spectra) ** 2, axis=0) / (height * width)
    ring = np.rint(np.hypot.outer(fft.fftfreq(height), fft.fftfreq(width)) * side).astype(int)
    mean = np.bincount(ring.ravel(), power.ravel()) / np.maximum(np.bincount(ring.ravel()), 1)
    gain = np.clip(1 - sigma**2 / np.maximum(mean[ring], 1e-300), 0, 1)
    found = fft.ifft2(spectra * gain).real
    risk = np.mean((images - found) ** 2) - sigma**2 + 2 * sigma**2 * gain.mean()
    return np.asarray(found), float(risk), float(gain.mean())


def _functions(y: Float, x: Float, radius: float) -> Iterator[tuple[int, list[Float]]]:
    """Functions of the disc by angular order: (radial functions, pixels), times the cosine and the sine."""
    distances, which = np.unique(np.hypot(y, x) / radius, return_inverse=True)
    angle = np.arctan2(y, x)
    limit = 2 * np.pi * BAND * radius
    order = 0
    while True:
        zeros = jn_zeros(order, int(limit / np.pi) + 2)
        zeros = zeros[zeros < limit]
        if not zeros.size:
            return
        radial = jv(order, np.outer(zeros, distances))[:, which]
        yield order, [radial * np.cos(order * angle)] + [radial * np.sin(order * angle)] * (order > 0)
        order += 1


def _filtered(pixels: Float, functions: list[Float], order: int, sigma: float) -> tuple[Float, float]:
    """The part of an angular order in the images (n, pixels), denoised; and how many numbers it keeps."""
    parts, factors = [], []
    for one in functions:
        # Coefficients of orthonormal functions: their noise is white.
        orthonormal = solve_triangular(np.linalg.cholesky(one @ one.T), one, lower=True)
        factors.append(orthonormal)
        parts.append(pixels @ orthonormal.T)
    samples = np.concatenate(parts)
    mean = samples.mean(axis=0) if order == 0 else np.zeros(samples.shape[1])
    covariance = (samples - mean).T @ (samples - mean) / (len(samples) * sigma**2)
    values, vectors = np.linalg.eigh(covariance)
    kept = _kept(values, samples.shape[1] / len(samples))
    matrix = (vectors * kept) @ vectors.T
    estimates = [
        ((part - mean) @ matrix + mean) @ factor for part, factor in zip(parts, factors, strict=True)
    ]
    return np.sum(estimates, axis=0), float(len(parts) * kept.sum())


def _kept(values: Float, ratio: float) -> Float:
    """Share of each component to keep, from the eigenvalues of a covariance in units of the noise.

    ratio: numbers in a sample, over samples. Eigenvalues below (1 + sqrt(ratio))^2 are pure noise.
    """
    rest = values + 1 - ratio
    true = (rest + np.sqrt(np.maximum(rest**2 - 4 * values, 0))) / 2 - 1
    true = np.where(values > (1 + ratio**0.5) ** 2, true, 0.0)
    # Times the squared cosine of the angle between the eigenvector and its noise-free version.
    signal = np.maximum(true**2 - ratio, 0) / (true + ratio)
    return np.asarray(signal / (signal + 1))
