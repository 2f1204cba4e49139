"""The Python side of the Fiji script, run as Fiji runs it: by an Appose worker on shared memory."""

import gc
import sys
from pathlib import Path

import numpy as np
import pytest

import vnlem

appose = pytest.importorskip("appose")
# Appose leaves the pipes of its worker to the interpreter.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
WORKER = Path(__file__).parents[1] / "integrations" / "fiji" / "vnlem_worker.py"


@pytest.fixture(autouse=True)
def nothing_left():
    """Close what a test leaves open before the next one, which would be blamed for it."""
    yield
    gc.collect()


def through_worker(pixels, **inputs):
    """The worker's result of an image, and its messages."""
    environment = appose.custom().base(sys.prefix).build()
    service = environment.python()
    try:
        with appose.NDArray(str(pixels.dtype), pixels.shape) as shared:
            shared.ndarray()[...] = pixels
            given = {"image": shared, "sigma": None, "profile": "fast", **inputs}
            task = service.task(WORKER.read_text(), given)
            task.wait_for()
            return shared.ndarray().copy(), task.outputs["noise"]
    finally:
        service.close()
        service.wait_for()


@pytest.mark.parametrize(("axes", "shape"), [("YX", (40, 48)), ("TYX", (3, 32, 40))])
def test_the_worker_gives_what_the_package_gives(axes, shape):
    noisy = np.random.default_rng(0).normal(1000, 50, shape).astype(np.uint16)
    noisy[..., 8:24, 8:24] += 800
    found, noise = through_worker(noisy, axes=axes, sigma=50.0)
    options = {} if axes == "YX" else {"axes": axes}
    np.testing.assert_array_equal(found, vnlem.denoise(noisy, 50.0, profile="fast", **options))
    assert "sigma" in noise


def test_an_error_reaches_fiji_as_a_sentence():
    with pytest.raises(Exception, match="axes"):
        through_worker(np.zeros((8, 8), np.float32), axes="QQ")
