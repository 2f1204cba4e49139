"""Cameras whose pixels differ: calibrated from darks and flat fields, and evened out."""

import numpy as np
import pytest
import zarr
from skimage import data

import vnlem
from vnlem import io
from vnlem.noise import NoiseModel
from vnlem.noise.calibrate import calibrate_sensor

SHAPE = (128, 128)


class Camera:
    """An sCMOS camera of 12 bits."""

    def __init__(self, seed=0):
        self.rng = np.random.default_rng(seed)
        self.gain = (
            2.0 * (1 + 0.03 * self.rng.normal(size=SHAPE)) * (1 + 0.03 * self.rng.normal(size=(1, SHAPE[1])))
        )
        self.offset = 100 + 3 * self.rng.normal(size=SHAPE) + 4 * self.rng.normal(size=(1, SHAPE[1]))
        self.read_noise = np.exp(np.log(3) + 0.4 * self.rng.normal(size=SHAPE))
        self.read_noise[self.rng.random(SHAPE) < 0.005] *= 8

    def frame(self, photons):
        counted = self.rng.poisson(np.broadcast_to(photons, SHAPE))
        values = self.offset + self.gain * counted + self.read_noise * self.rng.normal(size=SHAPE)
        return np.clip(np.round(values), 0, 4095).astype(np.uint16)

    def calibration(self, darks=100, flats=30, levels=(100, 400)):
        # The light falls off towards the corners.
        light = 1 - 0.15 * np.add.outer(np.linspace(-1, 1, SHAPE[0]) ** 2, np.linspace(-1, 1, SHAPE[1]) ** 2)
        return [self.frame(0) for _ in range(darks)], [
            [self.frame(level * light) for _ in range(flats)] for level in levels
        ]


@pytest.fixture(scope="module")
def camera():
    return Camera()


@pytest.fixture(scope="module")
def model(camera):
    return calibrate_sensor(*camera.calibration())


@pytest.fixture(scope="module")
def photons():
    return data.camera()[128:384:2, 128:384:2] * 50 / 255


def error(result, photons, model=None):
    """Root mean square error in photons, by the gain and offset of the usual pixel."""
    gain, offset = (2.0, 100.0) if model is None else (model.gain.gain, model.gain.offset)
    return np.sqrt(np.mean(((np.asarray(result, float) - offset) / gain - photons) ** 2))


def test_the_maps_are_those_of_the_camera(camera, model):
    sensor = model.maps.sensor
    assert np.std(sensor.offset - camera.offset) < 0.6
    assert np.std(sensor.gain - camera.gain) < 0.4 * np.std(camera.gain)
    assert abs(np.median(sensor.gain) / np.median(camera.gain) - 1) < 0.03
    assert np.corrcoef(np.log(sensor.read_noise).ravel(), np.log(camera.read_noise).ravel())[0, 1] > 0.9


def test_few_frames_give_the_usual_read_noise(camera):
    few = calibrate_sensor(*camera.calibration(darks=4, flats=4)).maps.sensor
    assert np.std(np.log(few.read_noise / camera.read_noise)) < np.std(np.log(camera.read_noise)) + 0.1
    assert abs(np.median(few.gain) / 2 - 1) < 0.1


@pytest.mark.slow
def test_maps_are_better_than_numbers(camera, model, photons):
    image = camera.frame(photons).astype(np.float32)
    maps = {"gain": camera.gain, "offset": camera.offset, "read_noise": camera.read_noise}
    with_maps = error(vnlem.denoise(image, noise_model=model), photons, model)
    given = error(vnlem.denoise(image, **maps), photons, NoiseModel.camera(**maps))
    numbers = error(vnlem.denoise(image, gain=2.0, offset=100.0, read_noise=3.0), photons)
    assert with_maps < 0.75 * numbers
    assert given < 0.75 * numbers
    rng = np.random.default_rng(1)
    ideal = (100 + 2 * rng.poisson(photons) + 3 * rng.normal(size=SHAPE)).astype(np.float32)
    best = error(vnlem.denoise(ideal, gain=2.0, offset=100.0, read_noise=3.0), photons)
    assert given < 1.15 * best
    assert with_maps < 1.2 * best


def test_even_maps_are_numbers(camera, photons):
    image = camera.frame(photons)
    maps = {"gain": np.full(SHAPE, 2.0), "offset": 100.0, "read_noise": np.full(SHAPE, 3.0)}
    expected = vnlem.denoise(image, gain=2.0, offset=100.0, read_noise=3.0, profile="fast")
    np.testing.assert_array_equal(vnlem.denoise(image, **maps, profile="fast"), expected)


def test_a_saturated_pixel_keeps_its_value(camera, model, photons):
    image = camera.frame(photons)
    image[40:42, 50:53] = 4095
    bright = calibrate_sensor(*camera.calibration(darks=20, flats=6, levels=(200, 5000)))
    assert bright.maps.sensor.saturation == 4095
    result = vnlem.denoise(image, noise_model=bright, profile="fast")
    assert (result[40:42, 50:53] == 4095).all()
    full = np.where(image == 4095, 65535, image).astype(np.uint16)  # the last value of the dtype
    assert (vnlem.denoise(full, noise_model=model, profile="fast")[40:42, 50:53] == 65535).all()


def test_defects_are_replaced(camera, photons):
    darks, flats = camera.calibration(darks=20, flats=6)
    for frame in (frame for level in flats for frame in level):
        frame[60, 60] = 100  # blind
    model = calibrate_sensor(darks, flats)
    assert np.isinf(model.maps.sensor.read_noise[60, 60])
    assert "1 defect pixels" in model.describe()
    image = camera.frame(photons)
    image[60, 60] = 3000
    result = vnlem.denoise(image, noise_model=model, profile="fast")
    around = np.r_[result[59, 59:62], result[61, 59:62]].astype(float)
    assert around.min() - 30 < result[60, 60] < around.max() + 30


def test_pages_of_a_stack_share_the_maps(camera, model, photons):
    stack = np.stack([camera.frame(photons) for _ in range(4)]).astype(np.float32)
    clean = np.stack([photons] * 4)
    result = vnlem.denoise(stack, axes="TYX", noise_model=model, profile="fast")
    numbers = vnlem.denoise(stack, axes="TYX", gain=2.0, offset=100.0, read_noise=3.0, profile="fast")
    assert error(result, clean, model) < 0.75 * error(numbers, clean)


def test_a_calibration_is_saved_and_loaded(model, tmp_path):
    model.save(tmp_path / "camera.json")
    loaded = NoiseModel.load(tmp_path / "camera.json")
    assert loaded == model
    assert loaded.kind == "poisson-gaussian with maps"
    assert loaded.maps.sensor.saturation == model.maps.sensor.saturation
    pytest.importorskip("matplotlib")
    loaded.draw(tmp_path / "camera.png")
    assert (tmp_path / "camera.png").stat().st_size > 1000


def test_the_command_line_calibrates_and_denoises(cli, camera, photons, tmp_path):
    darks, flats = camera.calibration(darks=12, flats=6)
    io.write(tmp_path / "darks.tif", io.Picture(np.stack(darks)))
    folder = tmp_path / "flats"
    folder.mkdir()
    for number, frame in enumerate(flats[0]):
        np.save(folder / f"{number}.npy", frame)
    io.write(tmp_path / "bright.tif", io.Picture(np.stack(flats[1])))
    status, out, _ = cli(
        "noise", "--dark", tmp_path / "darks.tif", "--flat", folder, "--flat", tmp_path / "bright.tif",
        "--out", tmp_path / "camera.json",
    )  # fmt: skip
    assert status == 0
    assert "pixels calibrated one by one" in out
    assert NoiseModel.load(tmp_path / "camera.json") == calibrate_sensor(darks, flats)
    image = camera.frame(photons)
    np.save(tmp_path / "in.npy", image)
    options = ("--noise", tmp_path / "camera.json", "--profile", "fast")
    assert cli("denoise", tmp_path / "in.npy", tmp_path / "out.npy", *options)[0] == 0
    expected = vnlem.denoise(image, noise_model=NoiseModel.load(tmp_path / "camera.json"), profile="fast")
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), expected)


@pytest.mark.parametrize(
    ("maps", "message"),
    [
        ({"gain": np.ones((8, 8))}, "for an image of 8x8 pixels, and the image has 128x128"),
        ({"gain": -np.ones(SHAPE)}, "gain must be larger than 0, and 16384 of its 16384 values are not"),
        ({"gain": np.ones(SHAPE), "read_noise": -1.0}, "read_noise must not be negative"),
        ({"gain": np.ones(SHAPE), "offset": np.ones((4, 4))}, "maps of one shape, got"),
        ({"gain": np.ones((2, *SHAPE))}, "gain must be a number or a map"),
        ({"gain": np.full(SHAPE, np.nan)}, "gain holds 16384 NaN"),
        ({"gain": 1.0, "read_noise": np.full(SHAPE, np.inf)}, "more than half of the pixels are defects"),
        ({"offset": np.ones(SHAPE)}, "offset and read_noise need gain too"),
    ],
)
def test_wrong_maps_are_refused_in_one_sentence(maps, message):
    with pytest.raises(ValueError, match=message):
        vnlem.denoise(np.ones(SHAPE), **maps)


def flat(value, count=4, shape=SHAPE):
    rng = np.random.default_rng(0)
    return [np.clip(rng.normal(value, 5, shape), 0, 4095).astype(np.uint16) for _ in range(count)]


@pytest.mark.parametrize(
    ("darks", "flats", "message"),
    [
        (flat(100), [flat(6000)], "all flat fields are saturated"),
        (flat(100), [flat(100)], "all flat fields are as dark as the darks"),
        (flat(100), [], "gain needs flat fields"),
        (flat(100, 1), [flat(900)], "the darks need at least 2 frames"),
        (flat(100), [flat(900, shape=(64, 64))], "use the same region of interest"),
        (flat(0), [flat(900)], "most dark pixels lie at zero"),
        ([np.zeros((2, 4, 4))] * 2, [flat(900)], "must be grey frames"),
        (flat(100), [[np.full(SHAPE, 900, np.uint16)] * 3], "vary no more than the darks"),
    ],
)
def test_wrong_frames_are_refused_in_one_sentence(darks, flats, message):
    with pytest.raises(ValueError, match=message):
        calibrate_sensor(darks, flats)


@pytest.mark.parametrize("stack", [False, True])
def test_parts_have_the_bytes_of_the_whole(camera, model, photons, tmp_path, stack):
    frames = np.stack([camera.frame(photons) for _ in range(3)])
    frames[:, 20:22, 30:33] = 65535
    image, axes = (frames, "tyx") if stack else (frames[0], "yx")
    given = zarr.create_array(
        tmp_path / "in.zarr", shape=image.shape, dtype=image.dtype, chunks=(1, 64, 64)[-image.ndim :]
    )
    given[:] = image
    options = {"noise_model": model, "profile": "fast"}
    expected = vnlem.denoise(image, **options, **({"axes": "TYX"} if stack else {"scales": 1}))
    more = {} if stack else {"scales": 1}
    vnlem.denoise_large(given, tmp_path / "out.zarr", axes=axes, **options, **more)
    result = zarr.open_array(tmp_path / "out.zarr")[:]
    np.testing.assert_array_equal(result, expected)
    assert (result[..., 20:22, 30:33] == 65535).all()


def test_parts_take_maps_as_arrays_and_refuse_those_of_another_shape(camera, photons, tmp_path):
    image = camera.frame(photons)
    maps = {"gain": camera.gain, "offset": camera.offset, "read_noise": camera.read_noise}
    vnlem.denoise_large(image, tmp_path / "out.zarr", **maps, profile="fast")
    result = zarr.open_group(tmp_path / "out.zarr")["0"][:]
    np.testing.assert_array_equal(result, vnlem.denoise(image, **maps, profile="fast"))
    with pytest.raises(ValueError, match="for an image of 128x128 pixels, and the image has 64x64"):
        vnlem.denoise_large(image[:64, :64], tmp_path / "other.zarr", **maps)


def test_the_command_line_refuses_half_a_calibration(cli, tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((8, 8)))
    for options, message in (
        (("--flat", tmp_path / "x.npy"), "pass --dark"),
        ((tmp_path / "x.npy", "--dark", tmp_path / "x.npy"), "without an image"),
        ((), "name an image"),
    ):
        status, _, err = cli("noise", *options)
        assert status == 2
        assert message in err


def test_the_channels_of_a_stack_with_maps_cannot_be_joint():
    ones = np.ones((24, 24))
    stack = np.random.default_rng(0).poisson(50, (3, 3, 24, 24)).astype(float)
    with pytest.raises(ValueError, match=r"channels='joint' is not possible; leave channels out"):
        vnlem.denoise(stack, gain=ones, offset=ones, read_noise=ones, axes="TCYX", channels="joint")
