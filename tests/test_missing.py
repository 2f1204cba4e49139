"""Missing pixels: NaN, masks and masked arrays; protect and strength; complex images."""

import numpy as np
import pytest

import vnlem
from vnlem.estimate import missing as holes_of
from vnlem.execute import execute
from vnlem.noise.model import NoiseModel
from vnlem.pipeline.regions import Region
from vnlem.pipeline.tiles import Tile
from vnlem.plan import Sample, make_plan
from vnlem.registry import find_method
from vnlem.repair import with_repair

SIGMA = 20.0
FAST = {"profile": "fast", "workers": 1}


def scene(height=96, width=80):
    """Discs and stripes on a slope."""
    y, x = np.mgrid[:height, :width]
    return (
        60.0 + 0.5 * x + 80.0 * ((y - 30) ** 2 + (x - 40) ** 2 < 400) + 40.0 * ((x + y) // 12 % 2) * (y > 60)
    )


CLEAN = scene()
NOISY = CLEAN + np.random.default_rng(1).normal(0, SIGMA, CLEAN.shape)
HOLES = np.random.default_rng(2).random(CLEAN.shape) < 0.3
WITH_NAN = np.where(HOLES, np.nan, NOISY)


def rms(image, clean=CLEAN):
    return float(np.sqrt(np.mean((image - clean) ** 2)))


def test_nan_are_filled_almost_as_well_as_what_was_measured():
    whole, filled = (vnlem.denoise(image, SIGMA, **FAST) for image in (NOISY, WITH_NAN))
    assert np.isfinite(filled).all()
    assert rms(filled) < 1.25 * rms(whole)
    # Better than a mean of the neighbours, denoised.
    guess = holes_of.first_guess(np.where(HOLES, 0, NOISY)[None], HOLES[None], (100.0,))[0]
    assert rms(filled) < rms(vnlem.denoise(guess, SIGMA, **FAST))


@pytest.mark.parametrize("sigma", [SIGMA, None])
def test_nan_a_mask_and_a_masked_array_say_the_same(sigma):
    expected = vnlem.denoise(WITH_NAN, sigma, **FAST)
    junk = np.where(HOLES, 1e4, NOISY)
    np.testing.assert_array_equal(vnlem.denoise(junk, sigma, mask=HOLES, **FAST), expected)
    masked = vnlem.denoise(np.ma.array(junk, mask=HOLES), sigma, **FAST)
    assert isinstance(masked, np.ma.MaskedArray)
    np.testing.assert_array_equal(masked.data, expected)
    np.testing.assert_array_equal(masked.mask, HOLES)


def test_missing_pixels_stay_where_they_are_not_to_be_filled():
    kept = vnlem.denoise(WITH_NAN, SIGMA, fill=False, **FAST)
    np.testing.assert_array_equal(np.isnan(kept), HOLES)
    filled = vnlem.denoise(WITH_NAN, SIGMA, **FAST)
    np.testing.assert_array_equal(kept[~HOLES], filled[~HOLES])
    whole = np.clip(NOISY, 0, 255).astype(np.uint8)
    kept = vnlem.denoise(whole, SIGMA, mask=HOLES, fill=False, **FAST)
    assert kept.dtype == np.uint8
    np.testing.assert_array_equal(kept[HOLES], whole[HOLES])


def test_an_image_with_missing_pixels_keeps_its_order_of_bytes():
    image = np.arange(400, dtype=">u2").reshape(20, 20)
    assert vnlem.denoise(image, 3.0, mask=image == 7, profile="fast").dtype == image.dtype


@pytest.mark.parametrize("share", [0.05, 0.3])
def test_missing_pixels_do_not_fool_the_estimate_of_the_noise(share):
    holes = np.random.default_rng(3).random((128, 128)) < share
    noisy = scene(128, 128) + np.random.default_rng(4).normal(0, SIGMA, holes.shape)
    _, info = vnlem.denoise(np.where(holes, np.nan, noisy), return_info=True, **FAST)
    assert abs(info.noise.sigma / SIGMA - 1) < 0.1
    assert info.details["missing"] == holes.sum()


def test_a_large_hole_is_filled_without_touching_what_is_far_away():
    holes = np.zeros(CLEAN.shape, bool)
    holes[20:, :70] = True
    filled = vnlem.denoise(np.where(holes, np.nan, NOISY), SIGMA, **FAST)
    assert np.isfinite(filled).all()
    assert NOISY[~holes].min() - 50 < filled.min() <= filled.max() < NOISY[~holes].max() + 50


@pytest.mark.parametrize("noise", [NoiseModel.white(SIGMA), NoiseModel.camera(4.0)], ids=["white", "photons"])
@pytest.mark.parametrize("scales", [1, 2])
def test_a_part_has_the_bytes_of_the_whole(noise, scales):
    image = np.tile(scene(200, 300), (1, 4))[None] + np.random.default_rng(5).normal(0, SIGMA, (1, 200, 1200))
    image = image.clip(1)
    holes = np.random.default_rng(6).random(image.shape) < 0.01
    method = find_method("vnlr")

    def plan_with(other):
        params = method.with_defaults(
            {"profile": "fast", "passes": 1, "patch_distance": 6, "scales": scales} | other
        )
        return make_plan("vnlr", params, Sample(image, image.shape[1:]), noise, in_parts=True)

    plan = with_repair(plan_with({}), image, holes, lambda other: plan_with({}))
    assert len(plan.repair.guesses) == 1
    whole = execute(plan, image, missing=holes)
    write = Tile(40, 200, 560, 620)
    region = Region.around(image.shape[1:], write, plan.halo)
    assert not region.is_whole()
    read = region.read
    part = np.s_[:, read.top : read.bottom, read.left : read.right]
    found = execute(plan, image[part], region, missing=holes[part])
    np.testing.assert_array_equal(found, whole[:, 40:200, 560:620])


def test_a_dask_array_with_nan_gives_the_same():
    dask = pytest.importorskip("dask.array")
    expected = vnlem.denoise(WITH_NAN, method="nlm", fill=False, workers=1)
    lazy = vnlem.denoise(dask.from_array(WITH_NAN, chunks=24), method="nlm", fill=False, workers=1)
    np.testing.assert_array_equal(lazy.compute(scheduler="synchronous"), expected)


def test_a_dask_array_with_missing_and_hot_pixels_gives_the_same():
    dask = pytest.importorskip("dask.array")
    hot = np.where(np.random.default_rng(9).random(NOISY.shape) < 0.01, 400.0, NOISY)
    masked = np.random.default_rng(10).random(NOISY.shape) < 0.6
    told = {"method": "nlm", "workers": 1, "mask": masked, "impulses": True}
    expected, info = vnlem.denoise(hot, SIGMA, return_info=True, **told)
    assert info.details["impulses"] > 0
    lazy = vnlem.denoise(dask.from_array(hot, chunks=24), SIGMA, **told)
    np.testing.assert_array_equal(lazy.compute(scheduler="synchronous"), expected)


@pytest.mark.parametrize("dtype", [float, np.uint16])
def test_a_masked_dask_array_gives_the_same(dtype):
    dask = pytest.importorskip("dask.array")
    masked = np.ma.array(NOISY.astype(dtype), mask=HOLES)
    expected = vnlem.denoise(masked, SIGMA, method="nlm", workers=1)
    lazy = vnlem.denoise(dask.from_array(masked, chunks=24), SIGMA, method="nlm", workers=1)
    np.testing.assert_array_equal(lazy.compute(scheduler="synchronous"), expected)


def test_colours_may_miss_all_or_single_channels():
    noisy = CLEAN[..., None] * [1.0, 0.8, 0.6] + np.random.default_rng(7).normal(0, SIGMA, (*CLEAN.shape, 3))
    holes = np.random.default_rng(8).random(noisy.shape) < 0.1
    clean = CLEAN[..., None] * [1.0, 0.8, 0.6]
    whole = vnlem.denoise(noisy, SIGMA, channel_axis=-1, **FAST)
    filled = vnlem.denoise(np.where(holes, np.nan, noisy), SIGMA, channel_axis=-1, **FAST)
    assert rms(filled, clean) < 1.15 * rms(whole, clean)
    same = vnlem.denoise(noisy, SIGMA, channel_axis=-1, mask=HOLES, **FAST)
    assert rms(same, clean) < 1.3 * rms(whole, clean)


@pytest.mark.parametrize("method", ["nlm", "vnlem"])
def test_every_method_fills(method):
    result = vnlem.denoise(WITH_NAN[:40, :40], SIGMA, method=method, workers=1)
    assert np.isfinite(result).all()
    assert rms(result, CLEAN[:40, :40]) < rms(NOISY[:40, :40], CLEAN[:40, :40])


class TestStacks:
    MOVIE = np.stack([np.roll(CLEAN, k, axis=1) for k in range(4)])
    NOISE = np.random.default_rng(9).normal(0, SIGMA, MOVIE.shape)
    HOLES = np.random.default_rng(10).random(MOVIE.shape) < 0.2

    def test_nan_in_a_movie_are_filled(self):
        whole = vnlem.denoise(self.MOVIE + self.NOISE, SIGMA, axes="TYX", **FAST)
        given = np.where(self.HOLES, np.nan, self.MOVIE + self.NOISE)
        filled, info = vnlem.denoise(given, SIGMA, axes="TYX", return_info=True, **FAST)
        assert rms(filled, self.MOVIE) < 1.3 * rms(whole, self.MOVIE)
        assert info.details["missing"] == self.HOLES.sum()
        kept = vnlem.denoise(given, SIGMA, axes="TYX", fill=False, **FAST)
        np.testing.assert_array_equal(np.isnan(kept), self.HOLES)

    def test_a_map_of_one_page_is_that_of_all(self):
        noisy = self.MOVIE + self.NOISE
        one = vnlem.denoise(noisy, SIGMA, axes="TYX", mask=HOLES, **FAST)
        every = vnlem.denoise(noisy, SIGMA, axes="TYX", mask=np.tile(HOLES, (4, 1, 1)), **FAST)
        np.testing.assert_array_equal(one, every)

    def test_a_map_without_channels_is_that_of_all_channels(self):
        noisy = (self.MOVIE + self.NOISE)[:2, :40, :40, None] * [1.0, 0.8, 0.6]
        mask = self.HOLES[:2, :40, :40]
        one = vnlem.denoise(noisy, SIGMA, axes="TYXC", mask=mask, **FAST)
        every = vnlem.denoise(noisy, SIGMA, axes="TYXC", mask=mask[..., None].repeat(3, axis=3), **FAST)
        np.testing.assert_array_equal(one, every)

    def test_a_page_without_pixels_is_named(self):
        given = self.MOVIE.copy()
        given[2] = np.nan
        with pytest.raises(ValueError, match=r"all pixels of 1 of the stack's pages are NaN .* T=2"):
            vnlem.denoise(given, SIGMA, axes="TYX")

    @pytest.mark.parametrize("axes", ["TYX", None])
    def test_infinite_pixels_are_named(self, axes):
        given = self.MOVIE + self.NOISE
        given[1, 3, 7] = np.inf
        with pytest.raises(ValueError, match=r"page 2 of .* 1 NaN or infinite values, .* \(3, 7\)"):
            vnlem.denoise(given if axes else list(given), axes=axes)

    def test_strength_and_protect(self):
        noisy = self.MOVIE + self.NOISE
        half = vnlem.denoise(noisy, SIGMA, axes="TYX", strength=0.5, **FAST)
        full = vnlem.denoise(noisy, SIGMA, axes="TYX", **FAST)
        np.testing.assert_allclose(half, (noisy + full) / 2)
        kept = vnlem.denoise(noisy, SIGMA, axes="TYX", protect=HOLES, **FAST)
        np.testing.assert_array_equal(kept[:, HOLES], noisy[:, HOLES])

    def test_a_list_of_images_may_hold_nan(self):
        images = [WITH_NAN, NOISY[:60]]
        first, second = vnlem.denoise(images, SIGMA, fill=False, **FAST)
        np.testing.assert_array_equal(np.isnan(first), HOLES)
        assert np.isfinite(second).all()

    def test_holes_in_a_list_of_images_are_filled_as_in_an_array(self):
        given = np.stack([WITH_NAN, NOISY, NOISY])
        given[1:, 5::9, 4::11] = 400
        options = {"impulses": True, "return_info": True, **FAST}
        listed, info = vnlem.denoise(list(given), SIGMA, **options)
        expected, told = vnlem.denoise(given, SIGMA, axes="NYX", **options)
        np.testing.assert_array_equal(listed, expected)
        assert told.details["impulses"] > 100
        assert {name: info.details[name] for name in ("missing", "impulses")} == {
            name: told.details[name] for name in ("missing", "impulses")
        }

    def test_impulses_in_a_list_of_images_of_several_sizes_are_replaced(self):
        images = [NOISY.copy(), NOISY[:50, :70].copy()]
        for image in images:
            image[5::9, 4::11] = 400
        for found in vnlem.denoise(images, SIGMA, impulses=True, **FAST):
            assert found[5::9, 4::11].max() < 300


class TestStrengthAndProtect:
    def test_strength_mixes(self):
        full = vnlem.denoise(NOISY, SIGMA, **FAST)
        np.testing.assert_array_equal(vnlem.denoise(NOISY, SIGMA, strength=0, **FAST), NOISY)
        np.testing.assert_array_equal(vnlem.denoise(NOISY, SIGMA, strength=1.0, **FAST), full)
        np.testing.assert_allclose(
            vnlem.denoise(NOISY, SIGMA, strength=0.7, **FAST), NOISY + 0.7 * (full - NOISY)
        )

    def test_integers_are_mixed_before_they_are_rounded(self):
        whole = np.clip(NOISY, 0, 255).astype(np.uint8)
        mixed = vnlem.denoise(whole, SIGMA, strength=0.3, **FAST)
        floats = vnlem.denoise(whole.astype(float), SIGMA, strength=0.3, **FAST)
        np.testing.assert_array_equal(mixed, np.rint(floats).astype(np.uint8))

    def test_protected_pixels_stay(self):
        weights = np.zeros(CLEAN.shape)
        weights[:20], weights[20:40] = 1.0, 0.25
        kept = vnlem.denoise(NOISY, SIGMA, protect=weights, **FAST)
        full = vnlem.denoise(NOISY, SIGMA, **FAST)
        np.testing.assert_array_equal(kept[:20], NOISY[:20])
        np.testing.assert_allclose(kept[20:40], 0.25 * NOISY[20:40] + 0.75 * full[20:40])
        np.testing.assert_array_equal(kept[40:], full[40:])


class TestComplex:
    PHASE = np.exp(2j * np.linspace(0, 1, CLEAN.shape[1]))
    GOOD = CLEAN * PHASE
    rng = np.random.default_rng(11)
    BAD = GOOD + rng.normal(0, SIGMA, GOOD.shape) + 1j * rng.normal(0, SIGMA, GOOD.shape)

    @pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
    def test_both_parts_are_denoised_together(self, dtype):
        found = vnlem.denoise(self.BAD.astype(dtype), SIGMA, **FAST)
        assert found.dtype == dtype
        apart = vnlem.denoise(self.BAD.real, SIGMA, **FAST) + 1j * vnlem.denoise(self.BAD.imag, SIGMA, **FAST)
        # Both parts share groups: a small picture with an even phase gains nothing from it.
        assert np.std(found - self.GOOD) < 1.1 * np.std(apart - self.GOOD)
        assert np.abs(np.angle(found * np.conj(self.GOOD))).mean() < 0.1

    def test_the_noise_is_that_of_each_part(self):
        _, info = vnlem.denoise(self.BAD, return_info=True, **FAST)
        assert info.noise.is_white
        assert abs(info.sigma / SIGMA - 1) < 0.1

    def test_stacks_and_masks(self):
        movie = np.stack([self.BAD] * 3)
        found = vnlem.denoise(movie, SIGMA, axes="TYX", mask=HOLES, **FAST)
        assert found.shape == movie.shape
        assert found.dtype == movie.dtype
        assert np.std(found[1] - self.GOOD) < 0.5 * np.std(self.BAD - self.GOOD)

    @pytest.mark.parametrize(
        ("more", "match"),
        [
            ({"channel_axis": -1}, "leave channel_axis out"),
            ({"noise_model": "rician"}, "numpy.abs"),
            ({"dtype": "float32"}, "leave dtype out"),
        ],
    )
    def test_bad_arguments(self, more, match):
        with pytest.raises(ValueError, match=match):
            vnlem.denoise(self.BAD, **more)


@pytest.mark.parametrize(
    ("image", "more", "error", "match"),
    [
        (np.full((40, 40), np.nan), {}, ValueError, "all 1600 pixels of the image are NaN or masked"),
        (NOISY, {"mask": np.ones(NOISY.shape, bool)}, ValueError, "all 7680 pixels"),
        (
            NOISY,
            {"mask": np.zeros((3, 4), bool)},
            ValueError,
            r"mask must have the shape .* got shape \(3, 4\)",
        ),
        (NOISY, {"mask": NOISY}, TypeError, "mask must be True where a pixel is missing"),
        (NOISY, {"defects": "all"}, TypeError, "defects must be an array of numbers, got the path or text"),
        (NOISY, {"mask": {"a": 1}}, TypeError, "mask must be an array of numbers, got"),
        (NOISY, {"protect": [[1, 2], [3]]}, ValueError, "protect must be an array .* different lengths"),
        (NOISY, {"protect": 2 * np.ones(NOISY.shape)}, ValueError, "protect must lie between 0 .* and 1"),
        (NOISY, {"protect": np.ones((3, 4))}, ValueError, "protect must have the shape"),
        (NOISY[None], {"axes": "CYX", "protect": np.ones((3, 4))}, ValueError, "protect must have the shape"),
        (NOISY, {"strength": 1.5}, ValueError, r"strength must lie in \[0, 1\], got 1.5"),
        (NOISY, {"strength": "much"}, TypeError, "strength must be a number"),
        (NOISY, {"fill": 1}, TypeError, "fill must be True or False"),
        (NOISY, {"impulses": "many"}, ValueError, "impulses must be 'auto', True or False"),
        (NOISY, {"impulses": 3}, TypeError, "impulses must be 'auto', True or False"),
        (np.where(HOLES, np.inf, NOISY), {}, ValueError, "infinite"),
    ],
)
def test_bad_input_is_one_sentence(image, more, error, match):
    with pytest.raises(error, match=match):
        vnlem.denoise(image, SIGMA, **more)


def test_the_first_guess_needs_no_more_than_its_reach():
    rng = np.random.default_rng(12)
    planes = rng.normal(1e4, 1, (1, 100, 120))
    holes = rng.random(planes.shape) < 0.5
    holes[0, 40:60, 50:70] = True
    whole = holes_of.first_guess(planes, holes, (7.0,))
    by = holes_of.REACH
    part = holes_of.first_guess(planes[:, 40 - by : 60 + by], holes[:, 40 - by : 60 + by], (7.0,))
    np.testing.assert_array_equal(part[:, by : by + 20], whole[:, 40:60])
    assert abs(whole[holes] - 1e4).max() < 10
