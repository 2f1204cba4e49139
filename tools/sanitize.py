"""Run tests with kernels that check every index and report undefined behaviour: make test-sanitize.

python tools/sanitize.py address,undefined -m pytest tests/test_sheets.py
python tools/sanitize.py thread tests/threads.py

A copy of the package with such libraries in it is made in build/sanitize-*, and Python runs with this copy.
"""

import os
import shutil
import subprocess
import sys

from build_backend import ROOT, build_kernels

# Python itself leaks and was not compiled for this; an error in a kernel ends the run.
# A test requests more memory than there is, and that is no error.
OPTIONS = {
    "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=1:allocator_may_return_null=1",
    "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
    "TSAN_OPTIONS": "halt_on_error=1:report_signal_unsafe=0",
}
RUNTIMES = {"address": "libasan.so", "thread": "libtsan.so"}


def main(sanitizers: str, arguments: list[str]) -> int:
    """Build, copy the package, run Python. Returns its exit status."""
    folder = ROOT / "build" / f"sanitize-{sanitizers.replace(',', '-')}"
    package = folder / "package"
    build_kernels(folder, VNLEM_DEBUG="ON", VNLEM_SANITIZE=sanitizers)
    shutil.rmtree(package, ignore_errors=True)
    compiled = shutil.ignore_patterns("*.so", "*.dylib", "*.dll", "__pycache__")
    shutil.copytree(ROOT / "src" / "vnlem", package / "vnlem", ignore=compiled)
    subprocess.run(
        ["cmake", "--install", str(folder), "--prefix", str(package)], check=True, stdout=subprocess.DEVNULL
    )
    runtime = RUNTIMES[sanitizers.split(",")[0]]
    compiler = os.environ.get("CXX", "c++").split()
    preloaded = subprocess.run(
        [*compiler, f"-print-file-name={runtime}"], check=True, capture_output=True, text=True
    )
    environment = {
        **os.environ,
        **OPTIONS,
        "LD_PRELOAD": preloaded.stdout.strip(),
        "PYTHONPATH": str(package),
    }
    return subprocess.run([sys.executable, *arguments], env=environment, cwd=ROOT).returncode


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit("usage: python tools/sanitize.py SANITIZERS ARGUMENTS-OF-PYTHON")
    sys.exit(main(sys.argv[1], sys.argv[2:]))
