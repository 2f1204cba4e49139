"""Golden quality: a loss of 0.05 dB in any call of golden.py fails."""

import golden
import numpy as np
import pytest

import vnlem

pytestmark = pytest.mark.filterwarnings("ignore")  # about blind calls on small images


@pytest.mark.parametrize("name", golden.CASES)
def test_psnr_is_what_it_was(name):
    if name == "blind: region of a zarr":
        pytest.importorskip("zarr", reason="needs the extra 'large'")
    found = golden.CASES[name].psnr()
    assert found == pytest.approx(golden.frozen()[name], abs=golden.TOLERANCE), "see tests/golden.py"


def test_every_case_is_frozen():
    assert list(golden.frozen()) == list(golden.CASES), "run python tests/golden.py --renew"


def test_a_loss_of_a_twentieth_of_a_decibel_is_noticed(monkeypatch):
    name, sound = "blind: white", vnlem.denoise

    def slightly_worse(noisy, **options):
        result = sound(noisy, **options)
        error = np.mean((result - golden.camera()) ** 2)
        more = np.sqrt(error * (10**0.005 - 1))
        return result + np.random.default_rng(0).normal(0, more, noisy.shape)

    monkeypatch.setattr(vnlem, "denoise", slightly_worse)
    with pytest.raises(AssertionError):
        test_psnr_is_what_it_was(name)
