"""``--one-noise-model``: one noise model for all images of a folder from one detector with one setting.

Images belong together if format, page size, dtype, channels, and the camera, exposure and gain in their files
are the same. A model is estimated from one page of each of some of them.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

SAMPLE = 12  # at most this many images for a model
SAMPLE_PIXELS = 8e6  # and at most this many pixels, but at least one page
# Cards of FITS headers about a detector and its settings, and tags of EXIF (make, model, time, ISO).
_FITS = ("INSTRUME", "DETECTOR", "CAMERA", "EXPTIME", "EXPOSURE", "GAIN", "ISOSPEED", "XBINNING", "YBINNING")
_EXIF = (271, 272)
_EXIF_OF_EXPOSURE = (33434, 34855)


@dataclass(frozen=True)
class OneModel:
    """The noise model of a group of images."""

    path: Path
    words: str  # for the table


def models_for(paths: Iterable[Path], folder: Path, arguments: dict[str, Any]) -> dict[Path, OneModel]:
    """The model of every image that can share one, written into `folder`.

    paths: the images, ``file.lif:2`` for one of several in a file.
    folder: gets a file ``vnlem-noise-N.json`` for each group; those of a continued run are kept.
    arguments: those of `vnlem denoise`.
    """
    from vnlem.noise import NoiseModel, estimate_noise

    groups: dict[tuple[Any, ...], list[Path]] = {}
    for path in paths:
        try:
            key = _page(path)[0]
        except Exception:  # a damaged file is reported when it is denoised
            continue
        if key is not None:
            groups.setdefault(key, []).append(path)
    found: dict[Path, OneModel] = {}
    for number, members in enumerate(groups.values(), 1):
        place = folder / f"vnlem-noise-{number}.json"
        if not (arguments["resume"] and place.exists()):
            about = {name: arguments[name] for name in ("caution", "coils", "looks", "domain", "workers")}
            sample = _sample(members)
            axis = 0 if len(sample) > 1 else None
            pixels = sample if axis == 0 else sample[0]
            estimate_noise(pixels, axis, kind=arguments["noise_model"], **about).save(place)
        words = f"{NoiseModel.load(place).describe()} of {len(members)} images ({place.name})"
        found |= dict.fromkeys(members, OneModel(place, words))
    return found


def check(arguments: dict[str, Any]) -> None:
    """Refuse options that already describe the noise."""
    for name in ("sigma", "gain", "noise"):
        if arguments[name] is not None:
            raise ValueError(
                f"--one-noise-model estimates the noise, and --{name} says it; leave one of them out"
            )


def _sample(paths: list[Path]) -> NDArray[np.float64]:
    """Pages of some images, one below another, (channels, H, W)."""
    step = -(-len(paths) // SAMPLE)
    pages: list[NDArray[np.float64]] = []
    for path in paths[::step]:
        page = _page(path)[1]
        if pages and sum(one.size for one in pages) + page.size > SAMPLE_PIXELS:
            break
        pages.append(page)
    return np.concatenate(pages, axis=1)


def _page(path: Path) -> tuple[tuple[Any, ...] | None, NDArray[np.float64]]:
    """What an image shares with others of one detector, and its middle page, (channels, H, W).

    None if channels are pages, each with its own noise, and for mosaics, whose files describe their noise.
    """
    from vnlem import io

    with io.open_pages(path) as opened:
        picture = io.read(path) if opened is None else opened.picture
        middle = picture.n_pages // 2
        if opened is None:
            page = picture.pixels.reshape(picture.n_pages, *picture.page_shape)[middle]
        else:
            page = opened.pages.page(middle)
    metadata = picture.metadata
    if metadata.format == "dng" or "C" in metadata.axes.upper():
        return None, np.zeros((1, 1, 1))
    planes = page[None] if picture.channel_axis is None else np.moveaxis(page, picture.channel_axis, 0)
    key = (metadata.format, planes.shape, str(page.dtype), *_settings(metadata))
    return key, planes.astype(np.float64)


def _settings(metadata: Any) -> list[Any]:
    """What a file says about its detector and how it was set."""
    header = getattr(metadata.native, "header", None)
    if metadata.format == "fits" and header is not None:
        return [str(header.get(name)) for name in _FITS]
    if metadata.exif is None:
        return []
    from PIL import Image

    exif = Image.Exif()
    try:
        exif.load(b"Exif\x00\x00" + metadata.exif)
        inner = exif.get_ifd(0x8769)
        return [str(exif.get(tag)) for tag in _EXIF] + [str(inner.get(tag)) for tag in _EXIF_OF_EXPOSURE]
    except Exception:  # damaged: nothing is known
        return []
