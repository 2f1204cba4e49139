"""The contents of a file: the pixels to denoise, the alpha to keep, and the metadata."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

CHANNELS = ("auto", "last", "first", "none")


@dataclass(frozen=True)
class Resolution:
    """Pixels per unit of length, along the width (x) and down the height (y)."""

    x: float
    y: float
    unit: str  # "inch", "cm", or "" if only the ratio of x and y has a meaning

    def per(self, unit: str) -> tuple[float, float]:
        """Pixels per `unit` ("inch" or "cm").

        >>> Resolution(254, 508, "inch").per("cm")
        (100.0, 200.0)
        """
        if (self.unit, unit) == ("inch", "cm"):
            return self.x / 2.54, self.y / 2.54
        if (self.unit, unit) == ("cm", "inch"):
            return self.x * 2.54, self.y * 2.54
        return self.x, self.y


@dataclass(frozen=True)
class Calibration:
    """What one step along an axis is, and what the channels are called.

    Attributes
    ----------
    sizes : dict
        Axis letter ("X", "Y", "Z", "T") -> length or duration of a step.
    units : dict
        Axis letter -> unit as OME-Zarr spells it: "micrometer", "angstrom", "second".
    channels : tuple of str
        Names of the channels (axis C).

    Examples
    --------
    >>> Calibration({"X": 0.2, "Y": 0.2}, {"X": "micrometer", "Y": "micrometer"}, ("GFP",)).sizes["X"]
    0.2
    """

    sizes: dict[str, float] = field(default_factory=dict)
    units: dict[str, str] = field(default_factory=dict)
    channels: tuple[str, ...] = ()


@dataclass(frozen=True)
class Metadata:
    """What a file says about its picture, beyond the pixels.

    Attributes
    ----------
    format : str
        The name of the format in the table of formats; empty for a picture that came from no file.
    resolution : Resolution, optional
    icc_profile, exif : bytes, optional
        The colour profile; the EXIF block, without its JPEG prefix.
    orientation : int
        The EXIF/TIFF orientation (1 to 8) that a viewer has to apply to the pixels as stored.
    axes : str
        One letter per axis of the file's array (tifffile's letters), empty if the format has none.
    native : object
        What only the same format can hold: PNG chunks, JPEG segments, TIFF tags, headers.
    calibration : Calibration
        Sizes of pixels and names of channels, where a format has them apart from `resolution`.
    history : str
        What was done to the pixels, in one line, for formats that keep such lines.

    Examples
    --------
    >>> Metadata(format="tiff", axes="TYX").orientation
    1
    """

    format: str = ""
    resolution: Resolution | None = None
    icc_profile: bytes | None = None
    exif: bytes | None = None
    orientation: int = 1
    axes: str = ""
    native: Any = None
    calibration: Calibration = field(default_factory=Calibration)
    history: str = ""


@dataclass(frozen=True)
class Picture:
    """Pixels of one or more pages, with alpha and metadata.

    Attributes
    ----------
    pixels : ndarray
        Height and width, with a channel axis after them (-1) or before them (-3) for colour; any axes in
        front of these count pages.
    channel_axis : int, optional
        -1, -3, or None for grey: valid for `pixels` and for every page.
    alpha : ndarray, optional
        The opacity: the shape of `pixels` without the channel axis. Denoising does not change it.
    metadata : Metadata

    Examples
    --------
    >>> picture = Picture(np.zeros((5, 8, 9, 3), np.uint8), channel_axis=-1)
    >>> picture.n_pages, picture.page_shape
    (5, (8, 9, 3))
    """

    pixels: NDArray[Any]
    channel_axis: int | None = None
    alpha: NDArray[Any] | None = None
    metadata: Metadata = field(default_factory=Metadata)

    @property
    def _page_ndim(self) -> int:
        return 2 if self.channel_axis is None else 3

    @property
    def page_shape(self) -> tuple[int, ...]:
        """The shape of one page."""
        return self.pixels.shape[-self._page_ndim :]

    @property
    def page_axes(self) -> tuple[int, ...]:
        """The axes of `pixels` that count pages; empty for a single image."""
        return tuple(range(self.pixels.ndim - self._page_ndim))

    @property
    def n_pages(self) -> int:
        """The number of pages."""
        return int(np.prod([self.pixels.shape[axis] for axis in self.page_axes], dtype=int))

    @property
    def n_channels(self) -> int:
        """The number of colour channels, alpha not counted."""
        return 1 if self.channel_axis is None else self.pixels.shape[self.channel_axis]

    def pages(self) -> Iterator[NDArray[Any]]:
        """Every page in the order of the file, as an image of two or three dimensions."""
        return iter(self.pixels.reshape(self.n_pages, *self.page_shape))

    def map(self, function: Callable[[NDArray[Any]], NDArray[Any]]) -> "Picture":
        """The picture with `function` applied to every page; alpha and metadata stay.

        Examples
        --------
        >>> Picture(np.ones((2, 1, 2))).map(lambda page: page + 1).pixels.tolist()
        [[[2.0, 2.0]], [[2.0, 2.0]]]
        """
        pages = np.stack([np.asarray(function(page)) for page in self.pages()])
        return replace(self, pixels=pages.reshape(self.pixels.shape))

    def joined(self) -> NDArray[Any]:
        """Pixels and alpha as one array, alpha as the last channel.

        Examples
        --------
        >>> Picture(np.zeros((4, 5)), alpha=np.ones((4, 5))).joined().shape
        (4, 5, 2)
        """
        if self.alpha is None:
            return self.pixels
        axis = -1 if self.channel_axis is None else self.channel_axis
        colour = self.pixels if self.channel_axis is not None else self.pixels[..., None]
        return np.concatenate([colour, np.expand_dims(self.alpha, axis)], axis=axis)

    @property
    def joined_shape(self) -> tuple[int, ...]:
        """The shape of :meth:`joined`."""
        if self.alpha is None:
            return self.pixels.shape
        if self.channel_axis is None:
            return (*self.pixels.shape, 2)
        shape = list(self.pixels.shape)
        shape[self.channel_axis] += 1
        return tuple(shape)

    def interleaved(self) -> NDArray[Any]:
        """Pixels and alpha as one array with the channels last, as PNG and JPEG store them."""
        array = self.joined()
        return np.moveaxis(array, -3, -1) if self.channel_axis == -3 else array


def corner(picture: Picture, side: int = 32) -> Picture:
    """The upper left corner of every page, with all metadata of the picture.

    >>> corner(Picture(np.zeros((5, 80, 90, 3)), channel_axis=-1)).pixels.shape
    (5, 32, 32, 3)
    """
    cut = (..., slice(side), slice(side))
    pixels = picture.pixels[(*cut, slice(None))] if picture.channel_axis == -1 else picture.pixels[cut]
    small = replace(picture, pixels=pixels, alpha=None if picture.alpha is None else picture.alpha[cut])
    native = picture.metadata.native
    if getattr(native, "shape", None) != picture.joined_shape:
        return small
    return replace(
        small, metadata=replace(picture.metadata, native=replace(native, shape=small.joined_shape))
    )


def from_array(array: ArrayLike, channels: str = "auto", metadata: Metadata | None = None) -> Picture:
    """A picture from a bare array, which says nothing about its axes.

    array: at least two dimensions.
    channels: "last", "first" or "none": the colour channels are after height and width, before them, or
        nowhere. "auto" takes a last axis of 2, 3 or 4 for grey+alpha, RGB or RGBA, and every other
        array for grey pages.

    >>> from_array(np.zeros((40, 50, 4))).alpha.shape
    (40, 50)
    >>> from_array(np.zeros((3, 40, 50))).n_pages
    3
    """
    pixels = np.asarray(array)
    metadata = metadata or Metadata()
    if channels not in CHANNELS:
        raise ValueError(f"channels must be one of {', '.join(CHANNELS)}, got {channels!r}")
    if pixels.dtype.kind == "b":
        raise ValueError(
            "the image is 1-bit (black and white only), which cannot be denoised as a grey image; "
            "convert it to 8-bit grey first, or start from the grey image it was made from"
        )
    if pixels.size == 0:
        raise ValueError(f"the image is empty (shape {pixels.shape}); pass at least one pixel")
    smallest = 2 if channels in ("auto", "none") else 3
    if pixels.ndim < smallest:
        raise ValueError(
            f"an image with channels={channels!r} has at least {smallest} dimensions, got shape "
            f"{pixels.shape}"
        )
    if channels == "last":
        return Picture(pixels, -1, None, metadata)
    if channels == "first":
        return Picture(pixels, -3, None, metadata)
    if channels == "auto" and pixels.ndim > 2 and pixels.shape[-1] in (2, 3, 4):
        return split_alpha(pixels, -1, pixels.shape[-1] in (2, 4), metadata)
    return Picture(pixels, None, None, metadata)


def split_alpha(pixels: NDArray[Any], axis: int, has_alpha: bool, metadata: Metadata) -> Picture:
    """A picture from an array with a sample axis, whose last sample is alpha if `has_alpha`."""
    alpha = None
    if has_alpha:
        alpha = np.take(pixels, -1, axis=axis)
        pixels = np.take(pixels, np.arange(pixels.shape[axis] - 1), axis=axis)
    if pixels.shape[axis] == 1:
        return Picture(np.take(pixels, 0, axis=axis), None, alpha, metadata)
    return Picture(pixels, axis, alpha, metadata)
