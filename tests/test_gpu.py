"""On a real CUDA device: the tolerance to the CPU, the same bytes every time, array types, errors, memory."""

import gc

import numpy as np
import pytest

import vnlem
from vnlem.metrics import psnr
from vnlem.pipeline.device import why_no_gpu

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(why_no_gpu() is not None, reason=f"{why_no_gpu()}")]

TOLERANCE = 0.01  # dB


def scene(height, width, channels=None, seed=0):
    """Waves, discs and an edge, clean and with noise of standard deviation 20."""
    y, x = np.mgrid[:height, :width].astype(float)
    clean = (
        120
        + 50 * np.sin(x / 5) * np.cos((x + y) / 9)
        + 60 * (((y % 32) - 16) ** 2 + ((x % 40) - 20) ** 2 < 80)
    )
    clean[:, width // 2 :] -= 40
    if channels is not None:
        clean = np.stack([clean + 15 * c * np.sin(y / 7) for c in range(channels)], axis=-1)
    return clean, clean + np.random.default_rng(seed).normal(0, 20, clean.shape)


def assert_agreement(clean, noisy, tolerance=TOLERANCE, **options):
    """Denoise on both devices; the results and their quality must agree."""
    here = vnlem.denoise(noisy, **options)
    there, info = vnlem.denoise(noisy, device="cuda", return_info=True, **options)
    assert info.device == "cuda:0"
    assert type(there) is np.ndarray
    first, second = (psnr(clean, image, data_range=255) for image in (here, there))
    assert abs(first - second) < tolerance


@pytest.mark.parametrize("profile", ["fast", "balanced", "quality"])
@pytest.mark.parametrize("group", ["identity", "c4", "d4", "so2", "similarity"])
def test_vnlr_agrees_with_the_cpu(profile, group):
    assert_agreement(*scene(131, 118), sigma=20, profile=profile, group=group)


@pytest.mark.parametrize("channels", [None, 3])
@pytest.mark.parametrize("profile", ["fast", "balanced"])
def test_perception_agrees_with_the_cpu(profile, channels):
    clean, noisy = scene(131, 118, channels)
    axis = None if channels is None else -1
    assert_agreement(clean, noisy, sigma=20, profile=profile, aim="perception", channel_axis=axis)


@pytest.mark.parametrize("channels", [None, 3])
def test_several_scales_agree_with_the_cpu_and_stay_on_the_device(channels):
    cupy = pytest.importorskip("cupy")
    clean, noisy = scene(131, 118, channels)
    options = {"scales": 3, "channel_axis": None if channels is None else -1}
    assert_agreement(clean, noisy, sigma=20, **options)
    assert_agreement(clean, noisy, sigma=np.full(noisy.shape[:2], 20.0), **options)
    result, info = vnlem.denoise_vnlr(cupy.asarray(noisy), 20, return_info=True, **options)
    assert isinstance(result, cupy.ndarray)
    assert info.details["scales"] == 2
    np.testing.assert_array_equal(result.get(), vnlem.denoise_vnlr(noisy, 20, device="cuda", **options))


@pytest.mark.parametrize("size", [(8, 8), (9, 40), (64, 13), (130, 257)])
def test_vnlr_agrees_with_the_cpu_at_odd_sizes(size):
    assert_agreement(*scene(*size), sigma=20)


@pytest.mark.parametrize("channels", [2, 3, 4])
def test_vnlr_agrees_with_the_cpu_in_colour(channels):
    assert_agreement(*scene(90, 101, channels), sigma=20, channel_axis=-1)


def test_vnlr_agrees_with_the_cpu_under_a_map_of_the_noise():
    clean, noisy = scene(96, 80)
    assert_agreement(clean, noisy, sigma=np.linspace(5, 35, 80)[None].repeat(96, axis=0))


@pytest.mark.parametrize("sigma", [1e-3, 0.5, 5, 60])
def test_vnlr_agrees_with_the_cpu_at_any_noise(sigma):
    clean, _ = scene(80, 90)
    assert_agreement(clean, clean + np.random.default_rng(1).normal(0, sigma, clean.shape), sigma=sigma)


def test_nearly_all_members_are_the_same():
    cupy = pytest.importorskip("cupy")
    from groups_in_image import groups_in

    from vnlem.kernels.cuda.engine import Engine
    from vnlem.kernels.cuda.match import Field, References, match
    from vnlem.kernels.cuda.patches import patch_energy, patch_penalty
    from vnlem.neighbours.groups import grid_positions, symmetries

    size, radius, k = 7, 20, 64
    _, noisy = scene(160, 150)
    image = ((noisy - noisy.mean()) / noisy.std()).astype(np.float32)[None]
    rows, columns = (grid_positions(extent - size + 1, 5) for extent in image.shape[1:])
    corners = np.stack(np.meshgrid(rows, columns, indexing="ij"), axis=-1).reshape(-1, 2)
    rule = {"patch_size": size, "radius": radius, "n_members": k, "group": "d4"}
    places, transforms = groups_in(image, corners, **rule, factor=1.3, penalty=0.04, variance=0.1)
    engine, on_device = Engine(), cupy.asarray(image)
    variance = cupy.full(image.shape[1:], 0.1, np.float32)
    field = Field(
        image=on_device,
        sizes=cupy.asarray(np.array([image.shape[1:]], np.int32)),
        energy=patch_energy(engine, on_device, size),
        penalty=patch_penalty(engine, on_device, variance, size, share=0.04, flat=None),
        back=np.argsort(symmetries("d4", size), axis=1).astype(np.int16),
        patch_size=size,
        radius=radius,
        factor=1.3,
    )
    found = match(engine, field, References(*(cupy.asarray(p.astype(np.int32)) for p in (rows, columns))), k)
    here = (places[..., 0] * image.shape[2] + places[..., 1]) * 8 + transforms
    there = found.positions.get() * 8 + found.transforms.get()
    same = sum(len(np.intersect1d(a, b)) for a, b in zip(here, there, strict=True))
    assert same >= 0.99 * here.size


@pytest.mark.parametrize("method", ["vnlr", "vnlem", "vnlem-dd", "nlem", "nlpr", "nlm"])
def test_every_run_gives_the_same_bytes(method):
    _, noisy = scene(200, 190)
    results = [vnlem.denoise(noisy, 20, method=method, device="cuda") for _ in range(4)]
    for other in results[1:]:
        np.testing.assert_array_equal(other, results[0])


@pytest.mark.parametrize("shape", [(60, 70), (61, 67, 3), (300,)], ids=["grey", "colour", "signal"])
@pytest.mark.parametrize(("patch_size", "distance"), [(3, 6), (7, 10), (13, 4)])
def test_nlm_agrees_with_the_cpu(shape, patch_size, distance):
    clean, noisy = scene(64, 300, shape[2] if len(shape) == 3 else None)
    cut = tuple(slice(extent) for extent in shape[:2]) if len(shape) > 1 else (0,)
    options = {"patch_size": patch_size, "patch_distance": distance}
    axis = -1 if len(shape) == 3 else None
    assert_agreement(clean[cut], noisy[cut], sigma=20, method="nlm", channel_axis=axis, **options)


@pytest.mark.parametrize("shape", [(60, 70), (41, 37, 3), (300,)], ids=["grey", "colour", "signal"])
@pytest.mark.parametrize(
    "options",
    [{"method": "nlem"}, {"method": "nlem", "preset": "paper"}, {"method": "nlpr", "gamma": 0.5}],
    ids=["nlem", "nlem paper", "nlpr"],
)
def test_nlem_and_nlpr_agree_with_the_cpu(shape, options):
    clean, noisy = scene(64, 300, shape[2] if len(shape) == 3 else None)
    cut = tuple(slice(extent) for extent in shape[:2]) if len(shape) > 1 else (0,)
    if len(shape) == 1:
        options = options | {"n_neighbors": 11}
    assert_agreement(
        clean[cut], noisy[cut], sigma=20, channel_axis=-1 if len(shape) == 3 else None, **options
    )


@pytest.mark.parametrize("preset", ["paper", "auto"])
@pytest.mark.parametrize("channels", [None, 3])
def test_vnlem_agrees_with_the_cpu(preset, channels):
    clean, noisy = scene(60, 71, channels)
    assert_agreement(
        clean, noisy, sigma=20, method="vnlem", preset=preset, channel_axis=None if channels is None else -1
    )


@pytest.mark.parametrize(
    "given",
    [{"try_unrotated": True, "gamma": 0.5}, {"n_neighbors": 200}, {"n_neighbors": 128}, {"patch_size": 5}],
    ids=["as they are", "100 neighbours", "64 neighbours", "small patches"],
)
def test_vnlem_agrees_with_the_cpu_under_other_parameters(given):
    assert_agreement(*scene(60, 71), sigma=20, method="vnlem", preset="paper", **given)


def test_vnlem_agrees_with_the_cpu_beside_a_hot_pixel():
    clean, noisy = scene(60, 71)
    noisy[20, 30] = clean[20, 30] = 1e4
    options = {"method": "vnlem", "preset": "paper"}
    here, there = (vnlem.denoise(noisy, 20, device=device, **options) for device in ("cpu", "cuda"))
    assert np.isfinite(there).all()
    far = np.hypot(*(np.indices(clean.shape) - np.array([20, 30])[:, None, None])) > 30
    assert abs(np.std((here - clean)[far]) - np.std((there - clean)[far])) < 0.02


@pytest.mark.parametrize("unit", [1e-200, 1e-3, 1.0, 1e200])
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_statistics_are_those_of_numpy(unit, offset):
    cupy = pytest.importorskip("cupy")
    from vnlem.pipeline.units_on_gpu import moments, statistics

    image = np.random.default_rng(5).normal(offset, 3, (97, 131))
    there = cupy.asarray(image * unit)
    mean, deviation = moments(there)
    np.testing.assert_allclose([mean / unit, deviation / unit], [image.mean(), image.std()], rtol=1e-9)
    found = statistics(there)
    assert (found.lowest, found.highest) == ((image * unit).min(), (image * unit).max())


def test_what_is_not_finite_is_told():
    cupy = pytest.importorskip("cupy")
    image = scene(40, 50)[1]
    image[3, 4] = np.inf
    with pytest.raises(ValueError, match="1 NaN or infinite values, the first at index"):
        vnlem.denoise(cupy.asarray(image), 20)


@pytest.mark.parametrize("preset", ["paper", "auto"])
@pytest.mark.parametrize("channels", [None, 3])
def test_vnlem_dd_agrees_with_the_cpu(preset, channels):
    clean, noisy = scene(83, 92, channels)
    axis = None if channels is None else -1
    assert_agreement(clean, noisy, sigma=20, method="vnlem-dd", preset=preset, channel_axis=axis)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int32, np.float16, np.float32, np.float64])
def test_dtypes_come_back(dtype):
    _, noisy = scene(40, 44)
    result = vnlem.denoise(np.clip(noisy, 0, 255).astype(dtype), 20, device="cuda")
    assert result.dtype == dtype


def test_a_cupy_array_stays_on_its_device():
    cupy = pytest.importorskip("cupy")
    _, noisy = scene(50, 60)
    result, info = vnlem.denoise(cupy.asarray(noisy), 20, return_info=True)
    assert isinstance(result, cupy.ndarray)
    assert info.device == "cuda:0"
    np.testing.assert_array_equal(result.get(), vnlem.denoise(noisy, 20, device="cuda"))


def test_a_torch_tensor_stays_on_its_device():
    torch = pytest.importorskip("torch")
    _, noisy = scene(50, 60)
    result = vnlem.denoise(torch.as_tensor(noisy, device="cuda"), 20)
    assert isinstance(result, torch.Tensor)
    assert result.is_cuda
    np.testing.assert_array_equal(result.cpu().numpy(), vnlem.denoise(noisy, 20, device="cuda"))


def test_a_torch_tensor_on_the_host_is_an_array():
    torch = pytest.importorskip("torch")
    _, noisy = scene(30, 30)
    result = vnlem.denoise(torch.as_tensor(noisy), 20, method="nlm")
    assert isinstance(result, np.ndarray)


@pytest.fixture
def memory_limit():
    """A function that limits CuPy's memory to a number of bytes beyond what is in use."""
    cupy = pytest.importorskip("cupy")
    pool = cupy.get_default_memory_pool()

    def limit(size):
        gc.collect()
        pool.free_all_blocks()
        pool.set_limit(size=pool.used_bytes() + size)

    yield limit
    pool.set_limit(size=0)


SMALL_HALO = {"profile": "fast", "passes": 1, "patch_distance": 8}


@pytest.mark.parametrize(
    ("options", "size"),
    [
        ({"method": "nlm"}, 1000_000),
        ({"method": "nlpr"}, 1000_000),
        ({"method": "vnlem", "preset": "paper"}, 20_000_000),
        (SMALL_HALO, 6_000_000),
    ],
    ids=["nlm", "nlpr", "vnlem", "vnlr"],
)
def test_an_image_that_does_not_fit_is_solved_in_parts(memory_limit, options, size):
    _, noisy = scene(300, 280)
    expected = vnlem.denoise(noisy, 20, device="cuda", **options)
    memory_limit(size)
    result, info = vnlem.denoise(noisy, 20, device="cuda", return_info=True, **options)
    assert info.details["regions"] > 1
    np.testing.assert_allclose(result, expected, atol=1e-3)


@pytest.mark.parametrize(("group", "size"), [("d4", 30_000_000), ("so2", 60_000_000)])
def test_what_needs_parts_has_the_bytes_of_the_whole(memory_limit, monkeypatch, group, size):
    cupy = pytest.importorskip("cupy")
    from vnlem.methods.cuda import turned

    monkeypatch.setattr(turned, "BATCH_PIXELS", 2**18)
    image = cupy.asarray(scene(900, 880)[1])
    options = SMALL_HALO | {"group": group}
    expected = vnlem.denoise(image, 20, **options).get()
    # Room for the image in its units, not for what else VNLR holds.
    memory_limit(size)
    result, info = vnlem.denoise(image, 20, return_info=True, **options)
    assert isinstance(result, cupy.ndarray)
    assert info.details["regions"] > 1
    np.testing.assert_array_equal(result.get(), expected)


def test_an_image_that_does_not_fit_in_parts_is_told(memory_limit):
    _, noisy = scene(300, 280)
    memory_limit(2**17)
    with pytest.raises(MemoryError, match="GPU memory"):
        vnlem.denoise(noisy, 20, device="cuda")


@pytest.mark.parametrize("method", ["nlm", "vnlem"])
def test_a_stack_is_denoised_page_by_page(method):
    cupy = pytest.importorskip("cupy")
    _, noisy = scene(70, 66)
    movie = noisy + np.random.default_rng(3).normal(0, 5, (7, *noisy.shape))
    result = vnlem.denoise(movie, 20, axes="NYX", method=method, device="cuda")
    for page, found in zip(movie, result, strict=True):
        np.testing.assert_array_equal(found, vnlem.denoise(page, 20, method=method, device="cuda"))
    whole = np.clip(movie, 0, 255).astype(np.uint8)
    found = vnlem.denoise(list(whole), 20, axes="NYX", method=method, device="cuda")
    np.testing.assert_array_equal(found, [vnlem.denoise(p, 20, method=method, device="cuda") for p in whole])
    there = vnlem.denoise(cupy.asarray(movie), 20, axes="NYX", method=method)
    assert isinstance(there, cupy.ndarray)
    np.testing.assert_array_equal(there.get(), result)


@pytest.mark.parametrize("function", [vnlem.denoise, vnlem.denoise_vnlr])
def test_independent_channels_stay_on_their_device(function):
    cupy = pytest.importorskip("cupy")
    image = np.stack([scene(50, 60)[1], scene(60, 50, seed=1)[1].T])
    result = function(cupy.asarray(image), 20, channel_axis=0)
    assert isinstance(result, cupy.ndarray)
    np.testing.assert_array_equal(result.get(), function(image, 20, channel_axis=0, device="cuda"))


def test_a_device_that_does_not_exist_is_told():
    with pytest.raises(ValueError, match="'cuda:99' was requested"):
        vnlem.denoise(scene(20, 20)[1], 20, device="cuda:99")


def test_progress_reaches_the_end():
    seen = []
    vnlem.denoise(
        scene(40, 40)[1], 20, device="cuda", progress=lambda done, total: seen.append((done, total))
    )
    assert seen[-1][0] == seen[-1][1]
