"""Algorithm 1 as the paper prints it, pixel by pixel: VNLEM, and what VNLEM-DD shares with it.

Four switches select variants that the paper does not print: round patches (``shape="disc"``), the unrotated
patch as one more angle (``try_unrotated``), a tapered arc in the orientation (``taper``), and distances on
the upsampled patches, where the angle is searched (``fine``). The own patch, which is not rotated, is
compared with all its pixels either way.
"""

import math

import numpy as np

from vnlem.reference.orientation import orientation
from vnlem.reference.regression import irls
from vnlem.reference.rotation import Rotator


class Printed:
    """An image (C, H, W) with its patches and orientations, and the steps of Algorithm 1 on it.

    params: patch_size (q), patch_distance (N_2), n_neighbors (N_1), bandwidth (square root of epsilon),
    gamma, angle_range (theta_l) and angle_step in degrees, upsample (k), scale (l), arc (delta) in degrees,
    shape, try_unrotated.
    """

    def __init__(self, pixels, params, taper=False, fine=False):
        self.pixels, self.params, self.fine = pixels, params, fine
        self.height, self.width = pixels.shape[1:]
        # [pre-1], [pre-2]: the padded image and its patches.
        self.rotator = Rotator(pixels, params.patch_size, params.shape, params.upsample, fine)
        # [pre-3]: the orientation of every patch. The sharp arc is as wide as the tapered one at half height.
        arc = params.arc if taper else params.arc / 2
        self.theta = orientation(pixels.mean(axis=0), params.scale, params.patch_size, arc, taper)

    def window(self, row, column):
        """S_i: rows and columns of the search window, cut off at the border of the image."""
        reach = self.params.patch_distance
        rows = np.arange(max(0, row - reach), min(self.height, row + reach + 1))
        columns = np.arange(max(0, column - reach), min(self.width, column + reach + 1))
        return tuple(grid.ravel() for grid in np.meshgrid(rows, columns, indexing="ij"))

    def aligned_distances(self, row, column, rows, columns):
        """||P_i - R_(theta_i - theta_j) P_j||^2, by which W is formed."""
        patch = self.rotator.patches(row, column, 0.0)
        turned = self.rotator.patches(rows, columns, self.theta[row, column] - self.theta[rows, columns])
        squared = ((turned - patch) ** 2).sum(axis=-1)
        squared[(rows == row) & (columns == column)] = 0
        return squared

    def angles(self, row, column, rows, columns):
        """The angles of the exhaustive search: strictly inside theta_l of theta_i - theta_j; (j, angle)."""
        count = math.ceil(self.params.angle_range / self.params.angle_step - 1e-9) - 1
        offsets = np.radians(self.params.angle_step * np.arange(-max(count, 0), max(count, 0) + 1))
        tried = (self.theta[row, column] - self.theta[rows, columns])[:, None] + offsets
        if self.params.try_unrotated:
            tried = np.concatenate([np.zeros((len(rows), 1)), tried], axis=1)
        tried[(rows == row) & (columns == column)] = 0  # the patch itself, as it is
        return tried

    def closest(self, row, column, rows, columns):
        """Step 2: the better half of the candidates by d~_RID; rows, columns, squares, angles, patches."""
        tried = self.angles(row, column, rows, columns)
        # theta_ij: the angle at which the upsampled patches are nearest.
        own = self.rotator.upsampled_patches(row, column, 0.0)
        every = (np.broadcast_to(at[:, None], tried.shape) for at in (rows, columns))
        difference = self.rotator.upsampled_patches(*every, tried)
        difference -= own
        best = np.einsum("jas,jas->ja", difference, difference).argmin(axis=1)
        angle = tried[np.arange(len(tried)), best]
        # d~_RID: the distance at that angle, at the original resolution.
        turned = self.rotator.patches(rows, columns, angle)
        squared = ((turned - self.rotator.patches(row, column, 0.0)) ** 2).sum(axis=1)
        if self.fine:
            # What the own pixels hold beyond their points: one coordinate that no other patch shares.
            own = (rows == row) & (columns == column)
            beyond = np.where(own, 0, self.rotator.beyond_points(row, column))
            squared = squared + beyond
            turned = np.concatenate([turned, np.sqrt(beyond)[:, None]], axis=1)
        half = smallest(squared, math.ceil(self.params.n_neighbors / 2))
        return rows[half], columns[half], squared[half], angle[half], turned[half]

    def neighbours(self, row, column):
        """N_RID(i), steps 1 and 2 of VNLEM."""
        rows, columns = self.window(row, column)
        squared = self.aligned_distances(row, column, rows, columns)
        first = smallest(squared, self.params.n_neighbors)
        return self.closest(row, column, rows[first], columns[first])

    def weights(self, squared):
        """W' of the neighbours."""
        return np.exp(-squared / self.params.bandwidth**2)

    def central_point(self, rows, columns, squared, turned):
        """Step 3: the centre of the regression over the neighbours with weights W', per channel.

        A rotation does not move the central pixel. So the central pixels of the neighbours are appended to
        the patches, scaled down too far to change the distances.
        """
        centres = 1e-6 * self.pixels[:, rows, columns].T.astype(np.float64)
        points = np.concatenate([turned, centres], axis=1)
        return irls(points, self.weights(squared), self.params.gamma)[-len(self.pixels) :] / 1e-6

    def estimate(self, neighbours, progress=None):
        """The denoised image from the neighbours of every pixel, neighbours(row, column).

        A pixel keeps its value if all weights vanish.
        """
        out = self.pixels.copy()
        for row in range(self.height):
            for column in range(self.width):
                rows, columns, squared, _, turned = neighbours(row, column)
                if self.weights(squared).any():
                    out[:, row, column] = self.central_point(rows, columns, squared, turned)
            if progress is not None:
                progress(row + 1, self.height)
        return out


def smallest(values, count):
    """Indices of the smallest values, ascending; ties go to the first.

    Examples
    --------
    >>> smallest(np.array([3.0, 1.0, 1.0, 0.0]), 2)
    array([1, 3])
    """
    return np.sort(np.argsort(values, kind="stable")[:count])


def vnlem(pixels, params, progress=None, taper=False):
    """Denoised planes (C, H, W) of standardised planes."""
    printed = Printed(pixels, params, taper)
    return printed.estimate(printed.neighbours, progress)
