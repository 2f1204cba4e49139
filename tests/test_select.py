"""Selection of the smallest, against sorting: NaN of both signs, infinities, ties, any guess."""

import numpy as np
import pytest

from vnlem.kernels.cpu.select import smallest

MINUS_NAN = np.copysign(np.float32(np.nan), np.float32(-1))


def expected(values: np.ndarray, limit: int, own: int) -> set[int]:
    order = np.argsort(np.where(np.isfinite(values), values, np.inf), kind="stable")
    others = [int(i) for i in order if np.isfinite(values[i]) and i != own]
    return {own, *others[: limit - 1]} if own >= 0 else set(others[:limit])


def spoil(values: np.ndarray, kind: str, rng: np.random.Generator) -> np.ndarray:
    some = rng.random(values.size) < 0.4
    if kind == "ties":
        return np.round(values * 2) / np.float32(2)
    if kind == "zeros":
        return np.where(some, np.float32(0), np.where(rng.random(values.size) < 0.3, -0.0, values))
    if kind == "all scales":
        return values * 10.0 ** rng.integers(-44, 38, values.size)
    odd = {"nan": np.float32(np.nan), "minus nan": MINUS_NAN, "infinity": np.float32(np.inf)}
    return np.where(some, odd[kind], values) if kind in odd else values


@pytest.mark.parametrize("kind", ["plain", "ties", "zeros", "all scales", "nan", "minus nan", "infinity"])
def test_the_smallest_are_those_that_sorting_finds(kind):
    rng = np.random.default_rng(1)
    for _ in range(300):
        values = np.abs(rng.normal(size=int(rng.integers(1, 200)))).astype(np.float32)
        values = spoil(values, kind, rng).astype(np.float32)
        limit, own = int(rng.integers(1, values.size + 3)), int(rng.integers(-1, values.size))
        if own >= 0:
            values[own] = 0
        chosen = np.full(limit + 1, -7, np.int32)
        guess = float(rng.choice([0, 1, np.nan, 1e-40, 1e38, np.inf]))
        count = smallest(values, limit, own, guess, chosen)
        found = [int(i) for i in chosen[:count]]
        assert len(set(found)) == len(found)
        assert set(found) == expected(values, limit, own)
        assert found[1:] == sorted(found[1:])
        assert own < 0 or found[0] == own
