"""The graph of `vnlem.diffusion.stencil` and blocks of vectors on it, on a CUDA device.

Small matrices and numbers per pixel are copied to the host: the eigen-solver is the same as on the CPU.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vnlem.diffusion.blocks import Numbers, Rooms
from vnlem.diffusion.stencil import StencilGraph, forward_offsets
from vnlem.kernels.cuda import stencil as kernels
from vnlem.kernels.cuda.engine import Engine
from vnlem.pipeline.device import to_host

Array = Any  # of the engine's library


class DeviceGraph:
    """Symmetric weights between every pixel and those at most `reach` rows and columns away.

    The methods are those of `StencilGraph`; nothing is padded. Degrees and factors lie on the host.
    """

    def __init__(self, engine: Engine, graph: kernels.Stencil) -> None:
        self._engine, self._graph = engine, graph
        self.reach = graph.reach
        _, self.height, self.width = graph.weights.shape

    @property
    def n_vertices(self) -> int:
        return int(self.height * self.width)

    def rows(self) -> "DeviceRows":
        """The algebra of blocks of vectors on this graph's pixels."""
        return DeviceRows(self._engine, self.n_vertices)

    def pad(self, values: NDArray[np.float32]) -> Array:
        """Vectors (pixels, n) on the device."""
        return self._engine.xp.asarray(np.ascontiguousarray(values))

    def inside(self, vectors: Array) -> Array:
        """View (height, width, n)."""
        return vectors.reshape(self.height, self.width, -1)

    def apply(self, vectors: Array, out: Array) -> None:
        """out = W @ vectors."""
        kernels.apply(self._engine, self._graph, vectors, out)

    def degrees(self) -> Numbers:
        """Sum of the weights of every pixel."""
        found: Numbers = to_host(kernels.degrees(self._engine, self._graph))
        return found

    def scale(self, factors: Numbers) -> None:
        """W = diag(factors) W diag(factors), in place."""
        kernels.scale(self._engine, self._graph, self.pad(factors.astype(np.float32)))

    def local_scales(self, noise: float, count: int) -> Numbers:
        """The count-th smallest of each pixel's squared distances, minus the noise; the graph holds them."""
        found = to_host(kernels.local_scales(self._engine, self._graph, noise, count))
        return np.asarray(found, np.float64)

    def gaussian(self, inverse_scales: Numbers, noise: float) -> None:
        """Turn squared distances into weights, in place."""
        kernels.gaussian(self._engine, self._graph, self.pad(inverse_scales.astype(np.float32)), noise)

    def coarsened(self) -> "DeviceGraph":
        """The graph between blocks of 2x2 pixels."""
        return DeviceGraph(self._engine, kernels.coarsened(self._engine, self._graph))

    def count_components(self) -> int:
        """Number of connected components."""
        return kernels.count_parts(self._engine, self._graph)

    def sparse(self) -> Any:
        """The graph as a scipy.sparse matrix on the host, for small images."""
        graph = StencilGraph(self.height, self.width, self.reach)
        slots = to_host(self._graph.weights)
        assert len(slots) == len(forward_offsets(self.reach)) + 1
        graph.inside(graph.weights)[...] = np.moveaxis(slots, 0, -1)
        return graph.sparse()

    def restrict(self, fine: Array, share: Array, coarser: "DeviceGraph", out: Array) -> None:
        """out = sums over blocks of 2x2 pixels of share * fine, on the coarsened graph."""
        xp = self._engine.xp
        wide = xp.zeros((2 * coarser.height, 2 * coarser.width, fine.shape[1]), np.float32)
        wide[: self.height, : self.width] = self.inside(fine * share[:, None])
        first, second = wide[0::2], wide[1::2]
        out[:] = ((first[:, 0::2] + first[:, 1::2]) + (second[:, 0::2] + second[:, 1::2])).reshape(out.shape)

    def prolong(self, coarse: Array, coarser: "DeviceGraph", share: Array, fine: Array) -> None:
        """fine += share * what the coarsened graph's vectors are in each pixel's block."""
        blocks = coarser.inside(coarse).repeat(2, axis=0)[: self.height].repeat(2, axis=1)[:, : self.width]
        fine += blocks.reshape(fine.shape) * share[:, None]


class DeviceRows(Rooms):
    """Operations on the blocks of one graph, as in `blocks.Rows`. Float32 vectors, float64 inner products."""

    def __init__(self, engine: Engine, n: int) -> None:
        super().__init__(n, engine.xp)

    def clear(self, block: Array) -> None:
        """Set a block to zero."""
        block[:] = 0

    def copied(self, block: Array, name: str) -> Array:
        """A block's numbers in the room of that name."""
        out = self.room(name, block.shape[1])
        out[:] = block
        return out

    def inner(self, lefts: Sequence[Array], rights: Sequence[Array]) -> Numbers:
        """Inner products of all columns of some blocks (rows) with all columns of others (columns)."""
        left, right = (
            self._xp.concatenate([block.astype(np.float64) for block in side], axis=1)
            for side in (lefts, rights)
        )
        found: Numbers = to_host(left.T @ right)
        return found

    def _column_sums(self, values: Array) -> Numbers:
        """Of float64 values; a product with ones adds up in parallel."""
        found: Numbers = to_host(self._xp.ones(self._n) @ values)
        return found

    def project(self, block: Array, x: Array) -> Numbers:
        """Subtract from a block its part in the span of x (orthonormal), in place; returns column lengths."""
        block -= x @ self._single(self.inner([x], [block]))
        return np.sqrt(self._column_sums(block.astype(np.float64) ** 2))

    def turn(self, x: Array, others: Sequence[Array], turn: Numbers) -> None:
        """x becomes the combination `turn` of x and of others."""
        x[:] = x @ self._single(turn[: x.shape[1]]) + self._share(others, turn[x.shape[1] :])

    def combine(self, others: Sequence[Array], turn: Numbers, scale: Numbers, out: Array) -> None:
        """out = the others' share of the combination `turn`, times scale; it may be one of the others."""
        out[:] = self._share(others, turn[out.shape[1] :]) * self._single(scale)

    def _share(self, others: Sequence[Array], turn: Numbers) -> Array:
        ends = np.cumsum([block.shape[1] for block in others])
        parts = np.split(turn, ends[:-1])
        return sum(block @ self._single(part) for block, part in zip(others, parts, strict=True))

    def residual(self, x: Array, image: Array, values: Numbers, out: Array) -> Numbers:
        """out = image - x * values; returns the length of its columns."""
        out[:] = image - x * self._single(values)
        return np.sqrt(self._column_sums(out.astype(np.float64) ** 2))

    def residual_lengths(self, x: Array, image: Array, values: Numbers) -> Numbers:
        """The lengths of the columns of image - x * values."""
        return np.sqrt(self._column_sums((image - x * self._single(values)).astype(np.float64) ** 2))

    def scale(self, block: Array, factors: Numbers) -> None:
        """Columns of a block times factors, in place."""
        block *= self._single(factors)

    def take(self, block: Array, columns: NDArray[np.int64], name: str) -> Array:
        """Some columns of a block: in the room of that name, or the block itself if they are all."""
        if len(columns) == block.shape[1]:
            return block
        out = self.room(name, len(columns))
        out[:] = block[:, self._xp.asarray(columns)]
        return out

    def shifted(self, x: Array, image: Array, shifts: Any) -> Numbers:
        """image = shifts * x - image, in place; returns the inner products of its columns with x's."""
        image[:] = self._single(shifts) * x - image
        return self._column_sums(x.astype(np.float64) * image)

    def advance(self, x: Array, r: Array, p: Array, q: Array, factors: Numbers) -> Numbers:
        """x += factors * p, r -= factors * q, in place; returns the squared lengths of r's columns."""
        single = self._single(factors)
        x += single * p
        r -= single * q
        return self._column_sums(r.astype(np.float64) ** 2)

    def follow(self, p: Array, r: Array, factors: Numbers) -> None:
        """p = r + factors * p, in place."""
        p[:] = r + self._single(factors) * p

    def _single(self, numbers: Any) -> Array:
        """Small matrices of the host on the device, in single precision."""
        return self._xp.asarray(np.ascontiguousarray(numbers, dtype=np.float32))
