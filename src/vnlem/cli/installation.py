"""The installation, for problem reports: ``vnlem info`` without a file."""

import platform
import sys

from vnlem import __version__


def installation() -> dict[str, str]:
    """Version, Python, NumPy, system, library, instruction set, cores and GPU, or what is wrong with them."""
    import numpy as np

    from vnlem.kernels.cpu import library
    from vnlem.pipeline.workers import available_cores

    try:
        instruction_set = library.instruction_set()
        library.load()
        path = str(library.path_of(instruction_set))
    except ImportError as error:
        instruction_set, path = "none", str(error)
    return {
        "vnlem": __version__,
        "python": f"{platform.python_version()} ({platform.python_implementation()}, {sys.executable})",
        "numpy": np.__version__,
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "library": path,
        "instructions": instruction_set,
        "cores": str(available_cores()),
        "gpu": _gpu(),
    }


def _gpu() -> str:
    from vnlem.pipeline.device import why_no_gpu

    reason = why_no_gpu()
    if reason is not None:
        return f"none ({reason})"
    import cupy

    runtime = cupy.cuda.runtime
    names = [
        runtime.getDeviceProperties(number)["name"].decode() for number in range(runtime.getDeviceCount())
    ]
    return f"{', '.join(names)} (CuPy {cupy.__version__}, CUDA {runtime.runtimeGetVersion() // 1000})"
