"""The table of methods.

A method is a value METHOD of a module (see `vnlem.pipeline.method`), named here and loaded on first use.
Other packages add methods through the entry point group "vnlem.methods": the name is the method's, the object
its value.
"""

from functools import cache
from importlib import metadata
from typing import Any

from vnlem.pipeline import checks
from vnlem.pipeline.lazy import load
from vnlem.pipeline.method import Method, arguments_of

# Arguments of a method's function that are not parameters of the method.
_ARGUMENTS = ("image", "sigma", "task", "workers", "progress", "return_info", "channel_axis")
LARGE = 1024  # pixels: a page of this side has room for any patch

METHODS = {
    "nlm": "vnlem.methods.nlm:METHOD",
    "nlem": "vnlem.methods.nlem:NLEM",
    "nlpr": "vnlem.methods.nlem:NLPR",
    "vnlem": "vnlem.methods.vnlem:METHOD",
    "vnlem-dd": "vnlem.methods.vnlem_dd:METHOD",
    "vnlr": "vnlem.methods.vnlr:METHOD",
}
ENTRY_POINTS = "vnlem.methods"
DEFAULT_METHOD = "vnlr"


@cache
def _of_other_packages() -> dict[str, str]:
    return {point.name: point.value for point in metadata.entry_points(group=ENTRY_POINTS)}


def names() -> tuple[str, ...]:
    """The names of all methods, those of other packages last.

    >>> names()[:3]
    ('nlm', 'nlem', 'nlpr')
    """
    return (*METHODS, *(name for name in _of_other_packages() if name not in METHODS))


def find_method(name: str) -> Method:
    """A method; names accept - and _.

    >>> find_method("vnlem_dd").name
    'vnlem-dd'
    """
    key = str(name).lower().replace("_", "-")
    place = METHODS.get(key) or _of_other_packages().get(key)
    if place is None:
        raise ValueError(f"unknown method {name!r}; the methods are {', '.join(names())}")
    method: Method = load(place)
    return method


def find_function(name: str) -> Any:
    """The public function of a method.

    >>> find_function("nlm").__name__
    'denoise_nlm'
    """
    return load(find_method(name).function)


def methods_with(has: Any) -> list[str]:
    """The names of the methods that have something.

    >>> methods_with(lambda method: method.has_paper_preset)
    ['nlem', 'vnlem', 'vnlem-dd']
    """
    return [name for name in names() if has(find_method(name))]


def check_preset(method: Method, preset: str) -> str:
    """A preset the method has, or an error that names those which have it.

    >>> check_preset(find_method("nlem"), "paper")
    'paper'
    >>> check_preset(find_method("nlm"), "paper")
    Traceback (most recent call last):
    ...
    ValueError: preset='paper' exists for nlem, vnlem, vnlem-dd, not for nlm; use preset='auto'
    """
    checks.choice("preset", preset, ("auto", "paper"))
    if preset == "paper" and not method.has_paper_preset:
        able = ", ".join(methods_with(lambda one: one.has_paper_preset))
        raise ValueError(f"preset='paper' exists for {able}, not for {method.name}; use preset='auto'")
    return preset


def stack_method(name: str, kind: str = "") -> Any:
    """How a method takes all pages of a series together; None if it takes them one by one.

    kind: "", "T", "Z" or "N", the kind of series; any when empty.

    >>> stack_method("vnlem") is None, stack_method("nlm", "N") is None
    (True, True)
    """
    found = find_method(name).stack
    return found if found is not None and kind in found.kinds else None


def stack_solver(name: str, engine: str) -> Any:
    """What takes the standardised pages of a series and gives the denoised ones on a GPU."""
    if engine != "fast":
        raise ValueError(f"engine={engine!r} runs on the CPU only; pass device='cpu'")
    found = find_method(name).stack
    assert found is not None
    return load(found.cuda)


def check_stack_params(function: Any, method: str, params: dict[str, Any]) -> None:
    """Every parameter must be one that the method has on stacks."""
    known = arguments_of(function)
    unknown = [name for name in params if name not in known or name in _ARGUMENTS]
    if unknown:
        own = [name for name in known if name not in _ARGUMENTS]
        raise TypeError(
            f"method {method!r} on a stack has no parameter {unknown[0]!r}; it has {', '.join(own)}"
        )


def for_one_page(method: str, axes: str, params: dict[str, Any]) -> dict[str, Any]:
    """The parameters of a stack for its only page: those that only stacks have are checked and left out.

    >>> for_one_page("vnlr", "TYX", {"plane_distance": 2, "profile": "fast"})
    {'profile': 'fast'}
    """
    own = find_method(method).parameters
    for kind in axes:
        together = stack_method(method, kind) if kind not in "CYX" else None
        if together is None:
            continue
        prepare = load(together.prepare)
        of_stacks = {name: params[name] for name in arguments_of(prepare) if name in params.keys() - own}
        prepare(load("vnlem.pipeline.stack_task:StackTask")(kind, [(LARGE, LARGE)], 1.0), **of_stacks)
        return {name: value for name, value in params.items() if name not in of_stacks}
    return params
