"""NLM, NLEM and NLPR, pixel by pixel."""

import numpy as np

from vnlem.reference.regression import irls


def patches_of(pixels, patch_size):
    """All patches of planes (C, H, W) with a symmetric border: (H, W, C * patch pixels), float64.

    Scaled so that a squared Euclidean distance is the mean over the channels.
    """
    n_channels, height, width = pixels.shape
    size_y = 1 if height == 1 else patch_size
    border = ((0, 0), (size_y // 2,) * 2, (patch_size // 2,) * 2)
    padded = np.pad(pixels.astype(np.float64), border, mode="symmetric")
    views = np.lib.stride_tricks.sliding_window_view(padded, (size_y, patch_size), axis=(1, 2))
    return np.moveaxis(views, 0, 2).reshape(height, width, -1) / np.sqrt(n_channels)


def window_of(y, x, shape, distance):
    """Coordinates of the search window of (y, x), cut off at the border, in reading order; (y, x) first."""
    height, width = shape
    rows = range(max(0, y - distance), min(height, y + distance + 1))
    columns = range(max(0, x - distance), min(width, x + distance + 1))
    others = [(i, j) for i in rows for j in columns if (i, j) != (y, x)]
    return np.array([(y, x), *others])


def nearest_weighted(patches, y, x, sigma, params):
    """Indices, weights of the `n_neighbors` nearest patches of the window, the patch itself first."""
    window = window_of(y, x, patches.shape[:2], params.patch_distance)
    candidates = patches[window[:, 0], window[:, 1]]
    squared = ((candidates - patches[y, x]) ** 2).sum(axis=1)
    order = np.argsort(squared, kind="stable")[: params.n_neighbors]
    area = params.patch_size ** (1 if patches.shape[0] == 1 else 2)
    floor = 2 * sigma**2 * area if params.noise_correction else 0.0
    weights = np.exp(-np.maximum(squared[order] - floor, 0) / params.bandwidth**2)
    return window[order], weights


def nlm(pixels, sigma, params):
    """Weighted mean of the central pixels of the whole window."""
    patches = patches_of(pixels, params.patch_size)
    everyone = params.__class__(**{**params.__dict__, "n_neighbors": (2 * params.patch_distance + 1) ** 2})
    out = np.empty_like(pixels)
    for y, x in np.ndindex(pixels.shape[1:]):
        window, weights = nearest_weighted(patches, y, x, sigma, everyone)
        out[:, y, x] = pixels[:, window[:, 0], window[:, 1]].astype(np.float64) @ weights / weights.sum()
    return out


def nlm_stack(planes, sigma, params, plane_distance):
    """NLM of planes (H, W), with windows also in the planes around, plane after plane."""
    patches = [patches_of(plane[None], params.patch_size) for plane in planes]
    floor = 2 * sigma**2 * params.patch_size**2 if params.noise_correction else 0.0
    for number, plane in enumerate(planes):
        out = np.empty_like(plane)
        around = range(max(0, number - plane_distance), min(len(planes), number + plane_distance + 1))
        for y, x in np.ndindex(plane.shape):
            window = window_of(y, x, plane.shape, params.patch_distance)
            rows, columns = window[:, 0], window[:, 1]
            values = np.concatenate([planes[k][rows, columns] for k in around]).astype(np.float64)
            others = np.concatenate([patches[k][rows, columns] for k in around])
            squared = ((others - patches[number][y, x]) ** 2).sum(axis=1)
            weights = np.exp(-np.maximum(squared - floor, 0) / params.bandwidth**2)
            out[y, x] = values @ weights / weights.sum()
        yield out


def nlpr(pixels, sigma, params):
    """Centre of the gamma-power regression over the nearest patches of the window."""
    patches = patches_of(pixels, params.patch_size)
    n_channels = pixels.shape[0]
    area = patches.shape[2] // n_channels
    out = np.empty_like(pixels)
    for y, x in np.ndindex(pixels.shape[1:]):
        window, weights = nearest_weighted(patches, y, x, sigma, params)
        patch = irls(patches[window[:, 0], window[:, 1]], weights, params.gamma)
        # An odd patch's centre is the middle of its row of values.
        out[:, y, x] = patch.reshape(n_channels, area)[:, area // 2] * np.sqrt(n_channels)
    return out
