"""Damaged files of every format: an error message or a right result, and nothing half written.

``python tests/mutated_files.py --cases 500`` damages 500 files of each format.
A file that is still read must be read as the format's own library reads it, and must come back after writing.
"""

import argparse
import gzip
import random
import struct
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
from microscope_files import ZSTD_APART, czi_stack, write_czi, write_lif, write_nd2
from raw_files import write_dng

from vnlem import io

SHAPE = (3, 12, 17)


def pixels(dtype):
    return np.random.default_rng(0).integers(0, 200, SHAPE).astype(dtype)


# Valid files


def make_mrc(path):
    import mrcfile

    with mrcfile.new(path, overwrite=True) as mrc:
        mrc.set_data(pixels("int16"))
        mrc.set_volume()
        mrc.set_extended_header(np.zeros(80, "V1"))


def make_nifti(path):
    import nibabel

    image = nibabel.Nifti1Image(pixels("float64").T * 0.37 + 5, np.diag([2, 2, 3, 1]))
    image.set_data_dtype("int16")
    image.header.extensions.append(nibabel.nifti1.Nifti1Extension("comment", b"hello"))
    image.to_filename(path)


def make_mgh(path):
    import nibabel

    nibabel.MGHImage(pixels("int16").T, np.diag([2, 2, 3, 1])).to_filename(path)


def make_fits(path):
    from astropy.io import fits

    images = [
        fits.ImageHDU(pixels(dtype), name=name) for name, dtype in (("SCI", "uint16"), ("VAR", "float32"))
    ]
    fits.HDUList([fits.PrimaryHDU(), *images]).writeto(path)


def make_czi(path):
    czi_stack(path, pixels("uint16"), "ZYX", ZSTD_APART)


def make_czi_scenes(path):
    write_czi(path, [({"X": 0, "Y": 0, "S": k}, plane) for k, plane in enumerate(pixels("uint8"))])


def make_nd2(path):
    write_nd2(path, pixels("uint16"), "TYX")


def make_lif(path):
    write_lif(path, {"one": (pixels("uint8"), "ZYX"), "two": (pixels("uint16")[:2], "CYX")})


def make_dng(path):
    mosaic = np.random.default_rng(0).integers(0, 4000, (48, 64)).astype(np.uint16)
    write_dng(path, mosaic, ("RG", "GB"), noise=(1e-3, 1e-6))


# How the libraries read them; CZI has none that reads today's files on all versions of Python


def by_mrcfile(path, series):
    import mrcfile

    with mrcfile.open(path, permissive=True) as mrc:
        return None if mrc.data is None else mrc.data.reshape(series.shape)


def by_nibabel(path, series):
    import nibabel

    return np.asarray(nibabel.load(path).dataobj).T.reshape(series.shape)


def by_astropy(path, series):
    from astropy.io import fits

    with fits.open(path) as opened:
        return np.array(opened[int(series.key)].data)


def by_nd2(path, series):
    import nd2

    return nd2.imread(path).reshape(series.shape)


def by_liffile(path, series):
    import liffile

    with liffile.LifFile(path) as opened:
        return opened.images[int(series.key) - 1].asarray()


def by_rawpy(path, series):
    import rawpy

    with rawpy.imread(str(path)) as raw:
        return np.array(raw.raw_image_visible)


# Name of the file -> what makes it, how its library reads it, what it is written as.
KINDS = {
    "a.mrc": (make_mrc, by_mrcfile, ".mrc"),
    "a.map.gz": (make_mrc, by_mrcfile, ".map.gz"),
    "a.nii": (make_nifti, by_nibabel, ".nii"),
    "a.nii.gz": (make_nifti, by_nibabel, ".nii.gz"),
    "a.mgh": (make_mgh, by_nibabel, ".nii"),
    "a.fits": (make_fits, by_astropy, ".fits"),
    "a.fits.gz": (make_fits, by_astropy, ".fits.gz"),
    "a.czi": (make_czi, None, ".ome.tif"),
    "scenes.czi": (make_czi_scenes, None, ".ome.tif"),
    "a.nd2": (make_nd2, by_nd2, ".ome.tif"),
    "a.lif": (make_lif, by_liffile, ".ome.tif"),
    "a.dng": (make_dng, by_rawpy, ".dng"),
}


def damaged(content, draw):
    """The bytes of a file after one to four random changes, mostly near its beginning or end."""
    data = bytearray(content)
    for _ in range(draw.choice((1, 1, 1, 2, 4))):
        near = min(len(data), draw.choice((64, 400, 1200, len(data))))
        at = draw.randrange(near) if draw.random() < 0.8 else len(data) - 1 - draw.randrange(near)
        kind = draw.choice(("bit", "byte", "number", "number", "cut", "drop", "insert", "zeros", "swap"))
        if kind == "bit":
            data[at] ^= 1 << draw.randrange(8)
        elif kind == "byte":
            data[at] = draw.randrange(256)
        elif kind == "number":
            number = draw.choice(
                (0, 1, -1, 7, 255, 2**15, 2**31 - 1, -(2**31), draw.randrange(-(2**31), 2**31))
            )
            code = draw.choice(("<i", ">i", "<h", "<q"))
            number = struct.unpack("<h", struct.pack("<i", number)[:2])[0] if code == "<h" else number
            start = max(0, at - at % 4)
            data[start : start + struct.calcsize(code)] = struct.pack(code, number)
        elif kind == "cut":
            del data[at:]
        elif kind == "drop":
            del data[at : at + draw.randrange(1, 40)]
        elif kind == "insert":
            data[at:at] = draw.randbytes(draw.randrange(1, 40))
        elif kind == "zeros":
            data[at : at + 16] = bytes(16)
        else:
            other = draw.randrange(len(data))
            data[at], data[other] = data[other], data[at]
        if not data:
            data = bytearray(b"\x00")
    return bytes(data)


def check(name, content, folder):
    """Read a damaged file and write what was read: "refused" or "read", or an error if that fails."""
    _, library, suffix = KINDS[name]
    path = folder / name
    path.write_bytes(content)
    try:
        if suffix == ".dng":  # holds one image, which is read whole
            keys, picture = [""], io.read(path)
            first = picture.pixels
        else:
            with io.open_series(path) as found:
                keys = [series.key for series in found]
                first = found[0] if found else None
                picture = io.read(f"{path}:{keys[0]}" if len(keys) > 1 else path)
    except (ValueError, OSError) as error:
        text = str(error)
        assert "\n" not in text, f"more than one line: {text!r}"
        assert len(text) < 700, f"a long story: {text!r}"
        assert left_over(folder) == {name}, f"left behind: {left_over(folder)}"
        return "refused"
    expected = read_by_library(library, path, first)
    if expected is not None:
        np.testing.assert_allclose(picture.pixels, expected, rtol=1e-5, equal_nan=True)
    target = folder / f"written{suffix}"
    try:
        io.write(target, picture)
    except ValueError:
        assert left_over(folder) == {name}, f"left behind: {left_over(folder)}"
        return "read"
    again = io.read(f"{target}:{keys[0]}" if suffix.startswith(".fits") else target).pixels
    np.testing.assert_array_equal(again.reshape(picture.pixels.shape), picture.pixels)
    target.unlink()
    assert left_over(folder) == {name}, f"left behind: {left_over(folder)}"
    return "read"


def read_by_library(library, path, series):
    """The same image as its own library reads it; None if it does not."""
    if library is None:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = library(path, series)
        except Exception:
            return None
    return found if found is not None and found.shape == series.shape else None


def left_over(folder):
    return {path.name for path in folder.iterdir()}


def run(name, cases, seed=0):
    """Damage a file many times; how many were refused and how many were read."""
    counts = {"refused": 0, "read": 0}
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        before, tempfile.tempdir = tempfile.tempdir, scratch
        try:
            plain = folder / name.removesuffix(".gz")
            KINDS[name][0](plain)
            content = plain.read_bytes()
            plain.unlink()
            for case in range(cases):
                draw = random.Random(f"{name} {seed} {case}")
                # The content of compressed files is damaged, and sometimes the compressed bytes too.
                broken = damaged(content, draw)
                if name.endswith(".gz"):
                    broken = gzip.compress(broken, mtime=0)
                    broken = damaged(broken, draw) if draw.random() < 0.3 else broken
                try:
                    counts[check(name, broken, folder)] += 1
                except Exception as error:
                    raise AssertionError(f"{name}, case {case} of seed {seed}: {error!r}") from error
                for path in folder.iterdir():
                    path.unlink()
        finally:
            tempfile.tempdir = before
    return counts


def main():
    """Damage files of all formats, or of those that are named."""
    import resource

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(KINDS))
    parser.add_argument("--cases", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    # A damaged size must not be trusted: a request for that much memory fails at once.
    resource.setrlimit(resource.RLIMIT_AS, (6 * 2**30, 6 * 2**30))
    for name in options.names:
        counts = run(name, options.cases, options.seed)
        print(f"{name:<12} {counts['refused']:>5} refused  {counts['read']:>5} read", flush=True)


if __name__ == "__main__":
    sys.exit(main())
