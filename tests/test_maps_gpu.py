"""Lines, fields and sensor maps on a GPU: evened out on the host, solved on the (emulated) device."""

import numpy as np
import pytest
from cuda_on_cpu import COMPILER
from test_device import fake_gpu  # noqa: F401

import vnlem
from vnlem.noise import NoiseModel

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(COMPILER is None, reason="needs a C++ compiler"),
    pytest.mark.usefixtures("fake_gpu"),
]
SHAPE = (64, 72)
SIGMA = np.broadcast_to(np.linspace(20.0, 80.0, SHAPE[1]), SHAPE)
RNG = np.random.default_rng(1)
MODELS = {
    "field": NoiseModel.field(SIGMA),
    "sensor": NoiseModel.camera(RNG.normal(2, 0.1, SHAPE), RNG.normal(100, 3, SHAPE), RNG.gamma(4, 2, SHAPE)),
}
METHODS = {
    "nlm": {"method": "nlm", "patch_size": 3, "patch_distance": 3, "preset": "auto"},
    "vnlr": {"patch_distance": 3, "n_neighbors": 8, "passes": 1, "patch_size": 4, "step": 4, "scales": 1},
}


def image():
    y, x = np.mgrid[: SHAPE[0], : SHAPE[1]]
    return 900 + 300 * np.sin(x / 6) * np.cos(y / 9) + SIGMA * np.random.default_rng(0).normal(size=SHAPE)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("model", MODELS)
def test_the_device_gives_what_the_processor_gives(model, method):
    options = {"noise_model": MODELS[model], **METHODS[method]}
    there, info = vnlem.denoise(image(), device="cuda", return_info=True, **options)
    assert info.device == "cuda:0"
    here = vnlem.denoise(image(), **options)
    assert np.abs(there - here).max() < 0.02 * np.ptp(image())
    assert np.std(there - here) < 1.0


def test_lines_are_removed_on_a_device():
    lined = image() + RNG.normal(0, 40, (SHAPE[0], 1))
    options = {"lines": True, "noise_model": "gaussian", "sigma": 50.0, **METHODS["nlm"]}
    there = vnlem.denoise(lined, device="cuda", **options)
    assert np.std(there - vnlem.denoise(lined, **options)) < 1.0
    assert np.std(there - vnlem.denoise(lined, device="cuda", **{**options, "lines": False})) > 10


def test_pages_on_a_device():
    stack = np.stack([image(), image() + 5])
    options = {"noise_model": MODELS["field"], "axes": "TYX", **METHODS["nlm"]}
    there = vnlem.denoise(stack, device="cuda", **options)
    assert np.std(there - vnlem.denoise(stack, **options)) < 1.0
