"""Copies between the host and a GPU through page-locked memory, which the device reads and writes directly.

The pages of a stack are copied while the device works on other pages.
"""

import importlib
import math
import threading
from typing import Any

import numpy as np

from vnlem.pipeline.device import lies_on_gpu, to_host

# Page-locked memory is scarce: larger pages are copied without it.
MOST_BYTES = 2**28


class Carrier:
    """Between the host and a device, for threads that each work on a page, on their own stream.

    >>> carrier = Carrier("cpu")
    >>> carrier.take_back(carrier.bring(np.zeros((2, 3))), np.zeros((2, 3))).shape
    (2, 3)
    """

    def __init__(self, device: str) -> None:
        cuda = None if device == "cpu" else importlib.import_module("cupy").cuda
        self._cuda: Any = cuda if hasattr(cuda, "alloc_pinned_memory") else None
        self._own = threading.local()

    def bring(self, page: Any) -> Any:
        """A page as an array on the device; unchanged if it is there already, or does not fit."""
        if self._cuda is None or lies_on_gpu(page):
            return page
        page = np.asarray(page)
        if page.dtype.kind not in "iuf" or not page.dtype.isnative or not 0 < page.nbytes <= MOST_BYTES:
            return page
        try:
            there = importlib.import_module("cupy").empty(page.shape, page.dtype)
        except MemoryError:
            return page
        # A thread's last page has left its buffer: the thread waited for it.
        held = getattr(self._own, "buffer", None)
        if held is None or held.nbytes < page.nbytes:
            held = self._own.buffer = _locked(self._cuda, (page.nbytes,), np.dtype(np.uint8))
        staged = held[: page.nbytes].view(page.dtype).reshape(page.shape)
        staged[...] = page
        there.data.copy_from_host_async(staged.ctypes.data, page.nbytes)
        return there

    def take_back(self, result: Any, given: Any) -> Any:
        """The result of a page, on the device the page came from."""
        return result if lies_on_gpu(given) else to_locked_host(result)


def to_locked_host(array: Any) -> Any:
    """An array as NumPy's, in page-locked memory if it comes from a GPU and is not too large.

    >>> to_locked_host(np.zeros(3)).shape
    (3,)
    """
    if not lies_on_gpu(array):
        return array
    cupy = importlib.import_module("cupy")
    if not hasattr(cupy.cuda, "alloc_pinned_memory") or not 0 < array.nbytes <= MOST_BYTES:
        return to_host(array)
    array = cupy.ascontiguousarray(array)
    out = _locked(cupy.cuda, array.shape, array.dtype)
    array.data.copy_to_host_async(out.ctypes.data, array.nbytes)
    cupy.cuda.get_current_stream().synchronize()
    return out


def _locked(cuda: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    """Page-locked memory, which returns to CuPy's pool with its last array."""
    count = math.prod(shape)
    memory = cuda.alloc_pinned_memory(count * dtype.itemsize)
    return np.frombuffer(memory, dtype, count).reshape(shape)
