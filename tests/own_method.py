"""A method whose solver a test gives: `use(monkeypatch, solve)` makes it known as "own"."""

from dataclasses import dataclass

from vnlem import registry
from vnlem.pipeline.method import Method

_given = {}


@dataclass(frozen=True)
class OwnParams:
    patch_size: int = 1


def solve(job):
    return _given["solve"](job)


def denoise_own(
    image,
    sigma=None,
    *,
    preset="auto",
    engine="fast",
    scales=1,
    channel_axis=None,
    workers=None,
    progress=False,
    return_info=False,
    device=None,
):
    """Denoise with the solver of the test."""
    return METHOD.denoise(**locals())


METHOD = Method(
    name="own",
    function="own_method:denoise_own",
    resolve=lambda noise, ndim, **given: OwnParams(),
    engines={"fast": "own_method:solve"},
    signals=True,
)


def use(monkeypatch, solver):
    """Make a solver of jobs known as the method "own"."""
    monkeypatch.setitem(_given, "solve", solver)
    monkeypatch.setitem(registry.METHODS, "own", "own_method:METHOD")
