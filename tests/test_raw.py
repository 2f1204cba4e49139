"""Camera raw: groups that keep the phase of a mosaic, denoising, files."""

from dataclasses import replace

import numpy as np
import pytest
import tifffile
from command_line import status_of
from cuda_on_cpu import COMPILER, Emulator
from raw_files import write_dng
from scipy.ndimage import gaussian_filter

import vnlem
from vnlem import io
from vnlem.io.demosaic import demosaic
from vnlem.methods.cuda import vnlr as cuda_vnlr
from vnlem.methods.vnlr_params import resolve
from vnlem.methods.vnlr_passes import halo, solve, solve_plainly
from vnlem.neighbours.groups import allowed_moves, symmetries
from vnlem.pipeline.mosaic import check_pattern, colour_numbers
from vnlem.pipeline.regions import Region
from vnlem.pipeline.run import Job
from vnlem.pipeline.tiles import Tile

BAYER = ("RG", "GB")
XTRANS = ("GBGGRG", "RGRBGB", "GBGGRG", "GRGGBG", "BGBRGR", "GRGGBG")


def scene(shape, pattern, seed=0):
    """A mosaic with a level for each colour, edges, and noise."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[: shape[0], : shape[1]]
    level = {"R": 0.3, "G": 0.0, "B": -0.4}
    cell = np.array([[level[colour] for colour in row] for row in pattern])
    offsets = cell[y % len(cell), x % len(cell)]
    return (np.sin(y / 5) * np.cos(x / 7) + offsets + rng.normal(0, 0.3, shape)).astype(np.float32)[None]


def job_of(mosaic, pattern, group="d4", **options):
    params = resolve(0.3, "fast", group, patch_distance=9, passes=2, **options)
    return Job(mosaic, 0.3, replace(params, pattern=pattern), 1, None)


@pytest.mark.parametrize("group", ["identity", "d4"])
@pytest.mark.parametrize("pattern", [BAYER, XTRANS], ids=["Bayer", "X-Trans"])
def test_groups_of_a_mosaic_are_those_of_the_reference(pattern, group):
    mosaic = scene((31, 27), pattern)
    options = {"patch_size": 5, "n_neighbors": 8, "step": 3}
    fast = solve(job_of(mosaic, pattern, group, **options))
    plain = solve_plainly(job_of(mosaic, pattern, group, **options))
    np.testing.assert_allclose(fast, plain, atol=2e-3)
    assert np.abs(fast - solve(job_of(mosaic, (), group, **options))).max() > 0.05


def test_every_allowed_move_lays_colours_on_their_like():
    for pattern in (BAYER, XTRANS):
        cell = len(pattern)
        colours = np.array([list(row) for row in pattern])
        tall = np.tile(colours, (6, 6))
        for size in (4, 5, 7):
            turns = symmetries("d4", size)
            moves = allowed_moves(pattern, turns)
            for place, shift in np.random.default_rng(0).integers(0, cell**2, (20, 2)):
                y, x = divmod(place, cell)
                down, across = divmod(shift, cell)
                own = tall[y : y + size, x : x + size].ravel()
                there = tall[y + down : y + down + size, x + across : x + across + size].ravel()
                same = [bool((there[turn] == own).all()) for turn in turns]
                assert same == [bool(moves[place, shift] >> g & 1) for g in range(8)]


@pytest.mark.skipif(COMPILER is None, reason="needs a C++ compiler")
@pytest.mark.parametrize("pattern", [BAYER, XTRANS], ids=["Bayer", "X-Trans"])
def test_groups_of_a_mosaic_on_a_gpu(pattern):
    mosaic = scene((37, 33), pattern)
    options = {"patch_size": 5, "n_neighbors": 8, "step": 3}
    expected = solve(job_of(mosaic, pattern, **options))
    found = cuda_vnlr.solve(job_of(mosaic, pattern, **options), Emulator())
    np.testing.assert_allclose(found, expected, atol=2e-4)


def test_a_part_of_a_mosaic_has_the_bytes_of_the_whole():
    mosaic = scene((151, 141), BAYER)
    options = {"patch_size": 5, "n_neighbors": 8, "step": 3}
    whole = solve(job_of(mosaic, BAYER, **options))
    part = job_of(mosaic, BAYER, **options)
    part.region = Region.around((151, 141), Tile(121, 151, 115, 141), halo(part.params))
    read = part.region.read
    assert read.top % 2 or read.left % 2
    part.pixels = np.ascontiguousarray(mosaic[:, read.top : read.bottom, read.left : read.right])
    rows, columns = part.region.written()
    assert (solve(part)[:, rows, columns] == whole[:, 121:, 115:]).all()


def noisy_mosaic(pattern, gain=4.0, read=6.0, shape=(128, 160), seed=0, black=64.0):
    """A sensor's numbers: a picture with edges, photon noise, read noise and a black level."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[: shape[0], : shape[1]]
    bright = 300 + 200 * np.sin(y / 17) * np.cos(x / 13) + 150 * ((x // 40 + y // 32) % 2)
    level = {"R": 0.6, "G": 1.0, "B": 0.4}
    cell = np.array([[level[colour] for colour in row] for row in pattern])
    clean = bright * cell[y % len(cell), x % len(cell)]
    noisy = black + gain * rng.poisson(clean / gain) + rng.normal(0, read, shape)
    return clean + black, np.clip(np.rint(noisy), 0, 65535).astype(np.uint16)


def rms(image, clean):
    return float(np.sqrt(np.mean((image.astype(float) - clean) ** 2)))


@pytest.mark.parametrize("pattern", ["RGGB", "GRBG", "X-Trans"])
def test_most_of_the_noise_of_a_mosaic_goes(pattern):
    clean, noisy = noisy_mosaic(check_pattern(pattern))
    told = vnlem.denoise_raw(noisy, pattern, black_level=64, gain=4.0, read_noise=6.0, profile="fast")
    assert told.dtype == noisy.dtype
    assert rms(told, clean) < 0.4 * rms(noisy, clean)
    estimated, info = vnlem.denoise_raw(noisy, pattern, profile="fast", return_info=True)
    assert rms(estimated, clean) < 0.5 * rms(noisy, clean)
    assert set(info.details["noise"]) == {"R", "G", "B"}


def test_colours_may_have_gains_of_their_own():
    _, noisy = noisy_mosaic(BAYER, gain=2.0, read=0.0, black=0.0)
    scaled = noisy.astype(float)
    scaled[1::2, 1::2] *= 3
    gains = {"R": 2.0, "G": 2.0, "B": 6.0}
    expected = vnlem.denoise_raw(noisy.astype(float), "RGGB", gain=2.0, profile="fast")
    found = vnlem.denoise_raw(scaled, "RGGB", gain=gains, profile="fast")
    found[1::2, 1::2] /= 3
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=0.01)
    by_cell = vnlem.denoise_raw(scaled, "RGGB", gain=[[2.0, 2.0], [2.0, 6.0]], profile="fast")
    by_cell[1::2, 1::2] /= 3
    np.testing.assert_array_equal(by_cell, found)


def test_saturated_pixels_stay_and_nothing_becomes_brighter():
    _, noisy = noisy_mosaic(BAYER)
    noisy = np.minimum(noisy, 500)
    found = vnlem.denoise_raw(noisy, "RGGB", black_level=64, white_level=500, gain=4.0, profile="fast")
    assert (found[noisy == 500] == 500).all()
    assert found.max() == 500


@pytest.mark.parametrize("pattern", ["GBRG", "X-Trans"])
def test_a_colour_image_is_nearer_to_the_truth_than_a_demosaicked_mosaic(pattern):
    rows = check_pattern(pattern)
    y, x = np.mgrid[:96, :96]
    edges = 150 + 100 * np.sin(y / 9) * np.cos(x / 7) + 150 * ((x // 12 + y // 10) % 2)
    clean = edges[..., None] * [0.7, 1.0, 0.5] + 64
    which, names = colour_numbers(rows, (96, 96))
    order = np.array(["RGB".index(name) for name in names])[which]
    mosaic = np.take_along_axis(clean, order[..., None], 2)[..., 0]
    noisy = 64 + 4.0 * np.random.default_rng(0).poisson((mosaic - 64) / 4)
    told = {"black_level": 64, "gain": 4.0, "profile": "fast"}
    colours = vnlem.denoise_raw(noisy, pattern, colour=True, **told)
    assert colours.shape == (96, 96, 3)
    demosaicked = demosaic(vnlem.denoise_raw(noisy, pattern, **told) - 64, rows) + 64
    assert rms(colours, clean) < 0.8 * rms(demosaicked, clean)


def test_saturated_pixels_of_a_colour_image_stay_in_their_colour():
    _, noisy = noisy_mosaic(BAYER)
    noisy = np.minimum(noisy, 500)
    found = vnlem.denoise_raw(
        noisy, "RGGB", black_level=64, white_level=500, gain=4.0, profile="fast", colour=True
    )
    which, _ = colour_numbers(BAYER, noisy.shape)
    own = np.take_along_axis(found, which[..., None], 2)[..., 0]
    assert (own[noisy == 500] == 500).all()
    assert found.max() == 500


def test_the_bytes_do_not_depend_on_the_workers():
    _, noisy = noisy_mosaic(BAYER)
    one, two = (
        vnlem.denoise_raw(noisy, "RGGB", gain=4.0, profile="fast", workers=workers) for workers in (1, 2)
    )
    assert (one == two).all()


def test_texture_finer_than_a_cell_is_not_taken_for_noise():
    rng = np.random.default_rng(0)
    texture = gaussian_filter(rng.standard_normal((256, 256)), 1.0)
    brightness = np.linspace(150, 900, 256) * (1 + 0.12 * texture / texture.std())
    which, _ = colour_numbers(BAYER, brightness.shape)
    clean = brightness * np.array([0.7, 1.0, 0.8])[which]
    noisy = 4.0 * rng.poisson(clean / 4.0) + rng.normal(0, 6.0, clean.shape)
    _, info = vnlem.denoise_raw(noisy, BAYER, profile="fast", return_info=True)
    levels = np.array([[200.0, 450.0, 800.0]])
    found = info.details["noise"]["G"].variance(levels, 0)
    np.testing.assert_allclose(np.sqrt(found / (4 * levels + 36)), 1, atol=0.08)


def test_a_mosaic_without_noise_is_left_alone():
    flat = np.tile(np.array([[100, 200], [200, 50]], np.uint16), (32, 32))
    assert (vnlem.denoise_raw(flat, "RGGB") == flat).all()
    colours = vnlem.denoise_raw(flat, "RGGB", colour=True)
    assert colours.dtype == np.uint16
    assert (colours == [100, 200, 50]).all()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"pattern": "RGG"}, "pattern must be"),
        ({"pattern": ("RGB", "GBR")}, "pattern must be"),
        ({"pattern": None}, "pattern must be"),
        ({"pattern": (3, 4)}, "pattern must be"),
        ({"black_level": [1, 2, 3]}, "black_level must be a number"),
        ({"black_level": 1e20}, "black_level must not be above the brightest pixel"),
        ({"gain": {"R": 1.0}}, "gain must have a number for each of R, G, B"),
        ({"gain": -1.0}, "gain must be at least 0"),
        ({"read_noise": 3.0}, "read_noise needs gain"),
        ({"mosaic_image": np.zeros((4, 4))}, "at least 16x16"),
        ({"mosaic_image": np.zeros((40, 40, 3))}, "dimensions"),
        ({"profile": "slow"}, "profile"),
        ({"pattern": "RGEB", "colour": True}, "needs red, green and blue pixels"),
    ],
)
def test_wrong_arguments_are_named(change, words):
    noisy = np.random.default_rng(0).normal(100, 10, (40, 40))
    given = {"mosaic_image": noisy, "pattern": "RGGB"} | change
    with pytest.raises(ValueError, match=words):
        vnlem.denoise_raw(**given)


def pixels_of(path):
    rawpy = pytest.importorskip("rawpy")
    with rawpy.imread(str(path)) as raw:
        return np.array(raw.raw_image_visible)


@pytest.mark.parametrize(
    "options", [{}, {"tile": (64, 48)}, {"rowsperstrip": 16}], ids=["one", "tiles", "strips"]
)
@pytest.mark.parametrize("pattern", [BAYER, ("GB", "RG"), XTRANS], ids=["RGGB", "GBRG", "X-Trans"])
def test_a_dng_keeps_everything_but_its_pixels(tmp_path, pattern, options):
    _, noisy = noisy_mosaic(pattern)
    write_dng(tmp_path / "in.dng", noisy, pattern, more=[(315, 2, 0, "someone", True)], **options)
    assert (pixels_of(tmp_path / "in.dng") == noisy).all()
    picture = io.read(tmp_path / "in.dng")
    mosaic = picture.metadata.native
    assert mosaic.pattern == pattern
    assert np.unique(mosaic.black).tolist() == [64.0]
    assert mosaic.white == 4095.0
    np.testing.assert_allclose(mosaic.balance, (2.0, 1.0, 1 / 0.6), rtol=1e-4)
    other = noisy[::-1, ::-1].copy()
    io.write(tmp_path / "out.dng", replace(picture, pixels=other))
    assert (pixels_of(tmp_path / "out.dng") == other).all()
    with tifffile.TiffFile(tmp_path / "in.dng") as before, tifffile.TiffFile(tmp_path / "out.dng") as after:
        moved = {273, 278, 279, 324, 325}
        tags = [
            {tag.code: tag.value for tag in tif.pages[0].tags if tag.code not in moved}
            for tif in (before, after)
        ]
    assert tags[0] == tags[1]
    assert tags[1][315] == "someone"


def test_other_raw_files_become_a_new_dng(tmp_path):
    _, noisy = noisy_mosaic(XTRANS)
    write_dng(tmp_path / "in.dng", noisy, XTRANS)
    picture = io.read(tmp_path / "in.dng")
    mosaic = picture.metadata.native
    from_other = replace(mosaic, source=tmp_path / "in.raf")
    io.write(tmp_path / "new.dng", replace(picture, metadata=replace(picture.metadata, native=from_other)))
    again = io.read(tmp_path / "new.dng").metadata.native
    assert (pixels_of(tmp_path / "new.dng") == noisy).all()
    assert (again.pattern, again.black, again.white) == (mosaic.pattern, mosaic.black, mosaic.white)
    np.testing.assert_allclose(again.balance, mosaic.balance, rtol=1e-4)
    np.testing.assert_allclose(again.from_xyz, mosaic.from_xyz, atol=1e-3)


def test_the_command_denoises_a_dng_and_develops_one(tmp_path, capsys):
    clean, noisy = noisy_mosaic(BAYER)
    write_dng(tmp_path / "in.dng", noisy, BAYER, noise=(4.0 / 4031, (6.0 / 4031) ** 2))
    assert status_of("denoise", tmp_path / "in.dng", tmp_path / "out.dng", "--profile", "fast") == 0
    assert "gain 4, offset 64, read noise 6 in green (from the file)" in capsys.readouterr().out
    assert rms(pixels_of(tmp_path / "out.dng"), clean) < 0.4 * rms(noisy, clean)
    assert status_of("denoise", tmp_path / "in.dng", tmp_path / "out.tif", "--profile", "fast") == 0
    developed = io.read(tmp_path / "out.tif")
    assert developed.pixels.shape == (128, 160, 3)
    assert developed.pixels.dtype == np.uint16
    assert developed.pixels.std() > 1000
    assert status_of("denoise", tmp_path / "in.dng", tmp_path / "a.dng", "--sigma", "3") == 2
    assert "--sigma is not for camera raw files" in capsys.readouterr().err
    assert status_of("info", tmp_path / "in.dng") == 0
    assert status_of("denoise", tmp_path / "in.dng", tmp_path / "out.dng") == 2
    assert "OUT exists" in capsys.readouterr().err


def test_a_folder_of_raw_files(tmp_path):
    (tmp_path / "in").mkdir()
    for number in range(2):
        write_dng(tmp_path / "in" / f"{number}.dng", noisy_mosaic(BAYER, seed=number)[1], BAYER)
    (tmp_path / "in" / "bad.dng").write_bytes(b"II*\0 nothing of use")
    assert (
        status_of("denoise", tmp_path / "in", tmp_path / "out", "--pattern", "*.dng", "--profile", "fast")
        == 2
    )
    assert sorted(path.name for path in (tmp_path / "out").glob("*.dng")) == ["0.dng", "1.dng"]


def test_files_that_are_no_mosaic_are_told_in_one_sentence(tmp_path):
    colour = np.random.default_rng(0).integers(0, 4000, (64, 64, 3)).astype(np.uint16)
    tifffile.imwrite(
        tmp_path / "linear.dng",
        colour,
        photometric=34892,
        metadata=None,
        extratags=[(50706, 1, 4, b"\1\4\0\0", True)],
    )
    with pytest.raises(ValueError, match=r"holds no mosaic|does not know"):
        io.read(tmp_path / "linear.dng")
    tifffile.imwrite(tmp_path / "photo.nef", colour)
    with pytest.raises(ValueError, match=r"cannot read .*photo.nef"):
        io.read(tmp_path / "photo.nef")
    with pytest.raises(ValueError, match="a DNG file holds the mosaic"):
        io.write(tmp_path / "grey.dng", np.zeros((20, 20), np.uint16))
    with pytest.raises(ValueError, match=r"camera raw files .* are read and not written"):
        io.write(tmp_path / "grey.cr2", np.zeros((20, 20), np.uint16))


def test_without_rawpy_the_extra_is_named(tmp_path, monkeypatch):
    write_dng(tmp_path / "in.dng", noisy_mosaic(BAYER)[1], BAYER)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"pip install 'vnlem\[raw\]'"):
        io.read(tmp_path / "in.dng")


def test_demosaicking_finds_smooth_colours():
    y, x = np.mgrid[:64, :64]
    clean = np.stack([100 + x, 80 + y / 2, 150 - x / 2 + y], axis=-1)
    for pattern, least in ((BAYER, 0.01), (("GR", "BG"), 0.01), (XTRANS, 0.5)):
        cell = np.array([["RGB".index(colour) for colour in row] for row in pattern])
        which = cell[y % len(cell), x % len(cell)]
        found = demosaic(np.take_along_axis(clean, which[..., None], 2)[..., 0], pattern)
        assert np.abs(found - clean)[6:-6, 6:-6].max() < least
