"""Compiles and starts the CUDA kernels through CuPy."""

import gc
import re
import struct
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache, lru_cache, wraps
from importlib.resources import files
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vnlem.pipeline.run import Job

Shape = tuple[int, ...]
Macros = tuple[tuple[str, int], ...]

THREADS = 256  # of a block, by default
# A block may have 48 KiB of shared memory without asking for more; some of it holds what kernels declare.
DEFAULT_SHARED = 24 * 1024

DYNAMIC_SHARED = (
    "#define DYNAMIC_SHARED(type, name) extern __shared__ __align__(16) unsigned char name##_bytes[]; "
    "type* name = (type*)name##_bytes\n"
)


@cache
def source_of(name: str) -> str:
    """The text of a file of kernels, with the common part in front and the files that it includes.

    >>> "__global__" in source_of("match")
    True
    """
    return "\n".join(_text_of(part) for part in ("common.cuh", f"{name}.cu"))


def _text_of(name: str) -> str:
    """A file, with included files inserted: the run-time compiler reads no files."""
    text = (files("vnlem.kernels.cuda") / name).read_text(encoding="utf-8")
    return re.sub(r'^#include "(.+)"$', lambda line: _text_of(line[1]), text, flags=re.MULTILINE)


def options_of(macros: dict[str, int]) -> tuple[str, ...]:
    """Compiler options: sizes are macros, to unroll loops over patches and groups.

    >>> options_of({"P": 7})
    ('-std=c++17', '-DP=7')
    """
    return ("-std=c++17", *(f"-D{name}={value}" for name, value in sorted(macros.items())))


class Engine:
    """A CUDA device with its array library `xp` (CuPy) and its kernels."""

    def __init__(self) -> None:
        import cupy

        self.xp: Any = cupy
        self.largest_shared = int(cupy.cuda.Device().attributes["MaxSharedMemoryPerBlockOptin"])
        self._rehearsed: set[tuple[str, Macros]] | None = None

    def free(self) -> None:
        """Return unused memory to the device."""
        gc.collect()
        self.xp.get_default_memory_pool().free_all_blocks()

    def constant(self, values: NDArray[Any]) -> Any:
        """A table of numbers on the device. Equal tables are copied there once, for all streams."""
        device = self.xp.cuda.Device().id
        key = (device, values.dtype.str, values.shape, values.tobytes())
        with _BRINGING:
            if key not in _CONSTANTS:
                if len(_CONSTANTS) >= MOST_CONSTANTS:
                    # Kernels that read them must end before their memory is reused.
                    self.xp.cuda.Device().synchronize()
                    _CONSTANTS.clear()
                # Not from the pool: an array that stays there keeps its whole block from being freed.
                try:
                    with self.xp.cuda.using_allocator(None):
                        _CONSTANTS[key] = self.xp.asarray(values)
                except self.xp.cuda.runtime.CUDARuntimeError:
                    # The pool holds all of the device, so it must make room.
                    _CONSTANTS[key] = self.xp.asarray(values)
                self.xp.cuda.get_current_stream().synchronize()
            return _CONSTANTS[key]

    def rehearse(self, key: Hashable, work: Callable[[], object]) -> None:
        """Compile all kernels `work` will start, in parallel; once for each `key`.

        `work` is called with launches only recorded: its results are meaningless.
        """
        device = self.xp.cuda.Device().id
        if (key, device) in _REHEARSED:
            return
        self._rehearsed = set()
        try:
            work()
            wanted = self._rehearsed
        finally:
            self._rehearsed = None

        def compile_one(module: tuple[str, Macros]) -> None:
            with self.xp.cuda.Device(device):
                _module(*module, device).compile()

        with ThreadPoolExecutor(max(len(wanted), 1)) as pool:
            list(pool.map(compile_one, sorted(wanted)))
        if len(_REHEARSED) >= MOST_REHEARSED:
            _REHEARSED.clear()
        _REHEARSED.add((key, device))

    def launch(
        self,
        name: str,
        grid: Shape,
        argument: dict[str, Any],
        *,
        kernel: str | None = None,
        threads: int = THREADS,
        shared: int = 0,
        **macros: int,
    ) -> None:
        """Start a kernel of the file `name` (the kernel of that name, unless `kernel` names another).

        grid: number of blocks along x, y, z.
        argument: the fields of the kernel's one argument, a struct: arrays as pointers, ints as int, floats
            as float, NumPy scalars unchanged.
        threads, shared: threads of a block and bytes of its dynamic shared memory.
        **macros: sizes the kernel is compiled for.
        """
        sizes = tuple(macros.items())
        if self._rehearsed is not None:
            self._rehearsed.add((name, sizes))
            return
        function = _compiled(name, kernel or name, sizes, self.xp.cuda.Device().id)
        if shared > DEFAULT_SHARED:
            function.max_dynamic_shared_size_bytes = shared
        function(grid, (threads,), (pack(argument, _device_pointer),), shared_mem=shared)


_REHEARSED: set[tuple[Hashable, int]] = set()
_CONSTANTS: dict[Hashable, Any] = {}
_BRINGING = Lock()
MOST_CONSTANTS = 256
MOST_REHEARSED = 256
# Pixels a side beyond which no window is cut off by the image: kernels of larger images are the same.
LARGE_SIDE = 256


def compiled_at_once(solve: Callable[[Job[Any], Engine], Any]) -> Callable[..., Any]:
    """A solver of a job on an engine that compiles its kernels in parallel before it begins.

    Without an engine it takes the current device.
    """

    @wraps(solve)
    def wrapped(job: Job[Any], engine: Engine | None = None) -> Any:
        engine = engine or Engine()
        # Real numbers are arguments of kernels, never sizes in macros.
        sizes = [value for value in vars(job.params).values() if not isinstance(value, float)]
        channels, *sides = job.pixels.shape
        key = (solve.__module__, repr(sizes), channels, *(min(side, LARGE_SIDE) for side in sides))
        engine.rehearse(key, lambda: solve(replace(job, progress=None, details={}), engine))
        return solve(job, engine)

    return wrapped


@cache
def _compiled(name: str, kernel: str, macros: Macros, device: int) -> Any:
    return _module(name, macros, device).get_function(kernel)


@cache
def _module(name: str, macros: Macros, device: int) -> Any:
    import cupy

    return cupy.RawModule(code=DYNAMIC_SHARED + source_of(name), options=options_of(dict(macros)))


def _device_pointer(array: Any) -> int:
    return int(array.data.ptr)


def pack(argument: dict[str, Any], pointer: Callable[[Any], int]) -> Any:
    """A struct by value, laid out as C does.

    >>> pack({"n": 3, "tau": 0.5, "image": None}, pointer=id).nbytes
    16
    """
    letters, values = "", []
    for value in argument.values():
        letter = _LETTERS.get(type(value))
        if letter is None and isinstance(value, np.generic):
            letter = value.dtype.char
        elif letter is None:
            letter, value = "P", 0 if value is None else pointer(value)
        letters += letter
        values.append(value)
    layout, opaque = _struct(letters)
    buffer = bytearray(layout.size)
    layout.pack_into(buffer, 0, *values)
    # CuPy examines every field of a struct; an opaque one has none.
    return np.ndarray((), opaque, buffer)


# Of `struct`, whose layout is that of C.
_LETTERS: dict[type, str] = {bool: "i", int: "i", float: "f"}


@lru_cache(maxsize=256)
def _struct(letters: str) -> tuple[struct.Struct, Any]:
    layout = struct.Struct(f"@{letters}0P")
    return layout, np.dtype((np.void, layout.size))
