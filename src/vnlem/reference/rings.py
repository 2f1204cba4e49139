"""Ring harmonics of one pixel, from their definition: interpolate, integrate over angles, weight."""

import numpy as np

from vnlem.reference.rotation import sample, upsampled


def averaged_down(image, upsample):
    """The upsampled image under a triangle one pixel wide at half height, at the pixels of the original.

    Examples
    --------
    >>> bool(np.allclose(averaged_down(np.ones((6, 7)), 2)[2:-2, 2:-2], 1))
    True
    """
    fine = upsampled(image, upsample)
    out = np.zeros_like(image)
    for y in range(2, image.shape[0] - 2):
        for x in range(2, image.shape[1] - 2):
            for i in range(1 - upsample, upsample):
                for j in range(1 - upsample, upsample):
                    weight = (1 - abs(i) / upsample) * (1 - abs(j) / upsample) / upsample**2
                    out[y, x] += weight * fine[upsample * y + i, upsample * x + j]
    return out


def ring_coefficients(image, row, column, samples, orders, upsample=2, average_down=False):
    """Central value and complex coefficients {(ring, order): value} of a pixel of an image (H, W), float64.

    samples, orders: number of samples and highest order of ring 1, 2, ...

    Examples
    --------
    >>> centre, coefficients = ring_coefficients(np.ones((9, 9)), 4, 4, (16,), (2,))
    >>> bool(np.isclose(coefficients[1, 0], np.sqrt(2 * np.pi))), bool(abs(coefficients[1, 1]) < 1e-12)
    (True, True)
    """
    border = len(samples) + 7
    smooth = np.pad(image, border, mode="symmetric")
    if average_down:
        smooth = averaged_down(smooth, upsample)
    fine = upsampled(smooth, upsample)
    coefficients = {}
    for radius, (count, order) in enumerate(zip(samples, orders, strict=True), 1):
        angle = 2 * np.pi * np.arange(count) / count
        y, x = row + border + radius * np.sin(angle), column + border + radius * np.cos(angle)
        values = sample(fine, upsample, y, x)
        for k in range(order + 1):
            # One coefficient holds both signs of an order, so orders above zero have a factor of two.
            area = 2 * np.pi * radius * (1 if k == 0 else 2)
            coefficients[radius, k] = np.sqrt(area) * np.mean(values * np.exp(-1j * k * angle))
    return np.sqrt(np.pi / 4) * smooth[row + border, column + border], coefficients
