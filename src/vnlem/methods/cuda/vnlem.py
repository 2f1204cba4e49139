"""VNLEM on a CUDA device: features in canonical frames, neighbours by RID, gamma-power regression."""

from functools import partial
from typing import Any

import numpy as np

from vnlem.features import orientation
from vnlem.features.canonical import disc_share
from vnlem.features.ring_sampling import dft
from vnlem.features.rings import RingLayout, sampling_of
from vnlem.features.upsample import phase_filters
from vnlem.kernels.cuda.aligned import Regression, estimate
from vnlem.kernels.cuda.engine import Engine, compiled_at_once
from vnlem.kernels.cuda.orientation import directions, gradients
from vnlem.kernels.cuda.rid import Features, Search, neighbours
from vnlem.kernels.cuda.rings import ring_features
from vnlem.kernels.cuda.surround import grey, planes, sharpness
from vnlem.methods.cuda.retry_in_parts import in_regions
from vnlem.methods.vnlem import combined, halo
from vnlem.methods.vnlem_params import VnlemParams, make_rule, rings_of, search_of
from vnlem.neighbours.window import column_tables
from vnlem.pipeline.progress import ProgressCallback
from vnlem.pipeline.run import Job

Array = Any  # of the engine's library

# Bytes of features that are held at a time; the image is processed in bands of rows.
BAND_BYTES = 2**30


@in_regions(halo)
@compiled_at_once
def solve(job: Job[VnlemParams], engine: Engine) -> Array:
    """One estimate, the mean of a fine and a coarse one, or several combined."""
    if job.params.search == "image":
        raise ValueError("search='image' runs on the CPU only; pass device='cpu' or search='window'")
    return combined(job, partial(_solve_one_size, engine))


def _solve_one_size(
    engine: Engine, job: Job[VnlemParams], params: VnlemParams, progress: ProgressCallback | None
) -> Array:
    """Algorithm 1, band by band: (bandwidths, channels, height, width)."""
    layout = rings_of(params, len(job.pixels))
    _, height, width = job.pixels.shape
    search, regressions = search_and_regressions(job, params, layout, (height, width))
    reach = search.patch_distance
    rows = max(BAND_BYTES // (8 * layout.dim * width) - 2 * reach, 16)
    out = engine.xp.empty((len(regressions), *job.pixels.shape), np.float32)
    for top in range(0, height, rows):
        bottom = min(top + rows, height)
        around = (max(top - reach, 0), min(bottom + reach, height))
        features = features_of(engine, job.pixels, around, layout, params)
        band = (top - around[0], bottom - around[0])
        found = neighbours(engine, features, search, *band)
        for number, regression in enumerate(regressions):
            out[number, :, top:bottom] = estimate(engine, features, found, regression, band)
        if progress is not None:
            progress(bottom, height)
    return out


def features_of(
    engine: Engine, pixels: Array, rows: tuple[int, int], layout: RingLayout, params: VnlemParams
) -> Features:
    """Features of the pixels of some rows of an image (channels, height, width)."""
    xp, size = engine.xp, layout.patch_size
    pixels = xp.ascontiguousarray(pixels)
    around = grey(engine, pixels, rows, orientation.halo(params.scale, size))
    gauss, slope = orientation.gaussian(params.scale)
    angle = directions(
        engine,
        *gradients(engine, around, gauss, slope, orientation.SMALLEST_GRADIENT),
        orientation.disc(size),
        orientation.taper(params.arc),
    )
    fine = planes(engine, pixels, rows, layout.halo, phase_filters(layout.upsample, layout.average_down))
    sampling = sampling_of(layout, dft)
    raw, canonical, lengths = ring_features(engine, fine, angle, sampling, layout.halo, layout.lanes)
    if layout.average_down:
        sharp = xp.zeros_like(lengths)
    else:
        sharp = sharpness(engine, pixels, rows, layout.n_rings, lengths, disc_share(size, len(pixels)))
    own = xp.ascontiguousarray(pixels[:, rows[0] : rows[1]])
    return Features(raw, canonical, lengths, sharp, angle, own)


def search_and_regressions(
    job: Job[Any], params: VnlemParams, layout: RingLayout, shape: tuple[int, int]
) -> tuple[Search, list[Regression]]:
    """The CPU's search and rule as the kernels here take them, with a regression for each bandwidth."""
    search, rule = search_of(params, layout, shape), make_rule(params, job.sigma, layout)
    cosine, sine = column_tables(search.angles)
    margin = (float(rule.factor), float(rule.offset)) if rule.with_margin else None
    return Search(
        patch_distance=search.patch_distance,
        n_candidates=search.n_candidates,
        n_neighbors=search.n_neighbors,
        with_identity=search.with_identity,
        starts=search.angles.starts,
        rows=search.angles.rows,
        cosine=cosine,
        sine=sine,
        margin=margin,
    ), [
        Regression(
            noise=float(rule.noise),
            inverse_bandwidth=float(inverse_bandwidth),
            own_as_best=rule.own_as_best,
            gamma=float(rule.gamma),
            step=float(rule.step),
            unturned=search.with_identity,
            orders=np.tile(layout.lane_order, layout.channels),
            cosine=search.cos,
            sine=search.sin,
        )
        for inverse_bandwidth in rule.inverse_bandwidths
    ]
