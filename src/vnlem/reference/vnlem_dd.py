"""Algorithm 1's branch with diffusion distances, dense and pixel by pixel."""

import numpy as np
import scipy.linalg

from vnlem.pipeline.workers import for_each
from vnlem.reference.orientation import orientation
from vnlem.reference.rotation import Rotator
from vnlem.reference.vnlem import aligned_distances, better_half, central_value, smallest


def embedding(rotator, angles, shape, params):
    """Diffusion coordinates (pixels, m) of the graph of all windows."""
    n = shape[0] * shape[1]
    weights = np.zeros((n, n))
    for at in np.ndindex(shape):
        rows, columns, squared = aligned_distances(rotator, angles, shape, at, params.patch_distance)
        here = at[0] * shape[1] + at[1]
        weights[here, rows * shape[1] + columns] = np.exp(-squared / params.graph_bandwidth**2)
    # Symmetric but for the paper's squares and the rounding of angles.
    weights = (weights + weights.T) / 2
    # Step 1: the eigenvalues and right eigenvectors of D^-1 W.
    degrees = weights.sum(axis=1)
    values, vectors = scipy.linalg.eigh(weights / np.sqrt(np.multiply.outer(degrees, degrees)))
    values, vectors = values[::-1], vectors[:, ::-1] / np.sqrt(degrees)[:, None]
    # Step 2: the embedding.
    kept = slice(1, params.embedding_dim + 1)
    return values[kept] ** params.diffusion_time * vectors[:, kept]


def vnlem_dd(pixels, params, workers=1, progress=None):
    """Denoised planes (C, H, W)."""
    _, height, width = pixels.shape
    rotator = Rotator(pixels, params.patch_size, params.shape, params.upsample)
    angles = orientation(pixels.mean(axis=0), params.scale, params.patch_size, params.arc)
    placed = embedding(rotator, angles, (height, width), params).reshape(height, width, -1)
    out = np.empty_like(pixels)
    reach = params.patch_distance

    def work(row):
        for column in range(width):
            rows = np.arange(max(0, row - reach), min(height, row + reach + 1))
            columns = np.arange(max(0, column - reach), min(width, column + reach + 1))
            rows, columns = (grid.ravel() for grid in np.meshgrid(rows, columns, indexing="ij"))
            # Step 3: the N1 nearest by diffusion distance; steps 4 and 5 are those of VNLEM.
            squared = ((placed[rows, columns] - placed[row, column]) ** 2).sum(axis=1)
            first = smallest(squared, params.n_neighbors)
            rows, columns, squared, _, aligned = better_half(
                rotator, angles, (row, column), rows[first], columns[first], params
            )
            out[:, row, column] = central_value(pixels, rows, columns, squared, aligned, params)

    for_each(work, range(height), workers, progress)
    return out
