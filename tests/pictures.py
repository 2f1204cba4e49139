"""Pictures for tests of files."""

from functools import cache

import numpy as np
import pytest
from PIL import ImageCms

from vnlem import io

GREY, GREY_ALPHA, COLOUR, COLOUR_ALPHA = (20, 30), (20, 30, 2), (20, 30, 3), (20, 30, 4)
LAYOUTS = pytest.mark.parametrize(
    "shape", [GREY, GREY_ALPHA, COLOUR, COLOUR_ALPHA], ids=["L", "LA", "RGB", "RGBA"]
)
INTEGERS = ["uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"]
FLOATS = ["float16", "float32", "float64"]


def random_array(shape, dtype="uint8"):
    values = np.random.default_rng(1).integers(0, 60_000, shape)
    return (values % 256 if np.dtype(dtype).itemsize == 1 else values).astype(dtype)


def rewrite(source, target, change=None):
    """Read, perhaps change the pixels, write, read again: the two pictures."""
    before = io.read(source)
    io.write(target, before if change is None else before.map(change))
    return before, io.read(target)


@cache
def srgb_profile():
    return ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
