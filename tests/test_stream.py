"""Frames one by one: the passes with a delay, and what a stream promises."""

import numpy as np
import pytest
from test_stacks import SMALL, drifting, error

import vnlem


@pytest.mark.parametrize("passes", [1, 2])
@pytest.mark.parametrize(("delay", "depth"), [(0, 1), (1, 2), (3, 1), (3, 2), (7, 2)])
def test_the_passes_with_a_delay_agree_with_the_reference(delay, depth, passes):
    _, noisy = drifting(9, size=11)
    options = {**SMALL, "patch_depth": depth, "delay": delay, "passes": passes, "step": 4}
    options |= {"plane_distance": 2, "profile": "fast"}
    fast = vnlem.denoise(noisy, 25, axes="TYX", **options)
    plain = vnlem.denoise(noisy, 25, axes="TYX", engine="reference", **options)
    assert np.abs(fast - plain).max() < 0.02
    assert np.abs(fast - noisy).max() > 10
