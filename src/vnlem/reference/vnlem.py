"""Algorithm 1, pixel by pixel, on rotated pixels."""

import math

import numpy as np

from vnlem.reference.orientation import orientation
from vnlem.reference.regression import irls
from vnlem.reference.rotation import Rotator, accurate_distance
from vnlem.tiles import for_each


def search_angles(params):
    """Angles around the difference of orientations, in radians."""
    count = math.floor(params.angle_range / params.angle_step + 1e-9)
    return np.radians(params.angle_step * np.arange(-count, count + 1))


def neighbours(rotator, angles, shape, at, params):
    """Rows, columns, squared distances, angles and aligned patches of the neighbours of a pixel."""
    height, width = shape
    reach = params.patch_distance
    row, column = at
    rows, columns = (
        grid.ravel()
        for grid in np.meshgrid(
            np.arange(max(0, row - reach), min(height, row + reach + 1)),
            np.arange(max(0, column - reach), min(width, column + reach + 1)),
            indexing="ij",
        )
    )
    own = (rows == row) & (columns == column)
    # Step 1: the N1 nearest when aligned by the orientations.
    difference = angles[row, column] - angles[rows, columns]
    patch = rotator.patches(np.full(1, row), np.full(1, column), np.zeros(1))
    squared = ((rotator.patches(rows, columns, difference) - patch) ** 2).sum(axis=1)
    squared[own] = 0
    first = np.sort(np.argsort(squared, kind="stable")[: params.n_neighbors])
    # Step 2: the accurate distance, and the better half.
    tried = difference[first, None] + search_angles(params)
    if params.try_unrotated:
        tried = np.concatenate([np.zeros((len(first), 1)), tried], axis=1)
    tried[own[first]] = 0
    squared, angle, aligned = accurate_distance(rotator, at, rows[first], columns[first], tried)
    squared[own[first]] = 0
    keep = np.sort(np.argsort(squared, kind="stable")[: math.ceil(params.n_neighbors / 2)])
    return rows[first][keep], columns[first][keep], squared[keep], angle[keep], aligned[keep]


def central_value(pixels, rows, columns, squared, aligned, params):
    """Step 3: the central point of the regression over the aligned neighbours, per channel.

    The neighbours' own central pixels ride along with the patches, scaled down so far that they take no part
    in the distances.
    """
    weights = np.exp(-squared / params.bandwidth**2)
    centres = 1e-6 * pixels[:, rows, columns].T.astype(np.float64)
    return irls(np.concatenate([aligned, centres], axis=1), weights, params.gamma)[-len(pixels) :] / 1e-6


def vnlem(pixels, params, workers=1, progress=None):
    """Denoised planes (C, H, W)."""
    _, height, width = pixels.shape
    rotator = Rotator(pixels, params.patch_size, params.shape, params.upsample)
    angles = orientation(pixels.mean(axis=0), params.scale, params.patch_size, params.arc)
    out = np.empty_like(pixels)

    def work(row):
        for column in range(width):
            rows, columns, squared, _, aligned = neighbours(
                rotator, angles, (height, width), (row, column), params
            )
            out[:, row, column] = central_value(pixels, rows, columns, squared, aligned, params)

    for_each(work, range(height), workers, progress)
    return out
