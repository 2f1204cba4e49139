"""The fast engine of VNLEM in plain NumPy: the same search and estimate on the same ring coefficients.

It starts from coefficients and orientations, which are tested separately, and shares no code with the
kernels.
"""

import math

import numpy as np

from vnlem.reference.regression import irls
from vnlem.reference.vnlem import smallest


class RingModel:
    """VNLEM on complex ring coefficients.

    Parameters
    ----------
    pixels : (H, W)
    coefficients : (H, W, L) complex, in the frame of the image
    orders : (L,) angular order of each coefficient
    theta : (H, W) orientations in radians
    params : see ``vnlem.reference.vnlem``; also noise_correction and rotation_margin
    sharp : (H, W) what the pixels of a patch hold beyond its coefficients, squared
    noise : squared coefficients of a patch due to noise
    scale : from squared distances of coefficients to those of square patches
    """

    def __init__(self, pixels, coefficients, orders, theta, params, *, sharp, noise, scale):
        self.pixels, self.raw, self.orders, self.theta = pixels, coefficients, orders, theta
        self.params, self.sharp, self.noise, self.scale = params, sharp, noise, scale
        # Turning a patch by minus its orientation multiplies order k by exp(i k theta).
        self.canonical = coefficients * np.exp(1j * orders * theta[..., None])

    def window(self, row, column):
        """Rows and columns of the window, cut off at the border."""
        reach, (height, width) = self.params.patch_distance, self.pixels.shape
        rows = np.arange(max(0, row - reach), min(height, row + reach + 1))
        columns = np.arange(max(0, column - reach), min(width, column + reach + 1))
        return tuple(grid.ravel() for grid in np.meshgrid(rows, columns, indexing="ij"))

    def _with_margin(self, squared):
        margin = self.params.rotation_margin
        return (1 + margin) * squared + 0.1 * margin * self.noise

    def aligned(self, row, column, rows, columns):
        """Stage one: squared distances of patches aligned by their orientations."""
        squared = _squared(self.canonical[rows, columns] - self.canonical[row, column])
        if self.params.rotation_margin > 0:
            plain = _squared(self.raw[rows, columns] - self.raw[row, column])
            squared = np.minimum(self._with_margin(squared), plain)
        squared[(rows == row) & (columns == column)] = 0
        return squared

    def accurate(self, row, column, rows, columns):
        """Stage two: the smallest squared distance over the angles, and the aligned coefficients."""
        step, reach = self.params.angle_step, self.params.angle_range
        count = max(math.ceil(reach / step - 1e-9) - 1, 0)
        angles = np.radians(step * np.arange(-count, count + 1))
        turned = self.canonical[rows, columns][:, None] * np.exp(-1j * np.outer(angles, self.orders))
        every = _squared(turned - self.canonical[row, column])
        best = every.argmin(axis=1)
        each = np.arange(len(rows))
        squared, patches = self._with_margin(every[each, best]), turned[each, best]
        unrotated = (rows == row) & (columns == column)
        if self.params.try_unrotated:
            plain = _squared(self.raw[rows, columns] - self.raw[row, column])
            unrotated |= plain <= squared
            squared = np.minimum(squared, plain)
        own_frame = np.exp(1j * self.orders * self.theta[row, column])
        patches[unrotated] = self.raw[rows[unrotated], columns[unrotated]] * own_frame
        squared[(rows == row) & (columns == column)] = 0
        return squared, patches

    def neighbours(self, row, column):
        """Rows, columns, squared distances and aligned coefficients of the neighbours of a pixel."""
        rows, columns = self.window(row, column)
        first = smallest(self.aligned(row, column, rows, columns), self.params.n_neighbors)
        rows, columns = rows[first], columns[first]
        squared, patches = self.accurate(row, column, rows, columns)
        half = smallest(squared, math.ceil(self.params.n_neighbors / 2))
        return rows[half], columns[half], squared[half], patches[half]

    def value(self, row, column):
        """The estimate of a pixel, which keeps its value if all weights vanish."""
        rows, columns, squared, patches = self.neighbours(row, column)
        own = (rows == row) & (columns == column)
        sharp = np.where(own, 0, self.sharp[row, column])
        squared = squared + sharp
        if self.params.noise_correction:
            squared = np.maximum(squared - 2 * self.noise, 0)
        weights = np.exp(-squared * self.scale / self.params.bandwidth**2)
        if self.params.noise_correction and len(rows) > 1:
            weights[own] = max(weights[~own].max(), 1e-6)
        if not weights.any():
            return self.pixels[row, column]
        # The central pixels are appended, scaled down too far to change the distances.
        centres = 1e-6 * self.pixels[rows, columns][:, None]
        points = np.concatenate([patches.real, patches.imag, np.sqrt(sharp)[:, None], centres], axis=1)
        return irls(points, weights, self.params.gamma)[-1] / 1e-6


def _squared(difference):
    return (np.abs(difference) ** 2).sum(axis=-1)
