"""Choices become arguments, Python and a command that say the same."""

import numpy as np
import pytest

import vnlem
from vnlem.napari.as_code import as_command, as_python
from vnlem.napari.axes import guess_axes
from vnlem.napari.pages import Pages, denoise_pages
from vnlem.napari.settings import WITH_PROFILES, Settings
from vnlem.napari.stacks import denoise_stack
from vnlem.napari.words import PROFILES, ROTATIONS
from vnlem.pipeline.axes import check_axes
from vnlem.registry import METHODS, find_method


def test_the_methods_with_profiles_are_those_that_take_one() -> None:
    takers = [name for name in METHODS if "profile" in find_method(name).parameters]
    assert sorted(takers) == sorted(WITH_PROFILES)


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("group", ROTATIONS)
def test_every_profile_and_group_is_known_to_the_method(profile: str, group: str) -> None:
    flat = np.zeros((16, 16))
    chosen = Settings(profile=profile, group=group, noise="gaussian").method_arguments()
    assert vnlem.denoise(flat, 0.0, **chosen).shape == flat.shape


def test_the_python_that_is_copied_gives_the_same_pixels() -> None:
    settings = Settings(method="nlm", noise="gaussian", sigma=20.0)
    picture = np.random.default_rng(0).normal(100, 20, (32, 32)) + 90.0 * (np.arange(32) > 15)
    names = {"picture": picture}
    exec(as_python(settings, "picture", "YX"), names)
    expected = vnlem.denoise(picture, 20.0, method="nlm")
    assert np.array_equal(names["result"], expected)


def test_a_gain_that_is_estimated_takes_no_offset_along() -> None:
    chosen = Settings(noise="poisson-gaussian", offset=3.0).noise_arguments()
    assert chosen == {"noise_model": "poisson-gaussian"}


def test_colours_are_named_in_python() -> None:
    assert "channel_axis=-1" in as_python(Settings(), "image", "YXC", 3)
    assert "np.moveaxis(image, 2, 0)" in as_python(Settings(), "image", "YXC")
    assert "axes='TYX'" in as_python(Settings(), "image", "TYX")


@pytest.mark.parametrize(
    ("shape", "rgb", "labels", "expected"),
    [
        ((64, 64), False, (), "YX"),
        ((64, 64, 3), True, (), "YXC"),
        ((9, 64, 64), False, ("axis -3", "axis -2", "axis -1"), "TYX"),
        ((9, 64, 64), False, ("z", "y", "x"), "ZYX"),
        ((2, 9, 64, 64), False, (), "CZYX"),
        ((20, 9, 64, 64), False, (), "TZYX"),
        ((20, 3, 9, 64, 64), False, (), "TCZYX"),
        ((20, 64, 64, 3), True, ("time", "y", "x"), "TYXC"),
        ((9, 64, 64), False, ("z", "z", "x"), "TYX"),
    ],
)
def test_axes_are_recognised(
    shape: tuple[int, ...], rgb: bool, labels: tuple[str, ...], expected: str
) -> None:
    assert guess_axes(shape, rgb=rgb, labels=labels) == expected


@pytest.mark.parametrize(
    ("axes", "words"),
    [("QYX", "letter 'Q'"), ("YYX", "'Y' twice"), ("YX", "2 axes"), ("TZC", "names no Y")],
)
def test_axes_that_do_not_fit_are_refused_in_one_sentence(axes: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        check_axes(axes, (4, 64, 64))


def test_strength_goes_to_the_library_only_where_it_is_less_than_one() -> None:
    assert "strength" not in Settings().arguments()
    weak = Settings(method="nlm", noise="gaussian", sigma=20.0, strength=0.25)
    noisy = np.random.default_rng(0).normal(100, 20, (24, 24))
    full = vnlem.denoise(noisy, 20.0, method="nlm")
    np.testing.assert_allclose(vnlem.denoise(noisy, **weak.arguments()), noisy + 0.25 * (full - noisy))


def test_lines_and_impulses_go_to_the_library_as_they_are_chosen() -> None:
    assert not {"lines", "impulses"} & set(Settings().arguments())
    chosen = Settings(method="nlm", noise="gaussian", sigma=20.0, lines="no", impulses="yes")
    assert chosen.arguments() == {"method": "nlm", "lines": False, "impulses": True, "sigma": 20.0}
    assert "--no-lines --impulses" in as_command(chosen, "in.tif", "out.tif", "YX")
    assert "lines=False, impulses=True" in as_python(chosen, "image", "YX")


def test_obvious_impulses_of_a_movie_are_replaced_as_the_library_does() -> None:
    movie = np.random.default_rng(0).normal(100, 5, (4, 64, 64)).round()
    movie[..., 32:] += 60
    hot = slice(None), *np.random.default_rng(1).integers(1, 63, (2, 60))
    movie[hot] = 250
    result, _ = denoise_stack(movie, Pages("TYX", movie.shape), Settings(method="nlm"), lambda share: None)
    np.testing.assert_allclose(result, vnlem.denoise(movie, method="nlm", axes="TYX"), atol=1e-3)
    assert abs(result[hot] - 130).max() < 50


@pytest.mark.parametrize("axes", ["YX", "TYX"])
def test_impulses_are_replaced_as_the_library_does(axes: str) -> None:
    picture = np.random.default_rng(0).normal(100, 5, (3, 40, 40)[-len(axes) :]).round()
    picture[..., 20:] += 60
    picture[..., 7, 9] = 250
    settings = Settings(method="nlm", noise="gaussian", sigma=5.0, impulses="yes")
    pages = Pages(axes, picture.shape)
    denoise = denoise_stack if pages.is_stack else denoise_pages
    result, _ = denoise(picture, pages, settings, lambda share: None)
    expected = vnlem.denoise(
        picture, 5.0, method="nlm", impulses=True, **({"axes": axes} if pages.is_stack else {})
    )
    np.testing.assert_allclose(result, expected, atol=1e-3)
    assert abs(result[..., 7, 9] - 100).max() < 20
