"""NLEM and NLPR: square patches -> nearest of the window -> IRLS with power gamma over whole patches."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vnlem.methods.window import WindowParams, check_params, decay_of, halo, pad, run_tiles, window_of
from vnlem.pipeline.method import Method, names_parameters
from vnlem.pipeline.progress import Progress
from vnlem.pipeline.run import Job, Result
from vnlem.pipeline.tiles import Tile

TILE = (32, 64)

# q = 13, a window of 21 x 21, the best half of it, epsilon = 6.5^2; uncorrected distances.
PAPER = {
    "patch_size": 13,
    "patch_distance": 10,
    "n_neighbors": 221,
    "bandwidth": 6.5,
    "noise_correction": False,
}


def auto_params(sigma: float) -> dict[str, Any]:
    """Defaults at noise level `sigma` in standardised units, found on Set12: patches grow with the noise."""
    size = 3 if sigma < 0.45 else 5 if sigma < 1.3 else 7
    return {"patch_size": size, "patch_distance": 10, "noise_correction": True}


def solve(job: Job[WindowParams], tile: tuple[int, int] = TILE) -> NDArray[np.float32]:
    """The fast engine; the result does not depend on the tiles' size."""
    from vnlem.kernels.cpu.nlem import Regression, nlem_tile, remainder_of

    padded = pad(job.pixels, job.params.patch_size)
    window, decay = window_of(job), decay_of(job)
    regression = Regression(job.params.n_neighbors, job.params.gamma, remainder_of(window))

    def work(part: Tile, out: NDArray[np.float32]) -> None:
        nlem_tile(padded, part, window, decay, regression, out)

    return run_tiles(job, tile, work)


@names_parameters
def denoise_nlem(
    image: ArrayLike,
    sigma: float | None = None,
    *,
    preset: str = "auto",
    patch_size: int | None = None,
    patch_distance: int | None = None,
    n_neighbors: int | None = None,
    bandwidth: float | None = None,
    noise_correction: bool | None = None,
    engine: str = "fast",
    channel_axis: int | None = None,
    workers: int | None = None,
    progress: Progress = False,
    return_info: bool = False,
    device: str | None = None,
) -> Result:
    """Non-local Euclidean median: the centre of the geometric median of the most similar patches.

    Parameters
    ----------
    image, sigma, patch_size, patch_distance, channel_axis, workers, progress, return_info, engine, device
        As in :func:`vnlem.denoise_nlm`.
    preset : {"auto", "paper"}
        "paper": the parameters of the paper's experiments (q = 13, window 21 x 21, bandwidth 6.5, no noise
        correction). "auto": parameters that follow sigma, with noise-corrected distances.
    n_neighbors : int, optional
        Number of nearest patches of the window to use (N1); half of the window when None. Fewer at the
        border, where the window is smaller.
    bandwidth : float, optional
        Weights are exp(-squared distance / bandwidth^2), the square root of the paper's epsilon; in units
        of the clean image's standard deviation. "auto": :func:`vnlem.theory.noise_bandwidth`.
    noise_correction : bool, optional
        Subtract the expected contribution of the noise, 2 sigma^2 per pixel, from squared distances.

    Returns
    -------
    ndarray
        The denoised image in the units, dtype and layout of the input.

    Notes
    -----
    The geometric median of PATCHES is not the scalar median of their central pixels: its central value is a
    weighted mean of central pixels. It is :func:`vnlem.denoise_nlpr` with gamma = 1.

    References
    ----------
    .. [1] K. N. Chaudhury, A. Singer, "Non-local Euclidean medians", IEEE Signal Processing Letters 19
           (2012), doi:10.1109/LSP.2012.2217329

    Examples
    --------
    >>> import numpy as np, vnlem
    >>> clean = np.kron([[50.0, 200.0], [200.0, 50.0]], np.ones((16, 16)))
    >>> noisy = clean + np.random.default_rng(0).normal(0, 20, clean.shape)
    >>> denoised, info = vnlem.denoise_nlem(noisy, sigma=20, return_info=True)
    >>> bool(np.std(denoised - clean) < 0.5 * np.std(noisy - clean)), info.parameters["patch_size"]
    (True, 3)
    """
    return NLEM.denoise(**locals())


@names_parameters
def denoise_nlpr(
    image: ArrayLike,
    sigma: float | None = None,
    *,
    preset: str = "auto",
    gamma: float = 0.5,
    patch_size: int | None = None,
    patch_distance: int | None = None,
    n_neighbors: int | None = None,
    bandwidth: float | None = None,
    noise_correction: bool | None = None,
    engine: str = "fast",
    channel_axis: int | None = None,
    workers: int | None = None,
    progress: Progress = False,
    return_info: bool = False,
    device: str | None = None,
) -> Result:
    """Non-local patch regression: the centre of the patch nearest, in power gamma, to its neighbours.

    Parameters
    ----------
    image, sigma, patch_size, patch_distance, channel_axis, workers, progress, return_info, engine, device
        As in :func:`vnlem.denoise_nlm`.
    gamma : float
        Power of the norm, in (0, 2]: 2 is the weighted mean of patches, 1 their geometric median; below 1
        patches far from the others hardly count.
    preset : {"auto"}
        Parameters that follow sigma.
    n_neighbors, bandwidth, noise_correction
        As in :func:`vnlem.denoise_nlem`.

    Returns
    -------
    ndarray
        The denoised image in the units, dtype and layout of the input.

    Notes
    -----
    Iteratively reweighted least squares minimise the weighted sum of |P - P_j|^gamma, starting from the
    weighted mean, with weights w_j (|P - P_j|^2 + 1e-6)^(gamma/2 - 1), until a step is shorter than 1e-4.
    Below gamma = 1 the problem is not convex; the start decides which minimum is found. If hardly any patch
    is similar, that may be a single other patch: in small pictures with little noise the result can be some
    per cent worse than the input, which gamma >= 1 avoids.

    References
    ----------
    .. [1] K. N. Chaudhury, A. Singer, "Non-local patch regression: robust image denoising in patch space",
           ICASSP 2013, doi:10.1109/ICASSP.2013.6637870

    Examples
    --------
    >>> import numpy as np, vnlem
    >>> clean = np.kron([[50.0, 200.0], [200.0, 50.0]], np.ones((16, 16)))
    >>> noisy = clean + np.random.default_rng(0).normal(0, 20, clean.shape)
    >>> denoised = vnlem.denoise_nlpr(noisy, sigma=20, gamma=0.5)
    >>> bool(np.std(denoised - clean) < 0.5 * np.std(noisy - clean))
    True
    """
    return NLPR.denoise(**locals())


def resolve(
    noise: float, ndim: int, *, preset: str, engine: str, gamma: float = 1.0, **given: Any
) -> WindowParams:
    """The parameters for a noise level in standardised units; NLEM is NLPR with gamma 1."""
    defaults = PAPER if preset == "paper" else auto_params(noise)
    chosen = defaults | {name: value for name, value in given.items() if value is not None}
    return check_params(noise, ndim, **chosen, gamma=gamma)


NLEM = Method(
    name="nlem",
    function="vnlem.methods.nlem:denoise_nlem",
    resolve=resolve,
    engines={
        "fast": "vnlem.methods.nlem:solve",
        "reference": "vnlem.methods.nlem:solve_plainly",
        "printed": "vnlem.methods.nlem:solve_plainly",
        "cuda": "vnlem.methods.cuda.nlem:solve",
    },
    halo=halo,
    has_paper_preset=True,
    signals=True,
    bytes_per_pixel=65,
)
NLPR = Method(
    name="nlpr",
    function="vnlem.methods.nlem:denoise_nlpr",
    resolve=resolve,
    engines={name: place for name, place in NLEM.engines.items() if name != "printed"},
    halo=halo,
    signals=True,
    bytes_per_pixel=65,
)


def solve_plainly(job: Job[WindowParams]) -> NDArray[np.float32]:
    from vnlem.reference.window import nlpr

    denoised: NDArray[np.float32] = nlpr(job.pixels, job.sigma, job.params)
    return denoised
