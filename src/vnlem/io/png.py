"""PNG: 8- and 16-bit, grey and RGB, with and without alpha.

Pillow decodes 8-bit files (palettes and fewer bits included) but cuts 16-bit colour down to 8 bits, so
imagecodecs decodes those and encodes all. Chunks about the picture are read and written here.
"""

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vnlem.io.picture import Metadata, Picture, Resolution, split_alpha
from vnlem.io.upright import orientation_in

SIGNATURE = b"\x89PNG\r\n\x1a\n"
_PALETTE = 3  # colour type in the header
_SAMPLES = {0: 1, 2: 3, 4: 2, 6: 4}  # colour type -> samples of a pixel
# Where the passes of an interlaced file begin and how they step: left, top, columns, rows.
_ADAM7 = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))
# Copied from PNG to PNG unchanged. Chunks that depend on the palette or on single pixel values are left out.
_KEPT_CHUNKS = (b"cHRM", b"cICP", b"gAMA", b"sRGB", b"iTXt", b"tEXt", b"zTXt")


def read(path: Path) -> Picture:
    """Read a PNG file; palettes and transparent colours are expanded."""
    data = path.read_bytes()
    chunks = list(_chunks(data))
    found = dict(chunks)
    if b"acTL" in found:
        raise ValueError("it is an animation; save its frames as the pages of a TIFF first")
    width, height, depth, colour_type, _, _, interlaced = struct.unpack(">IIBBBBB", found[b"IHDR"])
    if depth == 16:
        _check_samples(chunks, (width, height), 2 * _SAMPLES[colour_type], bool(interlaced))
    if depth == 1 and colour_type != _PALETTE:
        raise ValueError(
            "it is a 1-bit image (black and white only), which cannot be denoised as a grey image; "
            "convert it to 8-bit grey first, or start from the grey image it was made from"
        )
    samples = _decode(_bare(chunks), depth, colour_type, b"tRNS" in found)
    if b"tRNS" in found and colour_type != _PALETTE:
        samples = _with_alpha(samples, found[b"tRNS"], depth)
    metadata = _metadata(found, tuple(chunk for chunk in chunks if chunk[0] in _KEPT_CHUNKS))
    if samples.ndim == 2:
        return Picture(samples, None, None, metadata)
    return split_alpha(samples, -1, samples.shape[-1] in (2, 4), metadata)


def _chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Every chunk's name and content up to the end mark; a clear error if the file is damaged."""
    place = len(SIGNATURE)
    name = b""
    while name != b"IEND":
        if place + 12 > len(data):
            raise ValueError("it is truncated")
        (length,) = struct.unpack_from(">I", data, place)
        name = data[place + 4 : place + 8]
        content = data[place + 8 : place + 8 + length]
        if len(content) < length or place + 12 + length > len(data):
            raise ValueError("it is truncated")
        if zlib.crc32(name + content) != struct.unpack_from(">I", data, place + 8 + length)[0]:
            raise ValueError("it is damaged (a checksum is wrong)")
        yield name, content
        place += 12 + length


def _bare(chunks: list[tuple[bytes, bytes]]) -> bytes:
    """A PNG file of only what a decoder needs; other chunks could make it print warnings on stderr."""
    needed = (chunk for chunk in chunks if chunk[0] in (b"IHDR", b"PLTE", b"tRNS", b"IDAT", b"IEND"))
    return SIGNATURE + b"".join(map(_packed, needed))


def _packed(chunk: tuple[bytes, bytes]) -> bytes:
    name, content = chunk
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))


def _check_samples(
    chunks: list[tuple[bytes, bytes]], size: tuple[int, int], pixel_bytes: int, interlaced: bool
) -> None:
    """Inflate the samples and check every row's filter: libpng would print these errors on stderr."""
    try:
        rows = zlib.decompress(b"".join(content for name, content in chunks if name == b"IDAT"))
    except zlib.error:
        raise ValueError("it is damaged (its pixels cannot be unpacked)") from None
    width, height = size
    passes = _ADAM7 if interlaced else ((0, 0, 1, 1),)
    place = 0
    for left, top, step_x, step_y in passes:
        n_columns, n_rows = -(-(width - left) // step_x), -(-(height - top) // step_y)
        if n_columns <= 0 or n_rows <= 0:
            continue
        length = 1 + n_columns * pixel_bytes
        filters = rows[place : place + n_rows * length : length]
        place += n_rows * length
        if place > len(rows) or max(filters) > 4:
            raise ValueError("it is damaged (its pixels are incomplete)")


def _decode(data: bytes, depth: int, colour_type: int, transparent: bool) -> NDArray[Any]:
    if depth == 16:
        import imagecodecs

        return np.asarray(imagecodecs.png_decode(data))
    import io

    from vnlem.io.pillow import opened

    with opened(io.BytesIO(data), "PNG") as image:
        expanded = image.convert("RGBA" if transparent else "RGB") if colour_type == _PALETTE else image
        return np.array(expanded)


def _with_alpha(samples: NDArray[Any], transparent: bytes, depth: int) -> NDArray[Any]:
    """Turn the one colour that a PNG declares transparent into an alpha channel."""
    colour = np.frombuffer(transparent, ">u2").astype(np.int64)
    if samples.ndim > 2 and samples.shape[-1] > len(colour):
        return samples  # the decoder has done it
    if depth < 8:
        colour = colour * 255 // (2**depth - 1)
    pixels = samples.reshape(*samples.shape[:2], -1)
    top = np.iinfo(samples.dtype).max
    alpha = np.where((pixels == colour).all(axis=-1, keepdims=True), 0, top).astype(samples.dtype)
    return np.concatenate([pixels, alpha], axis=-1)


def _metadata(found: dict[bytes, bytes], kept: tuple[tuple[bytes, bytes], ...]) -> Metadata:
    resolution = profile = None
    if b"pHYs" in found:
        x, y, unit = struct.unpack(">IIB", found[b"pHYs"])
        resolution = Resolution(x / 100, y / 100, "cm") if unit == 1 else Resolution(x, y, "")
    if b"iCCP" in found:
        _, _, packed = found[b"iCCP"].partition(b"\x00")
        profile = zlib.decompress(packed[1:])
    exif = found.get(b"eXIf")
    return Metadata(
        format="png",
        resolution=resolution,
        icc_profile=profile,
        exif=exif,
        orientation=orientation_in(exif),
        native=kept,
    )


def write(path: Path, picture: Picture) -> None:
    """Write with the picture's own bit depth."""
    import imagecodecs

    encoded = imagecodecs.png_encode(np.ascontiguousarray(picture.interleaved()))
    header_end = len(SIGNATURE) + 12 + 13
    extra = b"".join(map(_packed, _extra_chunks(picture.metadata)))
    path.write_bytes(encoded[:header_end] + extra + encoded[header_end:])


def _extra_chunks(metadata: Metadata) -> Iterator[tuple[bytes, bytes]]:
    if metadata.icc_profile is not None:
        yield b"iCCP", b"ICC profile\x00\x00" + zlib.compress(metadata.icc_profile)
    resolution = metadata.resolution
    if resolution is not None and (resolution.unit or resolution.x != resolution.y):
        scale = 100 if resolution.unit else 1
        x, y = (max(1, round(scale * value)) for value in resolution.per("cm"))
        yield b"pHYs", struct.pack(">IIB", x, y, 1 if resolution.unit else 0)
    if metadata.exif is not None:
        yield b"eXIf", metadata.exif
    if metadata.format == "png":
        yield from metadata.native
