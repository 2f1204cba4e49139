"""The graph of all pairs of pixels within a search window, stored and applied as a stencil."""

from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from vnlem.diffusion.blocks import Block, Rows
from vnlem.kernels.cpu import affinity
from vnlem.kernels.cpu import stencil as kernels
from vnlem.pipeline.workers import Pool

# Rows of the image per task, an even number. Fixed, because sums must not depend on the number of workers.
STRIP = 16
# Below this many vertices, waking threads costs more time than they save.
MANY = 20_000
ALONE = Pool(1)


def forward_offsets(reach: int) -> NDArray[np.int64]:
    """Offsets (dy, dx) of the half of the window that follows a pixel in reading order.

    >>> forward_offsets(1).tolist()
    [[0, 1], [1, -1], [1, 0], [1, 1]]
    """
    steps = range(-reach, reach + 1)
    pairs = [(dy, dx) for dy in range(reach + 1) for dx in steps if (dy, dx) > (0, 0)]
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)


def _whole_groups(n: int) -> int:
    return kernels.TOGETHER * -(-n // kernels.TOGETHER)


class StencilGraph:
    """Symmetric weights between every pixel and those at most `reach` rows and columns away.

    height, width: size of the image.
    pool: the threads of every method; results do not depend on their number.

    weights: (padded rows, padded columns, slots), 231 MB for an image of 512x512 with reach 10.
    slots: (padded rows, slots, padded columns), the same numbers, in the form ``vnlem.kernels.cpu.stencil``
        takes.

    >>> graph = StencilGraph(2, 3, reach=1)
    >>> graph.inside(graph.weights)[...] = 1  # every slot, also those that leave the image
    >>> graph.clip()
    >>> graph.degrees().astype(int).tolist()
    [4, 6, 4, 4, 6, 4]
    """

    def __init__(self, height: int, width: int, reach: int, pool: Pool = ALONE) -> None:
        self.height, self.width, self.reach, self.pool = height, width, reach, pool
        # Whole groups of pixels, also in the padding.
        self.stride = _whole_groups(_whole_groups(width) + 2 * reach)
        self.size = kernels.PaddedSize(height, width, reach, self.stride)
        self.forward = forward_offsets(reach)
        self.itself = len(self.forward)  # slot of the pixel's own weight
        self.slots = np.zeros((height + 2 * reach, self.itself + 1, self.stride), dtype=np.float32)
        self.weights = self.slots.transpose(0, 2, 1)

    @property
    def padded_size(self) -> int:
        return (self.height + 2 * self.reach) * self.stride

    @property
    def n_vertices(self) -> int:
        return self.height * self.width

    @property
    def shape(self) -> tuple[int, int]:
        return (self.n_vertices, self.n_vertices)

    @property
    def _rows(self) -> tuple[int, int]:
        return (self.reach, self.reach + self.height)

    @cached_property
    def _strips(self) -> list[tuple[int, int]]:
        """Rows first to last of each."""
        return [(row, min(row + STRIP, self.height)) for row in range(0, self.height, STRIP)]

    def pad(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        """Vectors (pixels, n) of the image with zeros around it."""
        padded = np.zeros((self.padded_size, values.shape[1]), dtype=np.float32)
        self.inside(padded)[...] = values.reshape(self.height, self.width, -1)
        return padded

    def inside(self, padded: NDArray[Any]) -> NDArray[Any]:
        """View (height, width, n) of the image in a padded array."""
        whole = padded.reshape(self.height + 2 * self.reach, self.stride, -1)
        return whole[slice(*self._rows), self.reach : self.reach + self.width]

    def clip(self) -> None:
        """Set the weights of neighbours outside the image to zero."""
        inside = self.inside(self.weights)
        for slot, (dy, dx) in enumerate(self.forward):
            inside[max(self.height - dy, 0) :, :, slot] = 0
            if dx > 0:
                inside[:, max(self.width - dx, 0) :, slot] = 0
            elif dx < 0:
                inside[:, :-dx, slot] = 0

    def apply(self, vectors: NDArray[np.float32], out: NDArray[np.float32]) -> None:
        """out = W @ vectors, both padded."""
        first, last = (row * self.stride for row in self._rows)
        out[:first] = 0
        out[last:] = 0
        self.pool.for_each(
            lambda rows: kernels.apply_stencil(self.slots, self.size, vectors, *rows, out), self._strips
        )

    def __matmul__(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        """W @ vectors for plain vectors (pixels, n)."""
        count = vectors.shape[1]
        padded = self.pad(np.pad(np.asarray(vectors, dtype=np.float32), ((0, 0), (0, -count % 8))))
        out = np.empty_like(padded)
        self.apply(padded, out)
        return self.inside(out).reshape(self.n_vertices, -1)[:, :count]

    def degrees(self) -> NDArray[np.float64]:
        """Sum of the weights of every pixel."""
        out = np.zeros((self.height + 2 * self.reach, self.stride))
        self.pool.for_each(
            lambda rows: kernels.stencil_degrees(self.slots, self.size, *rows, out), self._strips
        )
        return self.inside(out)[:, :, 0].ravel()

    def scale(self, factors: NDArray[np.float64]) -> None:
        """W = diag(factors) W diag(factors), in place."""
        padded = self.pad(factors.astype(np.float32)[:, None])[:, 0]
        self.pool.for_each(
            lambda rows: kernels.scale_stencil(self.slots, self.size, padded, *rows), self._strips
        )

    def local_scales(self, noise: float, count: int) -> NDArray[np.float64]:
        """The count-th smallest of each pixel's squared distances, minus the noise; the slots hold them."""
        out = np.empty(self.padded_size, dtype=np.float32)
        self.pool.for_each(
            lambda rows: affinity.local_scales(self.slots, self.size, noise, count, *rows, out), self._strips
        )
        return self.inside(out)[:, :, 0].ravel().astype(np.float64)

    def gaussian(self, inverse_scales: NDArray[np.float64], noise: float) -> None:
        """Turn squared distances into weights exp(-max(d^2 - noise, 0) * inverse_i * inverse_j), in place."""
        inverse = self.pad(inverse_scales.astype(np.float32)[:, None])[:, 0]
        self.pool.for_each(
            lambda rows: affinity.gaussian_weights(self.slots, self.size, inverse, noise, *rows), self._strips
        )

    def coarsened(self) -> "StencilGraph":
        """The graph between blocks of 2x2 pixels: weights added up (P^T W P)."""
        height, width = -(-self.height // 2), -(-self.width // 2)
        pool = self.pool if height * width >= MANY else ALONE
        coarse = StencilGraph(height, width, (self.reach + 1) // 2, pool)
        self.pool.for_each(
            lambda rows: kernels.coarsen_stencil(self.slots, self.size, *rows, coarse.slots, coarse.size),
            self._strips,
        )
        return coarse

    def rows(self) -> Rows:
        """The algebra of blocks of vectors on this graph's pixels."""
        return Rows(self.padded_size, self.pool)

    def restrict(self, fine: Block, share: NDArray[np.float32], coarser: "StencilGraph", out: Block) -> None:
        """out = sums over blocks of 2x2 pixels of share * fine, on the coarsened graph."""
        first, last = (row * coarser.stride for row in coarser._rows)
        out[:first] = 0
        out[last:] = 0

        def work(rows: tuple[int, int]) -> None:
            out[first + rows[0] * coarser.stride : first + rows[1] * coarser.stride] = 0
            kernels.restrict(fine, share, self.size, *rows, out, coarser.size)

        self.pool.for_each(work, coarser._strips)

    def prolong(
        self, coarse: Block, coarser: "StencilGraph", share: NDArray[np.float32], fine: Block
    ) -> None:
        """fine += share * the coarsened graph's vectors at each pixel's block."""
        self.pool.for_each(
            lambda rows: kernels.prolong(coarse, coarser.size, share, self.size, *rows, fine), coarser._strips
        )

    def sparse(self) -> Any:
        """The graph as a scipy.sparse matrix, for small images."""
        number = np.arange(self.n_vertices).reshape(self.height, self.width)
        inside = self.inside(self.weights)
        here, there, values = [number.ravel()], [number.ravel()], [inside[..., self.itself].ravel()]
        for slot, (dy, dx) in enumerate(self.forward):
            before, after = max(-dx, 0), self.width - max(dx, 0)
            if dy >= self.height or after <= before:
                continue
            here.append(number[: self.height - dy, before:after].ravel())
            there.append(number[dy:, before + dx : after + dx].ravel())
            values.append(inside[: self.height - dy, before:after, slot].ravel())
        rows, columns = np.concatenate(here + there[1:]), np.concatenate(there + here[1:])
        entries = np.concatenate(values + values[1:]).astype(np.float64)
        return scipy.sparse.coo_array((entries, (rows, columns)), shape=self.shape).tocsr()

    def count_components(self) -> int:
        """Number of connected components."""
        return kernels.count_components(self.slots, self.size)
