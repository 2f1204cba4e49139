"""VNLR: groups of patches that agree up to a rotation or reflection, combined by ridge weights.

image -> square patches -> k nearest up to a symmetry -> ridge combination of the group -> aggregation
"""

from typing import Any

from numpy.typing import ArrayLike

from vnlem.methods.vnlr_params import VnlrParams, in_colour, members
from vnlem.methods.vnlr_params import resolve as resolve
from vnlem.methods.vnlr_passes import halo as halo
from vnlem.methods.vnlr_passes import solve as solve
from vnlem.methods.vnlr_passes import work_halo
from vnlem.pipeline.choices import Aim, Group, Preset, Profile
from vnlem.pipeline.method import Method, StackMethod, names_parameters
from vnlem.pipeline.progress import Progress
from vnlem.pipeline.run import Result


@names_parameters
def denoise_vnlr(
    image: ArrayLike,
    sigma: Any = None,
    *,
    group: Group = "d4",
    profile: Profile = "balanced",
    preset: Preset = "auto",
    engine: str = "fast",
    channel_axis: int | None = None,
    patch_size: int | None = None,
    n_neighbors: int | None = None,
    patch_distance: int | None = None,
    step: int | None = None,
    passes: int | None = None,
    scales: int = 3,
    workers: int | None = None,
    progress: Progress = False,
    return_info: bool = False,
    device: str | None = None,
    channels: str = "auto",
    aim: Aim = "fidelity",
) -> Result:
    """Vector non-local ridge: groups of patches that agree up to a rotation or reflection.

    Parameters
    ----------
    image : array_like
        Grey image (H, W), or colour image with `channel_axis` (any number of channels).
    sigma : float or array_like, optional
        Standard deviation of the noise in the units of the pixels: a number, one number per channel, or a
        map of the image's size. Estimated when None.
    group : {"d4", "identity", "c4", "so2", "similarity"}
        How a patch may be moved to agree with another: "identity" shifts only; "c4" also quarter turns; "d4"
        also reflections; "so2" any angle: it also searches copies of the image turned in steps of 15 degrees
        (six times the matching time; pays for particles at random angles); "similarity" is "so2" with a
        window of three times the radius (for particles that recur at one or several sizes).
    profile : {"balanced", "best", "quality", "fast"}
        How much work is done. "best" is the mean of two runs in wide windows, one with small patches and one
        with large ones: the first counts most in texture and at edges, the second in flat areas.
    preset : {"auto"}
        There is no preset "paper" for this method.
    engine : {"fast", "reference"}
        "reference" is plain NumPy, for checks on small images.
    channel_axis : int, optional
        Axis of the channels.
    patch_size, n_neighbors, patch_distance, step, passes : int, optional
        Side of a patch, patches per group, radius of the search window, distance between reference
        patches, pilot passes; from the profile and sigma when None.
    scales : int
        Sizes at which the image is denoised. With 3 it is also denoised at half and at a quarter of its size,
        and flat and smooth areas take their low frequencies from there. 1 takes three quarters of the time
        and has a smaller halo if an image is denoised in parts.
    workers : int, optional
        Threads; all cores when None. The result does not depend on it.
    progress : bool or callable(done, total)
        Show a bar, or call your own function.
    return_info : bool
        Return (image, info); ``info.details["turned_share"]`` is the share of turned or reflected members in
        each pass.
    device : {None, "cpu", "cuda", "cuda:1", "auto"}
        Where to run, see :func:`vnlem.denoise`.
    channels : {"auto", "joint", "separate", "same"}
        Whether channels share their groups of patches. "auto" decides once from the image: channels with the
        same edges at the same places, as in a photograph, are denoised jointly, independent ones (stains,
        fluorescence) one by one ("separate"), and identical channels, noise included, as one picture
        ("same"). Three joint channels are assumed to be RGB and compared in opponent colours.
    aim : {"fidelity", "perception", "flux"}
        "fidelity" minimises the expected error. "perception" is for viewing: the last pass runs twice, the
        sharper result is used where structure was lost, and missing local contrast is restored. It gains in
        SSIM and FSIM and costs some hundredths of a decibel. "flux" is for measurements of small bright
        objects, such as stars and spots: it restores the 1 % of their flux that is lost.

    Returns
    -------
    ndarray, or (ndarray, Info) with `return_info`
        The denoised image in the units, dtype and layout of the input.

    Notes
    -----
    Each group's patches are aligned and become columns; each estimate is an affine combination of them, with
    the weights that minimise the expected error for the known noise: from Stein's unbiased estimate in the
    first pass, from the pilot in the later ones [1]_. The noise in the working image falls from pass to
    pass [2]_. Every estimate returns to its own place and orientation, weighted by its noise gain to the
    power -3/2. To keep noise from choosing the transforms, a patch moved by g is ranked by d_g^2 + 0.6 n
    sigma^2 in the first pass (not used at all if the reference looks flat) and by 1.3 d_g^2 + 0.04 n sigma^2
    on the pilot, and a group in which fewer than one member in eight would be turned or reflected has none.
    Time is proportional to pixels / step^2 * ((2 patch_distance + 1)^2 * 8 patch_size^2 + n_neighbors^3) per
    pass.

    References
    ----------
    .. [1] S. Herbreteau, C. Kervrann, "Towards a unified view of unsupervised non-local methods for image
       denoising: the NL-Ridge approach", 2022. arXiv:2203.00570
    .. [2] S. Herbreteau, C. Kervrann, "Unsupervised linear and iterative combinations of patches for image
       denoising", 2022. arXiv:2212.00422

    Examples
    --------
    >>> import numpy as np, vnlem
    >>> y, x = np.mgrid[:48, :48]
    >>> clean = 100.0 * ((y - 24) ** 2 + (x - 24) ** 2 < 200)
    >>> noisy = clean + np.random.default_rng(0).normal(0, 20, clean.shape)
    >>> result = vnlem.denoise_vnlr(noisy, 20, profile="fast")
    >>> bool(np.std(result - clean) < 0.4 * np.std(noisy - clean))
    True
    """
    return METHOD.denoise(**locals())


def resolve_options(
    noise: float, ndim: int, *, preset: str, engine: str, scales: int, channels: str, **given: Any
) -> VnlrParams:
    """The parameters for a noise level in standardised units; scales and channels are the plan's."""
    return resolve(noise, given.pop("profile"), given.pop("group"), **given)


METHOD = Method(
    name="vnlr",
    function="vnlem.methods.vnlr:denoise_vnlr",
    resolve=resolve_options,
    engines={
        "fast": "vnlem.methods.vnlr_passes:solve",
        "reference": "vnlem.methods.vnlr_passes:solve_plainly",
        "cuda": "vnlem.methods.cuda.vnlr:solve",
    },
    halo=halo,
    work_halo=work_halo,
    members=members,
    in_colour=in_colour,
    min_size=lambda params: max(max(run.patch_sizes) for run in members(params)),
    sigma_maps=True,
    bytes_per_pixel=90,
    stack=StackMethod(
        kinds="TZN",
        prepare="vnlem.methods.vnlr_stack:prepare",
        halo="vnlem.methods.vnlr_stack_params:halo",
        planes_in_flight="vnlem.methods.vnlr_stack_params:planes_in_flight",
        channels=True,
        sigma_maps=True,
        cuda="vnlem.methods.cuda.vnlr_stack:solve_stack",
    ),
)
