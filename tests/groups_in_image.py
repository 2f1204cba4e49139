"""The groups of single reference patches of an image, found by the kernels of a pass."""

import numpy as np
from numpy.typing import NDArray

from vnlem.kernels.cpu.sheets import Images
from vnlem.neighbours.groups import COPIES, Matching, Reach, TileGroups
from vnlem.pipeline.regions import Region
from vnlem.pipeline.tiles import Tile


def groups_in(
    image: NDArray[np.floating],
    references: NDArray[np.int64],
    *,
    patch_size: int,
    radius: int,
    n_members: int,
    group: str,
    factor: float,
    penalty: float,
    variance: float,
) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Groups of some reference patches of an image (channels, H, W), found as one pass finds them.

    Returns the members' corners (r, k, 2) and transforms (r, k). A patch that is not simply shifted ranks
    with factor * d^2 + penalty * noise energy of a patch, from the noise `variance`.

    Examples
    --------
    >>> image = np.random.default_rng(0).normal(size=(1, 20, 20))
    >>> rule = dict(patch_size=4, radius=5, n_members=8, group="d4", factor=1.3, penalty=0.1, variance=1.0)
    >>> corners, transforms = groups_in(image, np.array([[3, 3]]), **rule)
    >>> corners.shape, corners[0, 0]
    ((1, 8, 2), array([3, 3]))
    """
    pixels = np.ascontiguousarray(image, np.float32)
    channels, height, width = pixels.shape
    reach = Reach(patch_size, min(radius, max(height, width) - patch_size), Region.whole(height, width))
    weights, copies = np.ones(channels, np.float32), COPIES.get(group, ())
    matching = Matching(reach, group, n_members, weights, factor, penalty, copies=copies)
    everything = Tile(0, height, 0, width)
    layout = matching.layout(TileGroups(everything, references, everything))
    images = Images(pixels, pixels, pixels, np.full((channels, 1, 1), variance, np.float32))
    members = matching.match(references, layout, layout.tall(images, matching.weights))
    return np.stack(np.divmod(members.positions, layout.stride), axis=-1).astype(np.int64), members.transforms
