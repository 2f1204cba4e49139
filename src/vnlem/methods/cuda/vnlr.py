"""VNLR on a CUDA device: the passes of `vnlem.methods.vnlr`, all images and groups kept on the device."""

from typing import Any

import numpy as np

from vnlem.kernels.cuda.engine import Engine, compiled_at_once
from vnlem.kernels.cuda.match import Field, Members, References, match
from vnlem.kernels.cuda.patches import (
    largest_magnitude,
    patch_energy,
    patch_maps,
    patch_penalty,
    weighted_means,
)
from vnlem.kernels.cuda.ridge import Images, Rule, combine, empty_sums
from vnlem.methods.vnlr import OPPONENT, VnlrParams, matching_weights
from vnlem.neighbours.groups import MOST_COPIED, grid_positions, symmetries
from vnlem.neighbours.turned_image import TURNS, TurnedCopies
from vnlem.pipeline.device import to_host
from vnlem.pipeline.run import Job

Array = Any  # of the engine's library


@compiled_at_once
def solve(job: Job[VnlrParams], engine: Engine) -> Array:
    """The schedule of passes; `job.pixels` is an array of the device and so is the result."""
    xp, params = engine.xp, job.params
    noisy, variance = _to_opponent(xp, job)
    largest = max(largest_magnitude(engine, noisy), 1e-30)
    pilot = working = noisy
    members: Members | None = None
    turned = []
    for number in range(params.passes + 1):
        first = number == 0
        group = "d4" if first and params.group == "so2" else params.group
        copies = TurnedCopies(noisy.shape[1], noisy.shape[2], TURNS) if group == "so2" else None
        if first or number in params.rematch:
            members = _find_groups(engine, pilot, variance, params, number, group, copies)
        assert members is not None
        turned.append((members.turned, members.positions.size))
        rule = Rule(
            params.patch_sizes[number],
            params.noise_kept * (1 - number / params.passes),
            params.boost,
            params.extra_load if first else None,
        )
        images = _images(engine, noisy, working, pilot, variance, copies, rule.patch_size)
        n_members = members.positions.shape[1]
        sums = empty_sums(engine, noisy.shape, n_members, _cover(params, number, n_members), largest)
        combine(engine, images, members, symmetries(group, rule.patch_size), rule, sums)
        pilot, working = weighted_means(engine, sums, working, rule.patch_size)
        if job.progress is not None:
            xp.cuda.get_current_stream().synchronize()
            job.progress(number + 1, params.passes + 1)
    job.details["turned_share"] = [int(to_host(count)[0]) / total for count, total in turned]
    return _from_opponent(xp, pilot)


def _find_groups(
    engine: Engine,
    pilot: Array,
    variance: Array,
    params: VnlrParams,
    number: int,
    group: str,
    copies: TurnedCopies | None,
) -> Members:
    """Match on the pilot (on the noisy image in the first pass)."""
    xp, first = engine.xp, number == 0
    size = params.patch_sizes[number]
    channels, height, width = pilot.shape
    weights = matching_weights(channels, first)
    compared = [channel for channel in range(channels) if weights[channel] != 0]
    if channels == 1:
        image, noise = pilot, variance[0]
    else:
        factors = xp.asarray(weights[compared])
        image = xp.ascontiguousarray(pilot[compared] * factors)
        noise = (variance[compared] * factors**2).sum(axis=0)
    penalty = patch_penalty(
        engine,
        image,
        noise,
        size,
        share=params.first_match_penalty if first else params.match_penalty,
        flat=params.flat_energy if first else None,
    )
    step = params.first_step if first else params.step
    radius = min(params.first_patch_distance if first else params.patch_distance, max(height, width) - size)
    rows, columns = (grid_positions(extent - size + 1, step) for extent in (height, width))
    references = References(xp.asarray(rows.astype(np.int32)), xp.asarray(columns.astype(np.int32)))
    candidates = min(2 * radius + 1, height - size + 1) * min(2 * radius + 1, width - size + 1)
    n_members = min(params.first_n_neighbors if first else params.n_neighbors, candidates)
    outside = centres = None
    if copies is not None:
        corners = np.stack(np.meshgrid(rows, columns, indexing="ij"), axis=-1).reshape(-1, 2)
        centres = xp.asarray(copies.centres(corners, size).astype(np.int32))
        image = copies.stack(image)
        outside = xp.asarray(copies.outside().astype(np.uint8))
    field = Field(
        image,
        patch_energy(engine, image, size, outside),
        penalty,
        np.argsort(symmetries(group, size), axis=1).astype(np.int16),
        [(0, height, width)] if copies is None else copies.sheets(),
        centres,
        size,
        radius,
        1.0 if first else params.match_factor,
        max(1, int(MOST_COPIED * n_members)),
    )
    return match(engine, field, references, n_members)


def _images(
    engine: Engine,
    noisy: Array,
    working: Array,
    pilot: Array,
    variance: Array,
    copies: TurnedCopies | None,
    patch_size: int,
) -> Images:
    """What groups are combined from, with the turned copies where there are any."""
    if copies is None:
        return Images(pilot, working, *patch_maps(engine, noisy, working, variance, patch_size))
    xp = engine.xp
    changed = ((noisy.astype(np.float64) - working) ** 2).astype(np.float32)

    def stacked(values: Array) -> Array:
        least = values.min(axis=(1, 2), keepdims=True)
        return xp.maximum(copies.stack(values), least)

    maps = patch_maps(engine, None, stacked(changed), stacked(variance), patch_size)
    return Images(copies.stack(pilot), copies.stack(working), *maps)


def _cover(params: VnlrParams, number: int, n_members: int) -> int:
    """A bound of the members that cover a pixel."""
    first = number == 0
    step = params.first_step if first else params.step
    radius = params.first_patch_distance if first else params.patch_distance
    size = params.patch_sizes[number]
    # Windows are moved inwards at the border: a pixel there lies in up to twice as many along each axis.
    along = (4 * radius + 2 * size) // step + 3
    return along**2 * min(n_members, size**2)


def _to_opponent(xp: Any, job: Job[VnlrParams]) -> tuple[Array, Array]:
    """The image, and its noise variance per pixel, in the space where patches are compared and combined."""
    if job.sigma_map is None:
        variance = xp.full(job.pixels.shape, max(np.float32(job.sigma) ** 2, np.float32(1e-30)), np.float32)
    else:
        variance = xp.broadcast_to(job.sigma_map**2, job.pixels.shape)
        variance = xp.maximum(variance, np.float32(max(1e-6 * job.sigma**2, 1e-30)))
    if job.pixels.shape[0] != 3:
        return xp.ascontiguousarray(job.pixels), xp.ascontiguousarray(variance)
    turned = xp.tensordot(xp.asarray(OPPONENT), job.pixels.astype(np.float64), axes=1).astype(np.float32)
    return turned, xp.tensordot(xp.asarray(OPPONENT**2), variance.astype(np.float64), axes=1).astype(
        np.float32
    )


def _from_opponent(xp: Any, planes: Array) -> Array:
    if planes.shape[0] != 3:
        return planes
    return xp.tensordot(xp.asarray(OPPONENT.T), planes.astype(np.float64), axes=1).astype(np.float32)
