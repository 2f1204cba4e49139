"""VNLR on a CUDA device: the passes of `vnlr_passes`, all images and groups kept on the device."""

from functools import lru_cache, partial
from typing import Any

import numpy as np

from vnlem.estimate import change, contrast, flux
from vnlem.kernels.cuda.change import shrink_change
from vnlem.kernels.cuda.engine import Engine, compiled_at_once
from vnlem.kernels.cuda.filters import correlate_lines
from vnlem.kernels.cuda.match import Field, Members, match
from vnlem.kernels.cuda.patches import (
    Sums,
    largest_magnitude,
    patch_energy,
    patch_maps,
    patch_penalty,
    weighted_means,
)
from vnlem.kernels.cuda.ridge import Images, Rule, Symmetries, combine, empty_sums
from vnlem.methods.cuda.retry_in_parts import in_regions
from vnlem.methods.cuda.turned import Batch, CopiedTiles, DevicePlanes, Lines, whole_batch
from vnlem.methods.vnlr_params import VnlrParams
from vnlem.methods.vnlr_passes import SHARPER, SMOOTHER, halo, matching_of, needed_areas
from vnlem.neighbours.groups import MOST_COPIED, Matching, needed_positions, symmetries
from vnlem.noise.components import OPPONENT
from vnlem.pipeline.device import to_host
from vnlem.pipeline.regions import Region
from vnlem.pipeline.run import Job
from vnlem.pipeline.tiles import Tile

Array = Any  # of the engine's library


@lru_cache(maxsize=64)  # a call on a small image waits for the host
def _symmetries(group: str, patch_size: int) -> Symmetries:
    return Symmetries.of(symmetries(group, patch_size))


@in_regions(halo)
@compiled_at_once
def solve(job: Job[VnlrParams], engine: Engine) -> Array:
    """The schedule of passes; `job.pixels` is an array of the device and so is the result."""
    xp, params = engine.xp, job.params
    region = job.region or Region.whole(*job.pixels.shape[1:])
    noisy, variance = _to_opponent(xp, job)
    matchings = [
        matching_of(params, number, region, len(noisy), job.sigma) for number in range(params.passes + 1)
    ]
    areas = needed_areas(params, matchings, region)
    # Opponent colours are rotations of the colours: at most the root of three larger.
    largest = 3**0.5 * max(job.peak or largest_magnitude(engine, job.pixels), 1e-20)
    planes = DevicePlanes(noisy, noisy, noisy, variance, job.sigma_map is not None, {})
    members: list[Members] | None = None
    lines = Lines(np.arange(0), np.arange(0))
    smoother = None
    turned = []
    for number, matching in enumerate(matchings):
        first = number == 0
        if first or number in params.rematch:
            members = None
            lines = _references(matching, params.first_step if first else params.step, areas[number + 1])
        rule = Rule(
            params.patch_sizes[number],
            params.noise_kept * (1 - number / params.passes),
            params.boost,
            params.extra_load if first else None,
            colour_boost=params.colour_boost,
            window=params.window,
        )
        n_members = matching.group_size()
        room = partial(empty_sums, engine, noisy.shape, n_members, _cover(params, number, n_members), largest)
        if number == params.passes and params.aim == "perception":
            sums, smooth = room(), rule._replace(boost=SMOOTHER)
            members = _run_pass(engine, planes, matching, smooth, lines, members, sums)
            smoother, _ = weighted_means(engine, sums, planes.working, rule.taps())
            rule = rule._replace(boost=SHARPER)
        sums = room()
        members = _run_pass(engine, planes, matching, rule, lines, members, sums)
        turned.append(([some.turned for some in members], sum(some.positions.size for some in members)))
        pilot, working = weighted_means(engine, sums, planes.working, rule.taps())
        planes = planes._replace(pilot=pilot, working=working)
        if job.progress is not None:
            xp.cuda.get_current_stream().synchronize()
            job.progress(number + 1, params.passes + 1)
    job.details["turned_share"] = partial(_shares, turned)
    pilot = planes.pilot
    if smoother is not None:
        pilot = contrast.restore_contrast(smoother, pilot, noisy, variance, partial(_smooth, engine))
    if params.aim == "flux":
        pilot = flux.restore_flux(pilot, noisy, variance, partial(_smooth, engine))
    limits = (change.NOTHING, change.EVERYTHING)
    return _from_opponent(xp, shrink_change(engine, noisy, pilot, variance, change.REACH, limits))


def _shares(turned: list[tuple[list[Array], int]]) -> list[float]:
    """The share of turned members in each pass; waits for the device."""
    return [sum(int(to_host(count)[0]) for count in counts) / total for counts, total in turned]


def _smooth(engine: Engine, planes: Array, width: float) -> Array:
    """`vnlem.estimate.contrast.smooth` on a device."""
    taps = contrast.gaussian(width)
    return correlate_lines(engine, correlate_lines(engine, planes, taps, 1), taps, 2)


def _references(matching: Matching, step: int, needed: Tile) -> Lines:
    """The reference patches whose groups may reach a needed pixel."""
    ends = (needed.top, needed.bottom), (needed.left, needed.right)
    return Lines(*(needed_positions(matching.reach, step, axis, own) for axis, own in enumerate(ends)))


def _run_pass(
    engine: Engine,
    planes: DevicePlanes,
    matching: Matching,
    rule: Rule,
    lines: Lines,
    members: list[Members] | None,
    sums: Sums,
) -> list[Members]:
    """Add the estimates of all groups to `sums`; returns the groups, those given or new ones, in batches."""
    tiles = CopiedTiles(engine, planes, matching, lines) if matching.copies else None
    turns = _symmetries(matching.group, rule.patch_size)
    found = [] if members is None else members
    batches = [whole_batch(engine, lines, matching)] if tiles is None else tiles.batches(members is None)
    for number, batch in enumerate(batches):
        if tiles is not None:
            tiles.fill(batch)
        if members is None:
            found.append(_find_groups(engine, planes, matching, batch, tiles, rule.extra_load is not None))
        if tiles is None:
            images = Images(planes.pilot, planes.working, *_maps(engine, planes, rule.patch_size))
        else:
            images = tiles.images()
        combine(engine, images, found[number], turns, rule, sums)
    return found


def _maps(engine: Engine, planes: DevicePlanes, size: int) -> tuple[Array, Array]:
    """`patch_maps` of the image; the noise of its patches is the same in all passes."""
    known = planes.maps.get(size)
    planes.maps.clear()
    given = planes.noisy, planes.working, planes.variance
    planes.maps[size] = patch_maps(engine, *given, size, into=known, noise_too=known is None)
    return planes.maps[size]


def _find_groups(
    engine: Engine,
    planes: DevicePlanes,
    matching: Matching,
    batch: Batch,
    tiles: CopiedTiles | None,
    first: bool,
) -> Members:
    """Match on the pilot (on the noisy image in the first pass)."""
    xp, size = engine.xp, matching.reach.patch_size
    weights = matching.weights.reshape(-1, 1, 1)
    compared = [channel for channel, weight in enumerate(matching.weights) if weight != 0]
    factors = engine.constant(weights[compared])
    if len(weights) == 1:
        own, noise = planes.pilot, planes.variance[0]
    else:
        own = xp.ascontiguousarray(planes.pilot[compared] * factors)
        noise = (planes.variance[compared] * factors**2).sum(axis=0)
    flat = matching.flat_energy if first else None
    penalty = patch_penalty(engine, own, noise, size, share=matching.penalty, flat=flat)
    if tiles is None:
        image, energy = own, patch_energy(engine, own, size)
    else:
        image, energy = tiles.compared(compared, factors)
    n_members = matching.group_size()
    field = Field(
        image=image,
        sizes=engine.constant(np.array([own.shape[1:]], np.int32)),
        energy=energy,
        penalty=penalty,
        back=_symmetries(matching.group, size).back,
        patch_size=size,
        radius=matching.reach.radius,
        factor=matching.factor,
        n_copied=max(1, int(MOST_COPIED * n_members)),
        copied_radius=matching.copied_reach().radius,
        moves=matching.moves(matching.reach.region.read),
    )
    return match(engine, field, batch.references, n_members, copies=batch.centres)


def _cover(params: VnlrParams, number: int, n_members: int) -> int:
    """A bound of the members that cover a pixel."""
    first = number == 0
    step = params.first_step if first else params.step
    radius = params.first_patch_distance if first else params.patch_distance
    size = params.patch_sizes[number]
    # Windows move inwards at the border: a pixel there lies in up to twice as many along each axis.
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
