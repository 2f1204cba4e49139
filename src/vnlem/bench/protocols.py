"""How an experiment makes a noisy image and what it measures: the protocols of ``vnlem bench``.

Every image is processed in 0..255. The methods do not depend on an affine change of the grey values, so this
is equivalent to the paper's standardised units; SNR does not change either.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vnlem.bench.datasets import Item, luminance, read_grey, read_pair, read_stack

PROTOCOLS = ("paper", "awgn", "pairs", "real", "stack")
PAPER_VARIANCE = 0.3  # of the noise, for a clean image of variance 1
FIRST_SEED = 1000
# Errors beyond this many noise standard deviations are black or white in the error images.
ERROR_LIMIT = 1.5

WITH_REFERENCE = ("snr", "psnr", "psnr_paper", "rms", "sobolev", "emd", "ssim", "fsim")
WITHOUT_REFERENCE = (
    "fsim_input",
    "residual_mean",
    "residual_std",
    "residual_skewness",
    "residual_kurtosis",
    "residual_correlation",
)
MEASURES = tuple(dict.fromkeys((*WITH_REFERENCE, *WITHOUT_REFERENCE)))
# Whether larger is better (1), smaller (-1), or neither (0: it only describes; an unchanged image is the most
# similar to its input).
DIRECTION = dict.fromkeys(MEASURES, 0) | dict.fromkeys(("snr", "psnr", "psnr_paper", "ssim", "fsim"), 1)
DIRECTION |= dict.fromkeys(("rms", "sobolev", "emd"), -1)


@dataclass(frozen=True)
class Case:
    """One condition under which every image is measured.

    size: side of the square the image is resized to; 0 for its own size.
    noise: variance for the paper's protocol, standard deviation in 0..255 for awgn and stack; for real noise
        the standard deviation passed to the methods, 0 if it is estimated for each image.
    """

    protocol: str
    size: int = 0
    noise: float = 0.0

    @property
    def name(self) -> str:
        """A short name that is safe in file names and addresses.

        >>> Case("paper", 512, 0.3).name, Case("awgn", 0, 25.0).name
        ('paper-512-0.3', 'awgn-25')
        """
        parts = [self.protocol]
        if self.size:
            parts.append(str(self.size))
        if self.noise:
            parts.append(f"{self.noise:g}")
        return "-".join(parts)

    @property
    def title(self) -> str:
        """The case in words.

        >>> Case("paper", 512, 0.3).title
        '512x512, noise variance 0.3'
        """
        if self.protocol == "paper":
            return f"{self.size}x{self.size}, noise variance {self.noise:g}"
        if self.protocol in ("awgn", "stack"):
            return f"{'stacks, ' * (self.protocol == 'stack')}sigma {self.noise:g}"
        level = f"sigma {self.noise:g}" if self.noise else "sigma estimated"
        return f"{'noisy and reference pairs' if self.protocol == 'pairs' else 'no reference'}, {level}"

    @property
    def measures(self) -> tuple[str, ...]:
        """What is measured, best known first."""
        return WITHOUT_REFERENCE if self.protocol == "real" else WITH_REFERENCE


@dataclass(frozen=True)
class Scene:
    """An image ready to be denoised, in 0..255; `clean` is None if there is no reference."""

    clean: NDArray[np.float64] | None
    noisy: NDArray[np.float64]
    sigma: float
    seed: int | None
    axes: str = "YX"  # of a stack: "TYX" or "ZYX", with colours "TYXC" or "ZYXC"

    def page(self, stack: NDArray[Any]) -> NDArray[Any]:
        """The part of an array like `noisy` to show: all of it, or the middle page of a stack, in grey."""
        if self.axes == "YX":
            return stack
        page = stack[len(stack) // 2]
        return luminance(page) if "C" in self.axes else page

    def pages(self, stack: NDArray[Any]) -> NDArray[Any]:
        """All grey pages of a stack, those of each channel too."""
        return np.moveaxis(stack, -1, 1).reshape(-1, *stack.shape[1:3]) if "C" in self.axes else stack


def seed_of(item: Item, case: Case) -> int | None:
    """The seed of an image's noise: the same for every method, noise level and size.

    >>> seed_of(Item("a.png", "a.png", "", index=3), Case("awgn", 0, 25))
    1003
    """
    return FIRST_SEED + item.index if case.protocol in ("paper", "awgn", "stack") else None


def scenes(item: Item, cases: list[Case]) -> Iterator[tuple[Case, Scene]]:
    """The noisy images of one file, one for each case; the file is read once."""
    reference = None
    if cases[0].protocol == "stack":
        from vnlem.noise import add_gaussian

        stack, axes = read_stack(item.path)
        for case in cases:
            seed = seed_of(item, case)
            yield case, Scene(stack, add_gaussian(stack, case.noise, seed), case.noise, seed, axes)
        return
    if cases[0].protocol == "pairs":
        reference, grey = read_pair(item)
    else:
        grey = read_grey(item.path)
    for case in cases:
        if case.protocol in ("paper", "awgn"):
            yield case, _with_noise(grey, case, seed_of(item, case))
        else:
            yield case, Scene(reference, grey, _given_or_estimated(grey, case), None)


def _with_noise(grey: NDArray[np.float64], case: Case, seed: int | None) -> Scene:
    from vnlem.noise import add_gaussian

    if case.protocol == "awgn":
        return Scene(grey, add_gaussian(grey, case.noise, seed), case.noise, seed)
    clean = resized(central_square(grey), case.size)
    scale = float(clean.std())
    if scale == 0:
        raise ValueError("it has one grey value only, which cannot be standardised")
    sigma = float(np.sqrt(case.noise)) * scale
    return Scene(clean, add_gaussian(clean, sigma, seed), sigma, seed)


def _given_or_estimated(grey: NDArray[np.float64], case: Case) -> float:
    from vnlem.noise import estimate_sigma

    sigma = case.noise or estimate_sigma(grey)
    if not sigma > 0:
        raise ValueError("its noise is estimated as zero; give the level with --sigma")
    return sigma


def central_square(image: NDArray[np.float64]) -> NDArray[np.float64]:
    """The largest square in the middle.

    >>> central_square(np.array([[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]]))
    array([[2., 3.],
           [6., 7.]])
    """
    side = min(image.shape)
    top, left = ((extent - side) // 2 for extent in image.shape)
    return image[top : top + side, left : left + side]


def resized(image: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    """A square image at another size: cubic, smoothed first if it shrinks; unchanged at its own size.

    >>> resized(np.ones((8, 8)), 4).shape
    (4, 4)
    """
    if image.shape == (size, size):
        return image
    try:
        from skimage.transform import resize
    except ImportError:
        raise ValueError("other sizes need scikit-image: pip install 'vnlem[bench]'") from None

    result: NDArray[np.float64] = resize(
        image, (size, size), order=3, mode="reflect", anti_aliasing=image.shape[0] > size, clip=True
    )
    return result


def measure(scene: Scene, result: NDArray[Any]) -> dict[str, float | None]:
    """Every measure of a result; FSIM and SSIM are measured after clipping to 0..255.

    Those of a stack are the means over its pages and channels, except PSNR, SNR and RMS, which are measured
    on the whole.
    """
    values = np.asarray(result, dtype=np.float64)
    if scene.axes != "YX":
        return _of_stack(scene, values)
    return _without_reference(scene, values) if scene.clean is None else _with_reference(scene, values)


def _of_stack(scene: Scene, result: NDArray[np.float64]) -> dict[str, float | None]:
    from vnlem import metrics

    assert scene.clean is not None
    clean, noisy_pages, result = (scene.pages(stack) for stack in (scene.clean, scene.noisy, result))
    pages = [
        _with_reference(Scene(page, noisy, scene.sigma, scene.seed), found)
        for page, noisy, found in zip(clean, noisy_pages, result, strict=True)
    ]
    means: dict[str, float | None] = {
        name: float(np.mean([value for page in pages if (value := page[name]) is not None]))
        for name in WITH_REFERENCE
    }
    flat = (clean.reshape(-1, clean.shape[-1]), result.reshape(-1, clean.shape[-1]))
    return means | {
        "snr": metrics.snr(*flat),
        "psnr": metrics.psnr(*flat, 255),
        "psnr_paper": metrics.psnr_paper(*flat),
        "rms": metrics.rms(*flat, 255),
    }


def _with_reference(scene: Scene, result: NDArray[np.float64]) -> dict[str, float | None]:
    from vnlem import metrics
    from vnlem.metrics.ssim import ssim_of_planes

    clean = scene.clean
    assert clean is not None
    shown, shown_clean = np.clip(result, 0, 255), np.clip(clean, 0, 255)
    return {
        "snr": metrics.snr(clean, result),
        "psnr": metrics.psnr(clean, result, 255),
        "psnr_paper": metrics.psnr_paper(clean, result),
        "rms": metrics.rms(clean, result, 255),
        "sobolev": metrics.sobolev(clean, result, data_range=255),
        "emd": metrics.emd(scene.noisy - result, scene.noisy - clean, 255),
        "ssim": ssim_of_planes(shown_clean[None], shown[None], 255),
        "fsim": metrics.fsim(shown_clean, shown, 255),
    }


def _without_reference(scene: Scene, result: NDArray[np.float64]) -> dict[str, float | None]:
    from vnlem import metrics
    from vnlem.metrics.residual import residual_statistics

    shown = np.clip(result, 0, 255)
    return {"fsim_input": metrics.fsim(np.clip(scene.noisy, 0, 255), shown, 255)} | residual_statistics(
        scene.noisy - result
    )
