"""Algorithm 1's branch with diffusion distances as the paper prints it: dense, pixel by pixel."""

import numpy as np
import scipy.linalg

from vnlem.reference.vnlem import Printed, smallest


def embedding(printed, params):
    """Steps 1 and 2: diffusion coordinates (height, width, m) of the graph of all windows.

    W of square patches is not symmetric (the rotated patch is interpolated, the other is not); the paper's
    eigenvectors are those of a symmetric W, so its symmetric part is taken.
    """
    height, width = printed.height, printed.width
    weights = np.zeros((height * width, height * width))
    for row, column in np.ndindex(height, width):
        rows, columns = printed.window(row, column)
        squared = printed.aligned_distances(row, column, rows, columns)
        weights[row * width + column, rows * width + columns] = np.exp(-squared / params.graph_bandwidth**2)
    weights = (weights + weights.T) / 2
    degrees = weights.sum(axis=1)
    values, vectors = scipy.linalg.eigh(weights / np.sqrt(np.multiply.outer(degrees, degrees)))
    values, vectors = values[::-1], vectors[:, ::-1] / np.sqrt(degrees)[:, None]
    kept = slice(1, params.embedding_dim + 1)
    powers = np.abs(values[kept]) ** params.diffusion_time
    return (powers * vectors[:, kept]).reshape(height, width, -1)


def vnlem_dd(pixels, params, progress=None, taper=False):
    """Denoised planes (C, H, W) of standardised planes.

    ``params.scope`` says where step 3 looks for neighbours: "image" as printed, "window" in the window S_i.
    """
    printed = Printed(pixels, params, taper)
    placed = embedding(printed, params)
    everywhere = tuple(grid.ravel() for grid in np.mgrid[: printed.height, : printed.width])

    def neighbours(row, column):
        rows, columns = everywhere if params.scope == "image" else printed.window(row, column)
        # Step 3: the N_1 nearest by diffusion distance; steps 4 and 5 are those of VNLEM.
        squared = ((placed[rows, columns] - placed[row, column]) ** 2).sum(axis=1)
        first = smallest(squared, params.n_neighbors)
        return printed.closest(row, column, rows[first], columns[first])

    return printed.estimate(neighbours, progress)
