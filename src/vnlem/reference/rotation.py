"""Rotated patches, read from the image: (R_theta P)(s) = P(R_-theta s), at the resolution of P or of U_k P.

Angles go from the column axis towards the row axis.
"""

import numpy as np

# Rotated positions and angles are rounded to fine grids, a sixteenth of a pixel and half a degree: a sample
# is then one number of a table, with nothing to interpolate for a pair of patches.
PER_PIXEL = 16
TURN_STEPS = 720


def upsampled(image, factor):
    """U_k: Keys cubic convolution (a = -1/2) on the symmetric extension of an image.

    Examples
    --------
    >>> upsampled(np.array([[0.0, 1.0, 2.0, 3.0, 4.0]]), 2)[0, 2:7]
    array([1. , 1.5, 2. , 2.5, 3. ])
    """
    return _along_rows(_along_rows(image, factor).T, factor).T


def _along_rows(image, factor):
    padded = np.pad(image, ((0, 0), (2, 2)), mode="symmetric")
    width = image.shape[1]
    out = np.empty((image.shape[0], factor * width), dtype=image.dtype)
    for phase in range(factor):
        columns = 0.0
        for tap in (-1, 0, 1, 2):
            t = abs(phase / factor - tap)
            weight = 1.5 * t**3 - 2.5 * t**2 + 1 if t <= 1 else -0.5 * t**3 + 2.5 * t**2 - 4 * t + 2
            columns = columns + weight * padded[:, 2 + tap : 2 + tap + width]
        out[:, phase::factor] = columns
    return out


def sample(fine, factor, y, x):
    """Bilinear samples of an image upsampled by `factor`, at positions in pixels of the original image."""
    y, x = y * factor, x * factor
    top, left = np.floor(y).astype(np.intp), np.floor(x).astype(np.intp)
    dy, dx = (y - top).astype(fine.dtype), (x - left).astype(fine.dtype)
    at = top * fine.shape[1] + left
    flat = fine.ravel()
    upper = flat[at] * (1 - dx) + flat[at + 1] * dx
    at = at + fine.shape[1]
    lower = flat[at] * (1 - dx) + flat[at + 1] * dx
    return upper * (1 - dy) + lower * dy


class Rotator:
    """The patches of an image (C, H, W) under rotation.

    A rotated patch is read from the image upsampled by `upsample`, linearly between its points; a patch that
    is not rotated is read from the pixels themselves. Squared distances of patches are means over the
    channels; those of round patches count as if the disc had patch_size^2 pixels. With `fine` the points of
    the upsampled patch also represent the patch at its original resolution, and count as patch_size^2 pixels.
    """

    def __init__(self, pixels, patch_size, shape="square", upsample=2, fine=False):
        half = patch_size // 2
        # A rotated corner lies half * sqrt(2) from the centre.
        self.border = int(np.ceil((half + 1) * np.sqrt(2))) + 2
        padded = np.pad(pixels, ((0, 0), (self.border,) * 2, (self.border,) * 2), mode="symmetric")
        steps = (np.arange(PER_PIXEL * size) / PER_PIXEL for size in np.array(padded.shape[1:]) - 1)
        y, x = np.meshgrid(*steps, indexing="ij")
        self.tables = [
            sample(upsampled(plane.astype(np.float64), upsample), upsample, y, x).astype(np.float32)
            for plane in padded
        ]
        self.stride = self.tables[0].shape[1]
        points = upsample * patch_size
        self.fine = self._offsets((np.arange(points) - (points - 1) / 2) / upsample, half, shape)
        self.pixels = self._offsets(np.arange(-half, half + 1), half, shape)
        self.original = self.fine if fine else self.pixels
        area = patch_size**2 / len(pixels)
        self.scale = np.float32(np.sqrt(area / self.original.shape[1]))
        self.pixel_scale = np.float32(np.sqrt(area / self.pixels.shape[1]))

    def _offsets(self, lattice, half, shape):
        """Where the points of a patch lie in the table, for every angle: (angles, points)."""
        y, x = (grid.ravel() for grid in np.meshgrid(lattice, lattice, indexing="ij"))
        inside = (np.hypot(y, x) <= half + 0.5) | (shape == "square")
        y, x = y[inside], x[inside]
        turn = 2 * np.pi * np.arange(TURN_STEPS)[:, None] / TURN_STEPS
        turned = y * np.cos(turn) - x * np.sin(turn), y * np.sin(turn) + x * np.cos(turn)
        y, x = (np.rint(PER_PIXEL * axis).astype(np.int32) for axis in turned)
        return y * self.stride + x

    def patches(self, rows, columns, angles):
        """R_angle P for pixels (rows, columns): arrays of one shape -> (..., C * q^2)."""
        return self._read(self.original, rows, columns, angles) * self.scale

    def upsampled_patches(self, rows, columns, angles):
        """R_angle U_k P, likewise: (..., C * (k q)^2)."""
        return self._read(self.fine, rows, columns, angles)

    def beyond_points(self, row, column):
        """Squares that the pixels of a patch hold beyond its points: zero unless `fine`.

        Points between the pixels hold less of the noise of single pixels.
        """
        pixels = self._read(self.pixels, row, column, 0.0) * self.pixel_scale
        return max((pixels**2).sum() - (self.patches(row, column, 0.0) ** 2).sum(), 0.0)

    def _read(self, offsets, rows, columns, angles):
        steps = np.rint(np.asarray(angles) * (TURN_STEPS / (2 * np.pi))).astype(np.intp) % TURN_STEPS
        rows, columns = (PER_PIXEL * (np.asarray(at, np.int32) + self.border) for at in (rows, columns))
        at = offsets[steps] + (rows * self.stride + columns).astype(np.int32)[..., None]
        # All lie inside; clip spares the check.
        return np.concatenate([table.ravel().take(at, mode="clip") for table in self.tables], axis=-1)
