"""TIFF files as sources and targets: tiled, pyramidal, BigTIFF, OME, RGB."""

import numpy as np
import pytest
import tifffile

zarr = pytest.importorskip("zarr", reason="needs the extra 'large'")

from large_solver import Roughness, noise, run  # noqa: E402

import vnlem  # noqa: E402
from vnlem.large.sources import open_source  # noqa: E402

MEMORY = 20_000_000


@pytest.fixture
def stack(tmp_path):
    """A pyramidal OME BigTIFF with two channels and three slices."""
    pixels = noise((3, 2, 400, 600))
    metadata = {
        "axes": "ZCYX",
        "PhysicalSizeX": 0.2,
        "PhysicalSizeXUnit": "µm",
        "PhysicalSizeY": 0.2,
        "PhysicalSizeYUnit": "µm",
        "PhysicalSizeZ": 1.5,
        "PhysicalSizeZUnit": "µm",
        "Channel": {"Name": ["DAPI", "GFP"]},
    }
    with tifffile.TiffWriter(tmp_path / "stack.ome.tif", bigtiff=True, ome=True) as tif:
        tif.write(pixels, tile=(128, 128), subifds=1, metadata=metadata, compression="zlib")
        tif.write(pixels[:, :, ::2, ::2], tile=(128, 128), subfiletype=1, compression="zlib")
    return tmp_path / "stack.ome.tif", pixels


def test_an_ome_tiff_becomes_an_ome_zarr(stack, tmp_path):
    path, pixels = stack
    run(path, tmp_path / "out.ome.zarr", memory=MEMORY)
    group = zarr.open_group(tmp_path / "out.ome.zarr", mode="r")
    assert np.array_equal(group["0"][:], Roughness().whole(pixels).transpose(1, 0, 2, 3))
    image = group.attrs["ome"]["multiscales"][0]
    assert [axis["name"] for axis in image["axes"]] == ["c", "z", "y", "x"]
    assert image["axes"][1]["unit"] == "micrometer"
    assert image["datasets"][0]["coordinateTransformations"][0]["scale"] == [1.0, 1.5, 0.2, 0.2]
    assert image["datasets"][1]["coordinateTransformations"][0]["scale"] == [1.0, 1.5, 0.4, 0.4]
    assert [channel["label"] for channel in group.attrs["ome"]["omero"]["channels"]] == ["DAPI", "GFP"]
    models = pytest.importorskip("ome_zarr_models")
    assert models.open_ome_zarr(group).ome_zarr_version == "0.5"


def test_units_of_ome_become_those_of_ngff(tmp_path):
    metadata = {
        "axes": "TYX",
        "PhysicalSizeX": 2.0,
        "PhysicalSizeXUnit": "Å",
        "TimeIncrement": 5.0,
        "TimeIncrementUnit": "µs",
    }
    tifffile.imwrite(tmp_path / "fast.ome.tif", noise((3, 20, 30)), metadata=metadata)
    found = open_source(tmp_path / "fast.ome.tif").details
    assert found["units"] == {"x": "angstrom", "t": "microsecond"}


def test_a_pyramidal_tiff_stays_one(stack, tmp_path):
    path, pixels = stack
    run(path, tmp_path / "out.ome.tif", memory=MEMORY)
    wanted = Roughness().whole(pixels)
    with tifffile.TiffFile(path) as before, tifffile.TiffFile(tmp_path / "out.ome.tif") as after:
        assert after.is_bigtiff
        assert after.ome_metadata == before.ome_metadata
        (series,) = after.series
        assert series.axes == "ZCYX"
        assert np.array_equal(series.asarray(), wanted)
        means = wanted.reshape(3, 2, 200, 2, 300, 2).astype(float).mean((3, 5))
        assert np.abs(series.levels[1].asarray() - means).max() <= 0.5
        assert after.pages[0].tile == (128, 128)
    assert sorted(entry.name for entry in (tmp_path / "out.ome.tif.vnlem").iterdir()) == ["run.json"]


@pytest.mark.parametrize("layout", ["tiles", "strips"])
def test_a_grey_tiff_keeps_its_resolution(tmp_path, layout):
    pixels = noise((300, 500))
    options = {"tile": (64, 64)} if layout == "tiles" else {"rowsperstrip": 20}
    tifffile.imwrite(
        tmp_path / "in.tif", pixels, resolution=(20000, 20000), resolutionunit="CENTIMETER", **options
    )
    run(tmp_path / "in.tif", tmp_path / "out.tif", memory=MEMORY)
    with tifffile.TiffFile(tmp_path / "out.tif") as tif:
        assert np.array_equal(tif.asarray(), Roughness().whole(pixels))
        assert tif.pages[0].resolution == (20000, 20000)
        assert int(tif.pages[0].resolutionunit) == 3
    run(tmp_path / "in.tif", tmp_path / "part.tif", memory=MEMORY, region="y=100:200,x=33:444")
    assert np.array_equal(tifffile.imread(tmp_path / "part.tif"), Roughness().whole(pixels)[100:200, 33:444])


@pytest.mark.parametrize("name", ["out.tif", "out.ome.zarr"])
def test_colours_are_denoised_together(tmp_path, name):
    pixels = noise((300, 400, 3), np.uint8)
    tifffile.imwrite(tmp_path / "in.tif", pixels, photometric="rgb", tile=(128, 128))
    run(tmp_path / "in.tif", tmp_path / name, memory=MEMORY)
    planes = np.moveaxis(pixels, -1, 0)
    wanted = Roughness(axes=("c", "y", "x")).whole(planes)
    if name.endswith("zarr"):
        assert np.array_equal(zarr.open_array(tmp_path / name / "0")[:], wanted)
    else:
        assert np.array_equal(tifffile.imread(tmp_path / name), np.moveaxis(wanted, 0, -1))


def test_what_cannot_be_read_in_parts_is_said_in_one_sentence(tmp_path):
    tifffile.imwrite(
        tmp_path / "alpha.tif", noise((64, 64, 4), np.uint8), photometric="rgb", extrasamples=[2]
    )
    with pytest.raises(ValueError, match="has an alpha channel"):
        open_source(tmp_path / "alpha.tif")
    with tifffile.TiffWriter(tmp_path / "two.tif") as tif:
        tif.write(noise((64, 64)), metadata=None)
        tif.write(noise((32, 50)), metadata=None)
    with pytest.raises(ValueError, match=r"holds 2 images \(.*\); save the one"):
        open_source(tmp_path / "two.tif")


def test_damaged_metadata_of_a_tiff_file_are_told(tmp_path):
    source = tmp_path / "in.ome.tif"
    tifffile.imwrite(source, noise((3, 48, 48)), metadata={"axes": "TYX"}, photometric="minisblack")
    content = source.read_bytes()
    source.write_bytes(content.replace(b'DimensionOrder="', b"DimensionOrder=@", 1))
    with pytest.raises(ValueError, match=r"cannot read .*in.ome.tif: it is damaged \("):
        vnlem.denoise_large(source, tmp_path / "out.zarr", 180.0, method="nlm")
    assert [path.name for path in tmp_path.iterdir()] == ["in.ome.tif"]
