"""Stored machine code: never that of other sources, never in the way, in each of the folders Numba may use.

A copy of the package gets a small kernel of its own, which other processes import and call.
"""

import os
import pickle
import shutil
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import vnlem
from vnlem.kernels.numba.ahead import Helpers, name_of
from vnlem.kernels.numba.select import smallest

pytestmark = pytest.mark.slow

KERNEL = """
from vnlem.kernels.numba.jit import kernel
from vnlem.kernels.numba.probe_callee import twice

@kernel
def probe(x):
    return twice(x) + 1
"""
CALLEE = """
from vnlem.kernels.numba.jit import nested

@nested
def twice(x):
    return {factor} * x
"""
CALL = """
from vnlem.kernels.numba.probe import probe
print(probe(10.0), sum(probe.stats.cache_hits.values()), probe.stats.cache_path)
"""
SOLVER = """
import time
import numpy as np
from vnlem.kernels.numba import ahead
from vnlem.kernels.numba.jit import kernel
from vnlem.pipeline.first_call import repeatable
from vnlem.pipeline.run import Job

@kernel
def double(x):
    x *= 2

@kernel
def halve(x):
    x /= 2

@repeatable(halve)
def solve(job):
    double(job.pixels)
    while ahead._helpers is not None and ahead._helpers.are_at_work():
        time.sleep(0.01)
    halve(job.pixels)
    return job.pixels

job = Job(np.ones((1, 300, 300), np.float32), 0.1, None, 1, None)
"""
FIRST_CALL = """
from vnlem.kernels.numba import probe_solver as probe
print((probe.solve(probe.job) == 1).all())
print(*(sum(kernel.stats.cache_hits.values()) for kernel in (probe.double, probe.halve)))
helpers = probe.ahead._helpers
print(*(type(process).__name__ for process in helpers._processes) if helpers else ())
"""
ANOTHER_THREAD = """
import threading
threading.Thread(target=threading.Event().wait, daemon=True).start()
"""
OTHERS = """
import numpy as np
from numba import njit
from vnlem.kernels.numba.jit import _WHOLE, from_python

def corner(n):
    numbers = np.zeros((n, 4))
    numbers[:] = np.arange(4.0)
    return max(numbers.reshape(-1)[n], np.ones(n).sum())

compiled = from_python(corner)
options = {name: value for name, value in _WHOLE.items() if name != "pipeline_class"}
print(compiled(3), njit(corner)(3), njit(**options)(corner)(3), corner(3))
"""
LINEAR_ALGEBRA = """
import sys
import numpy as np
from numba import njit
from numba.np import linalg
from vnlem.kernels.numba.probe import probe

@njit
def product(a, b):
    return a @ b

check = linalg.ensure_blas
probe(10.0)
arraymath = sys.modules["numba.np.arraymath"]
print("scipy.linalg" in sys.modules, linalg.ensure_blas is check is arraymath.ensure_blas)
print(product(np.ones((3, 2)), np.ones((2, 3)))[0, 0], "scipy.linalg" in sys.modules)
"""
VECTORS = """
import numpy as np
from vnlem.kernels.numba.jit import kernel
from vnlem.kernels.numba.vectors import load, plus, store

@kernel
def double(x, first):
    store(x, first, plus(load(x, first), load(x, first)))

@kernel
def double_again(x, first):
    store(x, first, plus(load(x, first), load(x, first)))
"""
CALL_VECTORS = """
import numpy as np
from vnlem.kernels.numba import probe_vectors, simd
x, y = np.full(9, 6, np.float32), np.full(9, 6, np.float32)
probe_vectors.double(x, 1)
probe_vectors.double_again(y, 1)
print(x[8], y[8], simd.__name__)
"""
IMPORTS = """
import pkgutil, sys
import vnlem.kernels.numba as kernels
private = {"ahead", "cache", "compiler", "correlations", "masks", "panel", "shortcuts", "simd", "squares"}
for module in pkgutil.iter_modules(kernels.__path__):
    if module.name not in private:
        __import__(f"{kernels.__name__}.{module.name}")
print(*(name for name in private if f"{kernels.__name__}.{name}" in sys.modules))
"""
NOWHERE = os.path.join(os.devnull, "nowhere")


class Install:
    """A copy of the package, and processes that use it."""

    def __init__(self, folder):
        self.folder = folder
        self.package = folder / "site" / "vnlem"
        ignored = shutil.ignore_patterns("__pycache__", "assets")
        shutil.copytree(Path(vnlem.__file__).parent, self.package, ignore=ignored)
        self.kernels = self.package / "kernels" / "numba"
        (self.kernels / "probe.py").write_text(KERNEL)
        self.set_factor(2)
        self.environment = {
            name: value for name, value in os.environ.items() if not name.startswith(("NUMBA_", "PYTEST"))
        }
        self.environment |= {
            "PYTHONPATH": str(folder / "site"),
            "PYTHONDONTWRITEBYTECODE": "1",
            "HOME": str(folder / "home"),
            "XDG_CACHE_HOME": str(folder / "home" / "cache"),
        }

    def set_factor(self, factor):
        """Change the function that the kernel calls, and leave the file's times as they were."""
        callee = self.kernels / "probe_callee.py"
        callee.write_text(CALLEE.format(factor=factor))
        os.utime(callee, (1e9, 1e9))

    def make_read_only(self):
        """No folder for machine code beside the sources, for the administrator neither."""
        shutil.rmtree(self.kernels / "__pycache__", ignore_errors=True)
        (self.kernels / "__pycache__").write_text("a file where a folder is wanted")

    def start(self, *command):
        return subprocess.Popen(
            [sys.executable, *command],
            env=self.environment,
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def call(self):
        """The kernel's value, whether stored code was used, the folder, and stderr."""
        out, err = self.finish(self.start("-c", CALL))
        value, hits, folder = out.split(maxsplit=2)
        return float(value), int(hits), folder.strip(), err

    @staticmethod
    def finish(process):
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
        return out, err


@pytest.fixture
def install(tmp_path):
    return Install(tmp_path)


@pytest.fixture(params=["beside the sources", "NUMBA_CACHE_DIR", "the user's folder"])
def stored(request, install):
    """An install for each folder that Numba may use, and that folder."""
    if request.param == "NUMBA_CACHE_DIR":
        install.environment["NUMBA_CACHE_DIR"] = str(install.folder / "given")
        return install, install.folder / "given"
    if request.param == "the user's folder":
        install.make_read_only()
        return install, install.folder / "home"
    return install, install.kernels


def test_code_of_other_sources_is_not_used(stored):
    install, place = stored
    value, hits, folder, _ = install.call()
    assert (value, hits) == (21.0, 0)
    assert Path(folder).is_relative_to(place)
    assert install.call()[:2] == (21.0, 1)
    if place != install.kernels:
        return
    install.set_factor(3)
    assert install.call()[:2] == (31.0, 0)
    assert install.call()[:2] == (31.0, 1)
    assert len(list(Path(folder).glob("*.nbi"))) == 1  # what the old sources left is gone


@pytest.mark.parametrize(("pattern", "left"), [("*.nbi", 0.5), ("*.nbc", 0.0)])
def test_damaged_files_are_compiled_anew(install, pattern, left):
    folder = Path(install.call()[2])
    (file,) = folder.glob(pattern)
    os.truncate(file, int(left * file.stat().st_size))
    assert install.call()[0] == 21.0


def test_several_processes_may_compile_at_once(install):
    processes = [install.start("-c", CALL) for _ in range(4)]
    assert {install.finish(process)[0].split()[0] for process in processes} == {"21.0"}
    assert install.call()[:2] == (21.0, 1)


def test_without_a_folder_kernels_work_and_one_warning_names_the_cure(install):
    install.make_read_only()
    install.environment |= {"HOME": NOWHERE, "XDG_CACHE_HOME": NOWHERE}
    value, hits, _, err = install.call()
    assert (value, hits) == (21.0, 0)
    assert err.count("RuntimeWarning") == 1
    assert "NUMBA_CACHE_DIR" in err
    assert "<string>:2: RuntimeWarning" in err  # the line of the program that imports


def test_the_command_line_works_on_a_read_only_install_without_a_home(install):
    install.make_read_only()
    install.environment |= {"HOME": NOWHERE, "XDG_CACHE_HOME": NOWHERE}
    vnlem.io.write(install.folder / "in.png", (np.arange(900).reshape(30, 30) % 251).astype(np.uint8))
    arguments = ("denoise", "in.png", "out.png", "--method", "nlm", "--sigma", "9", "--quiet")
    _, err = install.finish(install.start("-m", "vnlem.cli", *arguments))
    assert err.startswith("vnlem: warning: compiled kernels cannot be stored")
    assert err.count("\n") == 1
    assert (install.folder / "out.png").exists()


def test_bounds_checks_have_machine_code_of_their_own(install):
    install.call()
    install.environment["NUMBA_BOUNDSCHECK"] = "1"
    assert install.call()[:2] == (21.0, 0)
    del install.environment["NUMBA_BOUNDSCHECK"]
    assert install.call()[:2] == (21.0, 1)


def test_long_compiling_is_told_in_one_line(install):
    install.environment.pop("VNLEM_QUIET", None)
    slow = "import vnlem.kernels.numba.cache as cache\ncache._Notice.PATIENCE = 0.0\n"
    _, err = install.finish(install.start("-c", slow + CALL))
    assert err.count("compiling kernels for this machine, once") == 1
    assert err.count("\n") == 1
    assert install.finish(install.start("-c", slow + CALL))[1] == ""


def test_kernels_can_be_compiled_as_numba_does_by_itself(install):
    install.environment["VNLEM_PLAIN_KERNELS"] = "1"
    assert install.call() == (21.0, 0, str(install.kernels / "__pycache__"), "")
    assert install.call()[:2] == (21.0, 1)


def test_functions_that_are_not_ours_are_compiled_after_kernels(install):
    out, err = install.finish(install.start("-c", OTHERS))
    assert out.split() == ["3.0"] * 4
    assert err == ""


def test_scipys_linear_algebra_is_imported_for_those_who_need_it(install):
    for _ in range(2):  # a kernel that is compiled, and one that is stored
        out, err = install.finish(install.start("-c", LINEAR_ALGEBRA))
        assert out.splitlines() == ["False True", "2.0 True"]
        assert err == ""


def test_a_numba_that_lacks_private_parts_is_told_in_one_warning(install):
    (install.kernels / "compiler.py").write_text("from numba.core.codegen import Nothing")
    value, _, _, err = install.call()
    assert value == 21.0
    assert err.count("RuntimeWarning") == 1
    assert "cannot import name 'Nothing'" in err
    assert "VNLEM_PLAIN_KERNELS=1" in err


def test_without_private_parts_nothing_that_uses_them_is_imported(install):
    install.environment["VNLEM_PLAIN_KERNELS"] = "1"
    out, err = install.finish(install.start("-c", IMPORTS))
    assert out.split() == []
    assert err == ""


def test_a_kernel_that_cannot_be_compiled_our_way_is_compiled_numbas_way(install):
    (install.kernels / "probe_vectors.py").write_text(VECTORS)
    for break_it, warnings in (("", 0), ("simd._address = None\n", 1)):
        shutil.rmtree(install.kernels / "__pycache__", ignore_errors=True)
        call = "from vnlem.kernels.numba import simd\n" + break_it + CALL_VECTORS
        out, err = install.finish(install.start("-c", call))
        assert out.split() == ["12.0", "12.0", "vnlem.kernels.numba.simd"]
        assert err.count("RuntimeWarning") == warnings
        assert ("VNLEM_PLAIN_KERNELS=1" in err) == bool(warnings)


def test_a_fault_of_a_kernel_is_told_as_it_is(install):
    (install.kernels / "probe_vectors.py").write_text(VECTORS)
    call = "from vnlem.kernels.numba.probe_vectors import double\ndouble('text', 1)"
    process = install.start("-c", call)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 1
    assert "TypingError" in err
    assert "RuntimeWarning" not in err


@pytest.mark.parametrize(
    ("compilers", "before", "helper"),
    [
        ("2", "", "Fork" if sys.platform == "linux" else "Popen"),
        ("2", ANOTHER_THREAD, "Popen"),
        ("1", "", ""),
    ],
    ids=["a copy", "a new process", "nobody"],
)
def test_another_process_compiles_the_last_kernels_of_a_call(install, compilers, before, helper):
    (install.kernels / "probe_solver.py").write_text(SOLVER)
    install.environment["VNLEM_COMPILERS"] = compilers
    out, err = install.finish(install.start("-c", before + FIRST_CALL))
    by_others = "0 1" if helper else "0 0"
    assert out.splitlines() == ["True", by_others, helper]
    assert err == ""
    # Where the kernels are stored nobody is asked for help.
    assert install.finish(install.start("-c", before + FIRST_CALL))[0].splitlines() == ["True", "1 1", ""]


class NoCall:
    """A call that fails at once."""

    def made_small(self):
        return self


def test_what_a_helper_left_unfinished_is_compiled_here():
    helpers = Helpers(NoCall(), 1)
    assert not helpers.has_compiled("mine")  # nobody else had begun it
    (helpers.folder / "theirs").touch()
    assert not helpers.has_compiled("theirs")  # begun, and the process has ended
    (helpers.folder / "finished").touch()
    (helpers.folder / "finished.done").touch()
    assert helpers.has_compiled("finished")


def test_the_largest_kernel_that_nobody_has_begun_is_compiled_while_waiting(monkeypatch):
    helpers = Helpers(NoCall(), 1)
    while helpers.are_at_work():
        time.sleep(0.01)
    compiled = []

    class Kernel:
        def __init__(self, name):
            self.py_func = lambda: None
            self.py_func.__module__, self.py_func.__qualname__ = "kernels_of_a_test", name

        def compile(self, types):
            compiled.append(self.py_func.__qualname__)
            (helpers.folder / name_of(self.py_func, types)).touch()

    kernels = SimpleNamespace(**{name: Kernel(name) for name in ("largest", "middle", "smallest")})
    monkeypatch.setitem(sys.modules, "kernels_of_a_test", kernels)
    assert not helpers._compile_another()  # nobody has told what there is to do
    noted = [("kernels_of_a_test", name, (1,)) for name in ("largest", "middle", "smallest")]
    (helpers.folder / "noted").write_bytes(pickle.dumps(noted))
    (helpers.folder / name_of(kernels.largest.py_func, (1,))).touch()  # another process has begun it
    assert helpers._compile_another()
    assert helpers._compile_another()
    assert not helpers._compile_another()
    assert compiled == ["middle", "smallest"]


def test_python_is_told_that_a_part_of_kernels_cannot_be_called():
    with pytest.raises(TypeError, match="smallest is a part of kernels"):
        smallest()
