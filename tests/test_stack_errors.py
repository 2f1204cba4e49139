"""Stacks and parameters that cannot be: each told in one sentence."""

import numpy as np
import pytest
from stack_scene import drifting

import vnlem

STACK = np.zeros((3, 16, 16))
BAD = {
    "too few letters": (STACK, {"axes": "YX"}, "names 2 axes, but the array has 3"),
    "doubled": (STACK, {"axes": "TTYX"}, "names 'T' twice"),
    "no rows": (STACK, {"axes": "TZX"}, "names no Y"),
    "no columns": (STACK, {"axes": "TYZ"}, "names no X"),
    "unknown letter": (STACK, {"axes": "QYX"}, "holds the letter 'Q'"),
    "no pages": (STACK[:0], {"axes": "TYX"}, "the stack is empty"),
    "no axes": (STACK, {}, "axes"),
    "both": (STACK, {"axes": "TYX", "channel_axis": 0}, "exclude each other"),
    "sizes": ([STACK[0], STACK[0, :9]], {"axes": "TYX"}, "must have one size, got 16x16 and 9x16"),
    "sizes and channels": (
        [STACK[0], STACK[0, :9]],
        {"axes": "TCYX"},
        "must have one size, got 16x16 and 9x16",
    ),
    "ragged sigma": (STACK, {"axes": "TYX", "sigma": [[1], [1, 2]]}, "sigma .* different lengths"),
    "tiny pages": (STACK[:, :3] + 9 * np.arange(16.0), {"axes": "TYX"}, "less than the patch"),
    "so2": (STACK + 9 * np.arange(16.0), {"axes": "TYX", "group": "so2"}, "not available for stacks"),
    "similarity": (STACK + 9 * np.arange(16.0), {"axes": "TYX", "group": "similarity"}, "not available for"),
    "no such channels": (
        STACK[..., None] + np.zeros(3),
        {"axes": "TYXC", "channels": "some"},
        "channels must be",
    ),
    "nlm's channels": (
        STACK[..., None] + np.zeros(3),
        {"axes": "TYXC", "channels": "joint", "method": "nlm"},
        "denoises the channels of a stack one by one",
    ),
    "too many sizes": (STACK + 9 * np.arange(16.0), {"axes": "TYX", "scales": 99}, "scales must be at most"),
    "sigma of another shape": (
        STACK,
        {"axes": "TYX", "sigma": np.ones((2, 1, 1))},
        "as many axes as the stack",
    ),
    "negative sigma": (STACK, {"axes": "TYX", "sigma": -np.ones((3, 1, 1))}, "must not be negative"),
    "sigma map of photons": (
        STACK,
        {"axes": "TYX", "sigma": np.ones((3, 1, 1)), "noise_model": "poisson-gaussian"},
        "is for white noise",
    ),
    "nlm's sigma": (
        STACK + 9 * np.arange(16.0),
        {"axes": "TYX", "sigma": np.ones((3, 1, 1)), "method": "nlm"},
        "takes one sigma for all of a stack",
    ),
    "sigma per page": (STACK, {"axes": "TYX", "sigma": [1, 2, 3]}, "one for each of the 1 channels"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_told_in_one_sentence(case):
    stack, options, message = BAD[case]
    with pytest.raises(ValueError, match=message):
        vnlem.denoise(stack, **{"sigma": 5.0, "noise_model": "gaussian", **options})


def test_a_page_that_is_no_number_is_named():
    _, noisy = drifting(3)
    noisy[1, 4, 4] = np.inf
    with pytest.raises(ValueError, match=r"page 2 of 3: .*infinite"):
        vnlem.denoise(noisy, 25, axes="TYX")


def test_axes_must_be_text():
    with pytest.raises(TypeError, match="axes must be a text"):
        vnlem.denoise(STACK, 5, axes=0)


def test_a_parameter_that_stacks_lack_is_named():
    with pytest.raises(TypeError, match="on a stack has no parameter 'gamma'"):
        vnlem.denoise(STACK, 5, axes="TYX", gamma=1)


@pytest.mark.parametrize("sigma", [None, 1e-12])
def test_a_stack_without_noise_comes_back_and_its_parameters_are_checked(sigma):
    ramp = np.tile(np.linspace(0, 255, 32), (4, 32, 1))
    np.testing.assert_array_equal(vnlem.denoise(ramp, sigma, axes="TYX", plane_distance=1), ramp)
    with pytest.raises(TypeError, match="on a stack has no parameter 'scale'; it has"):
        vnlem.denoise(ramp, sigma, axes="TYX", scale=1)
    flat = np.full((3, 16, 16), 7.0)
    np.testing.assert_array_equal(vnlem.denoise(flat, axes="TYX"), flat)


def test_nlm_refuses_pages_of_one_row():
    rows = drifting(3)[1][:, :1]
    with pytest.raises(ValueError, match=r"have one row, less than the patch \(5\)"):
        vnlem.denoise(rows, 25, axes="ZYX", method="nlm", patch_size=5)
    pages = drifting(3)[1][:, :2]
    options = {"axes": "ZYX", "method": "nlm", "patch_size": 9, "noise_model": "gaussian"}
    plain = vnlem.denoise(pages, 25, engine="reference", **options)
    np.testing.assert_allclose(vnlem.denoise(pages, 25, **options), plain, atol=0.02)
