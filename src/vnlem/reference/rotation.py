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
    y, x = (np.rint(per_pixel * axis).astype(np.intp) for axis in (y, x))
    return y * stride + x


# Angles are rounded to this many to a turn, a tenth of the usual step of the search.
TURN_STEPS = 720


class Rotator:
    """Patches of an image (C, H, W), rotated by any angle.

    (R_theta P)(s) = P(R_-theta s): the rotated patch is read at offsets turned back by theta. Angles go from
    the column axis towards the row axis. A patch is rotated in its upsampled form U_k P; to bring it back to
    the original resolution it is averaged down with a triangle one pixel wide at half height. The patch
    it is compared with takes the same way.
    """

    def __init__(self, pixels, patch_size, shape="disc", upsample=2):
        self._sample(pixels, patch_size, shape, upsample)
        # Squared distances count as if noise had not been averaged, in patch_size^2 pixels, per channel.
        self.scale = np.sqrt(patch_size**2 / _noise_energy(patch_size, shape, upsample) / len(pixels))

    def _sample(self, pixels, patch_size, shape, upsample):
        half = patch_size // 2
        self.shape = shape
        self.upsample = upsample
        self.border = int(np.ceil((half + 1) * np.sqrt(2))) + 3
        padded = np.pad(pixels, ((0, 0), (self.border,) * 2, (self.border,) * 2), mode="symmetric")
        # The upsampled image on a grid four times finer still, so that a sample is the nearest point of it
        # and no interpolation is left to do per pair.
        self.per_pixel = 4 * upsample
        self.fine = [_finer(upsampled(plane, upsample), 4).astype(np.float32) for plane in padded]
        lattice = _lattice(half, upsample)
        self.side = len(lattice)
        self.stride = self.fine[0].shape[1]
        self.turned = _turned(half, upsample, self.per_pixel, self.stride)
        # Rows of `down` average the lattice down to the pixels of the patch.
        distance = np.abs(lattice[None, :] - np.arange(-half, half + 1)[:, None])
        self.down = (np.clip(1 - distance, 0, None) / upsample).astype(np.float32)
        y, x = np.mgrid[-half : half + 1, -half : half + 1]
        self.inside = (np.hypot(y, x) <= half + 0.5) | (shape == "square")
        lattice_y, lattice_x = (grid.ravel() for grid in np.meshgrid(*[np.abs(lattice)] * 2, indexing="ij"))
        within = np.maximum(lattice_y, lattice_x) <= half
        searched = within & ((np.hypot(lattice_y, lattice_x) <= half + 0.5) | (shape == "square"))
        self.searched = np.ascontiguousarray(self.turned[:, searched])

    def lattice(self, rows, columns, angles, turned=None):
        """Upsampled patches at (rows, columns), rotated: arrays of one shape -> (..., C, lattice points).

        With turned=self.searched only the points at which angles are compared.
        """
        steps = np.rint(np.asarray(angles) * (TURN_STEPS / (2 * np.pi))).astype(np.intp) % TURN_STEPS
        rows, columns = (np.asarray(at) + self.border for at in (rows, columns))
        at = (self.turned if turned is None else turned)[steps]
        at += ((rows * self.stride + columns) * self.per_pixel)[..., None]
        # All lie inside; clip spares the check.
        return np.stack([plane.ravel().take(at, mode="clip") for plane in self.fine], axis=-2)

    def original(self, lattice):
        """Patches at the original resolution: (..., C, lattice points) -> (..., C * pixels)."""
        square = lattice.reshape(*lattice.shape[:-1], self.side, self.side)
        pixels = (self.down @ square @ self.down.T)[..., self.inside]
        return pixels.reshape(*pixels.shape[:-2], -1) * np.float32(self.scale)

    def patches(self, rows, columns, angles):
        """Patches at the original resolution, rotated by angles."""
        return self.original(self.lattice(rows, columns, angles))


@lru_cache(maxsize=8)
def _noise_energy(patch_size, shape, upsample):
    """Energy that white noise of variance one has in a rotated patch, mean over angles.

    The squared responses to one bright pixel, added up over all patches that see it.
    """
    reach = patch_size // 2 + 4
    bright = np.zeros((1, 4 * reach + 1, 4 * reach + 1))
    bright[0, 2 * reach, 2 * reach] = 1
    rotator = Rotator.__new__(Rotator)
    rotator._sample(bright, patch_size, shape, upsample)
    rotator.scale = 1.0
    rows, columns = (grid.ravel() for grid in np.mgrid[reach : 3 * reach + 1, reach : 3 * reach + 1])
    angles = np.radians([5.0, 15.0, 25.0, 35.0, 45.0])
    return np.mean(
        [(rotator.patches(rows, columns, np.full(rows.shape, angle)) ** 2).sum() for angle in angles]
    )


def _finer(image, factor):
    """An image interpolated linearly to `factor` times as many points along both axes."""
    for _ in range(2):
        after = np.concatenate([image[:, 1:], image[:, -1:]], axis=1)
        phases = [image * (1 - t / factor) + after * (t / factor) for t in range(factor)]
        image = np.stack(phases, axis=-1).reshape(image.shape[0], -1).T
    return image


def accurate_distance(rotator, at, rows, columns, angles, frame):
    """Squared distance, angle and aligned patch of candidates, each at the best of its angles (n, angles).

    All patches are turned back by `frame`.

    The angle is found on the upsampled patches; the distance is then taken at the original resolution.
    """
    own_at = np.full(1, at[0]), np.full(1, at[1]), np.full(1, -frame)
    own = rotator.lattice(*own_at, rotator.searched)
    every = (np.broadcast_to(each[:, None], angles.shape) for each in (rows, columns))
    difference = rotator.lattice(*every, angles - frame, rotator.searched)
    difference -= own
    best = np.einsum("caks,caks->ca", difference, difference).argmin(axis=1)
    chosen = angles[np.arange(len(angles)), best]
    aligned = rotator.patches(rows, columns, chosen - frame)
    return ((aligned - rotator.patches(*own_at)) ** 2).sum(axis=-1), chosen, aligned
