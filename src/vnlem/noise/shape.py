"""Is it noise that neighbouring pixels share, or texture? Both have more power at low frequencies.

Noise is everywhere: the flat blocks of an image hold equal amounts of it, and its spectrum has a plateau at
the lowest frequencies, where that of texture rises. None of these signs is certain. So each property of an
image has a table of log odds in :mod:`vnlem.noise.odds`; their sum is the evidence. The tables were fitted
by `benchmarks/evidence.py` to pictures for which it is known which of the two models gives the better result.
Each picture counts as much as the wrong choice costs there, and four times if it makes the picture worse.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vnlem.noise.correlated import PowerEstimate, floor_and_rise
from vnlem.noise.evidence import Seen
from vnlem.noise.jpeg import compression
from vnlem.noise.odds import AT_ALL, TABLES

Float = NDArray[np.float64]

# The blocks that show noise are tilted like the classes of brightness, because noise has one spectrum. A
# floor below this is too low to tell.
LEAST_FLOOR = 0.1
# White noise has floors above 0.7, or much less power than the texture.
SMOOTHED_FLOOR, SMOOTHED_RISE, SMOOTHED_POWER = 0.65, 2.6, 0.25


class Evidence(NamedTuple):
    """What an image shows of its noise, in positive numbers.

    Powers of frequencies are relative to that at 0.14 to 0.22 cycles per pixel.
    """

    floor: float  # power above 0.45 cycles: it was demosaicked, resampled, blurred or scanned
    rise: float  # power below 0.06 cycles
    tilt: float  # power at middle frequencies over that at high ones, usual for the classes of brightness
    least_tilt: float  # the same for nearly all classes
    agreement: float  # floor times tilt: one if the blocks that show noise are tilted like all others
    flat: float  # share of the blocks that look like this noise and nothing else
    uneven: float  # scatter of the energies of flat blocks over that of noise, which has one
    strength: float  # of the noise, relative to the contrast
    possible: float  # its variance, relative to the largest that is possible between the limits of the values
    white: float  # share of the classes of brightness that look like white noise
    compressed: float  # zero cosine coefficients on a grid of 8x8 pixels, relative to those elsewhere
    outlasting: float  # possible times compressed: compression removes weak noise
    colour_floor: float | None = None  # the larger of the two colour differences
    colour_rise: float | None = None  # likewise
    colour_power: float | None = None  # of the colour differences, relative to the brightness

    @classmethod
    def of(
        cls, found: PowerEstimate, image: Float, stable: Float, channels: Sequence[Seen], possible: float
    ) -> "Evidence":
        """From the power of the noise, and from what the blocks of each channel show.

        image, stable: (C, H, W), before and after stabilisation.
        """
        (floor, rise), *colours = map(floor_and_rise, found.power)
        brightness, *differences = found.power.mean(axis=(1, 2))
        contrast = float(stable.std(axis=(1, 2)).mean())
        tilt = float(np.median([one.tilt for one in channels]))
        own = cls(
            floor,
            rise,
            tilt,
            min(one.least_tilt for one in channels),
            max(floor, LEAST_FLOOR) * tilt,
            found.share,
            found.unevenness,
            float(np.sqrt(found.power.mean())) / max(contrast, 1e-300),
            possible,
            float(np.mean([one.share for one in channels])),
            compressed := float(np.exp(compression(image.mean(axis=0)))),
            possible * compressed,
        )
        if len(colours) != 2:
            return own
        return own._replace(
            colour_floor=max(high for high, _ in colours),
            colour_rise=max(low for _, low in colours),
            colour_power=float(np.mean(differences) / max(brightness, 1e-300)),
        )

    @property
    def is_smoothed(self) -> bool:
        """Whether the colour differences are white noise that was smoothed a little.

        So they are in pictures that were scaled, sharpened or filtered.
        """
        if self.colour_floor is None or self.colour_rise is None or self.colour_power is None:
            return False
        smooth = self.colour_floor <= SMOOTHED_FLOOR and self.colour_rise <= SMOOTHED_RISE
        return smooth and self.colour_power >= SMOOTHED_POWER

    def odds(self) -> float:
        """Log odds that correlated noise explains the image better than texture.

        >>> scanned = Evidence(0.02, 1.2, 6.0, 4.0, 0.6, 0.5, 1.0, 0.3, 0.01, 0.1, 1.1, 0.01)
        >>> texture = scanned._replace(floor=0.5, rise=4.0, uneven=3.0, flat=0.1)
        >>> scanned.odds() > texture.odds()
        True
        """
        odds = AT_ALL
        for name, value in self._asdict().items():
            if value is not None:
                levels, own = TABLES[name]
                odds += float(np.interp(np.log(max(value, levels[0])), np.log(levels), own))
        return odds
