"""Measures of image quality: how far a (denoised) image is from the clean one.

One idea per module; `docs/measures.md` has the formulas and the units side by side.
"""

from vnlem.metrics.emd import emd
from vnlem.metrics.error import psnr, psnr_paper, rms, snr
from vnlem.metrics.evaluate import Evaluation, evaluate
from vnlem.metrics.fourier import FourierCorrelation, frc, fsc
from vnlem.metrics.fsim import fsim
from vnlem.metrics.residual import Residual, residual_check
from vnlem.metrics.sobolev import sobolev
from vnlem.metrics.ssim import ssim

__all__ = [
    "Evaluation",
    "FourierCorrelation",
    "Residual",
    "emd",
    "evaluate",
    "frc",
    "fsc",
    "fsim",
    "psnr",
    "psnr_paper",
    "residual_check",
    "rms",
    "snr",
    "sobolev",
    "ssim",
]
