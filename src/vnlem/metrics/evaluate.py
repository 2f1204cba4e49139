"""All measures at once."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from vnlem.metrics._arrays import check_data_range, pair_of, pair_of_planes
from vnlem.metrics.emd import emd
from vnlem.metrics.error import psnr, psnr_paper, rms, snr
from vnlem.metrics.fsim import fsim
from vnlem.metrics.sobolev import sobolev
from vnlem.metrics.ssim import ssim_of_planes


@dataclass(frozen=True)
class Evaluation:
    """The measures of one image against its clean version.

    Attributes
    ----------
    snr, psnr, psnr_paper : float
        Decibels. `psnr` has the data range as its peak, `psnr_paper` the clean image's largest deviation from
        its mean.
    rms, sobolev : float
        On the [0, 1] grey scale.
    emd : float or None
        On the [0, 1] grey scale: removed noise against true noise. None if the noisy image was not given.
    ssim : float or None
        None for images with a side below 11 pixels, the size of its window.
    fsim : float
        FSIMc for three channels.

    Examples
    --------
    >>> import numpy as np
    >>> from vnlem.metrics import evaluate
    >>> clean = np.tile(np.linspace(0, 1, 32), (32, 1))
    >>> measures = evaluate(clean, clean + 0.1, data_range=1.0)
    >>> round(measures.psnr, 2), round(measures.rms, 2), measures.emd is None
    (20.0, 0.1, True)
    """

    snr: float
    psnr: float
    psnr_paper: float
    rms: float
    sobolev: float
    emd: float | None
    ssim: float | None
    fsim: float


def evaluate(
    clean: ArrayLike,
    other: ArrayLike,
    noisy: ArrayLike | None = None,
    data_range: float = 255,
    channel_axis: int | None = None,
) -> Evaluation:
    """Compare an image with its clean version by every measure.

    Parameters
    ----------
    clean, other : array_like
        Two images of the same shape, in the same units.
    noisy : array_like, optional
        What `other` was made from. With it, ``emd(noisy - other, noisy - clean)`` is measured too: how well
        the removed noise resembles the true noise.
    data_range : float
        Width of the grey scale, e.g. 255 or 1.
    channel_axis : int, optional
        The axis of the channels of colour images.

    Returns
    -------
    Evaluation
        A plain dataclass; ``dataclasses.asdict`` turns it into a dictionary.

    Notes
    -----
    SSIM has the Gaussian window and the constants of Wang et al. 2004, averaged over
    channels.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> clean = np.full((32, 32), 100.0) + 50 * np.eye(32)
    >>> noisy = clean + rng.normal(0, 10, clean.shape)
    >>> smooth = (noisy + clean) / 2
    >>> result = evaluate(clean, smooth, noisy)
    >>> round(result.psnr - evaluate(clean, noisy).psnr, 2)
    6.02
    >>> result.ssim > evaluate(clean, noisy).ssim
    True
    """
    width = check_data_range(data_range)
    planes = pair_of_planes(clean, other, channel_axis)
    removed_against_true = None
    if noisy is not None:
        clean_values, noisy_values = pair_of(clean, noisy, "noisy")
        removed = noisy_values - np.asarray(other, np.float64)
        removed_against_true = emd(removed, noisy_values - clean_values, width)
    return Evaluation(
        snr=snr(clean, other),
        psnr=psnr(clean, other, width),
        psnr_paper=psnr_paper(clean, other),
        rms=rms(clean, other, width),
        sobolev=sobolev(clean, other, data_range=width, channel_axis=channel_axis),
        emd=removed_against_true,
        ssim=ssim_of_planes(*planes, width),
        fsim=fsim(clean, other, width, channel_axis=channel_axis),
    )
