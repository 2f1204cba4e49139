"""How the rings around a pixel are read: samples of the upsampled image, and their angular Fourier transform.

All of it is linear, so each coefficient of `vnlem.features.rings` is also a filter on the pixels around.
"""

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from vnlem.features.upsample import REACH, averaged, phases


def fine_phases(image: NDArray[np.floating], upsample: int, average_down: bool) -> NDArray[np.floating]:
    """The phase planes of an image, or of the image averaged down from its upsampled form."""
    return phases(averaged(image, upsample) if average_down else image, upsample)


@lru_cache(maxsize=32)
def taps(samples: tuple[int, ...], upsample: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Where each ring sample reads the phase planes: (samples, 4, [phase y, phase x, dy, dx]) and weights.

    Bilinear between the four nearest points of the upsampled grid.
    """
    where, weights = [], []
    for radius, count in enumerate(samples, 1):
        for s in range(count):
            angle = 2 * math.pi * s / count
            # Rounding keeps positions that are exact multiples of a quarter turn on the grid.
            fine_y = round(upsample * radius * math.sin(angle), 9)
            fine_x = round(upsample * radius * math.cos(angle), 9)
            y, x = math.floor(fine_y), math.floor(fine_x)
            for step_y, weight_y in ((0, 1 - (fine_y - y)), (1, fine_y - y)):
                for step_x, weight_x in ((0, 1 - (fine_x - x)), (1, fine_x - x)):
                    dy, phase_y = divmod(y + step_y, upsample)
                    dx, phase_x = divmod(x + step_x, upsample)
                    where.append((phase_y, phase_x, dy, dx))
                    weights.append(weight_y * weight_x)
    return (
        np.array(where, dtype=np.int64).reshape(-1, 4, 4),
        np.array(weights, dtype=np.float32).reshape(-1, 4),
    )


@lru_cache(maxsize=32)
def dft(
    orders: tuple[int, ...], samples: tuple[int, ...], channels: int
) -> tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.float32], float]:
    """Ring starts, and the real and imaginary DFT rows (ring, order, sample), orthonormal and area-weighted.

    The last entry is the weight of the central pixel.
    """
    starts = np.concatenate([[0], np.cumsum(samples)]).astype(np.int64)
    real = np.zeros((len(orders), max(orders, default=0) + 1, max(samples, default=0)), dtype=np.float32)
    imag = np.zeros_like(real)
    for ring, (order, count) in enumerate(zip(orders, samples, strict=True)):
        area = 2 * math.pi * (ring + 1) / channels  # of the annulus one pixel wide
        angle = 2 * math.pi * np.arange(count) / count
        real[ring, 0, :count] = math.sqrt(area) / count
        for k in range(1, order + 1):
            real[ring, k, :count] = math.sqrt(2 * area) / count * np.cos(k * angle)
            imag[ring, k, :count] = -math.sqrt(2 * area) / count * np.sin(k * angle)
    return starts, real, imag, _centre_weight(channels)


@lru_cache(maxsize=32)
def quarter_dft(
    orders: tuple[int, ...], samples: tuple[int, ...], channels: int
) -> tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.float32], float]:
    """The same rows over the first quarter of each ring, for samples the kernel has folded onto it."""
    starts, real, imag, centre = dft(orders, samples, channels)
    # Room for whole groups of four, with zeros past the quarter.
    length = 4 * math.ceil((max(samples, default=0) // 4 + 1) / 4) + 4
    short_real = np.zeros((*real.shape[:2], length), dtype=np.float32)
    short_imag = np.zeros_like(short_real)
    for ring, count in enumerate(samples):
        quarter = count // 4 + 1
        short_real[ring, :, :quarter] = real[ring, :, :quarter]
        short_imag[ring, :, :quarter] = imag[ring, :, :quarter]
    return starts, short_real, short_imag, centre


def _centre_weight(channels: int) -> float:
    """Weight of the central pixel, whose share of the disc has radius 1/2."""
    return math.sqrt(math.pi / 4 / channels)


def filters_of(
    orders: tuple[int, ...], samples: tuple[int, ...], upsample: int, average_down: bool
) -> list[NDArray[np.float64]]:
    """Each coefficient as a filter on the pixels around: impulse responses, which make E exact."""
    reach = len(orders) + 2 * REACH + 1
    size = 2 * reach + 1
    where, weights = taps(samples, upsample)
    starts, real, imag, centre = dft(orders, samples, 1)
    impulse = np.zeros((2 * size - 1, 2 * size - 1))
    impulse[size - 1, size - 1] = 1
    planes = fine_phases(impulse, upsample, average_down)
    y, x = np.mgrid[:size, :size] + reach
    responses = np.zeros((len(where), size, size))
    for s in range(len(where)):
        for (phase_y, phase_x, dy, dx), weight in zip(where[s], weights[s], strict=True):
            responses[s] += weight * planes[phase_y, phase_x, y + dy, x + dx]
    middle = np.zeros((1, size, size))
    middle[0] = centre * planes[0, 0, y, x]
    filters = [middle]
    for ring, count in enumerate(samples):
        mine = responses[starts[ring] : starts[ring + 1]]
        for part in (real, imag):
            filters.append(np.einsum("ks,sij->kij", part[ring, :, :count], mine))
    return filters
