"""Demosaicking: a colour image from the mosaic of a camera, for output and for benchmarks.

Bayer patterns by the linear filters of Malvar, He and Cutler; other patterns by interpolating green, and then
the differences from it.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.ndimage import correlate, gaussian_filter

Float = NDArray[np.float64]

# H. S. Malvar, L. He, R. Cutler, "High-quality linear interpolation for demosaicing of Bayer-patterned color
# images", ICASSP 2004. doi:10.1109/ICASSP.2004.1326587. In eighths: green at red and blue; red or blue at a
# green with that colour to its sides; red at blue and blue at red.
_GREEN = np.array(
    [[0, 0, -1, 0, 0], [0, 0, 2, 0, 0], [-1, 2, 4, 2, -1], [0, 0, 2, 0, 0], [0, 0, -1, 0, 0]], np.float64
)
_BESIDE = np.array(
    [[0, 0, 0.5, 0, 0], [0, -1, 0, -1, 0], [-1, 4, 5, 4, -1], [0, -1, 0, -1, 0], [0, 0, 0.5, 0, 0]]
)
_ACROSS = np.array(
    [[0, 0, -1.5, 0, 0], [0, 2, 0, 2, 0], [-1.5, 0, 6, 0, -1.5], [0, 2, 0, 2, 0], [0, 0, -1.5, 0, 0]]
)
WIDTH = 0.8  # pixels; standard deviation of the interpolation of other patterns


def demosaic(mosaic: ArrayLike, pattern: tuple[str, ...]) -> Float:
    """The colour image (H, W, 3) of a mosaic of red, green and blue pixels.

    mosaic: (H, W), black level subtracted.
    pattern: rows of a cell, such as ("RG", "GB").

    >>> flat = np.tile([[1.0, 2.0], [2.0, 3.0]], (4, 4))
    >>> demosaic(flat, ("RG", "GB"))[3, 3]
    array([1., 2., 3.])
    """
    pixels = np.asarray(mosaic, np.float64)
    if {*"".join(pattern)} != {*"RGB"}:
        raise ValueError(
            f"only red, green and blue pixels can be demosaicked, got {pattern!r}; write a DNG instead"
        )
    cell = np.array([list(row) for row in pattern])
    height, width = pixels.shape
    colour = np.tile(cell, (height // len(cell) + 1, width // len(cell) + 1))[:height, :width]
    is_bayer = len(cell) == 2 and (cell == "G").sum() == 2 and cell[0, 0] != cell[0, 1]
    return _malvar(pixels, colour) if is_bayer else _by_differences(pixels, colour)


def _malvar(pixels: Float, colour: NDArray[np.str_]) -> Float:
    def filtered(taps: Float) -> Float:
        return np.asarray(correlate(pixels, taps / 8, mode="mirror"))

    beside, above, across = filtered(_BESIDE), filtered(_BESIDE.T), filtered(_ACROSS)
    found = [np.where(colour == "G", pixels, filtered(_GREEN))]
    for wanted in "RB":
        # Greens in rows of a colour have it left and right, the other greens above and below.
        in_row = (colour == wanted).any(axis=1)[:, None]
        at_green = np.where(in_row, beside, above)
        found.append(np.where(colour == wanted, pixels, np.where(colour == "G", at_green, across)))
    return np.stack([found[1], found[0], found[2]], axis=-1)


def _by_differences(pixels: Float, colour: NDArray[np.str_]) -> Float:
    def interpolated(values: Float, known: NDArray[np.bool_]) -> Float:
        smooth = gaussian_filter(np.where(known, values, 0.0), WIDTH, mode="mirror")
        return np.asarray(smooth / gaussian_filter(known.astype(np.float64), WIDTH, mode="mirror"))

    is_green = colour == "G"
    green = np.where(is_green, pixels, interpolated(pixels, is_green))
    others = [green + interpolated(pixels - green, colour == wanted) for wanted in "RB"]
    red, blue = (np.where(colour == name, pixels, one) for name, one in zip("RB", others, strict=True))
    return np.stack([red, green, blue], axis=-1)
