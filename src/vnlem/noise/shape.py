"""Is it noise that neighbouring pixels share, or texture? Both have more power at low frequencies.

Noise is everywhere: the flat blocks of an image hold equal amounts of it. Its spectrum has a plateau at the
lowest frequencies, where that of texture rises. Noise that was interpolated or compressed has almost nothing
at the highest frequencies. So has the texture of a blurred or compressed photograph, but in few and uneven
blocks.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vnlem.noise.correlated import PowerEstimate, floor_and_rise
from vnlem.noise.evidence import LEAST_TILT

Float = NDArray[np.float64]


class Evidence(NamedTuple):
    """What an image shows of its noise. Powers are relative to that at 0.14 to 0.22 cycles per pixel."""

    floor: float  # power above 0.45 cycles
    rise: float  # power below 0.06 cycles
    tilt: float  # power at middle frequencies over that at high ones, usual for the classes of brightness
    least_tilt: float  # the same for nearly all classes
    flat: float  # share of the blocks that look like this noise and nothing else
    uneven: float  # scatter of the energies of flat blocks over that of noise, which has one
    strength: float  # of the noise, relative to the contrast
    is_subsampled: bool  # whether the colour differences have low frequencies only, as in most JPEG files

    @classmethod
    def of(cls, found: PowerEstimate, contrast: float, tilt: float, least_tilt: float) -> "Evidence":
        """From the power of the noise, and how its classes of brightness are tilted."""
        (floor, rise), *colours = map(floor_and_rise, found.power)
        brightness, *differences = found.power.mean(axis=(1, 2))
        subsampled = (
            len(colours) > 0
            and all(high <= SUBSAMPLED_FLOOR and low >= SUBSAMPLED_RISE for high, low in colours)
            and float(np.mean(differences)) >= SUBSAMPLED_POWER * brightness
        )
        strength = float(np.sqrt(found.power.mean())) / max(contrast, 1e-300)
        return cls(
            floor,
            rise,
            tilt,
            least_tilt,
            found.share,
            found.unevenness,
            strength,
            subsampled,
        )


class Shape(NamedTuple):
    """What correlated noise may look like."""

    floor: float  # at most: it was demosaicked, resampled, blurred or scanned
    rise: float  # at most: noise has a plateau there, texture rises
    tilt: float  # at least
    flat: float  # at least
    uneven: float = np.inf  # at most

    def fits(self, seen: Evidence) -> bool:
        """Whether an image looks like this."""
        return (
            seen.floor <= self.floor
            and seen.rise <= self.rise
            and seen.tilt >= self.tilt
            and seen.flat >= self.flat
            and seen.uneven <= self.uneven
        )


# Real cases have floors of 0.01 to 0.05. Grey photographs without noise have tilts up to 12 or rise by 4 and
# more; in colour, where texture is mostly brightness, they rise by 9 and more or have floors above 0.045.
# Noise that is as even as noise can be, over nearly half of the image, may have any spectrum that falls.
SHAPES = {1: Shape(0.035, 4.0, 12.0, 0.12), 3: Shape(0.045, 9.0, 6.0, 0.09)}
PLAIN = Shape(0.3, 6.0, 1.5, 0.4, uneven=1.25)
# Noise of some strength that is even and does not rise: compressed photographs, noise that depends on the
# brightness and is slightly correlated, interpolated images. White noise on texture is less tilted.
EVEN = Shape(0.5, 2.7, 1.65, 0.15, uneven=1.15)
EVEN_STRENGTH, EVEN_TILT = 0.09, 1.35  # the least strength, and the least tilt of nearly all classes
# Floor times rise, at most: below one the spectrum is a plateau that falls, above one a trough, which white
# noise on texture has.
EVEN_BEND = 0.85
EVEN_SUBSAMPLED = Shape(np.inf, 5.0, 0.0, 0.15, uneven=1.15)  # the colour differences show what it is
# Of each difference; texture is mostly brightness, so its differences have less power relative to that.
SUBSAMPLED_FLOOR, SUBSAMPLED_RISE, SUBSAMPLED_POWER = 0.25, 2.0, 0.01
# Patterns can be even and as strong as the contrast: then half of the blocks must show noise, on a plateau.
# Less of the contrast counts as strong if only the brightness shows it.
STRONG, STRONG_SUBSAMPLED, STRONG_FLAT, STRONG_RISE = 0.25, 0.45, 0.5, 2.0
LEAST_RISE = 0.6  # patterns that repeat have almost nothing at low frequencies
# Noise that would be a large share of the contrast must be as even as noise is.
LARGE_SHARE, MOST_UNEVEN = 0.15, 1.75
# What would be noise of some strength is texture if it rises, in few blocks, and has no high frequencies
# (blurred and compressed photographs), or if the few blocks with it are uneven.
TEXTURE_STRENGTH = 0.08
BLURRED_RISE, BLURRED_FLAT, BLURRED_FLOOR = 4.0, 0.3, 0.03
PATCHY_UNEVEN, PATCHY_FLAT = 1.35, 0.2


def looks_like_noise(seen: Evidence, channels: int) -> bool:
    """Whether correlated noise explains the image better than texture.

    Examples
    --------
    >>> even = Evidence(0.2, 1.1, 5.0, 4.0, flat=0.3, uneven=1.0, strength=0.2, is_subsampled=False)
    >>> looks_like_noise(even, 1), looks_like_noise(even._replace(uneven=1.6), 1)
    (True, False)
    """
    if seen.rise < LEAST_RISE or (seen.strength > LARGE_SHARE and seen.uneven > MOST_UNEVEN):
        return False
    usual = seen.least_tilt > LEAST_TILT and (
        SHAPES[3 if channels == 3 else 1].fits(seen) or PLAIN.fits(seen)
    )
    return (usual and not _is_texture(seen)) or _is_even(seen)


def _is_texture(seen: Evidence) -> bool:
    """Whether the spectrum of noise may belong to a blurred or compressed texture."""
    if seen.strength < TEXTURE_STRENGTH:
        return False
    blurred = seen.rise > BLURRED_RISE and seen.flat < BLURRED_FLAT and seen.floor < BLURRED_FLOOR
    return blurred or (seen.uneven > PATCHY_UNEVEN and seen.flat < PATCHY_FLAT)


def _is_even(seen: Evidence) -> bool:
    """Whether it is as even as noise of some strength, whatever its spectrum."""
    if seen.strength < EVEN_STRENGTH:
        return False
    if seen.is_subsampled and EVEN_SUBSAMPLED.fits(seen):
        return seen.strength <= STRONG_SUBSAMPLED or seen.flat >= STRONG_FLAT
    if seen.strength > STRONG and (seen.flat < STRONG_FLAT or seen.rise > STRONG_RISE):
        return False
    return EVEN.fits(seen) and seen.least_tilt > EVEN_TILT and seen.floor * seen.rise <= EVEN_BEND
