"""The dependency rules of docs/architecture.md: which package may import which."""

import ast
import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "vnlem"
PAGE = (ROOT / "docs" / "architecture.md").read_text()

# Package (or module next to them) -> the others it may import, at the top of a module or inside functions.
STAGES = {"features", "neighbours", "diffusion", "estimate", "noise"}
ALLOWED = {
    "pipeline": set(),
    "kernels": {"pipeline"},
    "reference": set(),
    "noise": {"pipeline", "kernels", "estimate", "io"},
    "features": {"pipeline", "kernels"},
    "neighbours": {"pipeline", "kernels", "features"},
    "diffusion": {"pipeline", "kernels", "features", "neighbours"},
    "estimate": {"pipeline", "kernels", "features", "neighbours", "diffusion"},
    "registry": {"pipeline"},
    "plan": {"pipeline", "registry", "noise", "estimate"},
    "execute": {"pipeline", "registry", "noise", "estimate", "plan"},
    "repair": {"pipeline", "registry", "noise", "estimate", "plan"},
    "repair_stack": {"pipeline", "noise", "estimate", "stack_plan", "stacks", "repair"},
    "call": {"pipeline", "registry", "noise", "features", "plan", "execute", "repair"},
    "methods": {"pipeline", "kernels", "registry", "reference"} | STAGES,
    "series": {"pipeline", "noise", "estimate", "registry"},
    "stack_plan": {"pipeline", "features", "noise", "registry", "series"},
    "stacks": {"pipeline", "noise", "series", "stack_plan"},
    "stream": {"pipeline", "features", "noise", "registry", "series", "stack_plan"},
    "api": {"pipeline", "noise", "registry", "large", "call", "repair", "repair_stack"},
    "check": {"pipeline", "noise", "registry", "call", "api"},
    "raw": {"pipeline", "estimate", "noise", "registry", "plan", "execute"},
    "metrics": {"pipeline", "noise"},
    "io": set(),
    "notebook": {"pipeline"},
    "theory": {"pipeline", "features", "neighbours", "registry", "reference"},
    "figures": {"pipeline", "io", "metrics", "registry"} | STAGES,
    "large": {"pipeline", "registry", "io", "series", "stack_plan", "plan", "execute", "repair"} | STAGES,
    "bench": {"pipeline", "api", "registry", "io", "metrics", "noise", "figures"},
}
# The entry points: they may use everything, and nothing may import them.
DOORS = {"__main__", "cli", "napari"}


def package_of(module):
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "vnlem"


def imports_of(path):
    """Names of the package's modules that a file imports, anywhere in it, with the line."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "vnlem":
            for alias in node.names:
                yield (f"vnlem.{alias.name}" if node.module == "vnlem" else node.module), node.lineno
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "vnlem":
                    yield alias.name, node.lineno


def files():
    for path in sorted(SOURCE.rglob("*.py")):
        name = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        if name != "__init__":
            yield name, path


def test_every_package_has_its_rule():
    rooms = {p.name.removesuffix(".py") for p in SOURCE.iterdir() if p.suffix == ".py" or p.is_dir()}
    assert rooms - {"__init__", "__pycache__"} == set(ALLOWED) | DOORS


@pytest.mark.parametrize("package", list(ALLOWED))
def test_a_package_imports_only_what_it_may(package):
    wrong = [
        f"{path.relative_to(SOURCE)}:{line} imports {module}"
        for name, path in files()
        if name == package
        for module, line in imports_of(path)
        if (SOURCE / package_of(module)).exists() or (SOURCE / f"{package_of(module)}.py").exists()
        if package_of(module) not in ALLOWED[package] | {package}
    ]
    assert wrong == []


def exists(name):
    """Whether a dotted name of the page is a file or a module of the package, or a name in a module."""
    if name.rpartition(".")[2] in {"py", "pyi", "h"}:
        return any(SOURCE.rglob(name))
    full = name if name.startswith("vnlem.") else f"vnlem.{name}"
    module, _, last = full.rpartition(".")
    if importlib.util.find_spec(module) is None:
        return False
    found = importlib.import_module(module)
    return hasattr(found, last) or (hasattr(found, "__path__") and importlib.util.find_spec(full) is not None)


def test_what_the_page_names_exists():
    targets = re.findall(r"`make ([a-z-]+)`", PAGE)
    made = (ROOT / "Makefile").read_text()
    assert targets
    assert [target for target in targets if f"\n{target}:" not in made] == []
    dotted = set(re.findall(r"`([a-z_]+(?:\.[a-z_]+)*\.[A-Za-z_]+)`", PAGE))
    # An attribute of a value, and a group of entry points.
    assert {name for name in dotted if not exists(name)} == {"info.plan", "vnlem.formats"}
    paths = re.findall(r"`((?:tests|docs|methods|kernels|pipeline|neighbours)/[\w/.]+\.\w+)`", PAGE)
    assert [path for path in paths if not ((ROOT / path).exists() or (SOURCE / path).exists())] == []


def test_the_page_states_the_rules_of_single_modules():
    rows = dict(re.findall(r"^\| `(\w+)\.py` \| .* \| (.*) \|$", PAGE, re.M))
    assert set(rows) == {name for name in ALLOWED if (SOURCE / f"{name}.py").exists()}
    stated = {name: set(re.findall(r"\w+", words)) & set(ALLOWED) for name, words in rows.items()}
    assert stated == {name: ALLOWED[name] for name in rows}


def test_there_is_no_circle():
    left = dict(ALLOWED)
    while left:
        free = [name for name, needs in left.items() if not needs & set(left)]
        assert free, f"a circle among {sorted(left)}"
        for name in free:
            del left[name]


MOST_LINES = 400
SUFFIXES = {".py", ".cpp", ".h", ".cu", ".cuh"}


def test_no_file_is_long():
    sources = [path for path in SOURCE.rglob("*") if path.suffix in SUFFIXES]
    assert len(sources) > 300
    lengths = {str(path.relative_to(SOURCE)): len(path.read_text().splitlines()) for path in sources}
    assert {name: count for name, count in lengths.items() if count > MOST_LINES} == {}


MOST_ARGUMENTS = 9
DECORATORS = {"kernel", "brief_kernel"}


def arguments_of_kernels():
    """File, name and number of arguments of the kernels that Python calls."""
    for path in sorted((SOURCE / "kernels" / "cpu").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                names = {name.id for name in node.decorator_list if isinstance(name, ast.Name)}
                if names & DECORATORS:
                    yield path.name, node.name, len(node.args.args)


def test_kernels_take_a_handful_of_arguments():
    found = list(arguments_of_kernels())
    assert len(found) > 20
    assert [kernel for kernel in found if kernel[2] > MOST_ARGUMENTS] == []
