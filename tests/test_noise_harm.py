"""What the default must never do: mistake structure for noise, or miss noise."""

import harm
import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFont
from scipy import fft, ndimage
from skimage import data

import vnlem
from vnlem.noise import estimate_noise, levels
from vnlem.noise.pages import StackNoise

pytestmark = pytest.mark.slow

PHOTOGRAPHS = {
    "camera": data.camera(),
    "coins": data.coins(),
    "grass": data.grass()[:256, :256],
    "gravel": data.gravel()[:256, :256],
    "brick": data.brick()[:256, :256],
    "page": data.page(),
}


def level(image):
    model = estimate_noise(image)
    assert not model.is_correlated
    return float(np.sqrt(model.variance(np.asarray(image, float).mean())))


@pytest.mark.parametrize("sigma", [2, 5, 15])
@pytest.mark.parametrize("make", harm.PATTERNS, ids=lambda make: make.__name__)
def test_patterns_are_not_noise(make, sigma):
    found = level(harm.white(make(), sigma, 1)[1])
    # The zone plate has every frequency, white paper clips, and between tiny letters only the peak of
    # differences is seen.
    least = {
        harm.zone_plate: 0.75,
        harm.line_drawing: 0.75,
        harm.tiny_print: 0.65,
        harm.tiny_print_on_white: 0.65,
    }.get(make, 0.85)
    assert least * sigma < found < 1.1 * sigma


@pytest.mark.parametrize("size", [10, 11, 13])
@pytest.mark.parametrize("sigma", [2, 10])
def test_dense_letters_are_neither_noise_nor_impulses(size, sigma):
    page = Image.new("L", (256, 256), 250)
    rng = np.random.default_rng(size)
    for y in range(0, 256, size * 4 // 3):
        letters = "".join(rng.choice(list("abcdefghijklmnop ABC 0123,."), 90))
        ImageDraw.Draw(page).text((2, y), letters, fill=10, font=ImageFont.load_default(size))
    clean, noisy = harm.white(np.asarray(page, float), sigma, 1)
    result, info = vnlem.denoise(noisy, profile="fast", return_info=True)
    assert not info.noise.is_correlated
    assert not info.details.get("impulses")
    assert info.sigma < 1.1 * sigma or size < 11
    if sigma == 10:
        assert np.mean((result - clean) ** 2) < np.mean((noisy - clean) ** 2)


@pytest.mark.parametrize("sigma", [0, 2, 10])
@pytest.mark.filterwarnings("ignore:.*can hardly be seen:UserWarning")
def test_the_dots_of_a_dithered_picture_are_not_noise(sigma):
    dots = np.asarray(Image.fromarray(data.camera()[100:292, 100:292]).convert("1"), float)
    assert level(harm.white(255 * dots, sigma, 1)[1]) < 1.1 * sigma + 0.1


def test_grain_that_looks_like_noise_counts_only_as_much_as_the_flattest_blocks_allow():
    rng = np.random.default_rng(1)
    texture = ndimage.gaussian_filter(rng.normal(0, 1, (256, 256)), 0.5)
    strength = np.kron(8 * np.exp(1.5 * rng.normal(0, 1, (64, 64))), np.ones((4, 4)))
    grain = 60 + rng.normal(0, 7, (256, 256))
    clean = np.where(np.arange(256) < 60, grain, 170 + strength * texture / texture.std())
    blocks = levels.cut(clean + rng.normal(0, 1, clean.shape))
    assert levels.white_level(blocks) <= levels.by_flatness(blocks).high[0]


@pytest.mark.parametrize("make", harm.PATTERNS, ids=lambda make: make.__name__)
def test_clean_patterns_stay_as_they_are(make):
    clean = make()[:192, :192].astype(np.uint8)
    change = vnlem.denoise(clean, profile="fast").astype(float) - clean
    assert np.sqrt(np.mean(change**2)) < 0.5


@pytest.mark.parametrize("sigma", [2, 5, 10, 20])
@pytest.mark.parametrize("name", PHOTOGRAPHS)
def test_texture_does_not_raise_the_level_of_white_noise(name, sigma):
    found = level(harm.white(PHOTOGRAPHS[name].astype(float), sigma, 2)[1])
    # These photographs have grain already, up to a standard deviation of two; grass is all texture.
    assert (0.1 if name == "grass" else 0.75) * sigma < found < 1.1 * np.hypot(sigma, 2)


@pytest.mark.parametrize("name", PHOTOGRAPHS)
def test_photographs_with_little_noise_do_not_become_worse(name):
    clean, noisy = harm.white(PHOTOGRAPHS[name][:192, :192].astype(float), 2, 3)
    denoised = vnlem.denoise(noisy, profile="fast")
    assert harm.psnr(clean, denoised) > harm.psnr(clean, noisy) - 0.1


@pytest.mark.parametrize("case", list(harm.backgrounds())[:9], ids=lambda case: case.name)
def test_counts_on_an_empty_background_are_photons(case):
    _, noisy = case.make()
    camera = estimate_noise(noisy).gain
    assert camera is not None
    assert camera.gain == pytest.approx(case.told["gain"], rel=0.15)
    assert camera.offset == 0
    assert camera.read_noise == 0


@pytest.mark.parametrize("photons", [0.1, 0.3])
def test_next_to_no_photons_still_show_their_gain(photons):
    y, x = np.mgrid[:256, :256]
    mean = photons * (1 + (np.hypot(y - 128, x - 128) < 70))
    camera = estimate_noise(np.random.default_rng(1).poisson(mean)).gain
    assert camera is not None
    assert camera.gain == pytest.approx(1, rel=0.3)


def test_noise_that_is_clipped_at_white_is_not_halved():
    page = np.where(np.arange(256)[:, None] % 32 < 4, 40.0, 255.0) * np.ones(256)
    assert level(harm.white(page, 10, 4)[1]) == pytest.approx(10, rel=0.15)


def test_texture_with_the_spectrum_of_blur_is_not_correlated_noise():
    rng = np.random.default_rng(5)
    # Leaves: smooth at fine scales like correlated noise, but of varying strength.
    leaves = ndimage.gaussian_filter(rng.standard_normal((256, 256)), 1.0)
    strength = np.exp(15 * ndimage.gaussian_filter(rng.standard_normal((256, 256)), 8))
    model = estimate_noise(120 + 150 * leaves * strength / strength.mean())
    assert not model.is_correlated
    assert model.sigma < 3


@pytest.mark.parametrize(
    "image",
    [
        np.random.default_rng(6).integers(0, 2, (64, 64)),
        np.pad(np.random.default_rng(7).poisson(3.0, (20, 20)), 60).astype(np.uint16),
        np.random.default_rng(8).normal(0, 1, (32, 32)),
        np.full((40, 40), 7, np.uint8),
        np.indices((64, 64)).sum(axis=0) % 2,
        np.eye(128),
    ],
    ids=["two values", "mostly zeros", "all noise", "constant", "checkerboard", "diagonal"],
)
@pytest.mark.parametrize("caution", ["safe", "auto", "strong"])
@pytest.mark.filterwarnings("ignore:.*can hardly be seen:UserWarning")
def test_odd_images_get_a_model_without_words_of_numpys(image, caution):
    model = estimate_noise(image, caution=caution)
    assert np.isfinite(model.sigma)
    assert model.describe()


def test_caution_orders_what_is_taken_for_noise():
    noisy = harm.white(PHOTOGRAPHS["grass"].astype(float), 5, 9)[1]
    safe, usual, strong = (estimate_noise(noisy, caution=c).sigma for c in ("safe", "auto", "strong"))
    assert safe <= usual <= strong
    assert safe < strong
    results = [vnlem.denoise(noisy[:96, :96], caution=c, profile="fast") for c in ("safe", "strong")]
    assert not np.array_equal(*results)
    with pytest.raises(ValueError, match="caution must be one of"):
        vnlem.denoise(noisy, caution="none")


def test_differences_of_frames_show_the_noise_of_a_textured_movie():
    texture = data.gravel().astype(float)
    rng = np.random.default_rng(10)
    frames = [texture[k : k + 128, 2 * k : 2 * k + 128] + rng.normal(0, 4, (128, 128)) for k in range(6)]
    model = StackNoise.of([frames], None, "auto", {}, plain=False).model
    assert model.sigma == pytest.approx(4, rel=0.12)
    assert model.is_white


def test_frames_that_repeat_do_not_hide_the_noise():
    frame = 100 + np.random.default_rng(11).normal(0, 5, (96, 96))
    assert StackNoise.of([[frame] * 4], None, "auto", {}, plain=False).model.sigma == pytest.approx(
        5, rel=0.1
    )


def test_a_constant_page_beside_others_is_no_problem():
    pages = [np.full((40, 40), 7.0), 7 + np.random.default_rng(12).normal(0, 1e3, (40, 40))]
    assert np.isfinite(StackNoise.of([pages], None, "auto", {}, plain=False).model.sigma)


def test_a_class_of_brightness_without_texture_bounds_the_level_from_below():
    """A night sky above a town: the texture of the flattest blocks must not hide the noise of the sky."""
    rng = np.random.default_rng(0)
    count = 4000
    coefficients = rng.normal(0, 5, (levels.SIDE, levels.SIDE, count))
    brightness = np.where(np.arange(count) < 0.05 * count, 10.0, 100.0) + rng.uniform(0, 1, count)
    for high, middle in zip(levels.HIGH, levels.MIDDLE, strict=True):
        texture = np.where(brightness > 50, rng.lognormal(0, 0.45, count), 1.0)
        coefficients[high | middle] *= texture
    where = np.divmod(np.arange(count), 50)
    pixels = fft.idctn(coefficients, axes=(0, 1), norm="ortho").reshape(levels.SIDE, levels.SIDE, 80, 50)
    sums = levels.SUMS @ (coefficients**2).reshape(-1, count)
    sums[4:6] = np.sum(coefficients[:2, :2] ** 2, axis=(0, 1))  # what ranks the blocks
    blocks = levels.Blocks(
        pixels, np.ones(count), sums, brightness, *where, (80, 50), None, pixels[0, 0], (-np.inf, np.inf)
    )
    assert levels.by_flatness(blocks).unevenness[:2].mean() > levels.TEXTURED
    assert 0.85 * 25 < levels.white_level(blocks) < 1.1 * 25
