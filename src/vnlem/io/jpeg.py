"""JPEG: 8-bit grey and RGB."""

from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, UnidentifiedImageError

from vnlem.io.picture import Metadata, Picture, Resolution
from vnlem.io.pillow import opened
from vnlem.io.upright import orientation_in

_EXIF_PREFIX = b"Exif\x00\x00"
# High enough to keep the losses of the format well below any noise worth removing.
_QUALITY = 95


def read(path: Path) -> Picture:
    """Read a JPEG file with its pixels as stored; the orientation goes into the metadata."""
    try:
        return _read(path)
    except UnidentifiedImageError:
        raise ValueError("it is damaged or truncated") from None


def _read(path: Path) -> Picture:
    with opened(path, "JPEG") as image:
        if image.mode not in ("L", "RGB"):
            raise ValueError(f"its colours are {image.mode}; convert it to RGB or grey first")
        image.load()
        pixels = np.array(image)
        info = image.info
        exif = info.get("exif", b"").removeprefix(_EXIF_PREFIX) or None
        density = info.get("dpi")
        metadata = Metadata(
            format="jpeg",
            resolution=None if density is None else Resolution(float(density[0]), float(density[1]), "inch"),
            icc_profile=info.get("icc_profile"),
            exif=exif,
            orientation=orientation_in(exif),
            native={key: info[key] for key in ("comment", "xmp") if key in info},
        )
    return Picture(pixels, None if pixels.ndim == 2 else -1, None, metadata)


def write(path: Path, picture: Picture) -> None:
    """Write with full colour resolution at quality 95."""
    metadata = picture.metadata
    options: dict[str, Any] = dict(metadata.native) if metadata.format == "jpeg" else {}
    if metadata.resolution is not None and metadata.resolution.unit:
        options["dpi"] = metadata.resolution.per("inch")
    if metadata.exif is not None:
        options["exif"] = _EXIF_PREFIX + metadata.exif
    if metadata.icc_profile is not None:
        options["icc_profile"] = metadata.icc_profile
    image = Image.fromarray(np.ascontiguousarray(picture.interleaved()))
    image.save(path, format="JPEG", quality=_QUALITY, subsampling=0, **options)
