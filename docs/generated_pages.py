"""The pages of the site that are generated from the code: API, command line help, support table."""

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import typer

import vnlem
from vnlem.cli import build
from vnlem.registry import find_method, names

# Subpackages whose public functions have a section on the API page.
SECTIONS = {
    "vnlem.noise": "Noise",
    "vnlem.metrics": "Measures",
    "vnlem.io": "Files",
    "vnlem.theory": "Theory",
    "vnlem.figures": "Figures",
}


def figures_for_any_ground(gallery_conf: Any, name: str) -> None:
    """Give the gallery's figures a transparent background, and ink that reads on white and on black."""
    import matplotlib

    ink = "#8a8a8a"
    names = (
        "text.color",
        "axes.labelcolor",
        "axes.edgecolor",
        "axes.titlecolor",
        "xtick.color",
        "ytick.color",
    )
    matplotlib.rcParams.update(dict.fromkeys(names, ink))
    matplotlib.rcParams.update({"savefig.transparent": True, "figure.facecolor": "none"})


def write(folder: Path) -> None:
    """Write all pages; unchanged files are not rewritten: Sphinx then does not read them again."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(folder / "api", ignore_errors=True)  # pages of names that are gone
    examples = {example.stem for example in (folder.parent / "gallery").glob("plot_*.py")}
    for page in (folder / "gallery").glob("plot_*"):  # and of examples that are gone
        if page.name.partition(".")[0] not in examples:
            page.unlink()
    for name, text in (
        ("api.rst", api()),
        ("command-line-help.md", command_line()),
        ("support.md", support()),
    ):
        path = folder / name
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


def api() -> str:
    """Every public name, by section, with a page made from its docstring."""
    subpackages = {name.removeprefix("vnlem.") for name in SECTIONS} | {"reference"}
    top = [name for name in vnlem.__all__ if not name.startswith("_") and name not in subpackages]
    documented = [
        name
        for name in top
        if callable(getattr(vnlem, name)) and getattr(vnlem, name).__module__[:5] == "vnlem"
    ]
    parts = [
        "API\n===\n",
        "What ``import vnlem`` gives. Start with :func:`vnlem.denoise`; the "
        "`gallery <gallery/index.html>`__ shows most of it at work.\n",
    ]
    parts.append(_section("vnlem", documented))
    for module, title in SECTIONS.items():
        names = getattr(sys.modules.get(module) or __import__(module, fromlist=["_"]), "__all__", [])
        public = [name for name in names if callable(getattr(sys.modules[module], name)) and name not in top]
        parts.append(f"{title}\n{'-' * len(title)}\n")
        parts.append(_section(module, public))
    return "\n".join(parts)


def _section(module: str, names: list[str]) -> str:
    lines = [f".. currentmodule:: {module}\n", ".. autosummary::", "   :toctree: api", "   :nosignatures:\n"]
    return "\n".join([*lines, *(f"   {name}" for name in sorted(names)), ""])


def command_line() -> str:
    """The help of every command, as a terminal shows it."""
    parts = [
        "# Help of every command\n",
        "Made by `vnlem COMMAND --help`; the words are those of the functions' docstrings. "
        "[Command line](../command-line.md) explains with examples.\n",
    ]
    for command in typer.main.get_command(build()).commands:
        run = subprocess.run(
            [sys.executable, "-m", "vnlem.cli", command, "--help"],
            capture_output=True,
            text=True,
            check=True,
            env={"PATH": "", "TERM": "dumb", "COLUMNS": "100", "NO_COLOR": "1"},
        )
        text = "\n".join(line.rstrip() for line in run.stdout.strip().splitlines())
        parts.append(f"## vnlem {command}\n\n```text\n{text}\n```\n")
    return "\n".join(parts)


def support() -> str:
    """What each method accepts, found by calling it: sigma 0 checks everything and computes nothing."""
    columns = list(_questions())
    lines = [
        "# What each method takes\n",
        "Every cell was asked of the method when this page was built. "
        "*pages help each other*: frames, slices and images of a set [as one](../stacks.md), where other "
        "methods take them one by one; *larger than memory*: [in parts](../large.md); "
        "*GPU*: [with CUDA](../gpu.md).\n",
        "| method | "
        + " | ".join(title for title, _ in columns)
        + " | pages help each other | larger than memory | GPU | pages help each other on a GPU |",
        "|---|" + "---|" * (len(columns) + 4),
    ]
    for method in names():
        known = find_method(method)
        taken = [_accepts(question, method) for _, question in columns]
        taken += [known.stack is not None, known.halo is not None, "cuda" in known.engines]
        taken += [known.stack is not None and bool(known.stack.cuda)]
        answers = ["yes" if answer else "-" for answer in taken]
        lines.append(f"| `{method}` | " + " | ".join(answers) + " |")
    return "\n".join([*lines, ""])


def _questions() -> Iterator[tuple[str, Callable[[str], Any]]]:
    grey, colour, signal = np.zeros((32, 32)), np.zeros((32, 32, 3)), np.zeros(64)
    flat = np.full((32, 32), 100.0)
    stack = np.zeros((3, 32, 32))
    yield "grey", lambda method: vnlem.denoise(grey, 0.0, method=method)
    yield "colour", lambda method: vnlem.denoise(colour, 0.0, method=method, channel_axis=-1)
    yield "signal", lambda method: vnlem.denoise(signal, 0.0, method=method)
    yield "sigma map", lambda method: vnlem.denoise(grey, np.zeros((32, 32)), method=method)
    yield (
        "photon noise",
        lambda method: vnlem.denoise(flat, method=method, noise_model="poisson-gaussian", gain=1.0),
    )
    yield "correlated noise", lambda method: vnlem.denoise(flat, method=method, noise_model="correlated")
    yield "stacks", lambda method: vnlem.denoise(stack, 0.0, method=method, axes="TYX")
    yield "profiles", lambda method: vnlem.denoise(grey, 0.0, method=method, profile="fast")
    yield "rotations", lambda method: vnlem.denoise(grey, 0.0, method=method, group="so2")
    yield "the paper's preset", lambda method: vnlem.denoise(grey, 0.0, method=method, preset="paper")


def _accepts(question: Callable[[str], Any], method: str) -> bool:
    import warnings

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            question(method)
    except (TypeError, ValueError):
        return False
    return True
