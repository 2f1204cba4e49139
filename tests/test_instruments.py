"""Noise of magnitudes (Rician, non-central chi) and speckle: laws, estimates, and results."""

import numpy as np
import pytest
from scipy import special
from skimage import data

import vnlem
from vnlem import io
from vnlem.noise import NoiseModel, add_rician, add_speckle
from vnlem.noise.air import find_air
from vnlem.noise.rician import Rician
from vnlem.noise.speckle import TAIL, Speckle

SIGMA = 12.0


def psnr(image, clean):
    return 10 * np.log10(200**2 / np.mean((image - clean) ** 2))


@pytest.fixture(scope="module")
def head():
    """A bright disc with dark and bright parts, in air."""
    y, x = np.mgrid[:128, :128] - 63.5
    clean = np.where(np.hypot(y, x) < 50, 110.0, 0.0)
    clean[np.hypot(y, x) < 42] = 80.0
    for at in range(6):
        cy, cx = 26 * np.sin(at), 26 * np.cos(at)
        clean[np.hypot(y - cy, x - cx) < 9] = 45.0 + 28 * at
    return clean


@pytest.fixture(scope="module")
def magnitude(head):
    return add_rician(head, SIGMA, seed=3)


@pytest.fixture(scope="module")
def scene():
    return 20 + data.camera()[150:278, 170:298].astype(float)


@pytest.mark.parametrize("coils", [1, 4, 32])
@pytest.mark.parametrize("signal", [0.0, 1.0, 3.0, 8.0, 40.0])
def test_magnitudes_have_one_deviation_and_an_unbiased_inverse(coils, signal):
    law = Rician(2.0, coils)
    pixels = add_rician(np.full(200_000, 2 * signal), 2.0, coils=coils, seed=1)
    stable = law.stabilise(pixels)
    assert stable.std() == pytest.approx(1, abs=0.05)
    # Several coils hide weak signals: those below count as zero.
    if signal == 0 or signal >= coils**0.25:
        assert float(law.unstabilise(stable.mean())) == pytest.approx(2 * signal, abs=0.04)
    assert float(law.variance(pixels.mean())) == pytest.approx(pixels.var(), rel=0.03)


def test_the_mean_of_magnitudes_is_the_closed_form():
    law, signal = Rician(1.0), 1.5
    laguerre = special.eval_genlaguerre(0.5, 0, -(signal**2) / 2)
    tables = law._tables
    found = np.interp(signal, tables.signals, tables.means)
    assert found == pytest.approx(np.sqrt(np.pi / 2) * laguerre, rel=1e-3)
    assert law.floor == pytest.approx(np.sqrt(np.pi / 2), rel=1e-4)


@pytest.mark.parametrize("domain", ["intensity", "amplitude"])
@pytest.mark.parametrize("looks", [1, 2.5, 16])
@pytest.mark.parametrize(("share", "averages"), [(1.0, 1), (0.7, 1), (1.0, 4)])
def test_speckle_has_one_deviation_and_an_unbiased_inverse(domain, looks, share, averages):
    law = Speckle(looks, domain, share=share, averages=averages)
    pixels = add_speckle(np.full((100_000, averages), 30.0), looks, domain=domain, seed=1).mean(axis=1)
    stable = law.stabilise(share * pixels + (1 - share) * 30)
    # The mean of several amplitudes is only nearly a gamma variable.
    assert TAIL * stable.std() == pytest.approx(1, abs=0.02 if averages == 1 else 0.04)
    assert float(law.unstabilise(stable.mean())) == pytest.approx(30, rel=0.01)


@pytest.mark.parametrize(
    "model",
    [
        NoiseModel.rician(3.0),
        NoiseModel.rician(3.0, coils=4),
        NoiseModel.speckle(4, least=0.1),
        NoiseModel.speckle(2, "log", unit=30.0),
    ],
    ids=lambda model: model.kind,
)
def test_a_model_is_saved_described_and_drawn(model, tmp_path):
    model.save(tmp_path / "model.json")
    assert NoiseModel.load(tmp_path / "model.json") == model
    assert model.kind in ("rician", "speckle")
    assert ("coils" in model.describe()) == (model == NoiseModel.rician(3.0, coils=4))
    pytest.importorskip("matplotlib")
    model.draw(tmp_path / "model.png")
    assert (tmp_path / "model.png").stat().st_size > 1000


@pytest.mark.parametrize("law", [{"name": "other"}, {"name": "rician", "sigma": 0}, {"sigma": 1}, 7])
def test_a_damaged_law_is_refused(law):
    values = NoiseModel.rician(3.0).to_dict()
    values["curves"][0]["law"] = law
    with pytest.raises(ValueError, match=r"again|larger than 0"):
        NoiseModel.from_dict(values)


@pytest.mark.parametrize("rounded", [True, False])
@pytest.mark.parametrize("coils", [1, 3])
def test_sigma_from_the_air(head, coils, rounded):
    noisy = add_rician(head, SIGMA, coils=coils, seed=2)
    if rounded:
        noisy = np.rint(noisy / 3) * 3
    assert find_air(noisy[None], coils) is not None
    model = vnlem.estimate_noise(noisy, kind="rician", coils=coils)
    assert model.curves[0].law.sigma == pytest.approx(SIGMA, rel=0.03)


def test_sigma_from_the_tissue_where_the_air_was_set_to_zero(head):
    noisy = np.where(head > 0, add_rician(head, SIGMA, seed=2), 0.0)
    model = vnlem.estimate_noise(noisy[30:98, 30:98], kind="rician")
    assert model.curves[0].law.sigma == pytest.approx(SIGMA, rel=0.15)


def test_magnitudes_told_and_found(head, magnitude):
    told, info = vnlem.denoise(magnitude, noise_model="rician", return_info=True)
    assert info.noise.kind == "rician"
    found, about = vnlem.denoise(magnitude, return_info=True)
    assert "Rician noise of magnitudes" in about.noise.describe()
    white = vnlem.denoise(magnitude, SIGMA)
    assert psnr(told, head) > psnr(white, head) + 3
    assert psnr(found, head) > psnr(told, head) - 0.3
    assert abs(told[head == 0].mean()) < 0.003 * head.max()


def test_several_coils(head):
    noisy = add_rician(head, SIGMA, coils=4, seed=2)
    told = vnlem.denoise(noisy, noise_model="rician", coils=4)
    assert psnr(told, head) > psnr(vnlem.denoise(noisy, noise_model="rician"), head) + 3


@pytest.mark.slow
def test_photographs_and_counts_are_no_magnitudes():
    rng = np.random.default_rng(0)
    photographs = [data.camera()[::2, ::2].astype(float), data.moon()[::2, ::2].astype(float), data.coins()]
    for clean in photographs:
        for noisy in (
            clean,
            np.clip(clean + rng.normal(0, 25, clean.shape), 0, 255),
            rng.poisson(clean / 20.0),
            np.abs(rng.normal(clean / 50, 3.0)),
        ):
            assert "rician" not in vnlem.estimate_noise(noisy).kind
    # Few counts of a dark area are as skew as air, but bright areas have more noise.
    dark = rng.poisson(np.where(np.arange(128) < 64, 3.7, 60.0), (128, 128))
    assert "rician" not in vnlem.estimate_noise(dark).kind
    # If nothing is bright, integers reveal counts.
    dim = 20 * rng.poisson(np.where(np.arange(128) < 64, 3.7, 9.0), (128, 128))
    assert "rician" not in vnlem.estimate_noise(dim).kind


def test_an_offset_of_the_right_size_is_no_air():
    noisy = np.random.default_rng(0).normal(1.913 * SIGMA, SIGMA, (128, 128))
    assert find_air(np.abs(noisy)[None], 1) is None


def test_a_map_of_sigma(head):
    levels = np.broadcast_to(np.linspace(4, 24, 128), head.shape)
    noisy = levels * add_rician(head / levels, 1.0, seed=4)
    told, info = vnlem.denoise(noisy, levels, noise_model="rician", return_info=True)
    assert info.sigma == pytest.approx(np.sqrt(np.mean(levels**2)))
    assert psnr(told, head) > psnr(vnlem.denoise(noisy, noise_model="rician"), head) + 1
    stack = vnlem.denoise(np.stack([noisy] * 2), levels, noise_model="rician", axes="ZYX")
    assert stack.shape == (2, 128, 128)


def test_a_volume_of_magnitudes(head):
    clean = np.stack([head[:96, :96]] * 4)
    noisy = add_rician(clean, SIGMA, seed=5)
    told, info = vnlem.denoise(noisy, noise_model="rician", axes="ZYX", return_info=True)
    assert info.noise.kind == "rician"
    assert psnr(told, clean) > psnr(vnlem.denoise(noisy[0], noise_model="rician"), clean[0]) + 0.5


@pytest.mark.parametrize(
    ("looks", "gain"), [(1, 10.0), pytest.param(4, 8.5, marks=pytest.mark.slow), (16, 6.0)]
)
def test_speckle_told(scene, looks, gain):
    noisy = add_speckle(scene, looks, seed=1)
    told = vnlem.denoise(noisy, noise_model="speckle", looks=looks)
    assert psnr(told, scene) > psnr(noisy, scene) + gain
    assert told.mean() == pytest.approx(scene.mean(), rel=0.03)
    model = vnlem.estimate_noise(noisy, kind="speckle")
    assert model.curves[0].law.looks == pytest.approx(looks, rel=0.25)


def test_amplitudes_and_logarithms(scene):
    noisy = add_speckle(scene, 3, domain="amplitude", seed=1)
    told = vnlem.denoise(noisy, noise_model="speckle", looks=3, domain="amplitude")
    assert told.mean() == pytest.approx(scene.mean(), rel=0.03)
    logs = 40 * np.log(noisy)
    found, info = vnlem.denoise(logs, noise_model="speckle", return_info=True)
    assert info.noise.curves[0].law.domain == "log"
    assert found.mean() == pytest.approx(logs.mean(), abs=1)


def test_speckle_that_neighbours_share(scene):
    from scipy.ndimage import gaussian_filter

    rng = np.random.default_rng(0)
    field = [gaussian_filter(rng.standard_normal(scene.shape), 0.8) for _ in range(8)]
    intensity = np.mean([(part / part.std()) ** 2 for part in field], axis=0)
    noisy = scene * intensity
    told, info = vnlem.denoise(noisy, noise_model="speckle", looks=4, return_info=True)
    assert info.noise.kind == "speckle correlated"
    white = vnlem.denoise(noisy, noise_model=NoiseModel.speckle(4, least=0.01))
    assert psnr(told, scene) > psnr(white, scene) + 0.5


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"noise_model": "speckle", "looks": 0}, "looks must lie in"),
        ({"noise_model": "speckle", "looks": -1}, "looks must lie in"),
        ({"noise_model": "speckle", "looks": 1e-300}, "looks must lie in"),
        ({"noise_model": "speckle", "domain": "db"}, "domain must be one of"),
        ({"noise_model": "speckle", "sigma": 3.0}, "pass looks="),
        ({"noise_model": "rician", "coils": 0}, "coils must be at least 1"),
        ({"noise_model": "rician", "sigma": 0.0}, "larger than 0"),
        ({"noise_model": "rician", "sigma": np.ones((3, 4))}, r"got an array of shape \(3, 4\)"),
        ({"noise_model": "rician", "sigma": np.zeros((128, 128))}, "larger than 0 everywhere"),
        ({"noise_model": "rician", "looks": 2}, "looks belongs to noise_model='speckle'"),
        ({"coils": 2}, "coils belongs to noise_model='rician'"),
        ({"noise_model": NoiseModel.rician(1.0), "coils": 2}, "leave coils out"),
    ],
)
def test_bad_options_get_one_sentence(magnitude, options, words):
    with pytest.raises(ValueError, match=words) as caught:
        vnlem.denoise(magnitude, **options)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"noise_model": "rician"}, "magnitudes, which are not negative"),
        ({"noise_model": NoiseModel.rician(3.0)}, "magnitudes, which are not negative"),
        (
            {"noise_model": "speckle", "looks": 2, "domain": "intensity"},
            "an intensity, which is not negative",
        ),
    ],
    ids=("told", "model", "speckle"),
)
def test_negative_pixels_are_refused(magnitude, options, words):
    with pytest.raises(ValueError, match=words):
        vnlem.denoise(magnitude - 30, **options)


def test_a_small_image_needs_looks(magnitude):
    with pytest.raises(ValueError, match=r"\(20x20\) is too small to estimate the looks"):
        vnlem.denoise(magnitude[:20, :20] ** 2, noise_model="speckle", domain="intensity")


def test_the_command_line(cli, magnitude, tmp_path):
    source, target = tmp_path / "in.tif", tmp_path / "out.tif"
    io.write(source, io.Picture(magnitude[:64, :64].astype(np.float32)))
    status, out, _ = cli("denoise", source, target, "--noise-model", "rician", "--coils", 1)
    assert status == 0
    assert "Rician noise of magnitudes" in out
    status, out, _ = cli("noise", source, "--kind", "speckle", "--looks", 3, "--domain", "intensity")
    assert status == 0
    assert "speckle (intensity), 3 looks" in out
    status, _, errors = cli(
        "denoise", source, target, "--overwrite", "--noise-model", "speckle", "--looks", 0
    )
    assert status == 2
    assert "looks must lie in" in errors


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {"noise_model": "rician", "sigma": SIGMA},
        {"noise_model": "speckle", "looks": 1, "domain": "intensity"},
    ],
    ids=("rician", "speckle"),
)
def test_parts_equal_the_whole(head, magnitude, options):
    da = pytest.importorskip("dask.array")
    more = {"scales": 2, "passes": 1, "n_neighbors": 12, "profile": "fast", "patch_distance": 3}
    whole = vnlem.denoise(magnitude, **options, **more)
    lazy = vnlem.denoise(da.from_array(magnitude, chunks=(64, 64)), **options, **more)
    assert np.array_equal(lazy.compute(scheduler="sync"), whole)
