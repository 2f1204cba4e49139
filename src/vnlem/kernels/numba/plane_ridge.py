"""Ridge combination of groups whose members lie in several planes; the algebra is that of `combine`."""

from typing import NamedTuple

import numpy as np

from vnlem.kernels.numba.combine import combine, make_group
from vnlem.kernels.numba.jit import kernel, nested
from vnlem.kernels.numba.members import put_back, side_by_side
from vnlem.kernels.numba.scratch import as_row, view_at


class PlaneImages(NamedTuple):
    """The images of one pass, (planes, H, stride)."""

    pilot: np.ndarray
    working: np.ndarray
    residual: np.ndarray  # patch sums of (noisy - working)^2, at the patches' corners
    noise: np.ndarray  # patch sums of the noise variance


class Place(NamedTuple):
    """Where the pixels of a patch lie, and the accumulators' corner."""

    offsets: np.ndarray  # (g, n): in the images, from the patch's corner
    places: np.ndarray  # (g, n): in the accumulators, two numbers a pixel
    corner: tuple[int, int, int]  # plane, top, left


@kernel
def filter_planes_tile(images, rule, place, positions, chosen, sums, weights):
    """Estimate all groups of a tile and add them up, each member in its own plane, place and orientation.

    positions, chosen (r, k) from matching. Added to: sums (planes, h, w, 2), the weighted changes of the
    working image, whole and without the share that is kept; weights (planes, h, w), at the patches' corners.
    Behind `sums` there is room for sixteen numbers, to which zeros are added.
    """
    _, height, stride = images.pilot.shape
    flat = PlaneImages(
        as_row(images.pilot),
        as_row(images.working),
        as_row(images.residual),
        as_row(images.noise),
    )
    group = make_group(positions.shape[1], place.offsets.shape[1], side_by_side(place.offsets[0]))
    shape = (stride, height * stride, sums.shape[1], sums.shape[2])
    _filter_groups(flat, rule, place, shape, positions, chosen, group, as_row(sums), as_row(weights))


@nested
def _filter_groups(images, rule, place, shape, positions, chosen, group, sums, weights):
    """`filter_planes_tile` on flat arrays, with its scratch."""
    stride, plane_size, sums_height, sums_width = shape
    k = positions.shape[1]
    first_plane, top, left = place.corner
    noise = view_at(group.numbers, 2)
    wide = side_by_side(place.offsets[0])
    for r in range(positions.shape[0]):
        change = np.float32(0.0)
        energy = np.float32(0.0)
        for j in range(k):
            at = positions[r, j]
            group.members[j] = at
            noise[j] = images.noise[at]
            change += images.residual[at]
            energy += noise[j]
        of_group = view_at(chosen, r)
        combine(images.pilot, images.working, place.offsets, of_group, change / energy, rule, group)
        for j in range(k):
            at = positions[r, j]
            plane, within = at // plane_size, at % plane_size
            row = (plane - first_plane) * sums_height + within // stride - top
            group.corners[j] = row * sums_width + within % stride - left
            weights[group.corners[j]] += group.factors[0, j]
        put_back(group.estimate, place.places, group.corners, of_group, group.factors, wide, sums)
