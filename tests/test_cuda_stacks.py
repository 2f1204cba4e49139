"""Stacks on an emulated device against the CPU (see cuda_on_cpu)."""

import weakref

import numpy as np
import pytest
from cuda_on_cpu import COMPILER, Emulator

from vnlem.methods import nlm_stack, vnlr_stack
from vnlem.methods.cuda import nlm_stack as cuda_nlm_stack
from vnlem.methods.cuda import sites
from vnlem.methods.cuda import vnlr_stack as cuda_vnlr_stack
from vnlem.methods.vnlr_stack_params import resolve_stack
from vnlem.neighbours import alike
from vnlem.pipeline.stack_task import StackTask

pytestmark = [pytest.mark.slow, pytest.mark.skipif(COMPILER is None, reason="needs a C++ compiler")]

SMALL = {"patch_size": 4, "n_neighbors": 10, "patch_distance": 3, "step": 3, "passes": 2, "plane_distance": 1}


def drifting(n_planes, height=15, width=17, speed=2):
    """A pattern that moves by whole pixels from plane to plane, with noise of standard deviation 0.5."""
    y, x = np.mgrid[: height + speed * n_planes, : width + speed * n_planes]
    scene = np.sin(0.5 * x + 0.01 * y**1.6) + 0.7 * ((y // 9 + x // 7) % 2)
    clean = [scene[speed * t : speed * t + height, speed * t : speed * t + width] for t in range(n_planes)]
    return (clean + np.random.default_rng(1).normal(0, 0.5, (n_planes, height, width))).astype(np.float32)


def vnlr_on_both(kind, planes, engine=None, **given):
    """The planes from the CPU and from the emulated device."""
    params = resolve_stack(kind, len(planes), **(SMALL | given))
    channels = 1 if planes[0].ndim == 2 else len(planes[0])
    task = StackTask(kind, [plane.shape[-2:] for plane in planes], 0.5, channels=channels)
    here = list(vnlr_stack.solve_stack(iter(planes), task, params))
    there = list(cuda_vnlr_stack.solve_stack(iter(planes), task, params, engine or Emulator()))
    return here, there


@pytest.mark.parametrize(
    ("kind", "depth", "group"),
    [("T", 2, "d4"), ("T", 1, "identity"), ("T", 1, "c4"), ("Z", 3, "d4"), ("Z", 3, "c4"), ("N", 1, "d4")],
)
def test_vnlr_gives_what_the_cpu_gives(kind, depth, group):
    planes = drifting(6)
    here, there = vnlr_on_both(kind, planes, group=group, patch_depth=depth)
    np.testing.assert_allclose(there, here, atol=2e-5)
    assert np.abs(np.array(there) - planes).max() > 0.3


@pytest.mark.parametrize(("kind", "channels"), [("T", 3), ("Z", 3), ("N", 3), ("T", 2), ("Z", 2)])
def test_channels_together_give_what_the_cpu_gives(kind, channels):
    grey = drifting(5)[:, None]
    noise = np.random.default_rng(4).normal(0, 0.3, (5, channels, 15, 17))
    planes = (grey * np.linspace(1, 0.4, channels)[:, None, None] + noise).astype(np.float32)
    here, there = vnlr_on_both(kind, planes, **({} if kind == "N" else {"patch_depth": 2}))
    assert np.shape(there) == planes.shape
    np.testing.assert_allclose(there, here, atol=2e-5)
    assert np.abs(np.array(there) - planes).max() > 0.3


def test_the_first_pass_may_have_other_patches():
    planes = drifting(5)
    params = resolve_stack("T", 5, n_neighbors=10, patch_distance=3, passes=2, plane_distance=1)
    assert params.depths[0] > params.depths[1]
    task = StackTask("T", [planes[0].shape] * 5, 0.5)
    here = list(vnlr_stack.solve_stack(iter(planes), task, params))
    there = list(cuda_vnlr_stack.solve_stack(iter(planes), task, params, Emulator()))
    np.testing.assert_allclose(there, here, atol=2e-5)


def test_planes_in_flight_move_on_in_a_long_stack():
    here, there = vnlr_on_both("T", drifting(12, speed=1), passes=1)
    np.testing.assert_allclose(there, here, atol=2e-5)


@pytest.mark.parametrize("delay", [1, 2, 5])
def test_a_delay_gives_what_the_cpu_gives(delay):
    here, there = vnlr_on_both("T", drifting(10, speed=1), delay=delay)
    np.testing.assert_allclose(there, here, atol=2e-5)


def test_colours_with_a_delay_give_what_the_cpu_gives():
    planes = np.stack([drifting(8, speed=1), 0.6 * drifting(8), drifting(8, speed=1)[:, ::-1]], axis=1)
    given = {"delay": 3, "passes": 2, "plane_distance": 2, "patch_depth": None, "patch_size": None}
    here, there = vnlr_on_both("T", planes, **given)
    np.testing.assert_allclose(there, here, atol=2e-5)


def test_with_a_delay_no_frame_is_asked_for_before_its_time():
    planes, delay = drifting(9, speed=1), 2
    taken = []

    def camera():
        for number, plane in enumerate(planes):
            taken.append(number)
            yield plane

    params = resolve_stack("T", 1000, **(SMALL | {"delay": delay}))
    task = StackTask("T", [planes[0].shape] * 1000, 0.5)
    for number, _ in enumerate(cuda_vnlr_stack.solve_stack(camera(), task, params, Emulator())):
        assert len(taken) <= min(number + delay + 1, len(planes))
    assert number == len(planes) - 1


def test_images_of_several_sizes_give_what_the_cpu_gives():
    planes = drifting(3, height=18, width=19)
    images = [planes[0], planes[1][:11, :9], planes[2][:6, :13]]
    for here, there in zip(*vnlr_on_both("N", images, n_neighbors=30), strict=True):
        assert here.shape == there.shape
        np.testing.assert_allclose(there, here, atol=2e-5)


def test_brighter_planes_later_in_a_stack_leave_room_in_the_sums():
    planes = drifting(5) * np.array([1, 1, 1e4, 1, 1e6], np.float32)[:, None, None]
    here, there = vnlr_on_both("T", planes, passes=1)
    for a, b in zip(here, there, strict=True):
        np.testing.assert_allclose(b, a, atol=1e-4 * np.abs(a).max())


@pytest.mark.parametrize("memory", [24, 16], ids=["ranks outside", "windows outside too"])
@pytest.mark.parametrize("kind", ["T", "N"])
def test_vnlr_does_without_much_shared_memory(kind, memory):
    planes = drifting(4)
    roomy = vnlr_on_both(kind, planes, passes=1, patch_distance=6)[1]
    narrow = vnlr_on_both(kind, planes, Emulator(memory * 1024), passes=1, patch_distance=6)[1]
    np.testing.assert_array_equal(narrow, roomy)


class LimitedNumpy:
    """NumPy with a limit on the bytes it holds at a time."""

    def __init__(self, most):
        self.most, self.taken, self.refused = most, 0, 0

    def __getattr__(self, name):
        return getattr(np, name)

    def zeros(self, shape, dtype):
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        if self.taken + size > self.most:
            self.refused += 1
            raise MemoryError
        array = np.zeros(shape, dtype)
        self.taken += size
        weakref.finalize(array, self.give_back, size)
        return array

    def give_back(self, size):
        self.taken -= size


@pytest.mark.parametrize("kind", ["T", "N"])
def test_passes_that_do_not_fit_side_by_side_go_one_after_the_other(kind):
    planes = drifting(8)
    expected = vnlr_on_both(kind, planes)[1]
    engine = Emulator()
    # Room for one of three passes.
    engine.xp = LimitedNumpy(130_000)
    result = vnlr_on_both(kind, planes, engine)[1]
    assert engine.xp.refused == 1
    np.testing.assert_array_equal(result, expected)


def test_planes_that_do_not_fit_are_told():
    engine = Emulator()
    engine.xp = LimitedNumpy(10_000)
    message = "4 planes of 15x17 pixels, held together, need more GPU memory than is free; pass a smaller"
    with pytest.raises(MemoryError, match=message):
        vnlr_on_both("T", drifting(8), engine, patch_depth=2)
    task = StackTask("T", [(15, 17)] * 8, 0.5)
    params, _ = nlm_stack.prepare(task)
    engine.xp = LimitedNumpy(5_000)
    with pytest.raises(MemoryError, match="5 planes of 15x17 pixels, held together, need more GPU memory"):
        next(cuda_nlm_stack.solve_stack(iter(drifting(8)), task, params, engine))


def test_windows_in_too_many_planes_are_an_error():
    params = resolve_stack("Z", 140, **(SMALL | {"plane_distance": 64, "patch_depth": 1}))
    task = StackTask("Z", [(9, 9)] * 140, 0.5)
    with pytest.raises(
        ValueError, match="windows in 129 planes are too many for this device; pass a smaller"
    ):
        next(cuda_vnlr_stack.solve_stack(iter(drifting(140, 9, 9, 0)), task, params, Emulator()))


@pytest.mark.parametrize("noisy", [True, False])
def test_images_are_ranked_by_the_same_features(noisy):
    image = drifting(1, 31, 26)[0]
    found = sites.invariants(Emulator(), image, alike.SCALES[noisy])
    np.testing.assert_allclose(found, alike.invariants(image, alike.SCALES[noisy]), atol=1e-6)


@pytest.mark.parametrize(("size", "distance"), [((20, 40), 4), ((70, 33), 2), ((9, 8), 10)])
@pytest.mark.parametrize("plane_distance", [0, 2])
def test_nlm_gives_what_the_cpu_gives(size, distance, plane_distance):
    planes = drifting(8, *size)
    task = StackTask("T", [size] * len(planes), 0.5)
    params, _ = nlm_stack.prepare(task, patch_distance=distance, plane_distance=plane_distance)
    here = list(nlm_stack.solve_stack(iter(planes), task, params))
    there = list(cuda_nlm_stack.solve_stack(iter(planes), task, params, Emulator()))
    np.testing.assert_allclose(there, here, atol=2e-5)


def test_nlm_with_a_window_that_is_too_large_for_a_device_is_an_error():
    task = StackTask("T", [(40, 40)] * 2, 0.5)
    params, _ = nlm_stack.prepare(task, patch_distance=20)
    with pytest.raises(ValueError, match="a window of 41 pixels is too large for this device"):
        next(cuda_nlm_stack.solve_stack(iter(drifting(2, 40, 40)), task, params, Emulator(16 * 1024)))
