"""The SIFT orientation of the paper, pixel by pixel, in float64."""

import math

import numpy as np
from scipy import ndimage


def orientation(pixels, scale=1.0, patch_size=13, arc=30.0):
    """Orientation (radians) of every pixel of a plane (H, W).

    The mass of gradient in the tapered arc around theta is evaluated at every degree, from the directions
    themselves; the best is interpolated by a parabola.

    Examples
    --------
    >>> ramp = np.add.outer(np.zeros(16), np.arange(16.0))
    >>> float(orientation(ramp)[8, 8].round(6))
    0.0
    """
    half = patch_size // 2
    border = half + math.ceil(4 * scale)
    padded = np.pad(pixels.astype(np.float64), border, mode="symmetric")
    reach = math.ceil(4 * scale)
    gx = ndimage.gaussian_filter(padded, scale, order=(0, 1), radius=reach)
    gy = ndimage.gaussian_filter(padded, scale, order=(1, 0), radius=reach)
    magnitude, direction = np.hypot(gx, gy), np.arctan2(gy, gx)
    y, x = np.mgrid[-half : half + 1, -half : half + 1]
    weight = np.clip(half + 0.5 - np.hypot(y, x), 0, 1)
    candidates = np.radians(np.arange(360))
    out = np.zeros(pixels.shape)
    width = math.radians(arc)
    for row, column in np.ndindex(pixels.shape):
        at = (
            slice(row + border - half, row + border + half + 1),
            slice(column + border - half, column + border + half + 1),
        )
        mass = (weight * magnitude[at]).ravel()
        away = np.abs(np.angle(np.exp(1j * (direction[at].ravel()[None, :] - candidates[:, None]))))
        taper = np.where(away < width, 0.5 + 0.5 * np.cos(np.pi * away / width), 0)
        arcs = taper @ mass
        best = int(np.argmax(arcs))
        before, here, after = arcs[best - 1], arcs[best], arcs[(best + 1) % 360]
        curvature = before - 2 * here + after
        shift = 0.5 * (before - after) / curvature if curvature < 0 else 0.0
        if here > 1e-5 * weight.sum():
            out[row, column] = np.angle(np.exp(1j * np.radians(best + shift)))
    return out
