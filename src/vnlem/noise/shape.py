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
    is_smoothed: bool  # whether the colour differences are white noise that was smoothed a little

    @classmethod
    def of(cls, found: PowerEstimate, contrast: float, tilt: float, least_tilt: float) -> "Evidence":
        """From the power of the noise, and how its classes of brightness are tilted."""
        (floor, rise), *colours = map(floor_and_rise, found.power)
        brightness, *differences = found.power.mean(axis=(1, 2))
        subsampled = smoothed = False
        if colours:
            subsampled = (
                all(high <= SUBSAMPLED_FLOOR and low >= SUBSAMPLED_RISE for high, low in colours)
                and float(np.mean(differences)) >= SUBSAMPLED_POWER * brightness
            )
            smoothed = (
                all(high <= SMOOTHED_FLOOR and low <= SMOOTHED_RISE for high, low in colours)
                and float(np.min(differences)) >= SMOOTHED_POWER * brightness
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
            smoothed,
        )


class Shape(NamedTuple):
    """What correlated noise may look like."""

    floor: float  # at most: it was demosaicked, resampled, blurred or scanned
    rise: float  # at most: noise has a plateau there, texture rises
    tilt: float  # at least
    flat: float  # at least
    uneven: float = np.inf  # at most
    least: float = 0.0  # strength
    most: float = np.inf  # strength
    # At most, floor times rise: below one the spectrum is a plateau that falls; above one it is a trough, as
    # of white noise on texture.
    bend: float = np.inf

    def fits(self, seen: Evidence) -> bool:
        """Whether an image looks like this."""
        return (
            seen.floor <= self.floor
            and seen.rise <= self.rise
            and seen.tilt >= self.tilt
            and seen.flat >= self.flat
            and seen.uneven <= self.uneven
            and self.least <= seen.strength <= self.most
            and seen.floor * seen.rise <= self.bend
        )


# Real cases have floors of 0.01 to 0.05. Grey photographs without noise have tilts up to 12 or rise by 4 and
# more; in colour, where texture is mostly brightness, they rise by 9 and more or have floors above 0.045.
# Noise that is as even as noise can be, over nearly half of the image, may have any spectrum that falls.
SHAPES = {1: Shape(0.035, 4.0, 12.0, 0.12), 3: Shape(0.045, 9.0, 6.0, 0.09)}
PLAIN = Shape(0.3, 6.0, 1.5, 0.4, uneven=1.25)
# Noise that is even: compressed photographs, noise that depends on the brightness and is slightly correlated,
# interpolated images. White noise on texture is less tilted. Weak noise may be the grain of a clean picture.
# Patterns and dense texture can be even and as strong as the contrast: then more blocks must show noise, or
# its spectrum must be a plateau.
EVEN = (
    Shape(0.5, 2.7, 1.65, 0.15, 1.15, least=0.09, most=0.25, bend=0.85),
    Shape(0.5, 1.25, 1.65, 0.2, 1.15, least=0.25, most=0.4, bend=0.4),
    Shape(0.5, 2.0, 1.65, 0.5, 1.15, least=0.25, bend=0.85),
)
EVEN_TILT = 1.35  # at least, of nearly all classes
# The same if the colour differences have low frequencies only: then the brightness may have any spectrum.
EVEN_SUBSAMPLED = (
    Shape(np.inf, 2.0, 0.0, 0.2, 1.15, least=0.04, most=0.06),
    Shape(np.inf, 5.0, 0.0, 0.15, 1.15, least=0.06, most=0.25),
    Shape(np.inf, 5.0, 0.0, 0.3, 1.15, least=0.25, most=0.45),
    Shape(np.inf, 1.25, 0.0, 0.2, 1.15, least=0.25, most=0.65),
    Shape(np.inf, 5.0, 0.0, 0.5, 1.15, least=0.45),
)
# The same if the colour differences are smoothed noise, of pictures that were scaled, sharpened or filtered.
EVEN_SMOOTHED = Shape(np.inf, np.inf, 0.0, 0.1, least=0.06)
SMOOTHED_TILT = 1.3  # at least, usual for each colour difference
# Limits for each colour difference. White noise has floors above 0.7, or much less power than the texture.
SMOOTHED_FLOOR, SMOOTHED_RISE, SMOOTHED_POWER = 0.65, 2.6, 0.25
# Limits for each colour difference. Texture is mostly brightness, so its differences have less power.
SUBSAMPLED_FLOOR, SUBSAMPLED_RISE, SUBSAMPLED_POWER = 0.25, 2.0, 0.01
LEAST_RISE = 0.6  # patterns that repeat have almost nothing at low frequencies
# Noise that would be a large share of the contrast must be as even as noise is.
LARGE_SHARE, MOST_UNEVEN = 0.15, 1.75
# What would be noise of some strength in few blocks is texture if these are uneven, or if it rises and has no
# high frequencies (blurred and compressed photographs).
TEXTURE_STRENGTH, TEXTURE_FLAT = 0.08, 0.3
TEXTURE_UNEVEN, TEXTURE_RISE, TEXTURE_FLOOR = 1.35, 4.0, 0.03


def looks_like_noise(seen: Evidence, channels: int) -> bool:
    """Whether correlated noise explains the image better than texture.

    Examples
    --------
    >>> even = Evidence(0.2, 1.1, 5.0, 4.0, 0.3, 1.0, 0.2, is_subsampled=False, is_smoothed=False)
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
    if seen.strength < TEXTURE_STRENGTH or seen.flat >= TEXTURE_FLAT:
        return False
    return seen.uneven > TEXTURE_UNEVEN or (seen.rise > TEXTURE_RISE and seen.floor < TEXTURE_FLOOR)


def _is_even(seen: Evidence) -> bool:
    """Whether it is as even as noise is."""
    if seen.is_smoothed and EVEN_SMOOTHED.fits(seen):
        return True
    if seen.is_subsampled and any(shape.fits(seen) for shape in EVEN_SUBSAMPLED):
        return True
    return seen.least_tilt > EVEN_TILT and any(shape.fits(seen) for shape in EVEN)
