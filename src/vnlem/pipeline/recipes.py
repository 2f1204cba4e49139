"""What a method would do to an image, without the image: its solver, and its parameters for any noise."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Recipe(NamedTuple):
    """How a method, with what was given of its parameters, denoises any image."""

    method: str
    resolve: Callable[[float], Any]  # noise in units of the clean standard deviation -> parameters
    solve: Callable[[Any], NDArray[np.float32]]  # Job -> denoised planes
    min_size: Callable[[Any], int]  # parameters -> the smallest height and width that can be denoised


class Unseen:
    """Stands for an image that is never held as a whole; a method called with it leaves its recipe."""

    ndim = 2

    def __init__(self) -> None:
        self.recipe: Recipe | None = None

    def take(self, recipe: Recipe) -> NDArray[Any]:
        """Keep the recipe; there are no pixels to return."""
        self.recipe = recipe
        return np.empty((0, 0))


def recipe_of(function: Callable[..., Any], **params: Any) -> Recipe:
    """The recipe of a method's public function, with parameters as it takes them.

    Examples
    --------
    >>> from vnlem.methods.nlm import denoise_nlm
    >>> recipe = recipe_of(denoise_nlm, patch_distance=4)
    >>> recipe.method, recipe.resolve(0.2).patch_distance
    ('nlm', 4)
    """
    image = Unseen()
    function(image, **params)
    if image.recipe is None:
        raise ValueError(f"{function.__name__} needs the whole image at once")
    return image.recipe
