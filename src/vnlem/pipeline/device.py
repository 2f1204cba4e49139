"""The device of a call, and arrays of other libraries: the result has the type of the input."""

import importlib
import re
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import Any, TypeVar, cast

import numpy as np

from vnlem.pipeline.warn import said_once

INSTALL = "pip install 'vnlem[gpu]' (CUDA 13) or 'vnlem[gpu12]' (CUDA 12)"
_CUDA = 2  # DLPack's number of the device type
AT_ONCE = 3  # pages in flight on a device: one is uploaded and one downloaded while one is processed

Returned = TypeVar("Returned")
Item = TypeVar("Item")


class DeviceMemoryError(MemoryError):
    """Says what did not fit into a device's memory, and what to do about it."""


def namespace(array: Any) -> Any:
    """The library of an array: CuPy for its own, NumPy for everything else.

    >>> namespace(np.zeros(3)).__name__
    'numpy'
    """
    if _library_of(array) == "cupy":
        return sys.modules["cupy"]
    return np


@dataclass(frozen=True)
class Placement:
    """Where one call runs."""

    name: str  # "cpu", "cuda:0", ...
    array: Any  # the image as an array of the library that works there, or convertible to one
    given: Any  # the original image

    def beside(self, values: Any) -> Any:
        """More values (a noise level, a map of it) on the image's device; single numbers are unchanged."""
        if lies_on_gpu(self.array) and np.ndim(values) > 0:
            return _to_device(importlib.import_module("cupy"), values)
        return to_host(values) if lies_on_gpu(values) else values

    def give_back(self, result: Any) -> Any:
        """A result as an array of the image's library."""
        if self.name == "cpu" or isinstance(result, list):
            return result
        if not lies_on_gpu(self.given):
            return _in_byte_order(to_host(result), self.given)
        result = _to_device(importlib.import_module("cupy"), result)
        library = _library_of(self.given)
        if library == "cupy":
            return result
        back = getattr(importlib.import_module(library), "from_dlpack", None)
        if library == "jax":
            back = importlib.import_module("jax.dlpack").from_dlpack
        return result if back is None else back(result)


@contextmanager
def placed(image: Any, device: str | None, in_pages: bool = False) -> Iterator[Placement]:
    """Move an image to the device of the call; inside, that device is the current one.

    An image that does not fit there stays on the host.

    image: a NumPy array or convertible to one; or an array on a GPU: CuPy's, or one that supports DLPack.
    device: "cpu", "cuda", "cuda:1", ...; None: where the image lies; "auto": a GPU if there is one.
    in_pages: leave an image on the host there: its pages are copied one by one.

    >>> with placed([[1.0, 2.0]], None) as place:
    ...     print(place.name, place.array)
    cpu [[1.0, 2.0]]
    """
    name = choose(device, image)
    if name == "cpu":
        yield Placement(name, to_host(image) if lies_on_gpu(image) else image, image)
        return
    cupy = importlib.import_module("cupy")
    with _gpu(name):
        try:
            yield Placement(
                name, image if in_pages and not lies_on_gpu(image) else _fitting(cupy, image), image
            )
        except DeviceMemoryError:
            raise
        except MemoryError as error:
            raise DeviceMemoryError(
                f"an image of shape {np.shape(image)} needs more GPU memory than is free, even in parts; "
                "free some or pass device='cpu'"
            ) from error


@contextmanager
def current(device: str) -> Iterator[None]:
    """Inside, a device, "cpu" or "cuda:N", is the current one for solvers.

    >>> with current("cpu"):
    ...     pass
    """
    with nullcontext() if device == "cpu" else _gpu(device):
        yield


def _gpu(device: str) -> Any:
    return importlib.import_module("cupy").cuda.Device(int(device.partition(":")[2]))


def run_where_asked(
    work: Callable[[Any, Any, str], Returned],
    image: Any,
    sigma: Any,
    device: str | None,
    *,
    in_pages: bool = False,
) -> Returned:
    """Call work(image, sigma, device) on a device, with arrays there and the name "cpu" or "cuda:N".

    Its result, an image or a tuple that begins with one, is returned as an array of the library of the given
    image. If GPU memory is too small, the call is tried again with the image on the host. Each warning is
    issued once.

    >>> run_where_asked(lambda image, sigma, device: (image, device), [1.0, 2.0], None, "cpu")
    ([1.0, 2.0], 'cpu')
    """
    result: Any
    with said_once(), placed(image, device, in_pages) as place:
        # Outside the handler the arrays of the failed attempt are freed.
        fits = True
        try:
            result = work(place.array, place.beside(sigma), place.name)
        except MemoryError:
            fits = not lies_on_gpu(place.array)
            if fits:
                raise
        if not fits:
            result = work(to_host(place.array), place.beside(sigma), place.name)
        if isinstance(result, tuple):
            return cast(Returned, (place.give_back(result[0]), *result[1:]))
        return cast(Returned, place.give_back(result))


def is_lazy(image: Any) -> bool:
    """Whether an image is a dask array, which is computed and copied to a device part by part.

    >>> is_lazy(np.zeros((2, 2)))
    False
    """
    return type(image).__module__.startswith("dask.array")


def side_by_side(device: str, work: Callable[[Item], Returned], items: Iterable[Item]) -> Iterator[Returned]:
    """work(item) for all items, in order; on a GPU several are in flight, each on its own stream.

    The calling thread takes items when their turn comes.

    >>> list(side_by_side("cpu", lambda number: number**2, range(4)))
    [0, 1, 4, 9]
    """
    if device == "cpu":
        yield from map(work, items)
        return
    cupy = importlib.import_module("cupy")
    cuda = cupy.cuda
    number = int(device.partition(":")[2])
    cuda.get_current_stream().synchronize()

    with cuda.Device(number):
        idle = deque(_streams(cupy, number))

    def on_stream(item: Item) -> Returned:
        stream = idle.popleft()
        try:
            with cuda.Device(number), stream:
                result = work(item)
                stream.synchronize()
                return result
        finally:
            idle.append(stream)

    waiting = iter(items)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        under_way = deque(pool.submit(on_stream, item) for item in islice(waiting, AT_ONCE))
        while under_way:
            result = under_way.popleft().result()
            under_way.extend(pool.submit(on_stream, item) for item in islice(waiting, 1))
            yield result


@cache
def _streams(cupy: Any, device: int) -> tuple[Any, ...]:
    """Streams of the current device. CuPy keeps freed memory for its stream: new streams would have none."""
    return tuple(cupy.cuda.Stream(non_blocking=True) for _ in range(AT_ONCE))


def on_current_gpu(array: Any) -> Any:
    """A NumPy array as CuPy's, on the current device."""
    return importlib.import_module("cupy").asarray(array)


def to_host(array: Any) -> Any:
    """An array as NumPy's.

    >>> to_host(np.zeros(3)).shape
    (3,)
    """
    if _library_of(array) == "torch":
        return array.detach().cpu().numpy()
    return array.get() if hasattr(array, "get") else np.asarray(array)


def choose(device: str | None, image: Any = None) -> str:
    """The device of a call, "cpu" or "cuda:N", or one sentence that says why it is not available.

    >>> choose("cpu")
    'cpu'
    """
    if device is None:
        if not lies_on_gpu(image):
            return "cpu"
        _need_gpu("an array on a GPU")
        return f"cuda:{_number_of(image)}"
    matched = re.fullmatch(r"(cpu|auto|cuda)(?::(\d+))?", str(device))
    if matched is None or (matched[2] is not None and matched[1] != "cuda"):
        raise ValueError(f"device must be 'cpu', 'cuda', 'cuda:N' or 'auto', got {device!r}")
    if matched[1] == "cpu":
        return "cpu"
    if matched[1] == "cuda":
        _need_gpu(f"device={device!r}")
    elif why_no_gpu() is not None:
        return "cpu"
    if matched[2] is None:
        return f"cuda:{_number_of(image) if lies_on_gpu(image) else 0}"
    count = importlib.import_module("cupy").cuda.runtime.getDeviceCount()
    if int(matched[2]) >= count:
        raise ValueError(
            f"device {device!r} was requested, but there {'is' if count == 1 else 'are'} {count} GPU"
            f"{'' if count == 1 else 's'}: use {', '.join(repr(f'cuda:{i}') for i in range(count))}"
        )
    return f"cuda:{int(matched[2])}"


def why_no_gpu() -> str | None:
    """None if CuPy is installed and a device answers; else what is missing and how to get it."""
    try:
        cupy = importlib.import_module("cupy")
    except ImportError:
        return f"needs CuPy, which is not installed: {INSTALL}"
    try:
        if cupy.cuda.runtime.getDeviceCount() > 0:
            return None
    except Exception as error:
        return f"needs a CUDA GPU, but none answers ({error}); use device='cpu'"
    return "needs a CUDA GPU, but there is none; use device='cpu'"


def lies_on_gpu(array: Any) -> bool:
    """Whether an array's memory is a CUDA device's.

    >>> lies_on_gpu(np.zeros(3)), lies_on_gpu([1, 2])
    (False, False)
    """
    if hasattr(array, "__dlpack_device__"):
        return bool(array.__dlpack_device__()[0] == _CUDA)
    # A tensor on a CPU raises an error here.
    try:
        return hasattr(array, "__cuda_array_interface__")
    except Exception:
        return False


def _need_gpu(what: str) -> None:
    reason = why_no_gpu()
    if reason is not None:
        raise ValueError(f"{what} {reason}")


def _library_of(array: Any) -> str:
    name = type(array).__module__.partition(".")[0]
    return "jax" if name == "jaxlib" else name


def _number_of(array: Any) -> int:
    if hasattr(array, "__dlpack_device__"):
        return int(array.__dlpack_device__()[1])
    return 0


def _to_device(cupy: Any, image: Any) -> Any:
    if _library_of(image) == "cupy" or not lies_on_gpu(image):
        return cupy.asarray(image)
    if _library_of(image) == "torch":
        image = image.detach()
    return cupy.from_dlpack(image) if hasattr(image, "__dlpack__") else cupy.asarray(image)


def _in_byte_order(result: Any, given: Any) -> Any:
    """A result in the byte order of the input: a GPU knows only the machine's own."""
    if isinstance(given, np.ndarray) and result.dtype == given.dtype.newbyteorder("="):
        return result.astype(given.dtype, copy=False)
    return result


def _fitting(cupy: Any, image: Any) -> Any:
    """An image on the device, or on the host if it does not fit or its dtype is unknown to GPUs."""
    if not lies_on_gpu(image):
        from vnlem.pipeline import checks

        image = checks.as_array("the image", image)
        if image.dtype.kind not in "biufc" or image.dtype.itemsize > 16 or image.dtype == np.longdouble:
            return image
    try:
        return _to_device(cupy, image)
    except MemoryError:
        return to_host(image)
