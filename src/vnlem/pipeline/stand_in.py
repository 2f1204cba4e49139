"""An image that another one takes its units from.

The later rounds for few photons see a mixture of the image and of what was found in it. Units measured on
that mixture would depend on all of the first result, which an image denoised in parts never holds. So they
are measured on planes that stand for it and are made from the image alone.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vnlem.pipeline.scale import Scale

Float = NDArray[np.float64]

# Pixels may be so much brighter than those of what stands for them. Sums on a GPU are whole numbers whose
# unit follows the brightest pixel.
BRIGHTER = 2.0**4


@dataclass(frozen=True, eq=False)
class StandIn:
    """A noise level, and planes (C, H, W) that an image with this noise takes its units from.

    Methods take it in place of sigma.

    Examples
    --------
    >>> StandIn(3.0, np.array([[[0.0, 10.0]]])).units()
    (Scale(mean=5.0, scale=4.0, noise=3.0), 20.0)
    """

    noise: float
    planes: Float

    def part(self, of: Callable[[Float], Float]) -> "StandIn":
        """What stands for a part of the image, such as one of its channels.

        Examples
        --------
        >>> both = StandIn(3.0, np.array([[[0.0, 10.0]], [[7.0, 7.0]]]))
        >>> both.part(lambda planes: planes[:1]).units()
        (Scale(mean=5.0, scale=4.0, noise=3.0), 20.0)
        """
        return StandIn(self.noise, of(self.planes))

    def units(self) -> tuple[Scale, float]:
        """Scale of the image, and what its pixels do not exceed in units of it."""
        scale = Scale.measure(self.planes, self.noise)
        return scale, BRIGHTER * float(np.abs(scale.standardise(self.planes)).max())
