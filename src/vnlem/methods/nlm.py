"""NLM: square patches -> whole window -> weighted mean of the central pixels."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vnlem.methods.window import WindowParams, check_params, decay_of, halo, pad, run_tiles, window_of
from vnlem.pipeline.method import Method, StackMethod, names_parameters
from vnlem.pipeline.progress import Progress
from vnlem.pipeline.run import Job, Result

TILE = (64, 512)


def auto_params(sigma: float) -> dict[str, Any]:
    """Defaults at noise level `sigma` in standardised units, found on Set12.

    Little noise: small patches, for every pixel to find similar ones. Much noise: larger ones, because a
    distance over few pixels no longer distinguishes patches.
    """
    if sigma < 0.45:
        return {"patch_size": 3, "patch_distance": 6}
    if sigma < 1.3:
        return {"patch_size": 5, "patch_distance": 7}
    return {"patch_size": 7, "patch_distance": 10}


def solve(job: Job[WindowParams], tile: tuple[int, int] = TILE) -> NDArray[np.float32]:
    """The fast engine; the result does not depend on the tiles' size."""
    from vnlem.kernels.cpu.nlm import nlm_tile

    padded = pad(job.pixels, job.params.patch_size)
    window, decay = window_of(job), decay_of(job)
    return run_tiles(job, tile, lambda part, out: nlm_tile(padded, part, window, decay, out))


@names_parameters
def denoise_nlm(
    image: ArrayLike,
    sigma: float | None = None,
    *,
    preset: str = "auto",
    patch_size: int | None = None,
    patch_distance: int | None = None,
    bandwidth: float | None = None,
    noise_correction: bool = True,
    engine: str = "fast",
    channel_axis: int | None = None,
    workers: int | None = None,
    progress: Progress = False,
    return_info: bool = False,
    device: str | None = None,
) -> Result:
    """Non-local means: every pixel becomes a weighted mean of the pixels whose patches look like its own.

    Parameters
    ----------
    image : array_like
        Grey image (H, W), colour image with `channel_axis`, or a signal (N,). Any integer or float dtype.
    sigma : float, optional
        Standard deviation of the noise in the units of the pixels; estimated when None.
    preset : {"auto"}
        Source of parameters that are not given: "auto" follows sigma.
    patch_size : int, optional
        Side of the square patches, odd (q). How to choose it: :func:`vnlem.theory.suggest_patch_size`.
    patch_distance : int, optional
        Largest distance, along each axis, of the averaged pixels (N2): the window has
        (2 patch_distance + 1)^2 pixels.
    bandwidth : float, optional
        Weights are exp(-squared distance / bandwidth^2); in units of the clean image's standard deviation.
        :func:`vnlem.theory.noise_bandwidth` gives the scale of the noise itself.
    noise_correction : bool
        Subtract the expected contribution of the noise, 2 sigma^2 per pixel, from squared distances.
    engine : {"fast", "reference"}
        "reference" is plain NumPy for small images.
    channel_axis : int, optional
        Axis of the colour channels: distances are averaged over them.
    workers : int, optional
        Threads; all cores when None. The result does not depend on it.
    progress : bool or callable(done, total)
        Show a bar, or call your own function.
    return_info : bool
        Return (image, info) with the sigma and the parameters used, and timings.
    device : {None, "cpu", "cuda", "cuda:1", "auto"}
        Where to run, see :func:`vnlem.denoise`.

    Returns
    -------
    ndarray
        The denoised image in the units, dtype and layout of the input.

    Notes
    -----
    The cost is proportional to pixels times (2 patch_distance + 1)^2 and hardly depends on the patch size.

    References
    ----------
    .. [1] A. Buades, B. Coll, J.-M. Morel, "A review of image denoising algorithms, with a new one",
           Multiscale Modeling & Simulation 4 (2005), doi:10.1137/040616024

    Examples
    --------
    >>> import numpy as np, vnlem
    >>> clean = np.kron([[50.0, 200.0], [200.0, 50.0]], np.ones((16, 16)))
    >>> noisy = clean + np.random.default_rng(0).normal(0, 20, clean.shape)
    >>> denoised = vnlem.denoise_nlm(noisy, sigma=20)
    >>> bool(np.std(denoised - clean) < 0.4 * np.std(noisy - clean))
    True
    """
    return METHOD.denoise(**locals())


def resolve(
    noise: float, ndim: int, *, preset: str, engine: str, noise_correction: bool, **given: Any
) -> WindowParams:
    """The parameters for a noise level in standardised units."""
    chosen = auto_params(noise) | {name: value for name, value in given.items() if value is not None}
    return check_params(noise, ndim, **chosen, gamma=2.0, noise_correction=noise_correction)


METHOD = Method(
    name="nlm",
    function="vnlem.methods.nlm:denoise_nlm",
    resolve=resolve,
    engines={
        "fast": "vnlem.methods.nlm:solve",
        "reference": "vnlem.methods.nlm:solve_plainly",
        "cuda": "vnlem.methods.cuda.nlm:solve",
    },
    halo=halo,
    signals=True,
    bytes_per_pixel=65,
    cuda_grain=16,
    stack=StackMethod(
        kinds="TZ",
        prepare="vnlem.methods.nlm_stack:prepare",
        halo="vnlem.methods.nlm_stack:halo",
        planes_in_flight="vnlem.methods.nlm_stack:planes_in_flight",
        cuda="vnlem.methods.cuda.nlm_stack:solve_stack",
        cuda_grain=64,
    ),
)


def solve_plainly(job: Job[WindowParams]) -> NDArray[np.float32]:
    from vnlem.reference.window import nlm

    denoised: NDArray[np.float32] = nlm(job.pixels, job.sigma, job.params)
    return denoised
