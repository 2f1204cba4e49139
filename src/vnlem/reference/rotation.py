"""Rotated patches by interpolation of the upsampled image: the exhaustive rotation-invariant distance."""

from functools import lru_cache

import numpy as np


def upsampled(image, factor):
    """Keys cubic convolution (a = -1/2) on the symmetric extension, one output row and column at a time.

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


def _lattice(half, upsample):
    """Positions of the upsampled patch along an axis, with what averaging down to its edge needs."""
    reach = half * upsample + upsample - 1
    return np.arange(-reach, reach + 1) / upsample


@lru_cache(maxsize=8)
def _turned(half, upsample, per_pixel, stride):
    """Where the rotated lattice lies on the finest grid, for every angle of a fine set: (angles, points).

    Pixels are points of that grid, so this does not depend on the pixel.
    """
    lattice = _lattice(half, upsample)
    dy, dx = (grid.ravel() for grid in np.meshgrid(lattice, lattice, indexing="ij"))
    turn = 2 * np.pi * np.arange(TURN_STEPS)[:, None] / TURN_STEPS
    y, x = dy * np.cos(turn) - dx * np.sin(turn), dy * np.sin(turn) + dx * np.cos(turn)
    y, x = (np.rint(per_pixel * axis).astype(np.int32) for axis in (y, x))
    return y * np.int32(stride) + x


# Angles are rounded to this many to a turn, a tenth of the usual step of the search.
TURN_STEPS = 720


class Rotator:
    """Patches of an image (C, H, W), rotated by any angle.

    (R_theta P)(s) = P(R_-theta s): the rotated patch is read at offsets turned back by theta. Angles go from
    the column axis towards the row axis. A patch is rotated in its upsampled form U_k P; to bring it back to
    the original resolution it is averaged down with a triangle one pixel wide at half height. The patch
    it is compared with takes the same way, or its noise would weigh more than that of a rotated one.
    """

    def __init__(self, pixels, patch_size, shape="disc", upsample=2):
        half = patch_size // 2
        self.upsample = upsample
        self.border = int(np.ceil((half + 1) * np.sqrt(2))) + 3
        padded = np.pad(pixels, ((0, 0), (self.border,) * 2, (self.border,) * 2), mode="symmetric")
        # The upsampled image on a grid four times finer still, so that a sample is the nearest point of it
        # and no interpolation is left to do per pair.
        self.per_pixel = 4 * upsample
        self.fine = [_finer(upsampled(plane, upsample), 4).astype(np.float32) for plane in padded]
        lattice = _lattice(half, upsample)
        self.side = len(lattice)
        self.turned = _turned(half, upsample, self.per_pixel, self.fine[0].shape[1])
        # Rows of `down` average the lattice down to the pixels of the patch.
        distance = np.abs(lattice[None, :] - np.arange(-half, half + 1)[:, None])
        self.down = (np.clip(1 - distance, 0, None) / upsample).astype(np.float32)
        y, x = np.mgrid[-half : half + 1, -half : half + 1]
        self.inside = (np.hypot(y, x) <= half + 0.5) | (shape == "square")
        lattice_y, lattice_x = (grid.ravel() for grid in np.meshgrid(*[np.abs(lattice)] * 2, indexing="ij"))
        within = np.maximum(lattice_y, lattice_x) <= half
        self.searched = within & ((np.hypot(lattice_y, lattice_x) <= half + 0.5) | (shape == "square"))
        self.n_channels = len(pixels)
        # Squared distances count as if noise had not been averaged, in patch_size^2 pixels, per channel.
        self.scale = np.sqrt(patch_size**2 / (self.inside.sum() * self._noise_share()) / self.n_channels)

    def lattice(self, rows, columns, angles):
        """Upsampled patches at (rows, columns), rotated: arrays of one shape -> (..., C, lattice points)."""
        steps = np.rint(np.asarray(angles) * (TURN_STEPS / (2 * np.pi))).astype(np.intp) % TURN_STEPS
        rows, columns = (np.asarray(at) + self.border for at in (rows, columns))
        middle = (rows * self.fine[0].shape[1] + columns) * self.per_pixel
        at = self.turned[steps] + middle[..., None].astype(np.int32)
        return np.stack([plane.ravel()[at] for plane in self.fine], axis=-2)

    def original(self, lattice):
        """Patches at the original resolution: (..., C, lattice points) -> (..., C * pixels)."""
        square = lattice.reshape(*lattice.shape[:-1], self.side, self.side)
        pixels = (self.down @ square @ self.down.T)[..., self.inside]
        return pixels.reshape(*pixels.shape[:-2], -1) * np.float32(self.scale)

    def patches(self, rows, columns, angles):
        """Patches at the original resolution, rotated by angles."""
        return self.original(self.lattice(rows, columns, angles))

    def _noise_share(self):
        """Share of the energy of white noise that is left after upsampling and averaging down."""
        impulse = np.zeros((1, 15))
        impulse[0, 7] = 1
        row = _along_rows(impulse, self.upsample)[0]
        steps = np.arange(-self.upsample + 1, self.upsample)
        kernel = (1 - np.abs(steps) / self.upsample) / self.upsample
        return (np.convolve(row, kernel, mode="same")[:: self.upsample] ** 2).sum() ** 2


def _finer(image, factor):
    """An image interpolated linearly to `factor` times as many points along both axes."""
    for _ in range(2):
        after = np.concatenate([image[:, 1:], image[:, -1:]], axis=1)
        phases = [image * (1 - t / factor) + after * (t / factor) for t in range(factor)]
        image = np.stack(phases, axis=-1).reshape(image.shape[0], -1).T
    return image


def accurate_distance(rotator, at, rows, columns, angles):
    """Squared distance, angle and aligned patch of candidates, each at the best of its angles (n, angles).

    The angle is found on the upsampled patches; the distance is then taken at the original resolution.
    """
    own = rotator.lattice(np.full(1, at[0]), np.full(1, at[1]), np.zeros(1))
    every = (np.broadcast_to(each[:, None], angles.shape) for each in (rows, columns))
    turned = rotator.lattice(*every, angles)
    searched = rotator.searched.astype(np.float32)
    difference = turned - own
    best = np.einsum("caks,caks,s->ca", difference, difference, searched, optimize=True).argmin(axis=1)
    first = np.arange(len(angles))
    aligned = rotator.original(turned[first, best])
    return ((aligned - rotator.original(own)) ** 2).sum(axis=-1), angles[first, best], aligned
