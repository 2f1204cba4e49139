"""The images of an experiment: finding them, their categories, their grey values, their noise."""

from pathlib import Path

import numpy as np
import pytest

from vnlem import io
from vnlem.bench.datasets import NO_CATEGORY, find_images, find_pairs, read_grey
from vnlem.bench.protocols import Case, Scene, measure, scenes
from vnlem.bench.variants import parse_variants
from vnlem.metrics.residual import residual_statistics

GREY = np.arange(24 * 20, dtype=np.uint8).reshape(24, 20)


def save(path, pixels=GREY):
    path.parent.mkdir(parents=True, exist_ok=True)
    io.write(path, pixels)
    return str(path)


def test_images_are_found_in_sub_folders_sorted_and_the_sub_folder_is_the_category(tmp_path):
    for name in ("b/é ü.png", "a/deep/x.tif", "z.npy", "a/x.jpg"):
        save(tmp_path / name)
    (tmp_path / "notes.txt").write_text("no image")
    (tmp_path / ".hidden").mkdir()
    save(tmp_path / ".hidden" / "x.png")
    found = [(item.name, item.category, item.index) for item in find_images(tmp_path)]
    assert found == [
        ("a/deep/x.tif", "a/deep", 0),
        ("a/x.jpg", "a", 1),
        ("b/é ü.png", "b", 2),
        ("z.npy", NO_CATEGORY, 3),
    ]


def test_the_manifest_says_the_category(tmp_path):
    save(tmp_path / "a" / "x.png")
    save(tmp_path / "a" / "y.png")
    (tmp_path / "MANIFEST.csv").write_text("file,category\na/x.png,cats\n", encoding="utf-8")
    assert [item.category for item in find_images(tmp_path)] == ["cats", "a"]


def test_results_among_the_images_are_not_taken_for_images(tmp_path):
    save(tmp_path / "x.png")
    save(tmp_path / "out" / "pictures" / "y.png")
    assert [item.name for item in find_images(tmp_path, leave_out=tmp_path / "out")] == ["x.png"]


def test_equal_names_in_different_folders_have_files_of_their_own(tmp_path):
    save(tmp_path / "a" / "x.png")
    save(tmp_path / "b" / "x.png")
    a, b = find_images(tmp_path)
    assert a.key != b.key


def test_a_pattern_chooses_images(tmp_path):
    for name in ("blood_1.png", "cell_1.png", "a/blood_2.png"):
        save(tmp_path / name)
    names = [item.name for item in find_images(tmp_path, include="blood_*")]
    assert names == ["a/blood_2.png", "blood_1.png"]


@pytest.mark.parametrize(
    ("pixels", "expected"),
    [
        (np.array([[0, 255]], np.uint8), [0, 255]),
        (np.array([[0, 4095]], np.uint16), [0, 255]),  # 12 bits in a 16-bit file
        (np.array([[0, 65535]], np.uint16), [0, 255]),
        (np.array([[0.0, 0.5]], np.float32), [0, 127.5]),
        (np.array([[-3.0, 7.0]], np.float32), [0, 255]),
        (np.array([[5.0, 5.0]], np.float32), [0, 0]),
    ],
    ids=["8 bits", "12 bits", "16 bits", "unit floats", "other floats", "constant floats"],
)
def test_every_bit_depth_fills_0_to_255(tmp_path, pixels, expected):
    assert read_grey(save(tmp_path / "x.npy", pixels))[0] == pytest.approx(expected)


def test_colour_becomes_luminance_and_alpha_is_dropped(tmp_path):
    pixels = np.zeros((2, 2, 4), np.uint8)
    pixels[..., 1] = 100
    assert read_grey(save(tmp_path / "x.png", pixels)) == pytest.approx(np.full((2, 2), 58.7))


@pytest.mark.parametrize(
    ("pixels", "message"),
    [(np.full((4, 4), np.nan), "NaN"), (np.zeros((3, 9, 9), np.uint8), "3 pages")],
    ids=["nan", "pages"],
)
def test_what_cannot_be_measured_is_refused_with_a_reason(tmp_path, pixels, message):
    with pytest.raises(ValueError, match=message):
        read_grey(save(tmp_path / "x.npy", pixels))


def test_pairs_are_found_with_the_scale_of_their_reference(tmp_path):
    for name in ("m/a_noisy.png", "m/a_ref.png", "m/b_noisy.png", "m/b_ref.tif", "m/c_noisy.png", "d.png"):
        save(tmp_path / name)
    (tmp_path / "m" / "PAIRS.csv").write_text("stem,a,b,note\na,0.5,3,x\n")
    pairs, alone = find_pairs(find_images(tmp_path), tmp_path)
    assert [(p.name, p.gain, p.offset) for p in pairs] == [
        ("m/a_noisy.png", 0.5, 3.0),
        ("m/b_noisy.png", 1.0, 0.0),
    ]
    assert list(alone) == ["m/c_noisy.png"]


def test_both_images_of_a_pair_are_brought_to_one_scale(tmp_path):
    noisy = np.full((32, 32), 900, np.uint16)
    noisy[0, 0] = 4096  # a bit more than the reference needs
    save(tmp_path / "a_noisy.npy", noisy)
    save(tmp_path / "a_ref.npy", np.full((32, 32), 1000, np.uint16))
    pairs, _ = find_pairs(find_images(tmp_path), tmp_path)
    ((_, scene),) = scenes(pairs[0], [Case("pairs", 0, 5.0)])
    assert scene.clean == pytest.approx(np.full((32, 32), 1000 * 255 / 8191))


def test_the_papers_protocol_gives_the_papers_signal_to_noise_ratio(tmp_path):
    ramp = np.add.outer(np.arange(200), np.arange(300)).astype(np.uint16)
    save(tmp_path / "x.png", ramp)
    (item,) = find_images(tmp_path)
    ((_, scene),) = scenes(item, [Case("paper", 128, 0.3)])
    assert scene.noisy.shape == (128, 128)
    assert measure(scene, scene.noisy)["snr"] == pytest.approx(5.23, abs=0.1)


def test_the_noise_is_that_of_the_seed_of_the_sorted_place(tmp_path):
    for name in ("a.png", "b.png"):
        save(tmp_path / name)
    second = find_images(tmp_path)[1]
    ((_, scene),) = scenes(second, [Case("awgn", 0, 25.0)])
    expected = GREY + np.random.default_rng(1001).normal(0, 25, GREY.shape)
    assert np.array_equal(scene.noisy, expected)


def test_fsim_and_ssim_are_taken_of_the_clipped_image_and_the_others_are_not():
    rng = np.random.default_rng(0)
    clean = np.tile(np.linspace(0, 255, 64), (64, 1))
    beyond = clean + rng.normal(0, 40, clean.shape)
    scene = Scene(clean, beyond, 40.0, None)
    whole, clipped = measure(scene, beyond), measure(scene, np.clip(beyond, 0, 255))
    assert whole["fsim"] == clipped["fsim"]
    assert whole["ssim"] == clipped["ssim"]
    assert whole["snr"] < clipped["snr"]


def test_an_image_of_one_grey_value_cannot_follow_the_papers_protocol(tmp_path):
    save(tmp_path / "x.png", np.full((32, 32), 7, np.uint8))
    with pytest.raises(ValueError, match="one grey value only"):
        list(scenes(find_images(tmp_path)[0], [Case("paper", 32, 0.3)]))


def test_residuals_that_are_not_white_are_recognised():
    white = np.random.default_rng(0).normal(0, 5, (80, 80))
    smooth = (white + np.roll(white, 1, 0) + np.roll(white, 1, 1)) / 3
    found = residual_statistics(smooth)
    # Neighbours share one of three terms.
    assert found["residual_correlation"] == pytest.approx(1 / 3, abs=0.05)


def test_the_images_of_a_missing_folder_are_an_error_that_names_it():
    with pytest.raises(FileNotFoundError, match="there is no folder nowhere"):
        find_images(Path("nowhere"))


def test_methods_are_told_the_noise_model_by_the_names_of_denoise():
    texts = ["vnlr:noise_model=auto", "vnlr:correlated", "vnlr:fast:poisson-gaussian"]
    found = [dict(variant.arguments).get("noise_model") for variant in parse_variants(texts, "pairs")]
    assert found == ["auto", "correlated", "poisson-gaussian"]
