"""The input forms of a stack: an array with axes, a list of images, a stack of a single page."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vnlem.pipeline import checks
from vnlem.pipeline.axes import PagesOf, check_axes, series_of, shown_size
from vnlem.pipeline.device import lies_on_gpu
from vnlem.pipeline.sigma import check_sigma


def is_list_of_images(image: Any) -> bool:
    """Whether the input is a list of grey images; those of one size may also be an array's pages or channels.

    >>> is_list_of_images([np.zeros((4, 5)), np.zeros((6, 7))]), is_list_of_images([[1, 2], [3, 4]])
    (True, False)
    """
    return (
        isinstance(image, list | tuple)
        and len(image) > 0
        and all(isinstance(page, np.ndarray) and page.ndim == 2 for page in image)
    )


def only_page(image: Any, axes: str | None, sigma: Any) -> NDArray[Any] | None:
    """The page of a stack that has only one, (H, W) or (channels, H, W); None for any other stack.

    >>> only_page(np.zeros((1, 4, 5)), "TYX", None).shape, only_page(np.zeros((2, 4, 5)), "TYX", None)
    ((4, 5), None)
    >>> only_page(np.zeros((4, 5, 3)), "YXC", None).shape
    (3, 4, 5)
    """
    if is_list_of_pages(image, axes):
        return None
    array = as_array(image)
    letters = check_axes(axes, array.shape)
    sizes = dict(zip(letters, array.shape, strict=True))
    channels = sizes.get("C", 1)
    if sigma_map_of(sigma, array.shape) is None:
        sigma_per_channel(sigma, channels)
    if math.prod(size for letter, size in sizes.items() if letter not in "CYX") > 1:
        return None
    return PagesOf(array, letters, series_of(letters, array.shape, "", joint=channels > 1)[0])[0]


def sigma_of_page(sigma: Any, axes: str, shape: tuple[int, ...]) -> Any:
    """The noise options of a stack with one page, for that page.

    >>> sigma_of_page(2.0, "TYX", (1, 4, 5)).item(), sigma_of_page(np.ones((1, 1, 5)), "TYX", (1, 4, 5)).shape
    (2.0, (4, 5))
    """
    letters = axes.upper()
    channels = dict(zip(letters, shape, strict=True)).get("C", 1)
    spread = sigma_map_of(sigma, shape)
    if spread is not None:
        return PagesOf(spread, letters, series_of(letters, shape, "", joint=channels > 1)[0])[0]
    return sigma if sigma is None or channels > 1 else np.ravel(sigma)[0]


def back_as(result: Any, axes: str, shape: tuple[int, ...]) -> Any:
    """The result of the only page as a stack of one page.

    >>> back_as(np.zeros((4, 5)), "TYX", (1, 4, 5)).shape, back_as(np.zeros((4, 5)), "XYT", (5, 4, 1)).shape
    ((1, 4, 5), (5, 4, 1))
    >>> back_as(np.zeros((3, 4, 5)), "TYXC", (1, 4, 5, 3)).shape
    (1, 4, 5, 3)
    """
    page, *info = result if isinstance(result, tuple) else (result,)
    own = "CYX"[-page.ndim :]
    page = page.transpose([own.index(letter) for letter in axes.upper() if letter in own]).reshape(shape)
    return (page, *info) if info else page


def is_list_of_pages(image: Any, axes: str | None) -> bool:
    """A list of images is kept as a list if no axes are named or sizes differ; else it is an array.

    >>> is_list_of_pages([np.zeros((4, 5))] * 3, None), is_list_of_pages([np.zeros((4, 5))] * 3, "TYX")
    (True, False)
    """
    if not is_list_of_images(image):
        return False
    sizes = sorted({shown_size(page.shape) for page in image})
    if axes is None:
        return True
    if len(sizes) > 1 and str(axes).upper() != "NYX":
        raise ValueError(
            f"the pages of a stack with axes {axes!r} must have one size, got {' and '.join(sizes[:2])}; "
            "only a set of images (axes='NYX') may hold several"
        )
    return len(sizes) > 1


def as_array(image: Any) -> Any:
    """A stack as an array, on its device."""
    return image if lies_on_gpu(image) else checks.as_array("the stack", image)


def sigma_map_of(sigma: Any, shape: tuple[int, ...]) -> NDArray[np.float64] | None:
    """A noise level that varies within a stack, as large as the stack; None if sigma is not such a map.

    A map has as many axes as the stack; an axis along which the noise is constant may have length one.

    >>> sigma_map_of(np.array([1.0, 2.0]).reshape(2, 1, 1), (2, 4, 5)).shape, sigma_map_of(3.0, (2, 4, 5))
    ((2, 4, 5), None)
    """
    if sigma is None or np.ndim(sigma) < 2:
        return None
    values = checks.finite("sigma", sigma)
    fits = values.ndim == len(shape) and all(
        length in (1, size) for length, size in zip(values.shape, shape, strict=True)
    )
    if not fits:
        raise ValueError(
            f"a sigma that varies within a stack must have as many axes as the stack (shape {shape}), each "
            f"as long or of length 1, e.g. one number for each page; got an array of shape {values.shape}"
        )
    if values.min() < 0:
        raise ValueError(f"sigma must not be negative, and the map holds {values.min():g}")
    return np.broadcast_to(values, shape)


def sigma_per_channel(sigma: Any, n_channels: int) -> list[Any]:
    if sigma is None or np.ndim(sigma) == 0:
        return [sigma] * n_channels
    values = np.asarray(sigma)
    if values.shape != (n_channels,):
        raise ValueError(
            f"sigma must be one number, or one for each of the {n_channels} channels (axis C), "
            f"got an array of shape {values.shape}"
        )
    return [check_sigma(value) for value in values]


def for_all_channels(values: Any, shape: tuple[int, ...], channel_axis: int) -> Any:
    """A map of a stack, with an axis of length 1 for the channels if it has none; other maps are unchanged.

    >>> for_all_channels(np.zeros((5, 8, 9)), (5, 8, 9, 3), -1).shape
    (5, 8, 9, 1)
    """
    axis = channel_axis % len(shape)
    lacks_channels = values.shape == (*shape[:axis], *shape[axis + 1 :]) != shape[1:]
    return np.expand_dims(values, axis) if lacks_channels else values
