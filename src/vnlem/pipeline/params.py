"""Parameters of a method as fields of a dataclass: type, check, defaults and explanation in one place.

The public function takes them as ``**params``; :func:`takes` gives it their names and their documentation.
"""

import inspect
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import field, fields
from functools import wraps
from typing import Any

from vnlem.pipeline.method import names_parameters

WIDTH = 110  # of a line of a docstring


def spec(
    check: Callable[..., Any], *limits: Any, paper: Any, auto: Any = ..., **bounds: Any
) -> dict[str, Any]:
    """How a parameter is checked, and its defaults.

    check: (name, value, *limits, **bounds) -> the value, or a clear error; see `vnlem.pipeline.checks`.
    paper: the default in the preset "paper".
    auto: the default in the preset "auto", if it differs; a function of the noise if it follows the noise.
    """

    def look(name: str, value: Any) -> Any:
        return check(name, value, *limits, **bounds)

    return {"check": look, "paper": paper, "auto": paper if auto is ... else auto}


def param(doc: str, spec: dict[str, Any]) -> Any:
    """A field of a dataclass of parameters; `doc` is what the public function's docstring says about it.

    >>> from dataclasses import dataclass
    >>> from vnlem.pipeline import checks
    >>> @dataclass(frozen=True, kw_only=True)
    ... class Params:
    ...     size: int = param("Width.", spec(checks.odd, 3, paper=13, auto=lambda noise: 5 + 2 * int(noise)))
    ...     gamma: float = param("Power.", spec(checks.real, 0, 2, paper=0.1, auto=2.0))
    >>> preset_of(Params, "auto", 1.5), preset_of(Params, "paper")
    ({'size': 7, 'gamma': 2.0}, {'size': 13, 'gamma': 0.1})
    >>> Params(**checked(Params, {"size": 7, "gamma": 1}))
    Params(size=7, gamma=1.0)
    """
    return field(metadata=spec | {"doc": doc})


def preset_of(params: type, preset: str, noise: float = 0.0) -> dict[str, Any]:
    """The parameters of a preset at a noise level in units of the clean image's standard deviation."""
    values = {one.name: one.metadata[preset] for one in fields(params)}
    return {name: value(noise) if callable(value) else value for name, value in values.items()}


def checked(params: type, values: Mapping[str, Any]) -> dict[str, Any]:
    """All parameters of a dataclass, each checked separately."""
    return {one.name: one.metadata["check"](one.name, values[one.name]) for one in fields(params)}


def takes(
    params: type, *, without: tuple[str, ...] = ()
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make a public function with ``**params`` take the fields of a dataclass, None if one is not given.

    Its signature, and its docstring at ``**params``, name each of them.

    >>> from dataclasses import dataclass
    >>> from vnlem.pipeline import checks
    >>> @dataclass(frozen=True, kw_only=True)
    ... class Params:
    ...     gamma: float = param("Power of the regression.", spec(checks.real, 0, 2, paper=0.1, auto=2.0))
    >>> @takes(Params)
    ... def denoise_new(image, *, workers=None, **params):
    ...     '''A new method.
    ...
    ...     **params
    ...     '''
    ...     return params
    >>> denoise_new(None), denoise_new(None, gamma=1.5)
    ({'gamma': None}, {'gamma': 1.5})
    >>> print(inspect.getdoc(denoise_new))
    A new method.
    <BLANKLINE>
    gamma : float, optional
        Power of the regression. Default: 0.1 ("paper"), 2.0 ("auto").
    """
    known = [one for one in fields(params) if one.name not in without]
    usual = dict.fromkeys(one.name for one in known)

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def call(*args: Any, **options: Any) -> Any:
            return function(*args, **(usual | options))

        signature = inspect.signature(function)
        own = [one for one in signature.parameters.values() if one.kind is not one.VAR_KEYWORD]
        more = [
            inspect.Parameter(one.name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=one.type)
            for one in known
        ]
        call.__signature__ = signature.replace(parameters=own + more)  # type: ignore[attr-defined]
        entries = textwrap.indent("\n".join(map(_entry, known)), "    ")
        call.__doc__ = (function.__doc__ or "").replace("    **params\n", f"{entries}\n")
        return names_parameters(call)

    return decorate


def _entry(one: Any) -> str:
    """What a docstring says about a parameter."""
    paper, auto = one.metadata["paper"], one.metadata["auto"]
    usual = ""
    if paper is not None:
        usual = f" Default: {paper!r}" + ("." if auto == paper else f' ("paper"), {_words(auto)} ("auto").')
    text = textwrap.fill(one.metadata["doc"] + usual, WIDTH - 8)
    return f"{one.name} : {one.type.__name__}, optional\n" + textwrap.indent(text, "    ")


def _words(usual: Any) -> str:
    return "follows sigma" if callable(usual) else repr(usual)
