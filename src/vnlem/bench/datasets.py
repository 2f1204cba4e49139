"""The images of a folder: which files they are, which category each has, and their grey values in 0..255."""

import csv
import os
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from hashlib import blake2b
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vnlem.io.formats import FORMATS

READABLE = tuple(suffix for known in FORMATS.values() if known.read for suffix in known.suffixes)
# Images of these kinds cannot be read: the report names them instead of skipping them silently.
UNREADABLE = (".bmp", ".gif", ".webp", ".jp2", ".pgm", ".ppm", ".heic", ".dng")
MANIFEST = "MANIFEST.csv"
PAIRS = "PAIRS.csv"
NO_CATEGORY = "(no category)"
_LUMA = np.array([0.299, 0.587, 0.114])  # ITU-R BT.601


@dataclass(frozen=True)
class Item:
    """An image of the data set.

    name: the path within the folder, with forward slashes; unique, and the same on every machine.
    index: place in the sorted order of names: the noise's seed follows it.
    reference: path of the reference image of a pair; empty elsewhere.
    gain, offset: ``gain * reference + offset`` is what the noisy image of a pair is compared with.
    """

    name: str
    path: str
    category: str
    index: int
    reference: str = ""
    gain: float = 1.0
    offset: float = 0.0

    @property
    def key(self) -> str:
        """A short name that is safe in file names and addresses."""
        return blake2b(self.name.encode("utf-8", "surrogateescape"), digest_size=8).hexdigest()

    def digest(self) -> str:
        """A fingerprint of the file's bytes: a changed image is measured again."""
        fingerprint = blake2b(digest_size=8)
        for path in filter(None, (self.path, self.reference)):
            fingerprint.update(Path(path).read_bytes())
        if self.reference:
            fingerprint.update(f"{self.gain!r} {self.offset!r}".encode())
        return fingerprint.hexdigest()


def find_images(folder: Path, *, include: str = "*", leave_out: Path | None = None) -> list[Item]:
    """Every image file below a folder, sorted by name.

    The category is what MANIFEST.csv says in its columns `file` and `category`, or the sub-folder.

    include: take only names that match this pattern; a pattern without a slash is compared with the file's
        name.
    leave_out: a folder not to search: the results may lie among the images.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> (folder / "cats").mkdir()
    >>> (folder / "cats" / "tom.png").touch()
    >>> [(item.name, item.category) for item in find_images(folder)]
    [('cats/tom.png', 'cats')]
    """
    if not folder.exists():
        raise FileNotFoundError(f"there is no folder {folder}")
    if not folder.is_dir():
        raise NotADirectoryError(f"{folder} is a file; name a folder of images")
    categories = _manifest(folder / MANIFEST)
    names = sorted(
        name
        for name in _names(folder, leave_out)
        if fnmatch(name if "/" in include else name.rpartition("/")[2], include)
    )
    return [
        Item(name, str(folder / name), categories.get(name) or name.rpartition("/")[0] or NO_CATEGORY, index)
        for index, name in enumerate(names)
    ]


def find_pairs(items: list[Item], folder: Path) -> tuple[list[Item], dict[str, str]]:
    """The noisy images (``*_noisy``) with their references (``*_ref``), and why others were left out.

    A PAIRS.csv with columns `stem`, `a` and `b`, in the folder or next to the images, says that a noisy image
    is compared with ``a * reference + b``.
    """
    stems = {item.name.rpartition(".")[0]: item for item in items}
    scales: dict[str, dict[str, tuple[float, float]]] = {}
    pairs: list[Item] = []
    alone: dict[str, str] = {}
    for stem, item in stems.items():
        if not stem.endswith("_noisy"):
            continue
        base = stem.removesuffix("_noisy")
        reference = stems.get(f"{base}_ref")
        if reference is None:
            alone[item.name] = f"no reference {base}_ref next to it"
            continue
        parent, _, short = base.rpartition("/")
        for place in (parent, ""):
            if place not in scales:
                scales[place] = _pair_scales(folder / place / PAIRS)
        gain, offset = scales[parent].get(short) or scales[""].get(short) or (1.0, 0.0)
        pairs.append(
            Item(
                name=item.name,
                path=item.path,
                category=item.category,
                index=len(pairs),
                reference=reference.path,
                gain=gain,
                offset=offset,
            )
        )
    return pairs, alone


def read_grey(path: str) -> NDArray[np.float64]:
    """An image file as grey values in 0..255.

    Colour becomes luminance, alpha is dropped, an orientation is applied. Whole numbers of more than 8 bits
    are divided by the smallest power of two (minus one) that holds them: 12-bit images in 16-bit files fill
    the scale. Floats in [0, 1] are multiplied by 255; other floats are stretched from their smallest value to
    their largest.
    """
    values, whole = _read_values(path)
    return _scaled(values, _scale(values, whole))


def read_stack(path: str) -> tuple[NDArray[np.float64], str]:
    """A file of several pages in 0..255, all on one scale, and its axes: "ZYX", else "TYX"; colours add "C".

    Pages whose axis the file does not name count as the frames of a movie.
    """
    from vnlem import io

    picture = io.read(path)
    if picture.n_pages < 2 or len(picture.page_axes) > 1:
        shape = "x".join(map(str, picture.pixels.shape))
        raise ValueError(f"it is not a stack of pages along one axis (shape {shape})")
    values = picture.pixels.astype(np.float64)
    if not np.isfinite(values).all():
        raise ValueError("it has NaN or infinite pixels; replace them first")
    scale = _scale(values, picture.pixels.dtype.kind in "iu")
    axes = "ZYX" if picture.metadata.axes.startswith("Z") else "TYX"
    if picture.channel_axis is not None:
        values, axes = np.moveaxis(values, picture.channel_axis, -1), axes + "C"
    return _scaled(values, scale), axes


def luminance(colours: NDArray[np.float64]) -> NDArray[np.float64]:
    """The grey values of colours (..., channels)."""
    return np.asarray(colours @ _LUMA if colours.shape[-1] == 3 else colours.mean(axis=-1))


def read_pair(item: Item) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The reference (gain and offset applied) and the noisy image of a pair, both on one scale of 0..255."""
    noisy, whole = _read_values(item.path)
    reference, also_whole = _read_values(item.reference)
    if reference.shape != noisy.shape:
        raise ValueError(
            f"it has {noisy.shape[0]}x{noisy.shape[1]} pixels and its reference "
            f"{reference.shape[0]}x{reference.shape[1]}"
        )
    scale = _scale(np.stack([noisy, reference]), whole and also_whole)
    return _scaled(item.gain * reference + item.offset, scale), _scaled(noisy, scale)


def _read_values(path: str) -> tuple[NDArray[np.float64], bool]:
    """Grey values in the units of the file, and whether the file holds whole numbers."""
    from vnlem import io
    from vnlem.io.upright import upright

    picture = upright(io.read(path))
    if picture.n_pages > 1:
        raise ValueError(f"it has {picture.n_pages} pages; save each page in a separate file")
    page = next(picture.pages())
    values = np.asarray(page, dtype=np.float64)
    if not np.isfinite(values).all():
        raise ValueError("it has NaN or infinite pixels; replace them first")
    if picture.channel_axis is not None:
        values = luminance(np.moveaxis(values, picture.channel_axis, -1))
    return values, page.dtype.kind in "iu"


def _scale(values: NDArray[np.float64], whole: bool) -> tuple[float, float]:
    """What to subtract from the values of a file, and then the factor, to map them to 0..255."""
    low, high = float(values.min()), float(values.max())
    if whole and low >= 0:
        bits = max(8, int(np.ceil(high)).bit_length())
        return 0.0, 255 / (2**bits - 1)
    if not whole and low >= 0 and high <= 1:
        return 0.0, 255.0
    return low, 255 / (high - low) if high > low else 0.0


def _scaled(values: NDArray[np.float64], scale: tuple[float, float]) -> NDArray[np.float64]:
    low, factor = scale
    return values if scale == (0.0, 1.0) else (values - low) * factor


def _names(folder: Path, leave_out: Path | None) -> Iterator[str]:
    avoid = None if leave_out is None else os.path.realpath(leave_out)
    for parent, folders, files in os.walk(folder):
        folders[:] = [
            name
            for name in folders
            if not name.startswith(".") and os.path.realpath(os.path.join(parent, name)) != avoid
        ]
        for file in files:
            if not file.startswith(".") and Path(file).suffix.lower() in (*READABLE, *UNREADABLE):
                yield Path(parent, file).relative_to(folder).as_posix()


def _manifest(path: Path) -> dict[str, str]:
    rows = _table(path)
    if rows and not {"file", "category"} <= set(rows[0]):
        return {}
    return {row["file"].replace("\\", "/"): row["category"].strip() for row in rows if row["category"]}


def _pair_scales(path: Path) -> dict[str, tuple[float, float]]:
    rows = _table(path)
    if rows and not {"stem", "a", "b"} <= set(rows[0]):
        raise ValueError(f"{path} has the columns {', '.join(rows[0])}; it needs stem, a and b")
    try:
        return {row["stem"]: (float(row["a"]), float(row["b"])) for row in rows}
    except (TypeError, ValueError):
        raise ValueError(f"the columns a and b of {path} must be numbers in every row") from None


def _table(path: Path) -> list[dict[str, str]]:
    if not path.is_file():
        return []
    with open(path, encoding="utf-8-sig", newline="") as stream:
        return list(csv.DictReader(stream))
