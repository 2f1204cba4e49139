"""FSIM and FSIMc: similarity of phase congruency and gradient, features that human vision relies on."""

from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import fft, ndimage

from vnlem.metrics._arrays import check_data_range, pair_of_planes

Plane = NDArray[np.float64]

N_SCALES = 4
N_ORIENTATIONS = 4
SMALLEST_WAVELENGTH = 6.0
SCALE_FACTOR = 2.0
SIGMA_ON_F = 0.55  # bandwidth of the log-Gabor filters
ANGULAR_SIGMA = np.pi / N_ORIENTATIONS / 1.2
LOWPASS_CUTOFF = 0.45
LOWPASS_ORDER = 15
NOISE_DEVIATIONS = 2.0
NOISE_DIVISOR = 1.7  # the noise estimate is known to be this much too high
SMALLEST_AMPLITUDE = 1e-4  # keeps the phase congruency of a flat region at zero
PHASE_CONSTANT = 0.85  # T1
GRADIENT_CONSTANT = 160.0  # T2
CHROMA_CONSTANT = 200.0  # T3 = T4
CHROMA_EXPONENT = 0.03  # lambda
RGB_TO_YIQ = np.array([[0.299, 0.587, 0.114], [0.5959, -0.2746, -0.3213], [0.2115, -0.5227, 0.3112]])
SCHARR = np.array([[3.0, 0.0, -3.0], [10.0, 0.0, -10.0], [3.0, 0.0, -3.0]]) / 16


def fsim(
    clean: ArrayLike, other: ArrayLike, data_range: float = 255, *, channel_axis: int | None = None
) -> float:
    """Feature similarity index, between 0 and 1; higher is better.

    Parameters
    ----------
    clean, other : array_like
        Two images of the same shape, in the same units.
    data_range : float
        Width of the grey scale: images are multiplied by ``255 / data_range``, and not clipped.
    channel_axis : int, optional
        The axis of the channels. Three channels are read as RGB and compared by FSIMc, in YIQ; for any other
        number of them the result is the mean of each channel's FSIM.

    Returns
    -------
    float
        Mean of the local similarity, weighted with the larger of the two phase congruencies. If neither image
        has a feature anywhere, the plain mean of the local similarity.

    Notes
    -----
    Images whose shorter side exceeds 384 pixels are first averaged over squares of
    ``round(shorter / 256)`` pixels. The cost is that of 32 complex Fourier transforms of the averaged image.

    References
    ----------
    .. [1] L. Zhang, L. Zhang, X. Mou, D. Zhang, "FSIM: A Feature Similarity Index for Image Quality
       Assessment", IEEE Trans. Image Processing 20(8), 2011. :DOI:`10.1109/TIP.2011.2109730`
    .. [2] P. Kovesi, "Image Features from Phase Congruency", Videre 1(3), 1999.

    Examples
    --------
    >>> image = np.add.outer(np.arange(32.0), np.arange(32.0)) % 20 * 12
    >>> fsim(image, image)
    1.0
    >>> noise = np.random.default_rng(0).normal(0, 1, image.shape)
    >>> fsim(image, image + 5 * noise) > fsim(image, image + 20 * noise)
    True
    """
    to_bytes = 255 / check_data_range(data_range)
    first, second = (_pooled(planes * to_bytes) for planes in pair_of_planes(clean, other, channel_axis))
    n_channels = len(first)
    if n_channels != 3:
        return float(np.mean([_of_planes(a, b, None) for a, b in zip(first, second, strict=True)]))
    first, second = (np.tensordot(RGB_TO_YIQ, planes, axes=1) for planes in (first, second))
    chroma = _ratio(first[1], second[1], CHROMA_CONSTANT) * _ratio(first[2], second[2], CHROMA_CONSTANT)
    # The product is negative for opposite hues; only its magnitude enters the small exponent.
    return _of_planes(first[0], second[0], np.abs(chroma) ** CHROMA_EXPONENT)


def _of_planes(first: Plane, second: Plane, chroma: Plane | None) -> float:
    (first_phase, first_gradient), (second_phase, second_gradient) = (
        _features(plane.tobytes(), plane.shape) for plane in (first, second)
    )
    similarity = _ratio(first_phase, second_phase, PHASE_CONSTANT)
    similarity *= _ratio(first_gradient, second_gradient, GRADIENT_CONSTANT)
    if chroma is not None:
        similarity *= chroma
    weight = np.maximum(first_phase, second_phase)
    total = float(weight.sum())
    if total < np.finfo(float).tiny:
        return float(similarity.mean())
    return float((similarity * weight).sum()) / total


@lru_cache(maxsize=4)
def _features(memory: bytes, shape: tuple[int, int]) -> tuple[Plane, Plane]:
    """Phase congruency and gradient of a plane. Kept: one clean image is compared with many others."""
    plane = np.frombuffer(memory).reshape(shape)
    return _phase_congruency(plane), _gradient(plane)


def _ratio(a: Plane, b: Plane, constant: float) -> Plane:
    """Similarity of two features: 1 where they are equal."""
    return (2 * a * b + constant) / (a * a + b * b + constant)


def _pooled(planes: Plane) -> Plane:
    """Average over squares: one filter bank then fits all image sizes."""
    n_channels, rows, columns = planes.shape
    side = max(1, round(min(rows, columns) / 256))
    rows, columns = rows // side, columns // side
    squares = planes[:, : rows * side, : columns * side].reshape(n_channels, rows, side, columns, side)
    pooled: Plane = squares.mean(axis=(2, 4))
    return pooled


def _gradient(plane: Plane) -> Plane:
    across = ndimage.convolve(plane, SCHARR, mode="constant")
    down = ndimage.convolve(plane, SCHARR.T, mode="constant")
    magnitude: Plane = np.hypot(across, down)
    return magnitude


@lru_cache(maxsize=2)
def _filters(rows: int, columns: int) -> list[NDArray[np.float64]]:
    """Log-Gabor filters in the Fourier domain: for each orientation those of all scales, finest first.

    Kept: images of one size often follow each other, and making the filters takes half as long as using them.
    """
    down, across = _frequencies(rows)[:, None], _frequencies(columns)[None, :]
    radius = np.hypot(down, across)
    radius[0, 0] = 1.0  # any number with a logarithm: the filters are zero there
    lowpass = 1 / (1 + (radius / LOWPASS_CUTOFF) ** (2 * LOWPASS_ORDER))
    wavelengths = SMALLEST_WAVELENGTH * SCALE_FACTOR ** np.arange(N_SCALES)
    log_ratio = np.log(radius * wavelengths[:, None, None])
    radial = lowpass * np.exp(-(log_ratio**2) / (2 * np.log(SIGMA_ON_F) ** 2))
    radial[:, 0, 0] = 0.0
    direction = np.arctan2(-down, across)
    found: list[NDArray[np.float64]] = []
    for index in range(N_ORIENTATIONS):
        turn = direction - index * np.pi / N_ORIENTATIONS
        turn = np.arctan2(np.sin(turn), np.cos(turn))
        found.append(radial * np.exp(-(turn**2) / (2 * ANGULAR_SIGMA**2)))
    return found


def _phase_congruency(plane: Plane) -> Plane:
    """How much the phases of all scales agree at each pixel, between 0 and 1."""
    # The filters ignore the mean; subtracting it first avoids rounding errors in flat images.
    spectrum = fft.fft2(plane - plane.mean())
    energy, amplitude = np.zeros_like(plane), np.zeros_like(plane)
    for filters in _filters(*plane.shape):
        responses = fft.ifft2(spectrum * filters)
        total = responses.sum(axis=0)
        mean_phase = np.conj(total) / (np.abs(total) + SMALLEST_AMPLITUDE)
        # Along the mean phase minus across it: A (cos(deviation) - |sin(deviation)|), summed over scales.
        turned = responses * mean_phase
        aligned = (turned.real - np.abs(turned.imag)).sum(axis=0)
        energy += np.maximum(aligned - _noise_threshold(responses[0], filters), 0)
        amplitude += np.abs(responses).sum(axis=0)
    return energy / (amplitude + SMALLEST_AMPLITUDE)


def _frequencies(size: int) -> Plane:
    """Frequencies in cycles per pixel; odd sizes reach a half as well, as in Kovesi's convention."""
    low = -(size // 2)
    grid: Plane = fft.ifftshift(np.arange(low, low + size) / max(size - size % 2, 1))
    return grid


def _noise_threshold(finest: NDArray[np.complex128], filters: NDArray[np.float64]) -> float:
    """Energy that noise alone would give, judged by the finest scale, where it dominates.

    The squared amplitude of noise is exponentially distributed, so its mean follows from its median; the
    sum over scales is a complex Gaussian, whose length has a Rayleigh distribution.
    """
    noise_power = (
        float(np.median(np.abs(finest) ** 2)) / np.log(2) / max(float(np.sum(filters[0] ** 2)), 1e-300)
    )
    # The real part of the filters' impulse response is the transform of their even part.
    total = filters.sum(axis=0)
    even = (total + np.roll(total[::-1, ::-1], 1, axis=(0, 1))) / 2
    scale = np.sqrt(noise_power * float(np.sum(even**2)))  # Rayleigh parameter tau
    mean, deviation = scale * np.sqrt(np.pi / 2), scale * np.sqrt(2 - np.pi / 2)
    return float((mean + NOISE_DEVIATIONS * deviation) / NOISE_DIVISOR)
