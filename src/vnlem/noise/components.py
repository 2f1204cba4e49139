"""Colours as components whose noise is nearly independent."""

import numpy as np
from numpy.typing import NDArray

Float = NDArray[np.float64]

# Orthonormal opponent colours: brightness, red against blue, green against both. White noise stays white;
# noise that channels share differs between the components and is nearly independent.
OPPONENT = np.array([[1 / 3**0.5] * 3, [1 / 2**0.5, 0.0, -1 / 2**0.5], [1 / 6**0.5, -2 / 6**0.5, 1 / 6**0.5]])


def to_components(planes: Float) -> Float:
    """Opponent colours of three channels; any other number of channels unchanged."""
    return _mixed(OPPONENT, planes) if len(planes) == 3 else planes.copy()


def from_components(parts: Float) -> Float:
    """Undo :func:`to_components`."""
    return _mixed(OPPONENT.T, parts) if len(parts) == 3 else parts


def _mixed(matrix: Float, planes: Float) -> Float:
    """Linear combinations of three planes, pixel by pixel: they do not depend on a pixel's place."""
    return np.stack([planes[0] * row[0] + planes[1] * row[1] + planes[2] * row[2] for row in matrix])
