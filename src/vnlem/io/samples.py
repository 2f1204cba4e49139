"""The photograph that ships with the package, for the demo and for napari's samples."""

from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray


def camera() -> NDArray[Any]:
    """A man with a camera, 512x512, uint8. By Lav Varshney, CC0; scikit-image has it too.

    >>> camera().shape, camera().dtype
    ((512, 512), dtype('uint8'))
    """
    from PIL import Image

    with files("vnlem.io").joinpath("camera.png").open("rb") as file, Image.open(file) as image:
        return np.array(image)
