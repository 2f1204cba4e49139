"""The graph of all pairs of pixels within a window on a device (stencil.cu)."""

from typing import Any, NamedTuple

import numpy as np

from vnlem.kernels.cuda.engine import THREADS, Engine
from vnlem.pipeline.device import to_host

Array = Any  # of the engine's library

_WARPS = 4  # of a block that looks for the nearest


class Stencil(NamedTuple):
    """Symmetric weights between pixels at most `reach` rows and columns apart."""

    weights: Array  # (slots, height, width)
    reach: int

    @classmethod
    def empty(cls, engine: Engine, height: int, width: int, reach: int) -> "Stencil":
        slots = reach + reach * (2 * reach + 1) + 1
        return cls(engine.xp.empty((slots, height, width), np.float32), reach)

    def argument(self, name: str = "") -> dict[str, Any]:
        """The fields of a kernel's struct."""
        _, height, width = self.weights.shape
        given = {"weights": self.weights, "height": height, "width": width, "reach": self.reach}
        # A struct within a struct ends where the next pointer may begin.
        return {f"{name}{field}": value for field, value in given.items()} | {f"{name}filling": 0}


def _blocks(count: int) -> int:
    return -(-count // THREADS)


def apply(engine: Engine, graph: Stencil, vectors: Array, out: Array) -> None:
    """out = W @ vectors, both (pixels, n), n a multiple of four."""
    count, n = vectors.shape
    argument = graph.argument() | {"vectors": vectors, "out": out, "n": n}
    engine.launch("stencil", (_blocks(count * n // 4),), argument, kernel="stencil_apply")


def degrees(engine: Engine, graph: Stencil) -> Array:
    """Sum of the weights of every pixel, itself included."""
    _, height, width = graph.weights.shape
    out = engine.xp.empty(height * width, np.float64)
    engine.launch("stencil", (_blocks(out.size),), graph.argument() | {"out": out}, kernel="stencil_degrees")
    return out


def scale(engine: Engine, graph: Stencil, factors: Array) -> None:
    """W = diag(factors) W diag(factors), in place."""
    _change(engine, graph, factors, 0.0, False)


def gaussian(engine: Engine, graph: Stencil, inverse_scales: Array, noise: float) -> None:
    """Turn squared distances into weights exp(-max(d^2 - noise, 0) * inverse_i * inverse_j), in place."""
    _change(engine, graph, inverse_scales, noise, True)


def _change(engine: Engine, graph: Stencil, factors: Array, noise: float, to_weights: bool) -> None:
    slots, height, width = graph.weights.shape
    argument = graph.argument() | {"factors": factors, "noise": float(noise), "gaussian": to_weights}
    engine.launch("stencil", (_blocks(height * width), slots), argument, kernel="stencil_weights")


def local_scales(engine: Engine, graph: Stencil, noise: float, count: int) -> Array:
    """The count-th smallest of each pixel's squared distances, minus the noise; the graph holds them."""
    _, height, width = graph.weights.shape
    out = engine.xp.empty(height * width, np.float32)
    engine.launch(
        "stencil",
        (-(-out.size // _WARPS),),
        graph.argument() | {"out": out, "noise": float(noise), "count": count},
        kernel="stencil_scales",
        threads=32 * _WARPS,
        shared=4 * _WARPS * (2 * graph.reach + 1) ** 2,
    )
    return out


def coarsened(engine: Engine, graph: Stencil) -> Stencil:
    """The graph between blocks of 2 x 2 pixels."""
    _, height, width = graph.weights.shape
    coarse = Stencil.empty(engine, -(-height // 2), -(-width // 2), (graph.reach + 1) // 2)
    slots, rows, columns = coarse.weights.shape
    argument = graph.argument("fine_") | coarse.argument("coarse_")
    engine.launch("stencil", (_blocks(rows * columns), slots), argument, kernel="stencil_coarsen")
    return coarse


def count_parts(engine: Engine, graph: Stencil) -> int:
    """Number of connected components over edges of positive weight."""
    xp = engine.xp
    _, height, width = graph.weights.shape
    labels = xp.arange(height * width, dtype=np.int32)
    while True:
        out, changed = xp.empty_like(labels), xp.zeros(1, np.int32)
        argument = graph.argument() | {"labels": labels, "out": out, "changed": changed}
        engine.launch("stencil", (_blocks(labels.size),), argument, kernel="stencil_parts")
        labels = out
        if not int(to_host(changed)[0]):
            return int((labels == xp.arange(height * width, dtype=np.int32)).sum())
