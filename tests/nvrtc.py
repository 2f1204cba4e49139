"""NVIDIA's run-time compiler through ctypes: compiles CUDA sources on a machine without a GPU.

The library comes from the wheel ``nvidia-cuda-nvrtc`` (or ``nvidia-cuda-nvrtc-cu12``).
"""

import ctypes
import importlib.util
from functools import cache
from pathlib import Path


@cache
def library() -> ctypes.CDLL | None:
    """The compiler, or None if it is not installed."""
    found = importlib.util.find_spec("nvidia")
    for folder in found.submodule_search_locations if found else ():
        for path in sorted(Path(folder).glob("*/lib/libnvrtc.so*")):
            if "builtins" not in path.name:
                return ctypes.CDLL(str(path))
    return None


def compile_source(source: str, options: tuple[str, ...], architecture: str = "sm_90") -> str:
    """Compile a source; returns the compiler's log, or raises with it if there are errors."""
    nvrtc = library()
    program = ctypes.c_void_p()
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"kernels.cu", 0, None, None)
    given = [option.encode() for option in (*options, f"--gpu-architecture={architecture}")]
    status = nvrtc.nvrtcCompileProgram(program, len(given), (ctypes.c_char_p * len(given))(*given))
    size = ctypes.c_size_t()
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetProgramLog(program, log)
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    if status != 0:
        raise RuntimeError(log.value.decode())
    return log.value.decode()
