"""The CUDA kernels against the CPU's, on an emulated device (see cuda_on_cpu)."""

from dataclasses import replace

import numpy as np
import pytest
from cuda_on_cpu import COMPILER, Emulator

from vnlem.estimate import change, scales
from vnlem.estimate import scales_on_gpu as cuda_scales
from vnlem.kernels.cuda.change import shrink_change
from vnlem.kernels.cuda.middle import middle_of_planes
from vnlem.methods import nlem, nlm, vnlem, vnlem_dd, vnlem_dd_params, vnlr
from vnlem.methods.cuda import nlem as cuda_nlem
from vnlem.methods.cuda import nlm as cuda_nlm
from vnlem.methods.cuda import turned
from vnlem.methods.cuda import vnlem as cuda_vnlem
from vnlem.methods.cuda import vnlem_dd as cuda_vnlem_dd
from vnlem.methods.cuda import vnlr as cuda_vnlr
from vnlem.methods.window import check_params
from vnlem.pipeline.run import Job, computed

pytestmark = [pytest.mark.slow, pytest.mark.skipif(COMPILER is None, reason="needs a C++ compiler")]


def pattern(channels, height, width, seed=0):
    """Waves, a disc and noise of standard deviation 0.3."""
    y, x = np.mgrid[:height, :width]
    disc = (y - height / 2) ** 2 + (x - width / 3) ** 2 < 60
    clean = np.stack([np.sin(x / 4 + c) + disc + 0.3 * np.cos((x + y) / 3) for c in range(channels)])
    noise = np.random.default_rng(seed).normal(0, 0.3, clean.shape)
    return (clean / clean.std() + noise).astype(np.float32)


def vnlr_job(pixels, group, sigma_map=None, sigma=0.3, **given):
    # Few sizes: each is compiled separately.
    given = {"patch_size": 6, "patch_distance": 6, "n_neighbors": 24, "passes": 2, "step": 6} | given
    params = vnlr.resolve(sigma, "balanced", group, **given)
    return Job(pixels, sigma, params, 1, None, sigma_map=sigma_map)


CASES = {
    "shifts": (pattern(1, 21, 30), "identity", {}),
    "quarter turns, patches of 8": (pattern(1, 26, 24), "c4", {"patch_size": 8}),
    "reflections": (pattern(1, 23, 27), "d4", {}),
    "colour": (pattern(3, 20, 22), "d4", {}),
    "an image smaller than the window": (pattern(1, 9, 14), "d4", {"patch_distance": 10}),
}


@pytest.mark.parametrize("case", list(CASES))
def test_vnlr_gives_what_the_cpu_gives(case):
    pixels, group, given = CASES[case]
    here, there = vnlr_job(pixels, group, **given), vnlr_job(pixels, group, **given)
    expected, found = vnlr.solve(here), cuda_vnlr.solve(there, Emulator())
    np.testing.assert_allclose(found, expected, atol=5e-5)
    assert computed(there.details) == here.details


@pytest.mark.parametrize("noise_map", [False, True])
def test_vnlr_with_copies_gives_what_the_cpu_gives(monkeypatch, noise_map):
    # Two tiles, whose copies are made one after another.
    monkeypatch.setattr(turned, "BATCH_PIXELS", 0)
    pixels = pattern(1, 20, 76)
    noise = np.linspace(0.2, 0.4, 76, dtype=np.float32)[None, None].repeat(20, axis=1) if noise_map else None
    here, there = (vnlr_job(pixels, "so2", noise, patch_distance=4) for _ in range(2))
    expected, found = vnlr.solve(here), cuda_vnlr.solve(there, Emulator())
    np.testing.assert_allclose(found, expected, atol=2e-4)
    assert computed(there.details) == here.details


def test_the_border_of_a_patch_may_count_less_than_its_centre():
    pixels = pattern(1, 23, 27)
    params = replace(vnlr_job(pixels, "d4").params, window=4.0)
    here, there = (Job(pixels, 0.3, params, 1, None) for _ in range(2))
    expected = vnlr.solve(here)
    np.testing.assert_allclose(cuda_vnlr.solve(there, Emulator()), expected, atol=5e-5)
    assert np.abs(vnlr.solve(vnlr_job(pixels, "d4")) - expected).max() > 1e-3


def test_windows_in_copies_may_be_smaller_than_in_the_image():
    params = replace(vnlr_job(pattern(1, 30, 41), "similarity").params, copied_distance=3)
    here, there = (Job(pattern(1, 30, 41), 0.3, params, 1, None) for _ in range(2))
    np.testing.assert_allclose(cuda_vnlr.solve(there, Emulator()), vnlr.solve(here), atol=2e-4)
    assert computed(there.details) == here.details


@pytest.mark.parametrize(("channels", "group"), [(1, "d4"), (3, "identity")])
def test_perception_gives_what_the_cpu_gives(channels, group):
    here, there = (vnlr_job(pattern(channels, 40, 33), group, aim="perception") for _ in range(2))
    expected, found = vnlr.solve(here), cuda_vnlr.solve(there, Emulator())
    np.testing.assert_allclose(found, expected, atol=5e-5)
    assert computed(there.details) == here.details
    plain = cuda_vnlr.solve(vnlr_job(pattern(channels, 40, 33), group), Emulator())
    assert np.abs(found - plain).max() > 0.02


def test_fluxes_are_those_of_the_cpu():
    y, x = np.mgrid[:40, :33]
    pixels = 8 * np.exp(-((y % 13 - 6) ** 2 + (x % 11 - 5) ** 2) / 6.0)[None]
    pixels = (pixels + 0.3 * np.random.default_rng(0).standard_normal(pixels.shape)).astype(np.float32)
    here, there, plain = (vnlr_job(pixels, "d4", aim=aim) for aim in ("flux", "flux", "fidelity"))
    expected = vnlr.solve(here)
    np.testing.assert_allclose(cuda_vnlr.solve(there, Emulator()), expected, atol=2e-4)
    assert np.abs(expected - vnlr.solve(plain)).max() > 0.002


def test_vnlr_follows_a_map_of_the_noise():
    pixels = pattern(1, 20, 24)
    noise = np.linspace(0.0, 0.6, 24, dtype=np.float32)[None, None].repeat(20, axis=1)
    here, there = (vnlr_job(pixels, "d4", noise) for _ in range(2))
    np.testing.assert_allclose(cuda_vnlr.solve(there, Emulator()), vnlr.solve(here), atol=5e-5)


@pytest.mark.parametrize("sigma", [1e-2, 1e-5])
def test_vnlr_changes_in_proportion_to_the_noise(sigma):
    """Loads that single precision cannot resolve are solved in double precision."""
    pixels = pattern(1, 20, 22)
    here, there = (vnlr_job(pixels, "d4", sigma=sigma) for _ in range(2))
    expected, found = vnlr.solve(here), cuda_vnlr.solve(there, Emulator())
    assert np.abs(found - pixels).max() < 10 * sigma
    np.testing.assert_allclose(found, expected, atol=max(0.02 * sigma, 1e-6))


@pytest.mark.parametrize("memory", [22, 16], ids=["ranks outside", "window outside too"])
def test_vnlr_does_without_much_shared_memory(memory):
    pixels = pattern(1, 20, 24)
    roomy, narrow = (vnlr_job(pixels, "d4", n_neighbors=8) for _ in range(2))
    expected = cuda_vnlr.solve(roomy, Emulator())
    np.testing.assert_array_equal(cuda_vnlr.solve(narrow, Emulator(memory * 1024)), expected)


def test_groups_that_are_too_large_for_a_device_are_an_error():
    with pytest.raises(ValueError, match="n_neighbors of at most 128"):
        cuda_vnlr.solve(vnlr_job(pattern(1, 24, 24), "d4", n_neighbors=160), Emulator())


VNLEM = {
    "paper": (1, "paper", {"patch_distance": 3}),
    "auto": (1, "auto", {"patch_distance": 3}),
    "auto, one set of parameters": (1, "auto", {"patch_distance": 3, "adapt": False}),
    "colour": (3, "paper", {"patch_size": 5, "patch_distance": 2, "gamma": 1.0}),
    "as they are": (1, "paper", {"patch_size": 5, "patch_distance": 3, "try_unrotated": True, "gamma": 0.5}),
    "more neighbours than a warp takes": (
        1,
        "paper",
        {"patch_size": 5, "patch_distance": 6, "n_neighbors": 140},
    ),
}


@pytest.mark.parametrize("case", list(VNLEM))
def test_vnlem_gives_what_the_cpu_gives(case, monkeypatch):
    channels, preset, given = VNLEM[case]
    params = vnlem.check_params(**vnlem.with_defaults(preset, 0.3, given | {"arc": 40.0}))
    job = Job(pattern(channels, 19, 14), 0.3, params, 1, None)
    # Two bands of rows.
    monkeypatch.setattr(cuda_vnlem, "BAND_BYTES", 0)
    # The divergence is a difference over a tenth of the noise: it magnifies rounding.
    tolerance = 5e-3 if params.adapt else 2e-3
    np.testing.assert_allclose(cuda_vnlem.solve(job, Emulator()), vnlem.solve(job), atol=tolerance)


@pytest.mark.parametrize("preset", ["paper", "auto"])
def test_vnlem_dd_gives_what_the_cpu_gives(preset):
    clean = pattern(1, 21, 26, seed=3)
    given = {"patch_distance": 3, "patch_size": 5, "arc": 40.0}
    own = {"embedding_dim": 6, "diffusion_time": 1.0, "scope": "window"}
    params = vnlem_dd_params.resolve_params(preset, 0.3, given | own)
    here, there = (Job(clean, 0.3, params, 1, None) for _ in range(2))
    expected, found = vnlem_dd.solve(here), cuda_vnlem_dd.solve(there, Emulator())
    assert there.details["graph_parts"] == here.details["graph_parts"]
    np.testing.assert_allclose(there.details["eigenvalues"], here.details["eigenvalues"], atol=1e-4)
    # Eigenvectors have a tolerance, and candidates of equal rank may swap.
    assert np.sqrt(np.mean((found - expected) ** 2)) < 0.02 * 0.3


@pytest.mark.parametrize(
    ("shape", "patch_size", "distance"),
    [((1, 20, 40), 7, 4), ((3, 11, 29), 3, 2), ((1, 1, 90), 5, 6), ((2, 9, 8), 5, 10)],
    ids=["grey", "colour", "signal", "window larger than the image"],
)
@pytest.mark.parametrize("corrected", [True, False])
def test_nlm_gives_what_the_cpu_gives(shape, patch_size, distance, corrected):
    pixels = np.random.default_rng(1).normal(size=shape).astype(np.float32)
    params = check_params(
        0.5,
        1 if shape[1] == 1 else 2,
        patch_size=patch_size,
        patch_distance=distance,
        gamma=2.0,
        noise_correction=corrected,
    )
    job = Job(pixels, 0.5, params, 1, None)
    np.testing.assert_allclose(cuda_nlm.solve(job, Emulator()), nlm.solve(job), atol=2e-5)


@pytest.mark.parametrize(
    ("shape", "patch_size", "distance", "n_neighbors"),
    [((1, 12, 19), 5, 3, None), ((3, 9, 11), 3, 2, 7), ((1, 1, 60), 7, 6, None), ((2, 7, 6), 3, 10, 9)],
    ids=["grey", "colour", "signal", "window larger than the image"],
)
@pytest.mark.parametrize("gamma", [1.0, 0.5, 2.0])
def test_nlem_gives_what_the_cpu_gives(shape, patch_size, distance, n_neighbors, gamma):
    pixels = pattern(*shape) if shape[1] > 1 else pattern(1, 4, shape[2])[:, :1]
    params = check_params(
        0.4,
        1 if shape[1] == 1 else 2,
        patch_size=patch_size,
        patch_distance=distance,
        n_neighbors=n_neighbors,
        gamma=gamma,
        noise_correction=gamma != 0.5,
    )
    job = Job(np.ascontiguousarray(pixels), 0.4, params, 1, None)
    np.testing.assert_allclose(cuda_nlem.solve(job, Emulator()), nlem.solve(job), atol=2e-3)


def test_nlem_does_without_much_shared_memory():
    params = check_params(
        0.4, 2, patch_size=5, patch_distance=3, gamma=1.0, noise_correction=True, n_neighbors=20
    )
    job = Job(pattern(1, 8, 13), 0.4, params, 1, None)
    expected = cuda_nlem.solve(job, Emulator())
    np.testing.assert_array_equal(cuda_nlem.solve(job, Emulator(4096)), expected)
    with pytest.raises(ValueError, match="too large for this device"):
        cuda_nlem.solve(job, Emulator(2048))


class SmallDevice(Emulator):
    """Has no room for arrays of more than some numbers."""

    def __init__(self, most):
        super().__init__()
        self.most = most

    def launch(self, name, grid, argument, **options):
        sizes = [value.size for value in argument.values() if isinstance(value, np.ndarray)]
        # The largest value is searched in the image itself, which is there already.
        if max(sizes) > self.most and options.get("kernel") != "largest_magnitude":
            raise MemoryError
        super().launch(name, grid, argument, **options)


def nlm_job(pixels):
    rule = {"patch_size": 3, "patch_distance": 3, "noise_correction": True}
    return Job(pixels, 0.4, check_params(0.4, 2, gamma=2.0, **rule), 1, None)


def small_vnlr_job(group):
    given = {"patch_distance": 3, "n_neighbors": 8, "passes": 1, "patch_size": 4, "step": 4}
    return lambda pixels: vnlr_job(pixels, group, **given)


@pytest.mark.parametrize(
    ("solver", "make", "channels", "most"),
    [
        (cuda_nlm, nlm_job, 1, 4800),
        (cuda_vnlr, small_vnlr_job("d4"), 1, 10000),
        (cuda_vnlr, small_vnlr_job("identity"), 3, 26000),
    ],
    ids=["nlm", "vnlr", "vnlr in colour"],
)
def test_an_image_that_does_not_fit_is_solved_in_parts(solver, make, channels, most):
    pixels = pattern(channels, 40, 140)
    job, whole = make(pixels), make(pixels)
    expected = solver.solve(whole, Emulator())
    found = solver.solve(job, SmallDevice(most))
    assert job.details["regions"] > 1
    np.testing.assert_array_equal(found, expected)
    for name, value in computed(whole.details).items():
        np.testing.assert_allclose(job.details[name], value, atol=0.1)


def test_a_part_that_does_not_fit_either_is_an_error():
    job = nlm_job(pattern(1, 70, 160))
    with pytest.raises(MemoryError, match="even a small part"):
        cuda_nlm.solve(job, SmallDevice(100))


@pytest.mark.parametrize("shape", [(1, 40, 53), (3, 21, 300), (2, 5, 3)])
def test_changes_are_shrunk_as_on_the_cpu(shape):
    noisy, other = pattern(*shape), pattern(*shape, seed=1)
    estimate = (noisy + np.linspace(0, 0.5, shape[2], dtype=np.float32) * (other - noisy)).astype(np.float32)
    variance = np.random.default_rng(0).uniform(0.05, 0.2, shape).astype(np.float32)
    limits = (change.NOTHING, change.EVERYTHING)
    found = shrink_change(Emulator(), noisy, estimate, variance, change.REACH, limits)
    expected = change.shrink_change(noisy, estimate, variance)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, atol=1e-6)
    np.testing.assert_array_equal(found == estimate, expected == estimate)


@pytest.mark.parametrize("shape", [(1, 40, 53), (3, 31, 270), (2, 3, 4), (1, 1, 9)])
def test_planes_are_halved_with_the_bits_of_the_cpu(shape):
    planes = np.random.default_rng(0).normal(0, 1, shape)
    np.testing.assert_array_equal(cuda_scales.halve(planes, Emulator()), scales.halve(planes))


@pytest.mark.parametrize("shape", [(1, 40, 53), (3, 31, 270), (2, 5, 4)])
@pytest.mark.parametrize("noise", ["a number", "a map", "a map of all channels"])
def test_scales_are_joined_with_the_bits_of_the_cpu(shape, noise):
    rng = np.random.default_rng(0)
    fine = rng.normal(0, 1, shape)
    coarse = rng.normal(0, 1, (shape[0], -(-shape[1] // 2), -(-shape[2] // 2)))
    maps = {"a map": (1, *shape[1:]), "a map of all channels": shape}
    sigma = rng.uniform(1, 5, maps[noise]) if noise in maps else 3.0
    found = cuda_scales.join(fine, coarse, sigma, Emulator())
    np.testing.assert_array_equal(found, scales.join(fine, coarse, sigma))


@pytest.mark.parametrize("shape", [(1, 40, 53), (3, 31, 270), (2, 5, 4)])
def test_noise_is_averaged_around_a_pixel_with_the_bits_of_the_cpu(shape):
    sigma = np.random.default_rng(0).uniform(1, 5, shape)
    found = cuda_scales.level_around(sigma, Emulator())
    np.testing.assert_array_equal(found, scales.level_around(sigma))


@pytest.mark.parametrize("count", [1, 8, 17])
def test_the_median_over_planes(count):
    planes = np.random.default_rng(count).normal(0, 1, (count, 300)).astype(np.float32)
    found = np.empty(300, np.float32)
    middle_of_planes(Emulator(), planes, found, 17)
    np.testing.assert_allclose(found, np.median(planes, axis=0), rtol=1e-6)
