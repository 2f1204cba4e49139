"""FSIM and FSIMc against piq, frozen and live."""

import json
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from oracles.fsim_cases import cases
from oracles.piq_fsim import piq_fsim
from skimage import data

from vnlem.metrics import fsim
from vnlem.noise import add_gaussian

FROZEN = json.loads((Path(__file__).parent / "oracles" / "fsim.json").read_text())["fsim"]
CASES = cases()


def channel_axis(image):
    return -1 if image.ndim == 3 else None


def test_every_case_is_frozen():
    assert set(CASES) == set(FROZEN)


@pytest.mark.parametrize("name", CASES)
def test_fsim_agrees_with_the_frozen_values_of_piq(name):
    clean, other = CASES[name]
    assert fsim(clean, other, channel_axis=channel_axis(clean)) == pytest.approx(FROZEN[name], abs=1e-4)


@pytest.mark.parametrize("name", CASES)
def test_fsim_agrees_with_piq_where_it_is_installed(name):
    pytest.importorskip("torch", reason="the extra `oracle` is not installed")
    if find_spec("piq") is None:
        pytest.skip("the extra `oracle` is not installed")
    clean, other = CASES[name]
    expected = piq_fsim(clean, other)
    assert fsim(clean, other, channel_axis=channel_axis(clean)) == pytest.approx(expected, abs=1e-3)


@pytest.fixture(scope="module")
def camera():
    return data.camera()[100:200, 180:301].astype(float)


def test_fsim_is_symmetric(camera):
    noisy = add_gaussian(camera, 20, seed=0)
    assert fsim(camera, noisy) == pytest.approx(fsim(noisy, camera), rel=1e-12)


def test_fsim_falls_as_noise_rises(camera):
    values = [fsim(camera, add_gaussian(camera, sigma, seed=0)) for sigma in (0, 5, 10, 20, 40)]
    assert values == sorted(values, reverse=True)
    assert values[0] == 1


def test_fsim_reads_the_data_range(camera):
    noisy = add_gaussian(camera, 20, seed=0)
    assert fsim(camera / 255, noisy / 255, data_range=1) == pytest.approx(fsim(camera, noisy), rel=1e-9)


def test_fsim_does_not_clip(camera):
    brighter, noisy = camera + 200, add_gaussian(camera + 200, 20, seed=0)
    assert fsim(brighter, noisy) != pytest.approx(fsim(brighter.clip(0, 255), noisy.clip(0, 255)), abs=1e-3)


def test_fsim_of_a_transposed_pair_is_the_same(camera):
    noisy = add_gaussian(camera, 20, seed=0)
    assert fsim(camera.T, noisy.T) == pytest.approx(fsim(camera, noisy), abs=1e-4)


def test_grey_as_colour_has_the_fsim_of_grey(camera):
    noisy = add_gaussian(camera, 20, seed=0)
    colour, noisy_colour = (np.stack([image] * 3, axis=-1) for image in (camera, noisy))
    assert fsim(colour, noisy_colour, channel_axis=-1) == pytest.approx(fsim(camera, noisy), abs=1e-5)


def test_two_channels_are_averaged(camera):
    noisy, noisier = add_gaussian(camera, 10, seed=0), add_gaussian(camera, 30, seed=1)
    both = fsim(np.stack([camera, camera]), np.stack([noisy, noisier]), channel_axis=0)
    assert both == pytest.approx((fsim(camera, noisy) + fsim(camera, noisier)) / 2)


def test_constant_images_are_compared_without_features():
    assert fsim(np.full((40, 50), 7.0), np.full((40, 50), 7.0)) == 1
    assert 0 < fsim(np.full((40, 50), 80.0), np.full((40, 50), 120.0)) < 1


@given(
    hnp.arrays(
        np.float64, hnp.array_shapes(min_dims=2, max_dims=2, max_side=20), elements=st.floats(-1e30, 1e30)
    ),
    st.integers(0, 2**31),
)
@settings(max_examples=40)
def test_fsim_of_any_grey_images_lies_between_zero_and_one(image, seed):
    value = fsim(image, np.random.default_rng(seed).permutation(image))
    assert 0 <= value <= 1 + 1e-12
