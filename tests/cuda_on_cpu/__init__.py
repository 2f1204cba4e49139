"""Runs the package's CUDA kernels on a CPU, to test them without a GPU.

The kernels are compiled as C++ with a header that emulates CUDA; arrays are NumPy's.
"""

import atexit
import ctypes
import hashlib
import re
import shutil
import subprocess
import tempfile
import threading
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from vnlem.kernels.cuda.engine import THREADS, options_of, pack, source_of

COMPILER = shutil.which("g++") or shutil.which("clang++")
FLAGS = ("-O1", "-w", "-fPIC", "-shared", "-U_FORTIFY_SOURCE")
_COMMAND = (COMPILER, *FLAGS)
_KERNEL = re.compile(r'extern "C" __global__ void (?:__launch_bounds__\(.*?\) )?(\w+)\(')
_LOCK = threading.Lock()
_HEADER = Path(__file__).with_name("cuda_on_cpu.h")
_FOLDER = Path(tempfile.gettempdir()) / "vnlem-cuda-on-cpu"


class Emulator:
    """Stands in for :class:`vnlem.kernels.cuda.engine.Engine`."""

    xp: Any = np

    def __init__(self, largest_shared: int = 227 * 1024) -> None:
        self.largest_shared = largest_shared

    def free(self):
        """Memory is the host's."""

    def constant(self, values):
        """Tables are NumPy's already."""
        return values

    def rehearse(self, key, work):
        """Kernels are compiled when they are called."""

    def launch(self, name, grid, argument, *, kernel=None, threads=THREADS, shared=0, **macros):
        library = _library(name, kernel or name, options_of(macros))
        struct = pack(argument, lambda array: array.ctypes.data)
        assert shared <= self.largest_shared
        size = (ctypes.c_int * 3)(*(*grid, 1, 1)[:3])
        arguments = (ctypes.c_void_p * 1)(struct.ctypes.data)
        # The emulated device is one set of variables in each library.
        with _LOCK:
            getattr(library, f"launch_{kernel or name}")(size, threads, shared, arguments)


@cache
def _library(name: str, kernel: str, options: tuple[str, ...]) -> ctypes.CDLL:
    """The file of a kernel with these macros; several processes may compile it at once."""
    source = f'#include "{_HEADER.name}"\n' + source_of(name)
    for each in sorted({kernel, *_unconditional_kernels(source)}):
        source += (
            f'\nextern "C" void launch_{each}(const int* grid, int threads, int shared, void** arguments) '
            f"{{ emulated::launch({each}, grid, threads, shared, arguments); }}"
        )
    key = hashlib.sha256((source + _HEADER.read_text() + repr((FLAGS, options))).encode()).hexdigest()[:16]
    library = _FOLDER / f"{name}-{key}.so"
    if not library.exists():
        _FOLDER.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=_FOLDER) as folder:
            written, partial = Path(folder) / f"{name}.cpp", Path(folder) / library.name
            written.write_text(source)
            subprocess.run([*_COMMAND, "-I", _header_folder(), *options, written, "-o", partial], check=True)
            partial.rename(library)
    return ctypes.CDLL(str(library))


@cache
def _header_folder() -> str:
    """The header in a folder of this process, adapted to the compiler."""
    folder = tempfile.mkdtemp(dir=_FOLDER)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    header = shutil.copy(_HEADER, folder)
    subprocess.run(
        [*_COMMAND, *options_of({}), "-x", "c++-header", header, "-o", f"{header}.gch"], check=True
    )
    return folder


def _unconditional_kernels(source: str) -> list[str]:
    """Kernels that exist for any macros, to be compiled together."""
    found, depth = [], 0
    for line in source.splitlines():
        depth += line.startswith("#if") - line.startswith("#endif")
        if depth == 0:
            found += _KERNEL.findall(line)
    return found
