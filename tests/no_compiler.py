"""The package is built without a compiler, CMake and Ninja: make test-no-compiler.

It fetches Zig from the package registry, about 100 MB, so it is not among the other tests.
"""

import ctypes
import os
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]


def pip_wheel(folder, **environment):
    """Build a wheel with nothing on the PATH."""
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--wheel-dir", str(folder), str(ROOT)]
    left_out = {"PATH", "CC", "CXX", "PYTHONPATH", "CMAKE_EXECUTABLE", "CMAKE_GENERATOR"}
    bare = {name: value for name, value in os.environ.items() if name not in left_out}
    return subprocess.run(
        command, env={**bare, "PATH": str(folder), **environment}, capture_output=True, text=True
    )


def test_zig_compiles_where_there_is_no_compiler(tmp_path):
    done = pip_wheel(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if Path(name).name.startswith("vnlem-")]
        archive.extractall(tmp_path)
    assert names
    for name in names:
        assert ctypes.CDLL(str(tmp_path / name)).vnlem_abi() > 0


def test_without_compiler_and_without_zig_there_is_one_sentence(tmp_path):
    tools = tmp_path / "tools"
    tools.mkdir()
    needed = ["scikit-build-core", "packaging", "pathspec"]
    subprocess.run([sys.executable, "-m", "pip", "download", "-q", "-d", str(tools), *needed], check=True)
    # pip finds these packages and no others, as on a machine without network.
    done = pip_wheel(tmp_path, PIP_NO_INDEX="1", PIP_FIND_LINKS=str(tools), PIP_CONFIG_FILE=os.devnull)
    assert done.returncode != 0
    sentence = (
        "vnlem: no C++ compiler was found, and pip finds no ziglang to take its place; install a C++ compiler"
    )
    assert sentence in done.stdout + done.stderr
