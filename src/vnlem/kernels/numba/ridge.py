"""Groups of a tile: each combined and put back, members at their own places and orientations."""

from typing import NamedTuple

import numpy as np

from vnlem.kernels.numba.combine import Rule, combine, make_group
from vnlem.kernels.numba.jit import nested, quick_kernel
from vnlem.kernels.numba.members import put_back
from vnlem.kernels.numba.scratch import as_row, empty, view_at, zeros
from vnlem.kernels.numba.sheets import patch_sums

# Members that are not put back count as noisier: their noise is partly that of members that are.
COPIED_NOISE = np.float32(4.0)


class Ridge(NamedTuple):
    """The groups of a pass and how they are combined."""

    transforms: np.ndarray  # (g, p * p), as in matching
    patch_size: int
    own_rows: int  # rows of the tall arrays that are put back; members from rows below only contribute
    rule: Rule


class Workspace(NamedTuple):
    """What the groups of a tile share."""

    residual: np.ndarray  # (rows, stride): patch sums of the changes so far
    noise_energy: np.ndarray  # (rows, stride): patch sums of the noise variance
    sums: np.ndarray  # (2, stride)
    offsets: np.ndarray  # (g, pixels): of a member's pixels from its corner in a tall array
    places: np.ndarray  # (g, pixels): the same in the accumulators


@quick_kernel
def filter_tile(tall, ridge, positions, chosen, tile):
    """Estimate all groups of a tile and add them up, each member at its own place and orientation.

    tall: the tile's arrays; positions, chosen (r, k) from matching; tile: `Sums` (channels, depth, own rows,
    stride, 2) that is added to. What is added up is the change of the working image: rounding is then in
    proportion to the noise. Channels share their groups; each has its own combination. Returns how many
    members are turned or reflected, or not put back.
    """
    _, depth, rows, stride = tall.pilot.shape
    p = ridge.patch_size
    n_transforms, area = ridge.transforms.shape
    offsets = empty((n_transforms, depth * area), np.int64)
    places = empty((n_transforms, depth * area), np.int64)
    for g in range(n_transforms):
        for plane in range(depth):
            for u in range(area):
                v = ridge.transforms[g, u]
                at = v // p * stride + v % p
                offsets[g, plane * area + u] = plane * rows * stride + at
                places[g, plane * area + u] = 2 * (plane * ridge.own_rows * stride + at)
    work = Workspace(
        zeros((rows, stride), np.float32),
        zeros((rows, stride), np.float32),
        empty((2, stride), np.float32),
        offsets,
        places,
    )
    group = make_group(positions.shape[1], depth * area, p)
    for c in range(tall.pilot.shape[0]):
        _filter_groups(
            (
                view_at(tall.pilot, c),
                view_at(tall.working, c),
                view_at(tall.change, c),
                view_at(tall.variance, c),
            ),
            ridge,
            positions,
            chosen,
            work,
            group,
            as_row(view_at(tile.changes, c)),
            as_row(view_at(tile.weights, c)),
        )
    return _count_moved(positions, chosen, ridge.own_rows * stride)


@nested
def _count_moved(positions, chosen, n_own):
    """Members that are turned or reflected, or not put back."""
    count = 0
    for r in range(positions.shape[0]):
        for j in range(positions.shape[1]):
            count += np.int64(chosen[r, j] > 0) | np.int64(positions[r, j] >= n_own)
    return count


@nested
def _filter_groups(images, ridge, positions, chosen, work, group, sums, weights):
    """`filter_tile` for one channel; sums, weights: flat accumulators."""
    pilot, working, change_map, variance = images
    n_own = ridge.own_rows * pilot.shape[2]
    k = positions.shape[1]
    patch_sums(change_map, ridge.patch_size, work.sums, work.residual)
    patch_sums(variance, ridge.patch_size, work.sums, work.noise_energy)
    residual, noise_energy = as_row(work.residual), as_row(work.noise_energy)
    flat_pilot, flat_working = as_row(pilot), as_row(working)
    noise = view_at(group.numbers, 2)
    for r in range(positions.shape[0]):
        change = np.float32(0.0)
        energy = np.float32(0.0)
        for j in range(k):
            at = positions[r, j]
            group.members[j] = at
            noise[j] = noise_energy[at]
            change += residual[at]
            energy += noise[j]
            if at >= n_own:
                noise[j] *= COPIED_NOISE
        of_group = view_at(chosen, r)
        combine(flat_pilot, flat_working, work.offsets, of_group, change / energy, ridge.rule, group)
        for j in range(k):
            at = positions[r, j]
            group.corners[j] = at if at < n_own else -1
            if at < n_own:
                weights[at] += group.factors[0, j]
        put_back(group.estimate, work.places, group.corners, of_group, group.factors, ridge.patch_size, sums)
