"""Channels with one value on all pages, such as alpha or a black stain: unchanged, apart from the others."""

import numpy as np
import pytest
import tifffile
from stack_scene import colours

import vnlem
from vnlem.noise import NoiseModel
from vnlem.noise.curve import Curve
from vnlem.stack_plan import varied_channels

FAST = {"profile": "fast"}


def stained(value, dtype="uint8", place=1):
    """A noisy movie (T, Y, X, C) of two channels, and the same with a constant one between them."""
    noisy = np.clip(colours(4)[1][..., :2].round(), 0, 255).astype(dtype)
    return noisy, np.insert(noisy, place, value, axis=3)


def laid_out(stack, axes):
    """A stack (T, Y, X, C) in the order of other letters, of which one may replace T."""
    return stack.transpose(["TYXC".index(letter if letter in "YXC" else "T") for letter in axes])


def assert_as_without(result, fewer, value, axis, place=1):
    """The constant channel is unchanged, and the others have the bytes of the stack without it."""
    assert result.dtype == fewer.dtype
    assert (result.take(place, axis) == value).all()
    np.testing.assert_array_equal(np.delete(result, place, axis), fewer)


@pytest.mark.parametrize("value", [0, 255], ids=["black", "alpha"])
@pytest.mark.parametrize("channels", ["joint", "separate", "auto"])
@pytest.mark.parametrize("axes", ["TYXC", "ZYXC", "NYXC", "TCYX", "CZYX", "XYCN"])
def test_the_others_are_denoised_as_without_it(axes, channels, value):
    for dtype, sigma in (("uint8", 25), ("float64", None), ("float32", 25)):
        fewer, stack = (laid_out(pages, axes) for pages in stained(value, dtype))
        options = {"axes": axes, "channels": channels, **FAST}
        expected, without = vnlem.denoise(fewer, sigma, return_info=True, **options)
        result, info = vnlem.denoise(stack, sigma, return_info=True, **options)
        assert_as_without(result, expected, value, axes.index("C"))
        assert np.abs(expected.astype(float) - fewer).max() > 10
        assert info.details["channels"] == without.details["channels"]
        first, second = without.details["sigma_per_channel"]
        assert info.details["sigma_per_channel"] == [first, 0.0, second]
        assert (info.sigma, info.parameters) == (without.sigma, without.parameters)


@pytest.mark.parametrize("method", ["nlm", "nlem"])
def test_methods_without_common_channels_leave_it_too(method):
    fewer, stack = stained(0, "float64", place=0)
    options = {"axes": "TYXC", "gain": 2.0, "method": method, "patch_size": 3, "patch_distance": 2}
    result, info = vnlem.denoise(stack, return_info=True, **options)
    assert_as_without(result, vnlem.denoise(fewer, **options), 0, 3, place=0)
    assert [model.sigma > 0 for model in info.details["noise_models"]] == [False, True, True]


@pytest.mark.parametrize("channels", ["joint", "separate", "auto"])
def test_one_channel_beside_constant_ones_is_a_stack_of_that_channel(channels):
    noisy = stained(0)[0][..., 0]
    stack = np.stack([np.zeros_like(noisy), noisy, np.full_like(noisy, 255)], axis=1)
    result = vnlem.denoise(stack, axes="TCYX", channels=channels, **FAST)
    assert (result[:, 0] == 0).all()
    assert (result[:, 2] == 255).all()
    np.testing.assert_array_equal(result[:, 1], vnlem.denoise(noisy, axes="TYX", **FAST))


@pytest.mark.filterwarnings("ignore:sigma 25 accounts for all")
@pytest.mark.parametrize("dtype", ["uint8", "float64"])
@pytest.mark.parametrize("channels", ["joint", "separate", "auto"])
def test_a_stack_of_constant_channels_stays_as_it_is(channels, dtype):
    stack = np.zeros((4, 20, 24, 3), dtype)
    stack[..., 1:] = 255, 7
    for sigma in (None, 0.0, 25.0):
        result = vnlem.denoise(stack, sigma, axes="TYXC", channels=channels, **FAST)
        # Channels that are denoised together share their units, as those of an image do.
        np.testing.assert_allclose(result, stack, rtol=0, atol=1e-4)


@pytest.mark.filterwarnings("ignore:sigma 25 accounts for all")
def test_a_channel_that_changes_once_is_denoised():
    _, stack = stained(0, "float64")
    stack[2, 5, 6, 1] = 1
    assert varied_channels(stack, "TYXC", "auto") is None
    assert vnlem.denoise(stack, 25, axes="TYXC", channels="separate", **FAST)[2, 5, 6, 1] != 1


def test_noise_that_is_given_for_every_channel_is_that_of_the_others():
    fewer, stack = stained(0)
    levels = np.full(stack.shape, 25.0)
    levels[..., 1] = 0
    curves = tuple(Curve((0.0,), (sigma**2,)) for sigma in (20.0, 1.0, 30.0))
    model, own = NoiseModel(curves), NoiseModel(curves[::2])
    given = [([20, 0, 30], [20, 30]), (levels, levels[..., ::2])]
    for of_all, of_others in given:
        expected = vnlem.denoise(fewer, of_others, axes="TYXC", **FAST)
        assert_as_without(vnlem.denoise(stack, of_all, axes="TYXC", **FAST), expected, 0, 3)
    expected = vnlem.denoise(fewer, axes="TYXC", noise_model=own, channels="joint", **FAST)
    result = vnlem.denoise(stack, axes="TYXC", noise_model=model, channels="joint", **FAST)
    assert_as_without(result, expected, 0, 3)


def test_missing_pixels_of_the_others_are_filled_as_without_it():
    fewer, stack = stained(255, "float64")
    # Just enough for a second round, which a third channel without missing pixels would prevent.
    gone = np.random.default_rng(0).random(fewer.shape) < 0.025
    fewer[gone] = np.nan
    stack[..., ::2] = fewer
    expected = vnlem.denoise(fewer, 25, axes="TYXC", **FAST)
    assert_as_without(vnlem.denoise(stack, 25, axes="TYXC", **FAST), expected, 255, 3)


def test_missing_pixels_of_a_constant_channel_get_its_value():
    _, stack = stained(255, "float64")
    whole = vnlem.denoise(stack, 25, axes="TYXC", **FAST)
    stack[1, 3:5, 4:7, 1] = np.nan
    np.testing.assert_array_equal(vnlem.denoise(stack, 25, axes="TYXC", **FAST), whole)


def test_another_dtype_of_the_result():
    fewer, stack = stained(255)
    options = {"axes": "TYXC", "dtype": "float32", **FAST}
    expected = vnlem.denoise(fewer, 25, **options)
    assert_as_without(vnlem.denoise(stack, 25, **options), expected, 255, 3)


@pytest.mark.parametrize("channels", ["joint", "separate", "auto"])
@pytest.mark.parametrize("axes", ["TYXC", "TCYX"])
def test_a_stream_returns_it_as_it_came(axes, channels):
    fewer, stack = (laid_out(pages, axes) for pages in stained(255))
    options = {"axes": axes, "delay": 1, "channels": channels}
    stream, without = vnlem.Stream(**options), vnlem.Stream(**options)
    result, expected = (
        np.stack(list(one.denoise(pages))) for one, pages in ((stream, stack), (without, fewer))
    )
    assert_as_without(result, expected, 255, axes.index("C"))
    np.testing.assert_array_equal(result, vnlem.denoise(stack, profile="fast", **options))
    assert stream.info.details["sigma_per_channel"][1] == 0.0
    assert stream.info.sigma == without.info.sigma


@pytest.mark.filterwarnings("ignore:sigma 25 accounts for all")
def test_a_stream_decides_on_its_first_frames():
    _, stack = stained(0, "float64")
    stack[3, ..., 1] = np.random.default_rng(2).normal(50, 25, stack.shape[1:3])
    result = np.stack(list(vnlem.Stream("TYXC", 25, delay=1).denoise(stack)))
    np.testing.assert_array_equal(result[..., 1], stack[..., 1])
    np.testing.assert_array_equal(result, vnlem.denoise(stack, 25, axes="TYXC", delay=1, **FAST))
    assert (
        vnlem.denoise(stack, 25, axes="TYXC", channels="separate", **FAST)[3, ..., 1] != stack[3, ..., 1]
    ).any()


@pytest.mark.parametrize("kind", ["T", "Z"])
@pytest.mark.parametrize("channels", ["joint", "separate", "auto"])
@pytest.mark.parametrize("missing", [False, True], ids=["valid", "missing pixels"])
def test_a_large_stack_has_the_bytes_of_the_whole(tmp_path, kind, channels, missing):
    zarr = pytest.importorskip("zarr", reason="needs the extra 'large'")
    fewer, stack = stained(0, "float32" if missing else "uint16")
    if missing:
        stack[np.random.default_rng(0).random(stack.shape) < 0.02] = np.nan
    options = {"channels": channels, **FAST}
    whole = vnlem.denoise(stack, 25, axes=f"{kind}YXC", **options)
    target = tmp_path / "out.zarr"
    summary = vnlem.denoise_large(stack, target, 25, axes=f"{kind}YXC", memory="1GB", **options)
    assert summary.settings["denoised_channels"] == [0, 2]
    result = zarr.open_array(target / "0")[:]
    np.testing.assert_array_equal(result, np.moveaxis(whole, 3, result.shape.index(3)))
    assert (whole[..., 1] == 0).all()
    if not missing:
        np.testing.assert_array_equal(whole[..., ::2], vnlem.denoise(fewer, 25, axes=f"{kind}YXC", **options))


@pytest.mark.parametrize("memory", [(), ("--memory", "1GB")], ids=["page by page", "in parts"])
def test_a_black_stain_in_a_file_stays_black(cli, tmp_path, memory):
    if memory:
        pytest.importorskip("zarr", reason="needs the extra 'large'")
    fewer, stack = (np.moveaxis(pages, 3, 1) for pages in stained(0))
    for name, pages in (("fewer", fewer), ("stack", stack)):
        path = tmp_path / f"{name}.tif"
        tifffile.imwrite(path, pages, metadata={"axes": "TCYX"}, photometric="minisblack", imagej=True)
        status, _, err = cli("denoise", path, tmp_path / f"{name}-out.tif", "--profile", "fast", *memory)
        assert status == 0, err
    result, expected = (tifffile.imread(tmp_path / f"{name}-out.tif") for name in ("stack", "fewer"))
    assert_as_without(result, expected, 0, 1)
