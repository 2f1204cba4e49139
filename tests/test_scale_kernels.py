"""The filters that halve, double and average planes, against plain NumPy on mirrored arrays."""

import numpy as np
import pytest

from vnlem.kernels.cpu.scales import Taps, filter_planes

WEIGHTS = np.random.default_rng(0).normal(size=(2, 5))


def halving():
    return Taps(WEIGHTS[:1], np.arange(5, dtype=np.int32)[None], True)


def doubling():
    return Taps(WEIGHTS, np.array([[0, -1, 1, -2, 2], [0, 1, -1, 2, 3]], np.int32), False)


def averaging():
    return Taps(np.ones((1, 4)), np.arange(-2, 2, dtype=np.int32)[None], False, 4.0)


def plainly(planes, taps, size):
    """The rows of the result, every one from the rows of a mirrored array."""
    phases = len(taps.weights)
    reach = 2 * phases + 8
    wide = np.pad(planes, ((0, 0), (reach, reach), (0, 0)), mode="symmetric")
    rows = []
    for y in range(size):
        own = reach + (2 * y if taps.halves else y // phases)
        total = np.zeros_like(planes[:, 0])
        for weight, step in zip(taps.weights[y % phases], taps.steps[y % phases], strict=True):
            shown = wide[:, own - step] + wide[:, own + 1 + step] if taps.halves else wide[:, own + step]
            total = total + weight * shown
        rows.append(total / taps.divisor)
    return np.stack(rows, axis=1)


@pytest.mark.parametrize("shape", [(1, 33, 50), (2, 7, 21), (1, 1, 3), (3, 4, 1), (1, 64, 17)], ids=str)
@pytest.mark.parametrize("make", [halving, doubling, averaging])
def test_filters_have_the_bits_of_plain_numpy(make, shape):
    planes = np.random.default_rng(1).normal(size=shape)
    taps = make()
    height, width = ((n + 1) // 2 if taps.halves else len(taps.weights) * n for n in shape[1:])
    # The last row and column of the doubled planes are left out.
    height, width = max(height - 1, 1), max(width - 1, 1)
    found = np.full((shape[0], height, width), np.nan)
    filter_planes(planes, taps, taps, found)
    down = plainly(planes, taps, height)
    np.testing.assert_array_equal(found, plainly(down.swapaxes(1, 2), taps, width).swapaxes(1, 2))
