"""OME metadata about files: the members of a set, and what a rewritten file must not repeat."""

import os
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np

from vnlem.io.picture import Calibration
from vnlem.io.units import OME_UNITS

PAGE_AXES = "TZC"  # what OME counts pages by
# OME has no name for other types of pixels.
DTYPES = ("uint8", "uint16", "uint32", "int8", "int16", "int32", "float32", "float64")

_ROOT_UUID = re.compile(rb"(<(?:\w+:)?OME\b[^>]*?)\s+UUID\s*=\s*(?:\"[^\"]*\"|'[^']*')")
_PIXELS = re.compile(rb"<(?:\w+:)?Pixels\b[^>]*>")
_TYPE = re.compile(rb"(\sType\s*=\s*[\"'])(\w+)([\"'])")
_BITS = re.compile(rb"\sSignificantBits\s*=\s*(?:\"[^\"]*\"|'[^']*')")
_FILE = re.compile(rb"<((?:\w+:)?)UUID\b(?:[^>]*/>|.*?</\1UUID\s*>)", re.DOTALL)


def check_members(xml: str, path: Path) -> None:
    """Refuse a set that names files outside the folder of `path`, or files that are not there.

    A missing file would be read as black pages.

    >>> pixels = '<Image><Pixels><TiffData><UUID FileName="../b.tif">u</UUID></TiffData></Pixels></Image>'
    >>> check_members(f"<OME>{pixels}</OME>", Path("a.ome.tif"))
    Traceback (most recent call last):
    ...
    ValueError: its OME metadata name a file outside its folder ('../b.tif'); put the set's files together
    """
    try:
        root = ElementTree.fromstring(xml)
    except ElementTree.ParseError:
        return  # not a set
    own = root.attrib.get("UUID")
    for element in root.iter():
        if not element.tag.endswith("UUID"):
            continue
        name = element.attrib.get("FileName", "")
        if element.text == own or not name or (own is None and name.lower() == path.name.lower()):
            continue
        if os.path.isabs(name) or os.path.normpath(name).startswith("..") or re.match(r"[A-Za-z]:|\\", name):
            raise ValueError(
                f"its OME metadata name a file outside its folder ({name!r}); put the set's files together"
            )
        if not (path.parent / name).is_file():
            raise ValueError(
                f"its OME metadata name the file {name!r}, which is not in its folder; put it there, or give "
                "the file its name back if it was renamed"
            )


def without_file_names(xml: bytes) -> bytes:
    """OME-XML whose pages lie in the file it is written to.

    The identifiers and names of the source file would send a reader there.

    >>> without_file_names(b'<OME UUID="u:1"><TiffData IFD="0"><UUID FileName="a.tif">u:1</UUID></TiffData>')
    b'<OME><TiffData IFD="0"></TiffData>'
    """
    return _FILE.sub(b"", _ROOT_UUID.sub(rb"\1", xml))


def with_dtype(xml: bytes, dtype: np.dtype[Any]) -> bytes:
    """OME-XML for pixels of another dtype.

    >>> with_dtype(b'<Pixels Type="uint8" SignificantBits="8" SizeX="9">', np.dtype("float32"))
    b'<Pixels Type="float" SizeX="9">'
    """
    if dtype.name not in DTYPES:
        raise ValueError(f"OME has no name for pixels of the type {dtype.name}")
    name = {"float32": b"float", "float64": b"double"}.get(dtype.name, dtype.name.encode())

    def changed(tag: re.Match[bytes]) -> bytes:
        text = tag[0]
        if _TYPE.search(text) is None or _TYPE.search(text)[2] == name:  # type: ignore[index]
            return text
        return _BITS.sub(b"", _TYPE.sub(rb"\1" + name + rb"\3", text))

    return _PIXELS.sub(changed, xml)


def axes_for(axes: str) -> str:
    """Axes as OME names them: page axes it does not know, or knows twice, get the letters that are free.

    >>> axes_for("IYX"), axes_for("QQYXS"), axes_for("TQYX")
    ('ZYX', 'ZCYXS', 'TZYX')
    """
    pages = [letter for letter in axes if letter not in "YXS"]
    known = [letter for letter in pages if letter in PAGE_AXES and pages.count(letter) == 1]
    free = [letter for letter in PAGE_AXES if letter not in known]
    unknown = len(pages) - len(known)
    given = iter(["Z"] if unknown == 1 and "Z" in free else free[len(free) - unknown :])
    return "".join(letter if letter in "YXS" or letter in known else next(given) for letter in axes)


def describe(calibration: Calibration, axes: str) -> dict[str, Any]:
    """What tifffile writes into OME-XML about an image with these axes.

    >>> describe(Calibration({"X": 0.2}, {"X": "micrometer"}, ("GFP", "RFP")), "CYX")
    {'axes': 'CYX', 'PhysicalSizeX': 0.2, 'PhysicalSizeXUnit': 'µm', 'Channel': {'Name': ['GFP', 'RFP']}}
    """
    metadata: dict[str, Any] = {"axes": axes}
    for axis, size in calibration.sizes.items():
        key = "TimeIncrement" if axis == "T" else f"PhysicalSize{axis}"
        metadata[key] = size
        unit = calibration.units.get(axis)
        if unit:
            metadata[f"{key}Unit"] = OME_UNITS.get(unit, unit)
    if calibration.channels and "C" in axes:
        metadata["Channel"] = {"Name": list(calibration.channels)}
    return metadata
