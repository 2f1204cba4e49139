"""Ridge combination of groups whose members lie in several planes; the algebra is that of `ridge`."""

from typing import NamedTuple

import numpy as np

from vnlem.kernels.numba.jit import kernel, nested
from vnlem.kernels.numba.panel import COLUMNS, ROWS
from vnlem.kernels.numba.ridge import (
    PIVOTS,
    aggregation_weight,
    centre,
    combination,
    delicate_combination,
    gather,
    gram,
    is_delicate,
    multiply,
)
from vnlem.kernels.numba.simd import add_pair


class PlaneImages(NamedTuple):
    """The images of one pass, (planes, H, stride)."""

    pilot: np.ndarray
    working: np.ndarray
    residual: np.ndarray  # patch sums of (noisy - working)^2, at the patches' corners
    noise: np.ndarray  # patch sums of the noise variance


class Combining(NamedTuple):
    """How a pass combines its groups, see `vnlem.estimate.ridge.PassSettings`."""

    without_pilot: bool
    extra_load: np.float32
    boost: np.float32
    tau: np.float32


class Place(NamedTuple):
    """Where the pixels of a patch lie, and the accumulators' corner."""

    offsets: np.ndarray  # (g, n): in the images, from the patch's corner
    places: np.ndarray  # (g, n): in the accumulators, two numbers a pixel
    corner: tuple[int, int, int]  # plane, top, left


@kernel
def filter_planes_tile(images, combining, place, positions, chosen, sums, weights):
    """Estimate all groups of a tile and add them up, each member in its own plane, place and orientation.

    positions, chosen (r, k) from matching. Added to: sums (planes, h, w, 2), the weighted changes of the
    working image, whole and without the share that is kept; weights (planes, h, w), at the patches' corners.
    """
    k = positions.shape[1]
    n_pixels = place.offsets.shape[1]
    size = (k + COLUMNS - 1) // COLUMNS * COLUMNS
    n_rows = (n_pixels + ROWS - 1) // ROWS * ROWS
    _, height, stride = images.pilot.shape
    flat = PlaneImages(
        images.pilot.reshape(-1),
        images.working.reshape(-1),
        images.residual.reshape(-1),
        images.noise.reshape(-1),
    )
    scratch = (
        np.zeros((2, n_rows, size), np.float32),
        np.empty((n_rows, size), np.float32),
        np.empty((size, size), np.float32),
        np.empty((k + 1, k)),
        np.empty(PIVOTS * PIVOTS, np.float32),
        np.empty((2, PIVOTS, size), np.float32),
        np.arange(max(n_rows, size)) * size,
        np.ones((5, size), np.float32),
    )
    shape = (stride, height * stride, sums.shape[1], sums.shape[2])
    _filter_groups(
        flat, combining, place, shape, positions, chosen, scratch, sums.reshape(-1), weights.reshape(-1)
    )


@nested
def _filter_groups(images, combining, place, shape, positions, chosen, scratch, sums, weights):
    """`filter_planes_tile` on flat arrays, with its scratch."""
    without_pilot, extra_load, boost, tau = combining
    stride, plane_size, sums_height, sums_width = shape
    columns, estimate, theta, double, block, pivots, strides, numbers = scratch
    k = positions.shape[1]
    n_rows, size = estimate.shape
    n_pixels = place.offsets.shape[1]
    first_plane, top, left = place.corner
    x, z = columns[0], columns[1]
    load, shrink, noise, gain = numbers[0], numbers[1], numbers[2], numbers[4]
    one = np.float32(1.0)
    least_gain = np.float32(1.0 / k)
    least_left = max(np.float32(1.02) * tau, np.float32(0.02))
    for r in range(positions.shape[0]):
        change = np.float32(0.0)
        energy = np.float32(0.0)
        for j in range(k):
            at = positions[r, j]
            noise[j] = images.noise[at]
            change += images.residual[at]
            energy += noise[j]
        # The share of the noise that is left in this group's working patches.
        left_over = max(one - np.sqrt(change / energy), least_left)
        blend = min(tau / left_over, one)
        scale = boost * left_over * left_over
        for j in range(k):
            if without_pilot:
                load[j] = extra_load * noise[j]
                shrink[j] = noise[j] + load[j]
            else:
                load[j] = scale * noise[j]
                shrink[j] = load[j]
        gather(images.pilot, place.offsets, positions[r], chosen[r], x)
        gather(images.working, place.offsets, positions[r], chosen[r], z)
        centre(x, k)
        centre(z, k)
        gram(x, strides[:n_rows], theta)
        if is_delicate(theta, load, k):
            delicate_combination(x, load, shrink, noise, k, double, theta, gain)
        else:
            combination(theta, numbers, k, strides[:PIVOTS], block, pivots)
        multiply(z, theta, strides[:size], estimate)
        for j in range(k):
            at = positions[r, j]
            plane, within = at // plane_size, at % plane_size
            row = (plane - first_plane) * sums_height + within // stride - top
            corner = row * sums_width + within % stride - left
            weight = aggregation_weight(gain[j], least_gain)
            faded = weight * (one - blend)
            weights[corner] += weight
            shifts = place.places[chosen[r, j]]
            for u in range(n_pixels):
                add_pair(sums, 2 * corner + shifts[u], weight, faded, estimate[u, j])
