"""The segments of a CZI file: its directory of blocks of pixels, each block, and its description.

After Zeiss' description of the format (ZISRAW, DS_ZISRAW-FileFormat). imagecodecs decompresses the blocks.
"""

import os
import struct
from dataclasses import dataclass
from functools import cached_property
from typing import Any, BinaryIO

import imagecodecs
import numpy as np
from numpy.typing import NDArray

_SEGMENT = struct.Struct("<16sqq")  # name, room, bytes in use
_FILE = struct.Struct("<iiii16s16siqqi")  # ..., part, directory, description, whether it is being written
_ENTRY = struct.Struct("<2siqiiB5xi")  # scheme, pixels, place, part, compression, pyramid, number of axes
_AXIS = struct.Struct("<4siifi")  # name, start, size, coordinate, stored size
_BLOCK = struct.Struct("<iiq")  # bytes of metadata, of attachments, of pixels
_BLOCK_HEAD = 256  # the fewest bytes before the metadata of a block
_DIRECTORY_HEAD, _DESCRIPTION_HEAD = 128, 256
_MOST_AXES = 40
# Number of a type of pixels -> how a sample is stored, and how many a pixel has.
_PIXELS = {
    0: ("<u1", 1),
    1: ("<u2", 1),
    2: ("<f4", 1),
    3: ("<u1", 3),
    4: ("<u2", 3),
    8: ("<f4", 3),
    12: ("<i4", 1),
}
_RAW, _JPEG, _LZW, _JPEG_XR, _ZSTD, _ZSTD_WITH_HEAD = 0, 1, 2, 4, 5, 6
_BLUE_FIRST = (_RAW, _LZW, _ZSTD, _ZSTD_WITH_HEAD)


@dataclass(frozen=True)
class Block:
    """Where a block of pixels lies in the image and in the file."""

    starts: dict[str, int]
    sizes: dict[str, int]
    stored: dict[str, int]
    names: tuple[str, ...]  # axes, the fastest first
    place: int
    pixel_type: int
    compression: int
    pyramid: int

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of a sample."""
        return np.dtype(self._kind[0])

    @property
    def samples(self) -> int:
        """How many a pixel has."""
        return self._kind[1]

    @property
    def _kind(self) -> tuple[str, int]:
        if self.pixel_type not in _PIXELS:
            raise ValueError(f"its pixels are of type {self.pixel_type}; export them from ZEN as grey or RGB")
        return _PIXELS[self.pixel_type]

    @property
    def is_full_size(self) -> bool:
        """Whether this is an original block, not a smaller copy for previews."""
        return self.pyramid == 0 and all(self.stored[axis] == self.sizes[axis] for axis in "XY")

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Shape of the stored pixels, the slowest axis first."""
        inner = tuple(self.stored[name] for name in reversed(self.names))
        return (*inner, self.samples) if self.samples > 1 else inner


class CziBlocks:
    """The blocks of a file, and what it says about itself."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._size = stream.seek(0, os.SEEK_END)
        head = _FILE.unpack(self._bytes(*self._segment(0, b"ZISRAWFILE"), _FILE.size))
        part, self._directory, self._description = head[6], head[7], head[8]
        if part != 0:
            raise ValueError("it is one of several files of a recording; open the first of them")
        self.blocks = self._read_directory()

    def _segment(self, place: int, name: bytes) -> tuple[int, int]:
        """Where the content of a segment begins, and its length."""
        found, room, used = _SEGMENT.unpack(self._bytes(place, _SEGMENT.size, _SEGMENT.size))
        if found.rstrip(b"\x00") != name:
            raise ValueError(f"it is damaged: there is no {name.decode()} at {place}")
        return place + _SEGMENT.size, used or room

    def _bytes(self, place: int, available: int, count: int) -> bytes:
        if place < 0 or count < 0 or count > available or place + count > self._size:
            raise ValueError("it is truncated")
        self._stream.seek(place)
        return self._stream.read(count)

    def _read_directory(self) -> list[Block]:
        place, length = self._segment(self._directory, b"ZISRAWDIRECTORY")
        (count,) = struct.unpack("<i", self._bytes(place, length, 4))
        content = self._bytes(place, length, length)
        blocks, at = [], _DIRECTORY_HEAD
        for _ in range(count):
            block, at = _read_entry(content, at)
            blocks.append(block)
        return blocks

    def description(self) -> str:
        """The XML that describes scales, channels and scenes; empty if there is none."""
        if self._description <= 0:
            return ""
        place, length = self._segment(self._description, b"ZISRAWMETADATA")
        (count,) = struct.unpack("<i", self._bytes(place, length, 4))
        return self._bytes(place + _DESCRIPTION_HEAD, length, count).decode("utf-8", "replace")

    def pixels(self, block: Block) -> NDArray[Any]:
        """The pixels of a block, red first."""
        place, length = self._segment(block.place, b"ZISRAWSUBBLOCK")
        described, _, count = _BLOCK.unpack(self._bytes(place, length, _BLOCK.size))
        _, end = _read_entry(self._bytes(place, length, min(length, 4096)), _BLOCK.size)
        start = max(_BLOCK_HEAD, end) + described
        content = self._bytes(place + start, length, count)
        expected = int(np.prod(block.shape)) * block.dtype.itemsize
        raw = block.compression == _RAW or len(content) == expected
        pixels = np.frombuffer(content, block.dtype) if raw else _decoded(block, content, expected)
        if pixels.size * pixels.dtype.itemsize != expected:
            raise ValueError(
                f"it is damaged: a block has {pixels.nbytes} bytes of pixels instead of {expected}"
            )
        pixels = pixels.reshape(block.shape)
        return pixels[..., ::-1] if block.samples == 3 and block.compression in _BLUE_FIRST else pixels


def _read_entry(content: bytes, at: int) -> tuple[Block, int]:
    scheme, pixel_type, place, part, compression, pyramid, count = _ENTRY.unpack_from(content, at)
    if scheme != b"DV" or not 0 < count <= _MOST_AXES:
        raise ValueError("it is damaged: its directory names blocks of an unknown scheme")
    if part != 0:
        raise ValueError("its pixels lie in several files; save it as one file in ZEN")
    starts, sizes, stored, names = {}, {}, {}, []
    for number in range(count):
        name, start, size, _, kept = _AXIS.unpack_from(content, at + _ENTRY.size + number * _AXIS.size)
        letter = name.rstrip(b"\x00").decode("ascii", "replace")
        if size < 1 or kept < 0 or letter in starts:
            raise ValueError("it is damaged: its directory names a block without pixels")
        starts[letter], sizes[letter], stored[letter] = start, size, kept or size
        names.append(letter)
    if not {"X", "Y"} <= starts.keys():
        raise ValueError("it is damaged: its directory names a block without rows or columns")
    block = Block(starts, sizes, stored, tuple(names), place, pixel_type, compression, pyramid)
    return block, at + _ENTRY.size + count * _AXIS.size


def _decoded(block: Block, content: bytes, expected: int) -> NDArray[Any]:
    if block.compression in (_JPEG, _JPEG_XR):
        decode = imagecodecs.jpeg8_decode if block.compression == _JPEG else imagecodecs.jpegxr_decode
        decoded: NDArray[Any] = np.ascontiguousarray(decode(content))
        return decoded
    if block.compression == _LZW:
        return np.frombuffer(imagecodecs.lzw_decode(content), block.dtype)
    if block.compression == _ZSTD:
        return np.frombuffer(imagecodecs.zstd_decode(content, out=expected), block.dtype)
    if block.compression == _ZSTD_WITH_HEAD:
        return _zstd_with_head(block, content, expected)
    raise ValueError(
        f"its blocks have the compression {block.compression}, which only ZEN reads; save it in ZEN with "
        "zstd or uncompressed"
    )


def _zstd_with_head(block: Block, content: bytes, expected: int) -> NDArray[Any]:
    """Zstandard after a short head, which may say that low and high bytes of the pixels are separated."""
    length = content[0]
    if length not in (1, 3) or (length == 3 and content[1] != 1):
        raise ValueError("it is damaged: a block begins with an unknown head")
    plain = np.frombuffer(imagecodecs.zstd_decode(content[length:], out=expected), np.uint8)
    if length == 3 and content[2] & 1 and block.dtype.itemsize == 2 and plain.size == expected:
        plain = np.ascontiguousarray(plain.reshape(2, -1).T).reshape(-1)
    return plain.view(block.dtype)
