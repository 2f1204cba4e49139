"""Offsets of rows and columns: found, removed, reported; and no facade is mistaken for them."""

import warnings

import numpy as np
import pytest
from skimage import data

import vnlem
from vnlem.noise import NoiseModel
from vnlem.noise.lines import differ_plainly, find_lines, offsets_of_columns


def psnr(clean, image):
    return 10 * np.log10(255**2 / np.mean((image - clean) ** 2))


@pytest.fixture(scope="module")
def camera():
    return data.camera()[128:384, 128:384].astype(float)


def noisy(clean, sigma, rows=0.0, columns=0.0, seed=0):
    rng = np.random.default_rng(seed)
    offsets = rng.normal(0, rows, (clean.shape[0], 1)), rng.normal(0, columns, (1, clean.shape[1]))
    return clean + rng.normal(0, sigma, clean.shape) + offsets[0] + offsets[1], *offsets


def test_offsets_of_rows_and_columns_are_found(camera):
    image, rows, columns = noisy(camera, 10, 6, 8)
    found = find_lines(image[None])
    assert np.std(found.rows[0] - rows) < 0.4 * 6
    assert np.std(found.columns[0] - columns) < 0.4 * 8
    assert abs(found.rows.mean()) < 1e-4  # the brightness stays


def test_rows_alone_leave_the_columns_alone(camera):
    found = find_lines(noisy(camera, 10, rows=8)[0][None])
    assert found.columns is None
    assert found.rows.shape == (1, 256, 1)


def test_gains_of_columns_are_found_and_evened_out(camera):
    rng = np.random.default_rng(3)
    gains = 1 + rng.normal(0, 0.06, (1, 256))
    white = rng.normal(0, 5, camera.shape)
    found = find_lines((gains * camera + white)[None])
    assert found.rows is None
    assert found.row_gains is None
    assert np.std(found.column_gains[0] - gains) < 0.6 * 0.06
    np.testing.assert_allclose(found.put_back(found.enter(camera[None])), camera[None])
    assert "% (standard deviation of their gains)" in found.describe()[-1]
    rest = found.enter((gains * camera + white)[None])[0] - camera - white
    assert np.std(rest) < 0.5 * np.std((gains - 1) * camera)


def test_offsets_are_no_gains(camera):
    found = find_lines(noisy(camera, 10, 6, 8)[0][None])
    assert found.row_gains is None
    assert found.column_gains is None


def facade(side=256):
    """Windows in rows and columns, pillars over the full height, an even sky: all structure."""
    y, x = np.mgrid[:side, :side]
    return 120 + 40 * ((x // 16) % 2) + 25 * ((y // 24) % 2) * ((x // 16) % 2) - 50 * (x > 180)


@pytest.mark.parametrize("sigma", [0, 2, 10, 20])
@pytest.mark.parametrize(
    "make", [facade, lambda: data.brick()[:256, :256].astype(float)], ids=["facade", "brick"]
)
def test_structure_is_not_taken_for_lines(make, sigma):
    image = noisy(make(), sigma)[0]
    assert find_lines(np.round(image)[None]) is None
    assert not differ_plainly(image)


@pytest.mark.parametrize("period", [2, 3, 7])
def test_stripes_that_repeat_are_a_pattern(period):
    stripes = np.tile(np.random.default_rng(1).normal(0, 8, period), 256)[:256]
    assert not differ_plainly(stripes + np.random.default_rng(0).normal(0, 4, (256, 256)))


def test_asked_for_lines_where_there_are_none_little_is_changed(camera):
    image = noisy(camera, 10)[0]
    assert np.std(offsets_of_columns(image)) < 0.7
    assert np.std(offsets_of_columns(camera)) < 0.7
    np.testing.assert_array_equal(offsets_of_columns(np.full((64, 64), 3.0)), 0)


@pytest.mark.slow
def test_denoise_removes_plain_lines_by_itself(camera):
    image = noisy(camera, 10, columns=8)[0]
    result, info = vnlem.denoise(image, profile="fast", return_info=True)
    assert info.noise.kind == "white with lines"
    assert info.noise.sigma == pytest.approx(10, rel=0.1)
    assert info.noise_check.verdict == "yes"
    assert psnr(camera, result) > psnr(camera, vnlem.denoise(image, lines=False, profile="fast")) + 2
    without = vnlem.denoise(noisy(camera, 10)[0], profile="fast")
    assert psnr(camera, result) > psnr(camera, without) - 1.5


def test_a_given_sigma_is_left_alone_unless_lines_are_asked_for(camera):
    image = noisy(camera, 10, columns=8)[0]
    given = vnlem.denoise(image, 10.0, noise_model="gaussian", profile="fast")
    np.testing.assert_array_equal(
        given, vnlem.denoise(image, 10.0, noise_model="gaussian", lines=False, profile="fast")
    )
    asked = vnlem.denoise(image, 10.0, noise_model="gaussian", lines=True, profile="fast")
    assert psnr(camera, asked) > psnr(camera, given) + 1


@pytest.mark.slow
def test_every_page_of_a_stack_has_lines_of_its_own(camera):
    pages = [noisy(camera[:160, :160], 10, rows=8, seed=seed)[0] for seed in range(4)]
    clean = np.stack([camera[:160, :160]] * 4)
    result, info = vnlem.denoise(np.stack(pages), axes="TYX", profile="fast", return_info=True)
    assert info.noise.kind == "white with lines"
    assert info.noise_check.verdict == "yes"
    plain = vnlem.denoise(np.stack(pages), axes="TYX", profile="fast", lines=False, noise_model="gaussian")
    assert psnr(clean, result) > psnr(clean, plain) + 1
    found = vnlem.denoise(np.stack(pages), axes="TYX", profile="fast", lines=False)
    assert psnr(clean, result) > psnr(clean, found)


@pytest.mark.slow
def test_channels_have_lines_of_their_own(camera):
    colours = np.stack([noisy(camera, 8, columns=6, seed=seed)[0] for seed in range(3)], axis=-1)
    model = vnlem.estimate_noise(colours, -1)
    assert model.maps.columns.shape == (3, 1, 256)


def test_a_model_with_lines_is_saved_drawn_and_put_back(camera, tmp_path):
    image, _, columns = noisy(camera, 10, columns=8)
    model = vnlem.estimate_noise(image)
    model.save(tmp_path / "model.json")
    loaded = NoiseModel.load(tmp_path / "model.json")
    assert loaded == model
    assert loaded != vnlem.estimate_noise(noisy(camera, 10, columns=8, seed=1)[0])
    assert "columns differ by" in model.describe()
    stable = model.stabilise(image[None])
    assert abs(model.unstabilise(stable) - (image - model.maps.columns)).max() < 1e-9
    from vnlem.noise.simulate import add_noise

    drawn = add_noise(model, camera[None], np.random.default_rng(0))[0]
    assert np.corrcoef((drawn - camera).mean(axis=0), columns[0])[0, 1] > 0.9
    pytest.importorskip("matplotlib")
    model.draw(tmp_path / "model.png", image)
    assert (tmp_path / "model.png").stat().st_size > 1000


def test_workers_do_not_change_it(camera):
    image = noisy(camera, 10, columns=8)[0]
    one, two = (vnlem.denoise(image, profile="fast", workers=n) for n in (1, 2))
    np.testing.assert_array_equal(one, two)


def test_what_cannot_be_said_in_one_sentence_each(camera, tmp_path):
    with pytest.raises(ValueError, match="lines must be True, False or 'auto', got 'rows'"):
        vnlem.denoise(camera, lines="rows")
    with pytest.raises(ValueError, match="need whole images"):
        vnlem.denoise_large(camera, tmp_path / "out.zarr", lines=True)
    with pytest.raises(ValueError, match="sigma is a map"):
        vnlem.denoise(camera, np.full(camera.shape, 5.0), lines=True)
    model = vnlem.estimate_noise(noisy(camera, 10, columns=8)[0])
    with pytest.raises(ValueError, match="are for an image of anyx256 pixels, and the image has 100x100"):
        vnlem.denoise(camera[:100, :100], noise_model=model)
    vnlem.denoise(camera[:100], noise_model=model, profile="fast")  # the same columns


@pytest.mark.slow
def test_the_command_line_says_and_removes_lines(cli, camera, tmp_path):
    np.save(tmp_path / "in.npy", noisy(camera, 10, rows=6)[0].astype(np.float32))
    status, out, _ = cli("noise", tmp_path / "in.npy")
    assert status == 0
    assert "rows differ by" in out
    assert "--no-lines" in out
    assert (
        cli("denoise", tmp_path / "in.npy", tmp_path / "out.npy", "--profile", "fast", "--no-lines")[0] == 0
    )
    expected = vnlem.denoise(np.load(tmp_path / "in.npy"), lines=False, profile="fast")
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), expected)


@pytest.mark.parametrize("tile", [(8, 8), (4, 16)])
def test_a_picture_that_repeats_exactly_has_some_lines(tile):
    rng = np.random.default_rng(0)
    picture = np.tile(rng.uniform(0, 255, tile), (128 // tile[0], 128 // tile[1]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # sigma does not suit the picture
        result = vnlem.denoise(picture, 10.0, lines=True, profile="fast")
    assert np.isfinite(result).all()
