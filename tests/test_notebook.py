"""What notebooks show: valid, self-contained HTML that says what was found."""

import base64
import html.parser
import io
import re

import numpy as np
import pytest
from PIL import Image

import vnlem


class Checked(html.parser.HTMLParser):
    """Fails on a tag that is not closed."""

    EMPTY = ("img", "input", "br", "meta")

    def __init__(self):
        super().__init__()
        self.open = []

    def handle_starttag(self, tag, attrs):
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def parse(text):
    parser = Checked()
    parser.feed(text)
    parser.close()
    assert parser.open == []


def pictures(text):
    return [
        np.asarray(Image.open(io.BytesIO(base64.b64decode(found))))
        for found in re.findall(r"data:image/png;base64,([^\"]+)", text)
    ]


@pytest.mark.parametrize("shape", [(20, 30), (20, 30, 3)])
def test_a_wipe_holds_both_images(shape):
    rng = np.random.default_rng(0)
    before, after = rng.integers(0, 255, (2, *shape), np.uint8)
    text = vnlem.compare_view(before, after, names=("<raw>", "clean"))._repr_html_()
    parse(text)
    second, first = pictures(text)
    assert np.array_equal(first, before)
    assert np.array_equal(second, after)
    assert "<raw>" not in text
    assert "http" not in text


@pytest.mark.parametrize(("columns", "shown"), [(100, 600), (256, 512), (700, 700)])
def test_a_small_image_is_enlarged_by_a_whole_number(columns, shown):
    text = vnlem.compare_view(np.zeros((8, columns)), np.ones((8, columns)))._repr_html_()
    assert f"width:{shown}px" in text
    assert ("pixelated" in text) == (shown > columns)


def test_both_images_have_the_same_contrast():
    before, after = np.full((9, 9), 80.0), np.linspace(0, 200, 81).reshape(9, 9)
    second, first = pictures(vnlem.compare_view(before, after, contrast=(0, 200))._repr_html_())
    assert first[0, 0] == 102
    assert (second[0, 0], second[-1, -1]) == (0, 255)


def test_the_images_of_a_wipe_must_be_alike():
    with pytest.raises(ValueError, match="same shape"):
        vnlem.compare_view(np.zeros((8, 8)), np.zeros((8, 9)))
    with pytest.raises(ValueError, match="pass one page"):
        vnlem.compare_view(np.zeros((4, 8, 8)), np.zeros((4, 8, 8)))
    with pytest.raises(ValueError, match=r"before .* different lengths"):
        vnlem.compare_view([[1], [1, 2]], np.zeros((8, 9)))
    with pytest.raises(TypeError, match=r"before .* take e.g. its real part"):
        vnlem.compare_view(np.zeros((8, 8), complex), np.zeros((8, 8)))


@pytest.mark.parametrize(
    ("model", "drawn"),
    [
        (vnlem.NoiseModel.white(5.0), 0),
        (vnlem.NoiseModel.camera(2.0, 100.0, 3.0), 1),
        (vnlem.NoiseModel.rician(5.0), 1),
    ],
)
def test_a_noise_model_is_shown_in_words_and_as_a_curve(model, drawn):
    text = model._repr_html_()
    parse(text)
    assert model.describe() in text
    assert text.count("<polyline") == drawn
    assert "nan" not in text


def test_info_is_a_table():
    image = np.random.default_rng(0).normal(100, 5, (40, 40))
    _, info = vnlem.denoise(image, method="nlm", return_info=True)
    text = info._repr_html_()
    parse(text)
    assert "<th" in text
    assert "patch_size" in text
    assert info.noise.describe() in text
