"""The picture files the report shows: clean, noisy and each result as PNG, and a thumbnail."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vnlem.bench.contact_sheet import to_bytes
from vnlem.bench.datasets import Item
from vnlem.bench.protocols import Case, Scene
from vnlem.io.atomic import whole_file

FOLDER = "pictures"
THUMBNAIL_SIDE = 128


def picture_path(item: Item, case: Case, what: str) -> str:
    """Where a picture lies within the folder of results; `what` is "clean", "noisy" or a variant's hash.

    >>> picture_path(Item("a b/c.png", "", "", 0), Case("awgn", 0, 25.0), "noisy")
    'pictures/.../awgn-25-noisy.png'
    """
    return f"{FOLDER}/{item.key}/{case.name}-{what}.png"


def thumbnail_path(item: Item) -> str:
    """Where the thumbnail of an image lies within the folder of results."""
    return f"{FOLDER}/{item.key}/thumbnail.jpg"


def write_scene(out: Path, item: Item, case: Case, scene: Scene) -> None:
    """The clean and the noisy picture of a scene, and the image's thumbnail."""
    from PIL import Image

    (out / FOLDER / item.key).mkdir(parents=True, exist_ok=True)
    write_picture(out / picture_path(item, case, "noisy"), scene.page(scene.noisy))
    shown = scene.page(scene.noisy if scene.clean is None else scene.clean)
    if scene.clean is not None:
        write_picture(out / picture_path(item, case, "clean"), shown)
    small = Image.fromarray(to_bytes(shown))
    small.thumbnail((THUMBNAIL_SIDE, THUMBNAIL_SIDE))
    with whole_file(out / thumbnail_path(item)) as temporary:
        small.save(temporary, format="JPEG", quality=80)


def write_picture(path: Path, image: NDArray[Any]) -> None:
    """A grey picture, whole or not at all."""
    from PIL import Image

    with whole_file(path) as temporary:
        # Light compression: noise hardly compresses, and the time goes on top of the denoising.
        Image.fromarray(to_bytes(image)).save(temporary, format="PNG", compress_level=3)


def read_picture(path: Path) -> NDArray[np.uint8]:
    """A picture that :func:`write_picture` wrote."""
    from PIL import Image

    with Image.open(path) as picture:
        return np.asarray(picture)
