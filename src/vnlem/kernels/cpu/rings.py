"""Ring features of a region: sample, transform, turn into the given frame."""

from typing import NamedTuple

from vnlem.kernels.cpu.declare import Float2, Float3, Float5, Long1, Long2, Long3, Written, kernel


class Sampling(NamedTuple):
    """Where the rings lie, and the transform of their samples (see vnlem.features.rings)."""

    where: Long3  # (samples, 4, [phase y, phase x, dy, dx])
    weights: Float2  # (samples, 4)
    starts: Long1  # (rings + 1), first sample of each ring
    real: Float3  # (rings, orders, samples of a ring, or of a quarter of it)
    imag: Float3
    centre: float  # weight of the central pixel
    lane_of: Long2  # (rings, orders), lane of a coefficient
    centre_lane: int


@kernel
def ring_features(
    planes: Float5,
    angles: Float2,
    halo: int,
    sampling: Sampling,
    raw: Written[Float3],
    canonical: Written[Float3],
) -> None:
    """planes (C, k, k, H + 2 halo, W + 2 halo), angles (H, W) -> raw, canonical (H, >= W, dim).

    sampling: of quarters of the rings. raw may have no rows: then it is not computed.
    """
