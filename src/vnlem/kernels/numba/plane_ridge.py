"""Ridge combination of groups whose members lie in several planes; the algebra is that of `ridge`."""

from typing import NamedTuple

import numpy as np

from vnlem.kernels.numba.jit import kernel, nested
from vnlem.kernels.numba.members import centre, gather, put_back, rows_for, side_by_side
from vnlem.kernels.numba.ridge import (
    aggregation_weight,
    combination,
    delicate_combination,
    gram,
    is_delicate,
    multiply,
)
from vnlem.kernels.numba.scratch import as_row, empty, multiples, zeros
from vnlem.kernels.numba.vectors import COLUMNS, LANES


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
    Behind `sums` there is room for sixteen numbers, to which zeros are added.
    """
    k = positions.shape[1]
    n_pixels = place.offsets.shape[1]
    size = (k + COLUMNS - 1) // COLUMNS * COLUMNS
    wide = side_by_side(place.offsets[0])
    n_rows = rows_for(n_pixels, wide)
    length = n_pixels // wide * ((wide + LANES - 1) // LANES * LANES)
    _, height, stride = images.pilot.shape
    flat = PlaneImages(
        as_row(images.pilot),
        as_row(images.working),
        as_row(images.residual),
        as_row(images.noise),
    )
    rows = empty((LANES, length), np.float32)
    mask = zeros((wide + LANES - 1) // LANES * LANES, np.float32)
    columns = empty((2, n_rows, size), np.float32)
    numbers = empty((5, size), np.float32)
    mask[:wide], columns[:], numbers[:] = 1.0, 0.0, 1.0
    scratch = (
        columns,
        empty((n_rows, size), np.float32),
        empty((size, size), np.float32),
        empty((k + 1, k), np.float64),
        empty(COLUMNS * COLUMNS, np.float32),
        empty((2, COLUMNS, size), np.float32),
        multiples(max(n_pixels, size), size),
        numbers,
        (rows, mask, wide, zeros(size, np.int64), empty(k, np.int64), empty((2, k), np.float32)),
    )
    shape = (stride, height * stride, sums.shape[1], sums.shape[2])
    _filter_groups(flat, combining, place, shape, positions, chosen, scratch, as_row(sums), as_row(weights))


@nested
def _filter_groups(images, combining, place, shape, positions, chosen, scratch, sums, weights):
    """`filter_planes_tile` on flat arrays, with its scratch."""
    without_pilot, extra_load, boost, tau = combining
    stride, plane_size, sums_height, sums_width = shape
    columns, estimate, theta, double, block, pivots, strides, numbers, members = scratch
    rows, mask, wide, places, corners, factors = members
    k = positions.shape[1]
    size = estimate.shape[1]
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
            places[j] = at
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
        gather(images.pilot, place.offsets, places, chosen[r], x)
        gather(images.working, place.offsets, places, chosen[r], z)
        centre(x[:n_pixels], k)
        centre(z[:n_pixels], k)
        gram(x, strides[:n_pixels], theta)
        if is_delicate(theta, load, k):
            delicate_combination(x[:n_pixels], load, shrink, noise, k, double, theta, gain)
        else:
            combination(theta, numbers, k, strides[:COLUMNS], block, pivots)
        multiply(z, theta, strides[:size], estimate)
        for j in range(k):
            at = positions[r, j]
            plane, within = at // plane_size, at % plane_size
            row = (plane - first_plane) * sums_height + within // stride - top
            corners[j] = row * sums_width + within % stride - left
            weight = aggregation_weight(gain[j], least_gain)
            factors[0, j] = weight
            factors[1, j] = weight * (one - blend)
            weights[corners[j]] += weight
        put_back(estimate, place.places, corners, chosen[r], factors, (rows, mask, wide), sums)
