"""The images of a set that look most like a patch, and where: ranked by features that no rotation changes.

Comparing every patch with every image would cost a full search for each. Instead a few rotation-invariant
numbers of a smoothed image (level, slope, curvature) pick, for each patch, the images and places worth one.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter
from scipy.spatial import cKDTree

STEP = 2  # pixels between the places that are ranked
# Standard deviations, in pixels, of the smoothing: on noise, and on a pilot.
SCALES = {True: (2.0, 3.5), False: (1.0, 2.5)}
PER_IMAGE = 4  # nearest places examined for each wanted image


def invariants(image: NDArray[np.float32], scales: tuple[float, ...]) -> NDArray[np.float32]:
    """Level, slope and two measures of curvature at some scales: (features, H, W).

    Derivatives are multiplied by the scale to the power of their order, to have equal weight.

    >>> image = np.random.default_rng(0).normal(size=(9, 9)).astype(np.float32)
    >>> bool(np.allclose(np.rot90(invariants(image, (1.0,))[1]), invariants(np.rot90(image), (1.0,))[1]))
    True
    """
    found = []
    for scale in scales:

        def derivative(y: int, x: int, scale: float = scale) -> NDArray[np.float64]:
            smooth: NDArray[np.float64] = gaussian_filter(image.astype(np.float64), scale, (y, x))
            return scale ** (y + x) * smooth

        yy, xx, xy = derivative(2, 0), derivative(0, 2), derivative(1, 1)
        slope = np.hypot(derivative(1, 0), derivative(0, 1))
        found += [derivative(0, 0), slope, yy + xx, np.hypot(yy - xx, 2 * xy)]
    return np.stack(found).astype(np.float32)


def derivative_taps(scale: float, order: int) -> NDArray[np.float64]:
    """The taps of a Gaussian, or of its first or second derivative, as `gaussian_filter` correlates with.

    >>> derivative_taps(0.5, 0).round(3), derivative_taps(0.5, 1).round(3)
    (array([0.   , 0.106, 0.787, 0.106, 0.   ]), array([-0.002, -0.426,  0.   ,  0.426,  0.002]))
    """
    half = int(4 * scale + 0.5)
    x = np.arange(-half, half + 1) / scale
    taps = np.exp(-0.5 * x**2)
    factor = (np.ones_like(x), x / scale, (x**2 - 1) / scale**2)[order]
    return np.asarray(factor * taps / taps.sum())


class Alike:
    """For each patch the images most like it, one window in each.

    n_images: windows in other images.
    noisy: whether the images still hold their noise.
    """

    def __init__(self, n_images: int, *, noisy: bool) -> None:
        self._n_images, self._scales = n_images, SCALES[noisy]
        self._features: list[NDArray[np.float32]] = []
        self._tree: cKDTree | None = None
        self._places = np.empty((0, 3), np.int64)

    def push(self, frame: NDArray[np.float32]) -> None:
        """Add an image."""
        self._features.append(invariants(frame, self._scales))
        self._tree = None

    def pop(self) -> None:
        """A set is kept as a whole until its end."""

    def _index(self) -> cKDTree:
        if self._tree is None:
            vectors, places = [], []
            for plane, features in enumerate(self._features):
                some = features[:, ::STEP, ::STEP]
                vectors.append(some.reshape(len(some), -1).T)
                rows, columns = np.mgrid[: some.shape[1], : some.shape[2]].reshape(2, -1) * STEP
                places.append(np.column_stack([np.full(len(rows), plane), rows, columns]))
            self._places = np.concatenate(places)
            self._tree = cKDTree(np.concatenate(vectors))
        return self._tree

    def centres(
        self, plane: int, corners: NDArray[np.int64], n_planes: int, patch_size: int
    ) -> NDArray[np.int64]:
        """Plane and centre (r, 1 + images, 3) of the windows, the patches' own first, -1 for none."""
        tree = self._index()
        middle = patch_size // 2
        wanted = min(self._n_images, n_planes - 1)
        found = np.full((len(corners), 1 + wanted, 3), -1, np.int64)
        found[:, 0, 0] = plane
        found[:, 0, 1:] = corners
        vectors = self._features[plane][:, corners[:, 0] + middle, corners[:, 1] + middle].T
        _, nearest = tree.query(vectors, k=min(PER_IMAGE * (wanted + 1), tree.n))
        for windows, places in zip(found, self._places[nearest], strict=True):
            seen = {plane}
            for there, row, column in places:
                if there not in seen and len(seen) <= wanted:
                    windows[len(seen)] = there, row - middle, column - middle
                    seen.add(there)
        return found
