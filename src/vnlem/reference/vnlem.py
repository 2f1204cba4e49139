"""Algorithm 1, pixel by pixel, on rotated pixels."""

import math

import numpy as np

from vnlem.pipeline.workers import for_each
from vnlem.reference.orientation import orientation
from vnlem.reference.regression import irls
from vnlem.reference.rotation import Rotator, accurate_distance


def search_angles(params):
    """Angles around the difference of orientations, in radians."""
    count = math.floor(params.angle_range / params.angle_step + 1e-9)
    return np.radians(params.angle_step * np.arange(-count, count + 1))


def frame_of(rotator, angle):
    """By what angle both patches of a comparison are turned back, beside their rotation onto each other.

    In the continuous model that changes nothing. Pixels lose noise when they are interpolated: were the
    pixel's own patch read as it is and the others interpolated, distances would not be symmetric, and a
    patch that is not rotated would seem further away. So round patches are compared in the frame of the
    pixel's orientation. The paper's squares stay as they are printed.
    """
    return angle if rotator.shape == "disc" else 0.0


def aligned_distances(rotator, angles, shape, at, reach):
    """Rows and columns of a pixel's window, and squared distances when aligned by the orientations."""
    height, width = shape
    row, column = at
    rows, columns = (
        grid.ravel()
        for grid in np.meshgrid(
            np.arange(max(0, row - reach), min(height, row + reach + 1)),
            np.arange(max(0, column - reach), min(width, column + reach + 1)),
            indexing="ij",
        )
    )
    frame = frame_of(rotator, angles[row, column])
    difference = angles[row, column] - angles[rows, columns]
    patch = rotator.patches(np.full(1, row), np.full(1, column), np.full(1, -frame))
    squared = ((rotator.patches(rows, columns, difference - frame) - patch) ** 2).sum(axis=1)
    squared[(rows == row) & (columns == column)] = 0
    return rows, columns, squared


def smallest(values, count):
    """Indices of the smallest values, ascending; ties go to the first."""
    return np.sort(np.argsort(values, kind="stable")[:count])


def neighbours(rotator, angles, shape, at, params):
    """Rows, columns, squared distances, angles and aligned patches of the neighbours of a pixel."""
    # Step 1: the N1 nearest when aligned by the orientations.
    rows, columns, squared = aligned_distances(rotator, angles, shape, at, params.patch_distance)
    first = smallest(squared, params.n_neighbors)
    return better_half(rotator, angles, at, rows[first], columns[first], params)


def better_half(rotator, angles, at, rows, columns, params):
    """Step 2: the half of the candidates that is nearer by the accurate distance."""
    tried = (angles[at] - angles[rows, columns])[:, None] + search_angles(params)
    if params.try_unrotated:
        tried = np.concatenate([np.zeros((len(rows), 1)), tried], axis=1)
    own = (rows == at[0]) & (columns == at[1])
    tried[own] = 0
    squared, angle, aligned = accurate_distance(
        rotator, at, rows, columns, tried, frame_of(rotator, angles[at])
    )
    squared[own] = 0
    keep = smallest(squared, math.ceil(params.n_neighbors / 2))
    return rows[keep], columns[keep], squared[keep], angle[keep], aligned[keep]


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
