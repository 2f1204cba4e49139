"""Time and peak memory of every method over image sizes, for `asv run`."""

import numpy as np
from skimage import data, transform

import vnlem
from vnlem.registry import METHODS


class Methods:
    """Every method with its automatic parameters, after one call that compiles."""

    params = (sorted(METHODS), [256, 512])
    param_names = ("method", "size")
    timeout = 600

    def setup(self, method: str, size: int) -> None:
        clean = transform.resize(data.camera(), (size, size), preserve_range=True, anti_aliasing=True)
        self.noisy = vnlem.noise.add_gaussian(clean, 25, seed=0)
        vnlem.denoise(self.noisy[:64, :64], 25, method=method)

    def time_denoise(self, method: str, size: int) -> None:
        vnlem.denoise(self.noisy, 25, method=method, workers=2)

    def peakmem_denoise(self, method: str, size: int) -> None:
        vnlem.denoise(self.noisy, 25, method=method, workers=2)


class Measures:
    """FSIM is the costly measure; the others are one pass over the pixels."""

    def setup(self) -> None:
        self.clean = data.camera().astype(np.float64)
        self.noisy = vnlem.noise.add_gaussian(self.clean, 25, seed=0)

    def time_fsim(self) -> None:
        vnlem.metrics.fsim(self.clean, self.noisy)

    def time_evaluate(self) -> None:
        vnlem.metrics.evaluate(self.clean, self.noisy)

    def time_estimate_sigma(self) -> None:
        vnlem.estimate_sigma(self.noisy)
