"""How pip builds the package (PEP 517): scikit-build-core with CMake, and Zig if there is no C++ compiler.

Zig comes from the package registry (`ziglang`) and is requested only if the kernels need it: if no compiler
can compile them, or VNLEM_TARGET names another system, as in `make wheels`.
"""

import base64
import contextlib
import hashlib
import importlib.util
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from scikit_build_core import build as backend
from scikit_build_core.build import (  # noqa: F401
    build_sdist,
    get_requires_for_build_sdist,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

ROOT = Path(__file__).resolve().parents[1]
KERNELS = ROOT / "src" / "vnlem" / "kernels" / "cpu"
# A system as Zig names it.
TARGET = os.environ.get("VNLEM_TARGET", "")
ZIG = "ziglang>=0.13"
CURE = "install a C++ compiler (GCC 12, Clang 14 or newer) or let pip install ziglang"
# What older compilers lack.
PROBE = """
#include <cmath>
typedef float Four __attribute__((vector_size(16)));
typedef int Ints __attribute__((vector_size(16)));
extern "C" Four probe(Four a, Ints b) {
    return __builtin_shufflevector(a, __builtin_convertvector(b, Four), 0, 4, 1, 5) * std::sqrt(a[0]);
}
"""

Settings = dict[str, Any] | None


def get_requires_for_build_wheel(config_settings: Settings = None) -> list[str]:
    """CMake and Ninja if the system has none, Zig if it has no compiler."""
    needed = backend.get_requires_for_build_wheel(config_settings)
    if find_compiler():
        return needed
    if not find_zig() and not _can_install(ZIG):
        _fail("no C++ compiler was found, and pip finds no ziglang to take its place")
    return [*needed, ZIG]


get_requires_for_build_editable = get_requires_for_build_wheel


def build_wheel(folder: str, config_settings: Settings = None, metadata_folder: str | None = None) -> str:
    """A wheel with the libraries in it."""
    defined = {f"cmake.define.{name}": value for name, value in compiler_options().items()}
    return backend.build_wheel(folder, {**defined, **(config_settings or {})}, metadata_folder)


def build_editable(folder: str, config_settings: Settings = None, metadata_folder: str | None = None) -> str:
    """A wheel that points to this folder, and the libraries next to their sources."""
    if not os.access(KERNELS, os.W_OK):
        _fail(f"{KERNELS} cannot be written to", "use a copy that can, or install the package without -e")
    build_kernels(ROOT / "build" / "kernels", VNLEM_IN_PLACE="ON")
    # Not scikit-build-core's own editable wheel: that puts a module finder before PYTHONPATH.
    with tempfile.TemporaryDirectory() as place:
        about = Path(place) / prepare_metadata_for_build_editable(place, config_settings)
        tag = (about / "WHEEL").read_text().partition("Tag: ")[2].split()[0]
        files = {
            f"{about.name}/{f.relative_to(about).as_posix()}": f.read_bytes()
            for f in about.rglob("*")
            if f.is_file()
        }
    files["vnlem.pth"] = f"{ROOT / 'src'}\n".encode()
    record = [f"{name},sha256={_digest(content)},{len(content)}\n" for name, content in files.items()]
    listing = f"{about.name}/RECORD"
    files[listing] = "".join([*record, f"{listing},,\n"]).encode()
    wheel = f"{about.name.removesuffix('.dist-info')}-{tag}.whl"
    with zipfile.ZipFile(Path(folder) / wheel, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return wheel


def _digest(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def build_kernels(folder: Path, **options: str) -> None:
    """Configure with CMake in a folder, and build what has changed.

    Zig builds in a separate folder, whose name ends in -zig.
    """
    options = {**compiler_options(), **options}
    if "VNLEM_ZIG" in options:
        # Every build may find Zig in another folder, and CMake keeps the first; Zig has a cache.
        folder = folder.with_name(f"{folder.name}-zig")
        shutil.rmtree(folder, ignore_errors=True)
    tools = [shutil.which("cmake"), shutil.which("ninja")]
    if not all(tools):
        _fail("CMake or Ninja is missing", "install them: pip install cmake ninja")
    cmake, ninja = map(str, tools)
    given = [f"-D{name}={value}" for name, value in {**options, "CMAKE_MAKE_PROGRAM": ninja}.items()]
    for command in (
        [cmake, "-G", "Ninja", "-S", str(ROOT), "-B", str(folder), *given],
        [cmake, "--build", str(folder)],
    ):
        if subprocess.run(command).returncode:
            _fail("the kernels could not be compiled; the lines above say why", "please report it")


def compiler_options() -> dict[str, str]:
    """The options that name the compiler to CMake."""
    compiler = find_compiler()
    if compiler:
        os.environ["CC"], os.environ["CXX"] = compiler
        return {}
    zig = find_zig()
    if not zig:
        _fail("no C++ compiler was found")
    toolchain = str(ROOT / "tools" / "zig.cmake")
    return {"CMAKE_TOOLCHAIN_FILE": toolchain, "VNLEM_ZIG": str(zig), "VNLEM_TARGET": TARGET}


def find_zig() -> Path | None:
    """The program in the package `ziglang`."""
    found = importlib.util.find_spec("ziglang")
    return Path(str(found.origin)).with_name("zig.exe" if os.name == "nt" else "zig") if found else None


def find_compiler() -> tuple[str, str] | None:
    """The compilers of C and C++: those that CC and CXX name, or the first that compiles the probe."""
    if TARGET:
        return None
    named = os.environ.get("CXX")
    if named:
        c = os.environ.get("CC") or named.replace("clang++", "clang").replace("g++", "gcc").replace(
            "c++", "cc"
        )
        if not _compiles(c, named):
            _fail(f"CXX={named} does not compile the kernels", "name GCC 12, Clang 14 or newer, or unset CXX")
        return c, named
    pairs = [("cc", "c++"), ("gcc", "g++"), ("clang", "clang++")]
    return next((pair for pair in pairs if _compiles(*pair)), None)


def _compiles(c: str, cpp: str) -> bool:
    """Whether two compilers build a library from the probe."""
    with tempfile.TemporaryDirectory() as folder, contextlib.suppress(OSError):
        (Path(folder) / "probe.cpp").write_text(PROBE)
        for command in (
            [*cpp.split(), "-std=c++17", "-fPIC", "-c", "probe.cpp"],
            [*c.split(), "-shared", "probe.o"],
        ):
            if subprocess.run(command, cwd=folder, capture_output=True).returncode:
                return False
        return True
    return False


def _can_install(requirement: str) -> bool:
    """Whether pip finds a package in its registry; True if there is no pip."""
    # pip hides itself from its builds.
    outside = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    # Packages installed there do not count: the build runs in an isolated environment.
    options = ["--dry-run", "--ignore-installed", "--no-deps", "--quiet"]
    command = [sys.executable, "-m", "pip", "install", *options, requirement]
    done = subprocess.run(command, env=outside, capture_output=True, text=True)
    return done.returncode == 0 or "No matching distribution" not in done.stderr


def _fail(problem: str, cure: str = CURE) -> None:
    raise SystemExit(f"vnlem: {problem}; {cure}")


if struct.calcsize("P") != 8:
    _fail("a 64-bit Python is needed, this one has 32 bits", "install a 64-bit Python")
