"""Filters by tiles: equal to a plain convolution, and a part has the bytes of the whole."""

import numpy as np
import pytest
from scipy import ndimage

from vnlem.noise import tiled_filter
from vnlem.noise.correlated import Spectrum
from vnlem.pipeline.regions import Region
from vnlem.pipeline.tiles import Tile

pytestmark = pytest.mark.slow

SPECTRUM = Spectrum.of(1 + 20 * np.exp(-np.add.outer(np.arange(16.0), 2 * np.arange(16.0)) / 4))
# Around the borders of tiles, smaller than the filter's reach, and a signal.
SHAPES = [(64, 65), (127, 129), (176, 40), (113, 192), (20, 33), (1, 200)]


def response():
    rows, columns = tiled_filter.frequencies()
    return tiled_filter.finite(1 / (1 + 30 * rows**2 + 8 * columns))


@pytest.mark.parametrize("shape", SHAPES)
def test_tiles_give_what_a_plain_convolution_gives(shape):
    image = np.random.default_rng(0).normal(100, 20, shape)
    filter_response = response()
    side = 2 * tiled_filter.REACH + 1
    taps = np.fft.fftshift(np.fft.irfft2(filter_response, (tiled_filter.SIDE, tiled_filter.SIDE)))
    middle = slice(
        tiled_filter.SIDE // 2 - tiled_filter.REACH, tiled_filter.SIDE // 2 - tiled_filter.REACH + side
    )
    plain = ndimage.convolve(image, taps[middle, middle], mode="reflect")
    found = tiled_filter.filtered(image, filter_response, Region.whole(*shape))
    np.testing.assert_allclose(found, plain, rtol=0, atol=1e-9)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_part_has_the_bytes_of_the_whole(shape):
    rng = np.random.default_rng(1)
    image = rng.normal(100, 20, shape)
    filter_response = response()
    whole = tiled_filter.filtered(image, filter_response, Region.whole(*shape))
    for _ in range(12):
        (top, bottom), (left, right) = (
            sorted(map(int, rng.choice(size + 1, 2, replace=False))) for size in shape
        )
        write = Tile(top, bottom, left, right)
        read = tiled_filter.needed(write, shape)
        part = image[read.top : read.bottom, read.left : read.right]
        found = tiled_filter.filtered(part, filter_response, Region(shape, write, read))
        np.testing.assert_array_equal(found, whole[top:bottom, left:right])
        # The halo covers what is needed.
        held = Region.around(shape, write, tiled_filter.HALO).read
        assert held.top <= read.top
        assert held.bottom >= read.bottom
        assert held.left <= read.left
        assert held.right >= read.right


@pytest.mark.parametrize("shape", SHAPES)
def test_what_was_read_suffices_for_what_is_certain(shape):
    rng = np.random.default_rng(2)
    for _ in range(50):
        (top, bottom), (left, right) = (
            sorted(map(int, rng.choice(size + 1, 2, replace=False))) for size in shape
        )
        read = Tile(top, bottom, left, right)
        sure = tiled_filter.certain(read, shape)
        if sure.top < sure.bottom and sure.left < sure.right:
            needed = tiled_filter.needed(sure, shape)
            assert needed.top >= top
            assert needed.bottom <= bottom
            assert needed.left >= left
            assert needed.right <= right


@pytest.mark.parametrize("shape", SHAPES)
def test_whitening_is_undone_up_to_the_edges(shape):
    image = np.random.default_rng(3).normal(0, 1, shape)
    back = SPECTRUM.colour(SPECTRUM.whiten(image))
    np.testing.assert_allclose(back, image, rtol=0, atol=2e-3)


def test_a_constant_image_stays_constant():
    found = tiled_filter.filtered(np.full((120, 130), 7.0), response(), Region.whole(120, 130))
    np.testing.assert_allclose(found, 7.0, rtol=1e-12)
