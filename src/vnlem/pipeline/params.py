"""Parameters of a method as fields of a dataclass: type, check and default of each preset in one line."""

from collections.abc import Callable, Mapping
from dataclasses import field, fields
from typing import Any


def param(check: Callable[..., Any], *limits: Any, paper: Any, auto: Any = ..., **bounds: Any) -> Any:
    """A field of a dataclass of parameters.

    Parameters
    ----------
    check : callable
        (name, value, *limits, **bounds) -> the value, or one clear sentence; see `vnlem.pipeline.checks`.
    paper : object
        The default in the preset "paper".
    auto : object, optional
        The default in the preset "auto", where it differs; a function of the noise where it follows it.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from vnlem.pipeline import checks
    >>> @dataclass(frozen=True, kw_only=True)
    ... class Params:
    ...     patch_size: int = param(checks.odd, 3, 99, paper=13, auto=lambda noise: 5 if noise < 0.3 else 7)
    ...     gamma: float = param(checks.real, 0, 2, paper=0.1, auto=2.0)
    >>> preset_of(Params, "auto", 0.5), preset_of(Params, "paper")
    ({'patch_size': 7, 'gamma': 2.0}, {'patch_size': 13, 'gamma': 0.1})
    >>> Params(**checked(Params, {"patch_size": 7, "gamma": 1}))
    Params(patch_size=7, gamma=1.0)
    """

    def look(name: str, value: Any) -> Any:
        return check(name, value, *limits, **bounds)

    return field(metadata={"check": look, "paper": paper, "auto": paper if auto is ... else auto})


def preset_of(params: type, preset: str, noise: float = 0.0) -> dict[str, Any]:
    """The parameters of a preset at a noise level in units of the clean image's standard deviation."""
    values = {one.name: one.metadata[preset] for one in fields(params)}
    return {name: value(noise) if callable(value) else value for name, value in values.items()}


def checked(params: type, values: Mapping[str, Any]) -> dict[str, Any]:
    """All parameters of a dataclass, each checked by itself."""
    return {one.name: one.metadata["check"](one.name, values[one.name]) for one in fields(params)}
