"""Restore contrast and flux that an estimate lost, in plain NumPy: the oracle of the aims of VNLR."""

import numpy as np
from numpy.typing import NDArray

Float = NDArray[np.float64]


def restore_contrast(flat: Float, sharp: Float, noisy: Float, variance: Float) -> Float:
    """Blend two estimates of planes (channels, H, W) by lost structure, and restore its contrast.

    Examples
    --------
    >>> noisy = np.random.default_rng(0).normal(0, 1, (1, 40, 40))
    >>> nothing = np.zeros((1, 40, 40))
    >>> float(np.abs(restore_contrast(nothing, nothing, noisy, np.ones((1, 40, 40)))).max())
    0.0
    """
    sureness = _contrast(flat, noisy, variance)[-1]
    blend = flat + sureness * (sharp - flat)
    detail, energy, lost, noise, sureness = _contrast(blend, noisy, variance)
    gain = np.sqrt((energy + np.maximum(lost, 0) + 0.05 * noise) / (energy + 0.05 * noise))
    return np.asarray(blend + sureness * (np.minimum(gain, 2.5) - 1) * detail)


def restore_flux(estimate: Float, noisy: Float, variance: Float) -> Float:
    """An estimate of planes (channels, H, W) whose bright peaks have the flux of the noisy ones around them.

    Examples
    --------
    >>> flat = np.zeros((1, 40, 40))
    >>> float(np.abs(restore_flux(flat, flat + 1, flat + 1)).max())
    0.0
    """
    result = []
    for plane, image, noise in zip(estimate, noisy, np.sqrt(variance), strict=True):
        peaks = (_blur(plane, 1.5) - _blur(plane, 6)) / noise
        impulse = np.zeros((33, 33))
        impulse[16, 16] = 1
        peaks *= np.clip(peaks / np.sqrt(np.sum(_blur(impulse, 1.5) ** 2)) / 6 - 1, 0, 1)
        fitted, energy = (
            4 * np.pi * 12**2 * _blur(values, 12) for values in ((image - plane) / noise * peaks, peaks**2)
        )
        result.append(plane + np.clip(fitted / (energy + 100), 0, 0.05) * peaks * noise)
    return np.stack(result)


def _contrast(estimate: Float, noisy: Float, variance: Float) -> tuple[Float, ...]:
    """Detail, its energy, what was lost of it, the noise's energy, and how sure the loss is."""
    detail, noisy_detail = (np.stack([p - _blur(p, 4) for p in planes]) for planes in (estimate, noisy))
    impulse = np.zeros((65, 65))
    impulse[32, 32] = 1
    gain = np.sum((impulse - _blur(impulse, 4)) ** 2)
    noise = gain * _blur(variance.mean(axis=0), 12)
    energy = _blur((detail**2).mean(axis=0), 12)
    lost = _blur((noisy_detail**2).mean(axis=0), 12) - noise - energy
    errors = lost / (noise * np.sqrt(2 / (4 * np.pi * 12**2 * len(estimate))))
    return detail, energy, lost, noise, np.clip((errors - 1) / 4, 0, 1)


def _blur(plane: Float, width: float) -> Float:
    """A Gaussian of three times its width to each side, the plane mirrored at its borders."""
    half = int(np.ceil(3 * width))
    taps = np.exp(-0.5 * (np.arange(-half, half + 1) / width) ** 2)
    taps /= taps.sum()
    for axis in (0, 1):
        count = plane.shape[axis]
        result = np.zeros(plane.shape)
        for tap, shift in zip(taps, range(-half, half + 1), strict=True):
            at = (np.arange(count) + shift) % (2 * count)
            result += tap * np.take(plane, np.where(at < count, at, 2 * count - 1 - at), axis=axis)
        plane = result
    return plane
