"""Pillow without its limit on the number of pixels, which treats every large picture as an attack."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from PIL import Image

_lock = threading.Lock()


@contextmanager
def opened(source: Path | IO[bytes], format_: str) -> Iterator[Image.Image]:
    """A picture of this format, of any size."""
    with _lock:  # the limit is Pillow's own, for the whole process
        limit = Image.MAX_IMAGE_PIXELS
        Image.MAX_IMAGE_PIXELS = None
        try:
            image = Image.open(source, formats=[format_])
        finally:
            Image.MAX_IMAGE_PIXELS = limit
    with image:
        yield image
