"""One pass of ridge estimation over all groups: match (or reuse) the groups of each tile, combine, put back.

Channels share their groups; each has its own combination, since each has its own ratio of signal to noise.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vnlem.estimate.aggregate import Aggregate, Image, TileSums, padded, patch_sums
from vnlem.kernels.numba.match import PADDING
from vnlem.kernels.numba.ridge import filter_tile
from vnlem.neighbours.groups import Matcher, Members, symmetries
from vnlem.neighbours.turned import TurnedCopies
from vnlem.pipeline.progress import ProgressCallback
from vnlem.pipeline.workers import for_each


@dataclass(frozen=True)
class PassSettings:
    """How one pass combines its groups."""

    patch_size: int
    tau: float  # share of the noise that the next working image keeps
    boost: float  # factor on the noise energy in the ridge
    extra_load: float | None  # first pass (no pilot): steadying load in units of the noise energy


class RidgePass:
    """The images of one channel in one pass, laid out for the kernels.

    Parameters
    ----------
    noisy, working, pilot : ndarray
        (H, W).
    variance : ndarray
        (H, W), the noise variance at every pixel.
    group : str
        The symmetries that `Members.transforms` counts in.
    settings : PassSettings
    copies : TurnedCopies or None
        Present when members may lie in turned copies.
    """

    def __init__(
        self,
        noisy: Image,
        working: Image,
        pilot: Image,
        variance: Image,
        *,
        group: str,
        settings: PassSettings,
        copies: TurnedCopies | None,
    ) -> None:
        self._settings = settings
        self._working_plain = working
        self._transforms = symmetries(group, settings.patch_size)
        self._residual = self._patch_map((noisy.astype(np.float64) - working) ** 2, copies)
        self._noise = self._patch_map(variance.astype(np.float64), copies)
        self._pilot = padded(pilot if copies is None else copies.stack(pilot[None])[0])
        self._working = padded(working if copies is None else copies.stack(working[None])[0])
        height, width = noisy.shape
        self._n_own = height * self._pilot.shape[1]
        self._aggregate = Aggregate(height, width)

    def _patch_map(self, values: NDArray[np.float64], copies: TurnedCopies | None) -> Image:
        """Patch sums of a map, with the images' stride; turned copies see the map turned, never negative."""
        if copies is not None:
            values = np.maximum(copies.stack(values[None].astype(np.float32))[0], values.min())
        sums = patch_sums(values, self._settings.patch_size)
        result = np.zeros((sums.shape[0], values.shape[1] + PADDING), np.float32)
        result[:, : sums.shape[1]] = sums
        return result

    def add_tile(self, index: int, members: Members) -> None:
        """Estimate the groups of one tile and hand them to the aggregate."""
        patch_size = self._settings.patch_size
        stride = self._pilot.shape[1]
        own = members.positions[members.positions < self._n_own]
        rows, columns = own // stride, own % stride
        top, left = int(rows.min()), int(columns.min())
        sums = TileSums.empty(
            (top, left), int(rows.max()) + patch_size - top, int(columns.max()) + patch_size - left
        )
        settings = self._settings
        filter_tile(
            self._pilot,
            self._working,
            self._residual,
            self._noise,
            self._transforms,
            patch_size,
            members.positions,
            members.transforms,
            settings.extra_load is not None,
            np.float32(settings.extra_load or 0.0),
            np.float32(settings.boost),
            np.float32(settings.tau),
            self._n_own,
            top,
            left,
            sums.sums,
            sums.weights,
        )
        self._aggregate.add(index, sums)

    def count_turned(self, members: Members) -> int:
        """How many members are turned or reflected."""
        return int(np.count_nonzero((members.transforms > 0) | (members.positions >= self._n_own)))

    def images(self) -> tuple[Image, Image]:
        """The new pilot and the new working image."""
        return self._aggregate.images(self._working_plain, self._settings.patch_size)


def run_pass(
    channels: Sequence[RidgePass],
    references: Sequence[NDArray[np.int64]],
    groups: "Matcher | Sequence[Members]",
    workers: int,
    progress: ProgressCallback | None,
    keep: list[Members | None] | None = None,
    order: Sequence[int] | None = None,
) -> tuple[Image, Image, tuple[int, int]]:
    """Work through all tiles.

    Parameters
    ----------
    channels : sequence of RidgePass
        One for each channel.
    references : sequence of ndarray
        Reference patches per tile.
    groups : Matcher or sequence of Members
        Where the groups come from: matched here, or those of an earlier pass.
    workers, progress
        As in :func:`vnlem.pipeline.workers.for_each`.
    keep : list, optional
        Filled with the groups of each tile, for a later pass.
    order : sequence of int, optional
        The order of work; the result does not depend on it.

    Returns
    -------
    pilot, working : ndarray
        (channels, H, W).
    counts : (int, int)
        Members that are turned or reflected, and all members.
    """
    turned = np.zeros(len(references), np.int64)
    total = np.zeros(len(references), np.int64)

    def work(index: int) -> None:
        members = groups.match(references[index]) if isinstance(groups, Matcher) else groups[index]
        if keep is not None:
            keep[index] = members
        turned[index] = channels[0].count_turned(members)
        total[index] = members.positions.size
        for channel in channels:
            channel.add_tile(index, members)

    for_each(work, list(range(len(references)) if order is None else order), workers, progress)
    images = [channel.images() for channel in channels]
    pilot, working = (np.stack(planes) for planes in zip(*images, strict=True))
    return pilot, working, (int(turned.sum()), int(total.sum()))
