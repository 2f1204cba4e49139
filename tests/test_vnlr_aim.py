"""VNLR with aim="perception", for images that are looked at, and aim="flux", for those that are measured."""

import numpy as np
import pytest
from scipy import ndimage
from vnlr_scene import QUICK, noisy_scene, plan_of, scene

import vnlem


@pytest.mark.slow
def test_perception_agrees_with_the_reference_in_colour_and_with_a_sigma_map():
    clean = np.stack([scene(24, 28), scene(24, 28)[::-1], 100 + 0 * scene(24, 28)], axis=-1)
    sigma = np.full((24, 28), 20.0)
    sigma[:, 14:] = 5.0
    noisy = clean + sigma[..., None] * np.random.default_rng(1).standard_normal(clean.shape)
    options = {**QUICK, "aim": "perception", "channels": "joint", "channel_axis": -1}
    fast = vnlem.denoise_vnlr(noisy, sigma, **options)
    slow = vnlem.denoise_vnlr(noisy, sigma, engine="reference", **options)
    assert np.abs(fast - slow).max() < 1e-3 * 255


def test_perception_keeps_more_of_a_texture_and_leaves_flat_areas_flat():
    x = np.mgrid[:96, :192][1]
    texture = ndimage.gaussian_filter(np.random.default_rng(5).standard_normal((96, 192)), 0.8)
    clean = 120 + 40 * texture / texture.std() * (x < 96)
    noisy = clean + 40 * np.random.default_rng(6).standard_normal(clean.shape)
    plain = vnlem.denoise_vnlr(noisy, 40.0)
    for_the_eye = vnlem.denoise_vnlr(noisy, 40.0, aim="perception")
    left, right = np.s_[8:-8, 8:80], np.s_[8:-8, 112:-8]
    assert plain[left].std() < for_the_eye[left].std() < 1.02 * clean[left].std()
    assert for_the_eye[right].std() < plain[right].std()


def stars(height, width):
    y, x = np.mgrid[:height, :width]
    return 100 + 150 * np.exp(-((y % 14 - 7) ** 2 + (x % 14 - 7) ** 2) / 6.0)


def test_fluxes_agree_with_the_reference_with_a_sigma_map():
    sigma = np.full((28, 42), 5.0)
    sigma[:, 21:] = 8.0
    noisy = stars(*sigma.shape) + sigma * np.random.default_rng(1).standard_normal(sigma.shape)
    options = {**QUICK, "aim": "flux"}
    fast = vnlem.denoise_vnlr(noisy, sigma, **options)
    slow = vnlem.denoise_vnlr(noisy, sigma, engine="reference", **options)
    assert np.abs(fast - slow).max() < 1e-3 * 255
    assert np.abs(fast - vnlem.denoise_vnlr(noisy, sigma, **QUICK)).max() > 0.1


def test_the_aim_flux_leaves_an_image_without_peaks_alone():
    slope = np.linspace(0, 200, 64)
    noisy = slope + 20 * np.random.default_rng(3).standard_normal((64, 64))
    found = vnlem.denoise_vnlr(noisy, 20.0, aim="flux")
    np.testing.assert_allclose(found, vnlem.denoise_vnlr(noisy, 20.0), atol=1e-4)


@pytest.mark.parametrize("aim", ["perception", "flux"])
def test_parts_of_every_aim_are_the_bytes_of_the_whole(aim):
    from vnlem.execute import execute
    from vnlem.pipeline.regions import Region
    from vnlem.pipeline.tiles import grid

    size = (150, 230)
    image = stars(*size)[None] + 20 * np.random.default_rng(2).standard_normal((1, *size))
    plan = plan_of(image, profile="fast", patch_distance=4, passes=1, scales=1, aim=aim)
    whole = execute(plan, image)
    parts = list(grid(*size, 60, 70))
    cut = 0
    for part in parts:
        region = Region.around(size, part, plan.halo)
        cut += region.read != Region.whole(*size).read
        rows, columns = slice(region.read.top, region.read.bottom), slice(region.read.left, region.read.right)
        found = execute(plan, image[:, rows, columns], region, workers=2)
        assert found.tobytes() == whole[:, part.top : part.bottom, part.left : part.right].tobytes()
    assert cut > 0


def test_an_unknown_aim_is_told():
    with pytest.raises(ValueError, match="aim must be one of"):
        vnlem.denoise_vnlr(noisy_scene(), 20.0, aim="beauty")
