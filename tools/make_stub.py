"""Write src/vnlem/__init__.pyi: the types of the public names, taken from the functions themselves.

Public names are loaded on first use, which hides their types; the stub declares them. A function that returns
more with ``return_info=True`` (or ``return_angle=True``) becomes a pair of overloads. `make stub` writes the
file, and a test fails if it is out of date.
"""

import ast
import builtins
import importlib
import inspect
import subprocess
import sys
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).parents[1] / "src" / "vnlem"
STUB = SOURCE / "__init__.pyi"
# Switch -> what the function returns without and with it.
SWITCHES = {
    "return_info": ("NDArray[Any]", "tuple[NDArray[Any], Info]"),
    "return_angle": ("float", "tuple[float, float]"),
}


class Module:
    """One source file: its functions, and where the names in it come from."""

    def __init__(self, name: str) -> None:
        self.name = name
        path = SOURCE / (name.replace(".", "/") + ".py")
        self.tree = ast.parse(path.read_text(encoding="utf-8"))
        self.origins: dict[str, str] = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    known = alias.asname or alias.name
                    if known == alias.name:
                        self.origins[known] = f"from {node.module} import {alias.name}"
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    known = alias.asname or alias.name
                    self.origins[known] = f"import {alias.name}" + (f" as {known}" if alias.asname else "")
        for node in self.tree.body:
            names = [node.target] if isinstance(node, ast.AnnAssign) else getattr(node, "targets", [])
            for target in names:
                if isinstance(target, ast.Name):
                    self.origins[target.id] = f"from vnlem.{name} import {target.id}"
            if isinstance(node, ast.ClassDef):
                self.origins[node.name] = f"from vnlem.{name} import {node.name}"

    def functions(self, name: str) -> list[ast.FunctionDef]:
        """The function, its overloads first if it has some."""
        return [n for n in self.tree.body if isinstance(n, ast.FunctionDef) and n.name == name]

    def imports_for(self, node: ast.AST) -> set[str]:
        names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
        return {self.origins[n] for n in names if n in self.origins and not hasattr(builtins, n)}


def annotations_of(function: ast.FunctionDef) -> list[ast.AST]:
    arguments = function.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    every += [a for a in (arguments.vararg, arguments.kwarg) if a is not None]
    found: list[ast.AST] = [a.annotation for a in every if a.annotation is not None]
    return found + ([function.returns] if function.returns is not None else [])


def signature(function: ast.FunctionDef, returns: str, switch: str | None = None, value: str = "") -> str:
    """`def name(...) -> returns: ...`; `switch` typed as Literal[value], with its default only for False."""
    arguments = function.args

    def one(argument: ast.arg, default: ast.expr | None) -> str:
        if argument.arg == switch:
            return f"{switch}: Literal[{value}]" + (" = ..." if value == "False" else "")
        text = argument.arg
        if argument.annotation is not None:
            text += f": {ast.unparse(argument.annotation)}"
        return text if default is None else f"{text} = {ast.unparse(default)}"

    positional = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(positional) - len(arguments.defaults)) + list(arguments.defaults)
    parts = [one(a, d) for a, d in zip(positional, defaults, strict=True)]
    if arguments.kwonlyargs:
        parts.append("*")
        parts += [one(a, d) for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)]
    if arguments.kwarg is not None:
        annotation = arguments.kwarg.annotation
        parts.append(f"**{arguments.kwarg.arg}: {ast.unparse(annotation) if annotation else 'Any'}")
    lines = "".join(f"    {part},\n" for part in parts)
    return f"def {function.name}(\n{lines}) -> {returns}: ...\n"


def name_parameters(function: ast.FunctionDef, value: Any) -> None:
    """Replace **params by the fields of the dataclass that `vnlem.pipeline.params.takes` names."""
    arguments = function.args
    if arguments.kwarg is None or not hasattr(value, "__wrapped__"):
        return
    own = {a.arg for a in [*arguments.args, *arguments.kwonlyargs]}
    for name, one in inspect.signature(value).parameters.items():
        if name not in own:
            annotation = ast.parse(f"{one.annotation.__name__} | None", mode="eval").body
            arguments.kwonlyargs.append(ast.arg(arg=name, annotation=annotation))
            arguments.kw_defaults.append(ast.Constant(value=None))
    arguments.kwarg = None


def constants_to_dots(function: ast.FunctionDef) -> None:
    """Defaults that are names of the module would need an import: they become dots."""

    def plain(default: ast.expr | None) -> ast.expr | None:
        if default is None or isinstance(default, ast.Constant):
            return default
        return ast.Constant(value=...)

    function.args.defaults = [d for d in map(plain, function.args.defaults) if d is not None]
    function.args.kw_defaults = [plain(d) for d in function.args.kw_defaults]


def stub_text() -> str:
    """The whole stub."""
    sys.path.insert(0, str(SOURCE.parent))
    package = importlib.import_module("vnlem")
    imports = {"from typing import Any, Literal, overload", "from numpy.typing import NDArray"}
    bodies: list[str] = []
    exported: list[str] = []
    for public, place in package._PUBLIC.items():
        module = Module(place)
        found = module.functions(public)
        if not found:
            exported.append(f"from vnlem.{place} import {public} as {public}")
            continue
        for function in found:
            constants_to_dots(function)
        function = found[-1]
        name_parameters(function, getattr(package, public))
        names = {a.arg for a in function.args.kwonlyargs}
        switch = next((s for s in SWITCHES if s in names), None)
        for annotation in annotations_of(function):
            if switch is None or annotation is not function.returns:
                imports |= module.imports_for(annotation)
        if switch is None:
            returns = ast.unparse(function.returns) if function.returns else "Any"
            bodies.append(signature(function, returns))
            continue
        without, with_more = SWITCHES[switch]
        for value, returns in ("False", without), ("True", with_more):
            bodies.append("@overload\n" + signature(function, returns, switch, value))
        bodies.append("@overload\n" + signature(function, f"{without} | {with_more}"))
    exported += [f"from vnlem import {name} as {name}" for name in package._SUBPACKAGES]
    names = ["__version__", *package._PUBLIC, *package._SUBPACKAGES]
    listed = "".join(f'    "{name}",\n' for name in names)
    # Names exported unchanged need not be imported twice.
    known = {line.split(" as ")[0] for line in exported}
    head = '"""Types of the public names. Made by tools/make_stub.py: do not edit."""\n\n'
    return (
        head
        + "\n".join(sorted(imports - known))
        + "\n"
        + "\n".join(exported)
        + "\n\n__version__: str\n\n__all__ = [\n"
        + listed
        + "]\n\n"
        + "\n".join(bodies)
    )


def formatted(text: str) -> str:
    """Formatted by ruff."""
    for command in (["check", "--fix", "--quiet"], ["format", "--quiet"]):
        done = subprocess.run(
            [sys.executable, "-m", "ruff", *command, "--stdin-filename", str(STUB), "-"],
            input=text,
            capture_output=True,
            text=True,
            check=True,
        )
        text = done.stdout
    return text


if __name__ == "__main__":
    STUB.write_text(formatted(stub_text()), encoding="utf-8")
