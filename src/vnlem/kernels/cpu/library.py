"""The shared library of kernels: one for each instruction set, chosen when the first kernel is called."""

import ctypes
import functools
import os
import platform
import struct
import sys
from pathlib import Path

ABI = 10  # as in abi.h
FOLDER = Path(__file__).parent
VARIABLE = "VNLEM_ISA"
# Best first; `vnlem_best_isa` counts from the end.
X86 = ("x86-64-v4", "x86-64-v3", "x86-64-v2")
ARM = ("aarch64",)
_AGAIN = "install the package again: pip install --force-reinstall vnlem, or pip install -e . in a clone"
_ENDINGS = {"linux": ".so", "darwin": ".dylib", "win32": ".dll"}


def instruction_sets() -> tuple[str, ...]:
    """The instruction sets with a library for this kind of machine, best first."""
    machine = platform.machine().lower()
    if struct.calcsize("P") != 8:
        raise ImportError("vnlem needs a 64-bit Python, this one has 32 bits; install a 64-bit Python")
    if machine in ("x86_64", "amd64"):
        return X86
    if machine in ("aarch64", "arm64"):
        return ARM
    raise ImportError(f"vnlem has no kernels for {machine} processors; it runs on x86-64 and aarch64")


def path_of(instruction_set: str) -> Path:
    """Where the library for an instruction set is."""
    return FOLDER / f"vnlem-{instruction_set}{_ENDINGS.get(sys.platform, '.so')}"


def _open(instruction_set: str, loader: type[ctypes.CDLL]) -> ctypes.CDLL:
    path = path_of(instruction_set)
    try:
        library = loader(str(path))
    except OSError as error:
        if not path.exists():
            raise ImportError(f"the compiled kernels {path.name} are missing in {FOLDER}; {_AGAIN}") from None
        raise ImportError(f"the compiled kernels {path.name} cannot be loaded: {error}") from None
    found = library.vnlem_abi()
    if found != ABI:
        raise ImportError(
            f"the compiled kernels {path.name} are of another version "
            f"(interface {found}, need {ABI}); {_AGAIN}"
        )
    return library


@functools.cache
def instruction_set() -> str:
    """The best instruction set of this processor, or the one named by VNLEM_ISA."""
    known = instruction_sets()
    available = known
    if len(known) > 1:
        baseline = _open(known[-1], ctypes.CDLL)
        best = baseline.vnlem_best_isa()
        if best == 0:
            raise ImportError(
                f"vnlem needs a processor with {known[-1]} (SSE4.2), which this one lacks; "
                "use a processor made after 2009"
            )
        available = known[len(known) - best :]
    wanted = os.environ.get(VARIABLE)
    if not wanted:
        return available[0]
    if wanted not in known:
        raise ImportError(f"{VARIABLE} must be one of {', '.join(known)}, got {wanted!r}")
    if wanted not in available:
        raise ImportError(
            f"{VARIABLE}={wanted} cannot run on this processor, which has {', '.join(available)}; "
            f"unset {VARIABLE}"
        )
    return wanted


@functools.cache
def load(keeps_lock: bool = False) -> ctypes.CDLL:
    """The library of kernels; its functions release Python's lock unless `keeps_lock`."""
    return _open(instruction_set(), ctypes.PyDLL if keeps_lock else ctypes.CDLL)
