"""On a real CUDA device: the tolerance to the CPU, the same bytes every time, array types, errors, memory."""

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


def agree(clean, noisy, tolerance=TOLERANCE, **options):
    """Denoise on both devices; the results and their quality must agree."""
    here = vnlem.denoise(noisy, **options)
    there, info = vnlem.denoise(noisy, device="cuda", return_info=True, **options)
    assert info.device == "cuda:0"
    assert type(there) is np.ndarray
    first, second = (psnr(clean, image, data_range=255) for image in (here, there))
    assert abs(first - second) < tolerance


@pytest.mark.parametrize("profile", ["fast", "balanced", "quality"])
@pytest.mark.parametrize("group", ["identity", "c4", "d4", "so2"])
def test_vnlr_agrees_with_the_cpu(profile, group):
    # The CPU turns what lies around a tile, a device the whole image: the copies are not the same pixels.
    tolerance = 0.05 if group == "so2" else TOLERANCE
    agree(*scene(131, 118), tolerance, sigma=20, profile=profile, group=group)


@pytest.mark.parametrize("size", [(8, 8), (9, 40), (64, 13), (130, 257)])
def test_vnlr_agrees_with_the_cpu_at_odd_sizes(size):
    agree(*scene(*size), sigma=20)


@pytest.mark.parametrize("channels", [2, 3, 4])
def test_vnlr_agrees_with_the_cpu_in_colour(channels):
    agree(*scene(90, 101, channels), sigma=20, channel_axis=-1)


def test_vnlr_agrees_with_the_cpu_under_a_map_of_the_noise():
    clean, noisy = scene(96, 80)
    agree(clean, noisy, sigma=np.linspace(5, 35, 80)[None].repeat(96, axis=0))


@pytest.mark.parametrize("sigma", [1e-3, 5, 60])
def test_vnlr_agrees_with_the_cpu_at_any_noise(sigma):
    clean, _ = scene(80, 90)
    agree(clean, clean + np.random.default_rng(1).normal(0, sigma, clean.shape), sigma=sigma)


def test_nearly_all_members_are_the_same():
    cupy = pytest.importorskip("cupy")
    from vnlem.kernels.cuda.engine import Engine
    from vnlem.kernels.cuda.match import Field, References, match
    from vnlem.kernels.cuda.patches import patch_energy, patch_penalty
    from vnlem.neighbours.groups import grid_positions, groups_in, symmetries

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
        on_device,
        patch_energy(engine, on_device, size),
        patch_penalty(engine, on_device, variance, size, share=0.04, flat=None),
        np.argsort(symmetries("d4", size), axis=1).astype(np.int16),
        [(0, *image.shape[1:])],
        None,
        size,
        radius,
        1.3,
        1,
    )
    found = match(engine, field, References(*(cupy.asarray(p.astype(np.int32)) for p in (rows, columns))), k)
    here = (places[..., 0] * image.shape[2] + places[..., 1]) * 8 + transforms
    there = found.positions.get() * 8 + found.transforms.get()
    same = sum(len(np.intersect1d(a, b)) for a, b in zip(here, there, strict=True))
    assert same >= 0.99 * here.size


@pytest.mark.parametrize("method", ["vnlr", "vnlem", "nlm"])
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
    agree(clean[cut], noisy[cut], sigma=20, method="nlm", channel_axis=axis, **options)


@pytest.mark.parametrize("preset", ["paper", "auto"])
@pytest.mark.parametrize("channels", [None, 3])
def test_vnlem_agrees_with_the_cpu(preset, channels):
    clean, noisy = scene(60, 71, channels)
    agree(
        clean, noisy, sigma=20, method="vnlem", preset=preset, channel_axis=None if channels is None else -1
    )


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


def test_an_image_that_does_not_fit_is_told():
    cupy = pytest.importorskip("cupy")
    _, noisy = scene(300, 280)
    expected = vnlem.denoise(noisy, 20, device="cuda")
    pool = cupy.get_default_memory_pool()
    pool.free_all_blocks()
    try:
        pool.set_limit(size=pool.used_bytes() + 2**20)
        with pytest.raises(MemoryError, match="GPU memory"):
            vnlem.denoise(noisy, 20, device="cuda")
    finally:
        pool.set_limit(size=0)
    np.testing.assert_array_equal(vnlem.denoise(noisy, 20, device="cuda"), expected)


def test_a_device_that_does_not_exist_is_told():
    with pytest.raises(ValueError, match="'cuda:99' was asked for"):
        vnlem.denoise(scene(20, 20)[1], 20, device="cuda:99")


def test_progress_reaches_the_end():
    seen = []
    vnlem.denoise(
        scene(40, 40)[1], 20, device="cuda", progress=lambda done, total: seen.append((done, total))
    )
    assert seen[-1][0] == seen[-1][1]
