"""Where a call runs: the choice of a device, its errors, and arrays of other libraries, with a fake CuPy."""

import sys
import types
from dataclasses import replace

import numpy as np
import pytest
from cuda_on_cpu import COMPILER, Emulator

import vnlem
from vnlem.kernels.cuda import engine
from vnlem.methods.vnlr_params import VnlrParams, resolve
from vnlem.pipeline import device as devices
from vnlem.pipeline.device import choose
from vnlem.pipeline.regions import Region
from vnlem.pipeline.run import Job
from vnlem.pipeline.tiles import Tile
from vnlem.registry import find_method

ENGINE = engine.Engine


class FakeArray(np.ndarray):
    """A NumPy array that says it is CuPy's and lies on a GPU."""

    __module__ = "cupy"
    number = 0

    def __dlpack_device__(self):
        return (2, self.number)

    def get(self):
        return np.array(self)


class FakeTensor:
    """A CUDA tensor of torch, as far as vnlem uses it."""

    __module__ = "torch"

    def __init__(self, array):
        self.array, self.ndim = array, array.ndim

    def __dlpack_device__(self):
        return (2, 0)

    def __dlpack__(self):
        return None

    def detach(self):
        return self

    def cpu(self):
        return self

    def numpy(self):
        return np.array(self.array)


@pytest.fixture
def fake_gpu(monkeypatch):
    """CuPy with one GPU, emulated by NumPy and cuda_on_cpu."""
    cupy = types.ModuleType("cupy")
    cupy.__dict__.update({name: getattr(np, name) for name in dir(np) if not name.startswith("__")})
    cupy.ndarray = FakeArray
    cupy.asarray = lambda values: np.asarray(values).view(FakeArray)
    cupy.from_dlpack = lambda tensor: tensor.array.view(FakeArray)
    cupy.cuda = types.SimpleNamespace(
        runtime=types.SimpleNamespace(getDeviceCount=lambda: 1),
    )

    class Device:
        def __init__(self, number=0):
            self.id = number

        def __enter__(self):
            return self

        def __exit__(self, *error):
            return None

    class Stream(Device):
        def __init__(self, non_blocking=False):
            super().__init__()

        def synchronize(self):
            """Everything is done at once."""

    cupy.cuda.Device, cupy.cuda.Stream = Device, Stream
    cupy.cuda.get_current_stream = Stream
    torch = types.ModuleType("torch")
    torch.from_dlpack = torch.Tensor = FakeTensor
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setattr(engine, "Engine", Emulator)
    return cupy


@pytest.fixture
def no_cupy(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)


def noisy(shape=(12, 16), dtype=np.float32):
    image = np.random.default_rng(0).normal(60, 10, shape)
    image[:, shape[1] // 2 :] += 80
    return image.astype(dtype)


needs_compiler = pytest.mark.skipif(COMPILER is None, reason="needs a C++ compiler")


@pytest.mark.usefixtures("no_cupy")
@pytest.mark.parametrize("device", ["cuda", "cuda:0"])
def test_without_cupy_the_error_says_what_to_install(device):
    with pytest.raises(ValueError, match=r"needs CuPy, which is not installed: pip install 'vnlem\[gpu\]'"):
        vnlem.denoise(noisy(), 10, method="nlm", device=device)


@pytest.mark.usefixtures("no_cupy")
def test_auto_runs_on_the_cpu_where_there_is_no_gpu():
    _, info = vnlem.denoise(noisy(), 10, method="nlm", device="auto", return_info=True)
    assert info.device == "cpu"


def test_a_gpu_that_does_not_answer_is_told(fake_gpu):
    def broken():
        raise RuntimeError("driver is too old")

    fake_gpu.cuda.runtime.getDeviceCount = broken
    with pytest.raises(ValueError, match=r"none answers \(driver is too old\); use device='cpu'"):
        vnlem.denoise(noisy(), 10, method="nlm", device="cuda")
    assert choose("auto") == "cpu"


def test_no_gpu_at_all_is_told(fake_gpu):
    fake_gpu.cuda.runtime.getDeviceCount = lambda: 0
    with pytest.raises(ValueError, match="there is none; use device='cpu'"):
        choose("cuda")


@pytest.mark.usefixtures("fake_gpu")
def test_a_second_gpu_where_there_is_one_is_told():
    with pytest.raises(ValueError, match="'cuda:1' was requested, but there is 1 GPU: use 'cuda:0'"):
        vnlem.denoise(noisy(), 10, method="nlm", device="cuda:1")


@pytest.mark.parametrize("device", ["gpu", "cuda:", "cpu:1", "auto:0", "cuda:-1", 0])
def test_names_that_are_no_devices_are_told(device):
    with pytest.raises(ValueError, match="device must be 'cpu', 'cuda', 'cuda:N' or 'auto'"):
        vnlem.denoise(noisy(), 10, method="nlm", device=device)


@pytest.mark.usefixtures("fake_gpu")
def test_what_has_no_cuda_engine_is_told(monkeypatch):
    nlpr = find_method("nlpr")
    without = replace(nlpr, engines={"fast": nlpr.engines["fast"]})
    monkeypatch.setattr("vnlem.methods.nlem.NLPR", without)
    with pytest.raises(ValueError, match="nlpr does not run on a GPU; pass device='cpu'"):
        vnlem.denoise(noisy(), 10, method="nlpr", device="cuda")
    with pytest.raises(ValueError, match="search='image' runs on the CPU only"):
        vnlem.denoise(noisy(), 10, method="vnlem", search="image", device="cuda")
    with pytest.raises(ValueError, match="scope='image' runs on the CPU only"):
        vnlem.denoise(noisy(), 10, method="vnlem-dd", scope="image", device="cuda")
    with pytest.raises(ValueError, match="engine='reference' runs on the CPU only"):
        vnlem.denoise_nlm(noisy(), 10, engine="reference", device="cuda")


@needs_compiler
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.uint8, np.int16])
def test_numpy_in_gives_numpy_out(fake_gpu, dtype):
    image = noisy(dtype=dtype)
    result, info = vnlem.denoise(image, 10, method="nlm", device="cuda", return_info=True)
    assert type(result) is np.ndarray
    assert result.dtype == dtype
    assert info.device == "cuda:0"
    tolerance = 1 if np.dtype(dtype).kind in "iu" else 1e-3
    np.testing.assert_allclose(result, vnlem.denoise(image, 10, method="nlm"), atol=tolerance)


@needs_compiler
def test_a_cupy_array_runs_where_it_lies(fake_gpu):
    result, info = vnlem.denoise(fake_gpu.asarray(noisy()), 10, method="nlm", return_info=True)
    assert type(result) is FakeArray
    assert info.device == "cuda:0"


@needs_compiler
@pytest.mark.usefixtures("fake_gpu")
def test_a_tensor_comes_back_as_a_tensor():
    result = vnlem.denoise(FakeTensor(noisy()), 10, method="nlm")
    assert type(result) is FakeTensor
    assert type(result.array) is FakeArray


@needs_compiler
def test_a_cupy_array_is_denoised_on_the_cpu_when_asked(fake_gpu):
    result, info = vnlem.denoise(fake_gpu.asarray(noisy()), 10, method="nlm", device="cpu", return_info=True)
    assert info.device == "cpu"
    np.testing.assert_array_equal(result, vnlem.denoise(noisy(), 10, method="nlm"))


@needs_compiler
def test_noise_models_work_around_the_device(fake_gpu):
    image = np.random.default_rng(2).poisson(30, (14, 18)).astype(np.uint16)
    options = {"method": "nlm", "noise_model": "poisson-gaussian", "gain": 1.0}
    result = vnlem.denoise(fake_gpu.asarray(image), **options)
    assert type(result) is FakeArray
    np.testing.assert_allclose(np.asarray(result), vnlem.denoise(image, **options), atol=1)


@needs_compiler
def test_an_unknown_noise_level_is_estimated(fake_gpu):
    image = noisy((40, 40))
    _, info = vnlem.denoise(fake_gpu.asarray(image), method="nlm", return_info=True)
    assert info.sigma == pytest.approx(vnlem.estimate_sigma(image))


@needs_compiler
@pytest.mark.parametrize("function", [vnlem.denoise, vnlem.denoise_vnlr])
@pytest.mark.parametrize("sigma", [10, (10, 8)], ids=["one level", "a level for each channel"])
def test_independent_channels_come_back_as_what_they_were(fake_gpu, function, sigma):
    image = np.stack([noisy((20, 22)), noisy((22, 20)).T[::-1]])
    options = {"channel_axis": 0, "channels": "separate", "passes": 1, "patch_distance": 4, "n_neighbors": 8}
    result, info = function(fake_gpu.asarray(image), sigma, return_info=True, **options)
    assert type(result) is FakeArray
    assert info.device == "cuda:0"
    np.testing.assert_allclose(np.asarray(result), function(image, sigma, **options), atol=0.1)


@needs_compiler
@pytest.mark.parametrize("channels", ["auto", "joint"])
def test_channels_are_looked_at_on_the_host_once(fake_gpu, monkeypatch, channels):
    brought = []
    monkeypatch.setattr(
        "vnlem.call.to_host", lambda array: brought.append(array.shape) or devices.to_host(array)
    )
    image = np.stack([noisy((40, 44)), 0.5 * noisy((40, 44))])
    options = {"channel_axis": 0, "passes": 1, "patch_distance": 4, "n_neighbors": 8, "scales": 2}
    vnlem.denoise(fake_gpu.asarray(image), 10, channels=channels, **options)
    assert brought == ([image.shape] if channels == "auto" else [])


def test_parts_of_a_large_image_rehearse_once():
    keys = []
    pixels = np.zeros((1, 600, 700), np.float32)
    solver = engine.compiled_at_once(lambda job, device: job.pixels)
    device = types.SimpleNamespace(rehearse=lambda key, work: keys.append(key))
    params = VnlrParams(**vars(resolve(0.5, "fast")))
    for number in range(3):
        region = Region((5000, 5000), Tile(0, 100, 0, 100 * number + 100), Tile(0, 600, 0, 700))
        solver(Job(pixels[:, : 600 - number], 0.5, params, 1, None, region=region), device)
    assert len(set(keys)) == 1
    solver(Job(pixels[:, :40], 0.5, params, 1, None), device)
    solver(Job(np.zeros((3, 600, 700), np.float32), 0.5, params, 1, None), device)
    assert len(set(keys)) == 3


def test_arguments_of_a_kernel_are_laid_out_as_in_c():
    array = np.arange(3.0)
    values = {
        "some": array,
        "count": 3,
        "all": np.int64(2**40),
        "is_first": True,
        "none": None,
        "share": 0.1,
        "exact": np.float64(0.1),
        "few": np.uint8(7),
    }
    kinds = ["u8", "i4", "i8", "i4", "u8", "f4", "f8", "u1"]
    layout = np.dtype(list(zip(values, kinds, strict=True)), align=True)
    found = engine.pack(values, lambda given: given.ctypes.data)
    assert found.nbytes == layout.itemsize
    read = np.frombuffer(found.tobytes(), layout)[0]
    given = values | {"some": array.ctypes.data, "none": 0, "share": np.float32(0.1)}
    assert read.tolist() == tuple(np.asarray(value).item() for value in given.values())


def test_what_was_rehearsed_is_not_kept_for_ever(fake_gpu, monkeypatch):
    monkeypatch.setattr(engine, "_REHEARSED", set())
    device = ENGINE.__new__(ENGINE)
    device.xp = fake_gpu
    worked = []
    for key in [*range(2 * engine.MOST_REHEARSED), 2 * engine.MOST_REHEARSED - 1]:
        device.rehearse(key, lambda key=key: worked.append(key))
    assert len(worked) == 2 * engine.MOST_REHEARSED
    assert len(engine._REHEARSED) <= engine.MOST_REHEARSED


@needs_compiler
def test_an_image_that_does_not_fit_is_brought_in_parts(fake_gpu, monkeypatch):
    image = noisy((70, 150))
    expected = vnlem.denoise(image, 10, method="nlm", device="cuda")

    def small(values):
        if np.size(values) > 9500:
            raise MemoryError
        return np.asarray(values).view(FakeArray)

    monkeypatch.setattr(fake_gpu, "asarray", small)
    result, info = vnlem.denoise(image, 10, method="nlm", device="cuda", return_info=True)
    assert type(result) is np.ndarray
    assert info.device == "cuda:0"
    np.testing.assert_allclose(result, expected, atol=1e-4)


@needs_compiler
@pytest.mark.parametrize(
    "options", [{}, {"noise_model": "poisson-gaussian", "gain": 2.0}], ids=["white", "photons"]
)
def test_pages_of_a_stack_come_back_in_order(fake_gpu, options):
    movie = np.stack([noisy((14, 18)) + 5 * number for number in range(5)])
    sigma = None if options else 10
    expected = vnlem.denoise(movie, sigma, axes="NYX", method="nlm", **options)
    result, info = vnlem.denoise(
        fake_gpu.asarray(movie), sigma, axes="NYX", method="nlm", return_info=True, **options
    )
    assert type(result) is FakeArray
    assert info.device == "cuda:0"
    np.testing.assert_allclose(np.asarray(result), expected, atol=1e-2)
    there = vnlem.denoise(movie, sigma, axes="NYX", method="nlm", device="cuda", **options)
    assert type(there) is np.ndarray
    np.testing.assert_array_equal(there, np.asarray(result))


@needs_compiler
@pytest.mark.usefixtures("fake_gpu")
def test_a_set_of_images_of_different_sizes_is_denoised_on_a_gpu():
    images = [noisy((12, 16)), noisy((14, 12))]
    result = vnlem.denoise(images, 10, method="nlm", device="cuda")
    for image, page in zip(images, result, strict=True):
        np.testing.assert_allclose(page, vnlem.denoise(image, 10, method="nlm"), atol=1e-2)


@needs_compiler
@pytest.mark.parametrize(
    "options",
    [{"axes": "TYX", "method": "nlm"}, {"axes": "ZYX", "profile": "fast", "patch_distance": 3, "passes": 1}],
    ids=["nlm", "vnlr"],
)
def test_pages_help_each_other_on_a_gpu(fake_gpu, options):
    movie = np.stack([noisy((14, 18)) + 5 * number for number in range(4)])
    there, info = vnlem.denoise(movie, 10, device="cuda", return_info=True, **options)
    assert type(there) is np.ndarray
    assert info.device == "cuda:0"
    np.testing.assert_allclose(there, vnlem.denoise(movie, 10, **options), atol=1e-2)
    stays = vnlem.denoise(fake_gpu.asarray(movie), 10, **options)
    assert type(stays) is FakeArray
    np.testing.assert_array_equal(np.asarray(stays), there)


@pytest.mark.usefixtures("fake_gpu")
@pytest.mark.parametrize("method", ["nlm", "vnlr"])
def test_the_reference_of_a_stack_runs_on_the_cpu_only(method):
    movie = np.zeros((3, 20, 20)) + noisy((20, 20))
    with pytest.raises(ValueError, match="engine='reference' runs on the CPU only; pass device='cpu'"):
        vnlem.denoise(movie, 10, axes="TYX", method=method, engine="reference", device="cuda")
