"""Build wheels for every system on one machine, and check the libraries in them: make wheels.

python tools/make_wheels.py FOLDER
"""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import lief

ROOT = Path(__file__).resolve().parents[1]
# As Zig names a system, as wheels do, and the libraries in the wheel.
X86 = ["x86-64-v2", "x86-64-v3", "x86-64-v4"]
SYSTEMS = [
    ("x86_64-linux-gnu.2.17", "manylinux_2_17_x86_64", X86, "so"),
    ("aarch64-linux-gnu.2.17", "manylinux_2_17_aarch64", ["aarch64"], "so"),
    ("aarch64-macos.11.0", "macosx_11_0_arm64", ["aarch64"], "dylib"),
    ("x86_64-macos.11.0", "macosx_11_0_x86_64", X86, "dylib"),
    ("x86_64-windows-gnu", "win_amd64", X86, "dll"),
]


def main(folder: Path) -> None:
    """Write the wheels."""
    wanted = declared()
    for target, tag, instruction_sets, ending in SYSTEMS:
        command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", f"-Cwheel.tags=py3-none-{tag}"]
        environment = {**os.environ, "VNLEM_TARGET": target}
        done = subprocess.run(
            [*command, "--outdir", str(folder), str(ROOT)], env=environment, capture_output=True, text=True
        )
        if done.returncode:
            sys.exit(f"{done.stdout}\n{done.stderr}\nno wheel for {tag}: see above")
        (wheel,) = folder.glob(f"*-{tag}.whl")
        check(wheel, [f"vnlem-{name}.{ending}" for name in instruction_sets], wanted)
        print(f"{wheel.name}: {wheel.stat().st_size // 1000} kB, every kernel is there", flush=True)


def declared() -> set[str]:
    """The symbols that the sources export."""
    sources = (ROOT / "src" / "vnlem" / "kernels" / "cpu").glob("*.cpp")
    lines = [line for source in sources for line in source.read_text().splitlines()]
    return {line.split("(")[0].split()[-1] for line in lines if line.startswith("VNLEM_EXPORT")}


def check(wheel: Path, libraries: list[str], wanted: set[str]) -> None:
    """Fail if a wheel lacks a library, or a library a kernel."""
    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if name.startswith("vnlem/kernels/cpu/vnlem-")}
        if held != {f"vnlem/kernels/cpu/{name}" for name in libraries}:
            sys.exit(f"{wheel.name} holds {sorted(held)}, not {libraries}")
        for name in held:
            library = lief.parse(archive.read(name))
            found = {str(symbol.name).removeprefix("_") for symbol in library.exported_functions}
            if wanted - found:
                sys.exit(f"{name} in {wheel.name} lacks {', '.join(sorted(wanted - found))}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python tools/make_wheels.py FOLDER")
    lief.logging.disable()
    main(Path(sys.argv[1]))
