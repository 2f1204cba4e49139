"""The patch space: one square patch per pixel, read from the image's symmetric extension."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vnlem.pipeline import checks
from vnlem.pipeline.image import check_smallest, to_planes


class PatchSpace:
    """The patches of an image, one per pixel (the paper's X_I), cut on demand.

    Parameters
    ----------
    image : array_like, shape (height, width)
    patch_size : int, odd
        Side of a patch (the paper's q).

    Attributes
    ----------
    shape : tuple of int
        Height and width of the image; ``space[y, x]`` is the patch whose centre is that pixel.

    Notes
    -----
    Patches near the border see the symmetric reflection of the image. Patches are read-only views of one
    padded copy, so the whole space costs no more memory than the image.

    Examples
    --------
    >>> space = PatchSpace(np.arange(20.0).reshape(4, 5), patch_size=3)
    >>> len(space)
    20
    >>> space[1, 1]
    array([[ 0.,  1.,  2.],
           [ 5.,  6.,  7.],
           [10., 11., 12.]])
    >>> space.vectors([0, 6]).shape
    (2, 9)
    """

    def __init__(self, image: ArrayLike, patch_size: int = 13) -> None:
        pixels = to_planes(image).data[0]
        self.patch_size = checks.odd("patch_size", patch_size)
        self.shape: tuple[int, int] = (pixels.shape[0], pixels.shape[1])
        check_smallest(self.shape, self.patch_size)
        padded = np.pad(pixels, self.patch_size // 2, mode="symmetric")
        self._windows = np.lib.stride_tricks.sliding_window_view(padded, (self.patch_size, self.patch_size))

    def __len__(self) -> int:
        return self.shape[0] * self.shape[1]

    def __getitem__(self, at: tuple[int, int]) -> NDArray[np.float64]:
        patch: NDArray[np.float64] = self._windows[at]
        return patch

    def vectors(self, indices: ArrayLike | None = None) -> NDArray[np.float64]:
        """Patches as rows of a matrix (a copy): those of the given pixel numbers, or all of them.

        Parameters
        ----------
        indices : array_like of int, optional
            Pixel numbers in reading order (row * width + column).

        Returns
        -------
        ndarray, shape (number of patches, patch_size**2)

        Examples
        --------
        >>> PatchSpace(np.eye(3), patch_size=3).vectors().shape
        (9, 9)
        """
        numbers = np.arange(len(self)) if indices is None else np.asarray(indices)
        rows, columns = np.divmod(numbers, self.shape[1])
        return self._windows[rows, columns].reshape(len(numbers), -1)
