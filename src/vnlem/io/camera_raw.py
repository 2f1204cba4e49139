"""Camera raw files: the mosaic of the sensor through rawpy, and DNG out.

A DNG written from a DNG keeps every byte except the pixels; other raw files become a new DNG.
"""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tifffile import TiffFile, TiffPage, TiffWriter

from vnlem.io.demosaic import demosaic
from vnlem.io.picture import Metadata, Picture

Cell = tuple[tuple[float, ...], ...]

MOSAIC = 32803  # photometric interpretation: colour filter array
_WHITE_LEVEL, _NOISE_PROFILE, _LINEARIZATION = 50717, 51041, 50712
_COMPRESSION, _BITS, _PREDICTOR = 259, 258, 317
_STRIPS, _TILES = (273, 279), (324, 325)  # tags of offsets and of byte counts
_SHORT, _LONG, _RATIONAL, _SIGNED_RATIONAL, _BYTE, _ASCII = 3, 4, 5, 10, 1, 2
_D65 = 21
_ORIENTATIONS = {0: 1, 3: 3, 5: 8, 6: 6}  # LibRaw's flips as TIFF's orientations
# Linear sRGB to CIE XYZ (IEC 61966-2-1).
_SRGB_TO_XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)


@dataclass(frozen=True)
class Mosaic:
    """What a raw file says about its mosaic.

    pattern: colours of the visible pixels, the rows of a cell.
    black: value of a dark pixel at each place of a cell.
    white: value of a saturated pixel.
    balance: factors of red, green and blue that make grey neutral.
    from_xyz: matrix from CIE XYZ to the camera's colours; empty if it is not known.
    noise: gain and read noise of red, green and blue, if the file has them (NoiseProfile of a DNG).
    orientation: as in TIFF files.
    source: the file.
    origin: first visible row and column of the sensor's frame.
    """

    pattern: tuple[str, ...]
    black: Cell
    white: float
    balance: tuple[float, ...]
    from_xyz: Cell
    noise: tuple[tuple[float, float], ...]
    orientation: int
    source: Path
    origin: tuple[int, int]


def read(path: Path) -> Picture:
    """The visible pixels of the sensor as one grey page; `metadata.native` is a Mosaic."""
    import rawpy

    try:
        raw = rawpy.imread(str(path))
    except rawpy.LibRawFileUnsupportedError:
        version = ".".join(map(str, rawpy.libraw_version))
        raise ValueError(
            f"cannot read {path}: LibRaw {version} does not know this camera or this kind of file; "
            "convert it to an uncompressed DNG first"
        ) from None
    except rawpy.LibRawError as error:
        reason = error.args[0].decode(errors="replace") if isinstance(error.args[0], bytes) else error
        raise ValueError(
            f"cannot read {path}: it is damaged ({reason}); copy it from the camera again"
        ) from None
    with raw:
        if raw.raw_type != rawpy.RawType.Flat or raw.raw_image is None or raw.raw_image.ndim != 2:
            raise ValueError(
                f"cannot read {path}: it holds no mosaic, because its sensor sees all colours in every pixel "
                "(Foveon) or because it is demosaicked already; save it as a TIFF and denoise that"
            )
        pixels = np.array(raw.raw_image_visible)
        if pixels.dtype != np.uint16 or min(pixels.shape) < 2:
            raise ValueError(
                f"cannot read {path}: its mosaic has {pixels.dtype} pixels of shape {pixels.shape}"
            )
        names = raw.color_desc.decode("ascii")
        indices = _cell(np.asarray(raw.raw_colors_visible))
        if len(indices) == 1 or not {*names} <= {*"RGB"}:
            raise ValueError(
                f"cannot read {path}: its pixels are {', '.join(sorted({*names}))} and not red, green and "
                "blue; save it as a TIFF and denoise that"
            )
        sizes = raw.sizes
        mosaic = Mosaic(
            pattern=tuple("".join(names[index] for index in row) for row in indices),
            black=tuple(tuple(float(raw.black_level_per_channel[index]) for index in row) for row in indices),
            white=float(raw.white_level or np.iinfo(np.uint16).max),
            balance=_balance(raw.camera_whitebalance, raw.daylight_whitebalance),
            from_xyz=_matrix(np.asarray(raw.rgb_xyz_matrix, np.float64)),
            noise=_noise_profile(path, raw),
            orientation=_ORIENTATIONS.get(sizes.flip, 1),
            source=path,
            origin=(sizes.top_margin, sizes.left_margin),
        )
    metadata = Metadata(format="dng", axes="YX", native=mosaic, orientation=1)
    return Picture(pixels, None, None, metadata)


def _cell(colours: NDArray[Any]) -> NDArray[Any]:
    """The smallest square that repeats: 2 pixels for Bayer, 6 for X-Trans."""
    for side in (1, 2, 6):
        cell = colours[:side, :side]
        rows, columns = (-(-length // side) for length in colours.shape)
        if np.array_equal(np.tile(cell, (rows, columns))[: colours.shape[0], : colours.shape[1]], colours):
            return cell
    raise ValueError("the pattern of its colours is neither Bayer's nor X-Trans; convert it to DNG first")


def _balance(camera: Any, daylight: Any) -> tuple[float, ...]:
    for given in (camera, daylight):
        values = np.asarray(given[:3], np.float64)
        if (values > 0).all() and np.isfinite(values).all():
            return tuple(float(value) for value in values / values[1])
    return (1.0, 1.0, 1.0)


def _matrix(from_xyz: NDArray[np.float64]) -> Cell:
    known = from_xyz[:3]
    if not np.isfinite(known).all() or abs(np.linalg.det(known)) < 1e-6:
        return ()
    return tuple(tuple(map(float, row)) for row in known)


def _noise_profile(path: Path, raw: Any) -> tuple[tuple[float, float], ...]:
    """Gain and read noise of red, green and blue from a DNG's NoiseProfile: variance = S x + O, x in 0..1."""
    try:
        with TiffFile(path) as tif:
            values = next(
                (page.tags[_NOISE_PROFILE].value for page in _pages(tif) if _NOISE_PROFILE in page.tags), ()
            )
    except Exception:  # not a TIFF, or one whose tags are damaged: there is no profile
        return ()
    numbers = np.atleast_1d(np.asarray(values, np.float64))
    if numbers.size not in (2, 6) or not np.isfinite(numbers).all() or numbers[::2].min() <= 0:
        return ()
    span = float(raw.white_level) - float(np.mean(raw.black_level_per_channel))
    pairs = np.broadcast_to(numbers.reshape(-1, 2), (3, 2))
    return tuple((float(span * s), float(span * max(o, 0.0) ** 0.5)) for s, o in pairs)


def _pages(tif: TiffFile) -> Iterator[TiffPage]:
    """All images of a file, including nested ones."""
    for page in tif.pages:
        if isinstance(page, TiffPage):
            yield page
            for inner in page.pages or ():
                if isinstance(inner, TiffPage):
                    yield inner


def write(path: Path, picture: Picture) -> None:
    """Write a DNG file."""
    mosaic = picture.metadata.native
    if not isinstance(mosaic, Mosaic):
        raise ValueError("a DNG file holds the mosaic of a camera; choose .tif for other images")
    try:
        if _patched(path, picture.pixels, mosaic) and _holds(path, picture.pixels):
            return
    except OSError:
        raise
    except Exception:  # tifffile raises any kind of error on damaged tags; the file is written from scratch
        pass
    _new(path, picture.pixels, mosaic)
    if not _holds(path, picture.pixels):
        raise ValueError(
            "LibRaw does not read the DNG as it was written, since the tags of its source are damaged; "
            "choose .tif for a developed picture"
        )


def _holds(path: Path, pixels: NDArray[Any]) -> bool:
    """Whether LibRaw reads these pixels from a file; it does not if tags are damaged."""
    import rawpy

    try:
        with rawpy.imread(str(path)) as raw:
            return raw.raw_image is not None and np.array_equal(raw.raw_image_visible, pixels)
    except rawpy.LibRawError:
        return False


def _patched(path: Path, pixels: NDArray[Any], mosaic: Mosaic) -> bool:
    """Write the mosaic's source file with other pixels; False if that is not a writable DNG."""
    if mosaic.source.suffix.lower() != ".dng" or not mosaic.source.exists():
        return False
    import rawpy

    with rawpy.imread(str(mosaic.source)) as raw:
        frame = np.array(raw.raw_image)
        if raw.raw_image_visible.shape != pixels.shape:
            return False  # a corner, for a trial write
    top, left = mosaic.origin
    frame[top : top + pixels.shape[0], left : left + pixels.shape[1]] = pixels
    with TiffFile(mosaic.source) as tif:
        page = _mosaic_page(tif)
        if page is None or page.shape[:2] != frame.shape:
            return False
        if page.bitspersample != 16 and _WHITE_LEVEL not in page.tags:
            return False  # the white level follows from the bits, which change
    shutil.copyfile(mosaic.source, path)
    with TiffFile(path, mode="r+") as tif:
        page = _mosaic_page(tif)
        assert page is not None
        order = tif.byteorder
        blocks = _blocks(page, frame.astype(np.dtype(np.uint16).newbyteorder(order)))
        offsets = []
        stream = tif.filehandle
        for block in blocks:
            stream.seek(0, 2)
            offsets.append(stream.tell() + stream.tell() % 2)
            stream.write(b"\0" * (stream.tell() % 2) + block)
        _overwrite(page, _COMPRESSION, 1)
        _overwrite(page, _BITS, 16)
        _overwrite(page, _PREDICTOR, 1)
        _overwrite(page, _LINEARIZATION, tuple(range(2**16)))
        if not page.is_tiled:
            _overwrite(page, 278, frame.shape[0])  # rows per strip
        for code, values in zip(
            _TILES if page.is_tiled else _STRIPS, (offsets, [len(block) for block in blocks]), strict=True
        ):
            page.tags[code].overwrite(values, dtype=_LONG)
    return True


def _mosaic_page(tif: TiffFile) -> TiffPage | None:
    found = [page for page in _pages(tif) if page.photometric == MOSAIC and page.samplesperpixel == 1]
    return max(found, key=lambda page: page.size, default=None)


def _blocks(page: TiffPage, frame: NDArray[Any]) -> list[bytes]:
    """The frame as the page stores it: tile by tile, or as one strip."""
    if not page.is_tiled:
        return [frame.tobytes()]
    height, width = page.tilelength, page.tilewidth
    blocks = []
    for top in range(0, frame.shape[0], height):
        for left in range(0, frame.shape[1], width):
            tile = np.zeros((height, width), frame.dtype)
            part = frame[top : top + height, left : left + width]
            tile[: part.shape[0], : part.shape[1]] = part
            blocks.append(tile.tobytes())
    return blocks


def _overwrite(page: TiffPage, code: int, value: Any) -> None:
    if code in page.tags:
        page.tags[code].overwrite(value)


def _new(path: Path, pixels: NDArray[Any], mosaic: Mosaic) -> None:
    """Write a DNG of the visible pixels, with what LibRaw knows about the camera."""
    cell = len(mosaic.pattern)
    black = [round(value) for row in mosaic.black for value in row]
    neutral = [_fraction(1 / value) for value in mosaic.balance]
    tags: list[tuple[int, int, int, Any, bool]] = [
        (274, _SHORT, 1, mosaic.orientation, True),
        (33421, _SHORT, 2, (cell, cell), True),  # CFARepeatPatternDim
        (33422, _BYTE, cell**2, bytes("RGB".index(colour) for colour in "".join(mosaic.pattern)), True),
        (50706, _BYTE, 4, bytes((1, 4, 0, 0)), True),  # DNGVersion
        (50707, _BYTE, 4, bytes((1, 1, 0, 0)), True),  # DNGBackwardVersion
        (50708, _ASCII, 0, "LibRaw", True),  # UniqueCameraModel
        (50713, _SHORT, 2, (cell, cell), True),  # BlackLevelRepeatDim
        (50714, _SHORT, cell**2, tuple(black), True),
        (_WHITE_LEVEL, _LONG, 1, round(mosaic.white), True),
        (50728, _RATIONAL, 3, tuple(number for pair in neutral for number in pair), True),  # AsShotNeutral
    ]
    if mosaic.from_xyz:
        matrix = [_fraction(value) for row in mosaic.from_xyz for value in row]
        flat = tuple(number for pair in matrix for number in pair)
        tags += [(50721, _SIGNED_RATIONAL, 9, flat, True), (50778, _SHORT, 1, _D65, True)]  # ColorMatrix1
    with TiffWriter(path) as tif:
        tif.write(pixels, photometric=MOSAIC, metadata=None, software=False, extratags=tags)


def _fraction(value: float) -> tuple[int, int]:
    return round(value * 10**6), 10**6


def developed(picture: Picture) -> Picture:
    """The colour picture of a mosaic, 16-bit sRGB: balanced, demosaicked and turned upright.

    Pixels (H, W, 3) are the colours of a mosaic that was demosaicked already.
    """
    mosaic = picture.metadata.native
    side = len(mosaic.pattern)
    pixels = picture.pixels.astype(np.float64)
    gains = dict(zip("RGB", mosaic.balance, strict=True))
    of_colour: dict[str, tuple[float, float]] = {}  # of an image of colours: that of the first place
    for y, row in enumerate(mosaic.pattern):
        for x, colour in enumerate(row):
            black = mosaic.black[y][x]
            factor = gains.get(colour, 1.0) / (mosaic.white - black)
            of_colour.setdefault(colour, (black, factor))
            if pixels.ndim == 2:
                pixels[y::side, x::side] = (pixels[y::side, x::side] - black) * factor
    if pixels.ndim == 3:
        blacks, factors = np.transpose([of_colour[colour] for colour in "RGB"])
        image = (pixels - blacks) * factors
    else:
        image = demosaic(pixels, mosaic.pattern)
    # Beyond the least gain a saturated pixel has lost its colour.
    image = np.clip(image, 0.0, min(mosaic.balance))
    if mosaic.from_xyz:
        to_camera = np.array(mosaic.from_xyz) @ _SRGB_TO_XYZ
        to_camera /= to_camera.sum(axis=1, keepdims=True)  # white stays white
        image = image @ np.linalg.inv(to_camera).T
    linear = np.clip(image, 0.0, 1.0)
    curve = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
    colours = np.rint(curve * 65535).astype(np.uint16)
    return Picture(
        colours, -1, None, Metadata(orientation=mosaic.orientation, history=picture.metadata.history)
    )
