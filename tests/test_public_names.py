"""Every public function and class explains itself: a docstring with an example, which is a doctest."""

import dataclasses
import importlib
import inspect

import pytest

import vnlem
from vnlem.methods.vnlem_dd_params import VnlemDdParams
from vnlem.methods.vnlem_params import VnlemParams


def public_names():
    """All that users can name, with the subpackages' own lists."""
    for name in vnlem._PUBLIC:
        yield f"vnlem.{name}", getattr(vnlem, name)
    for room in vnlem._SUBPACKAGES:
        module = importlib.import_module(f"vnlem.{room}")
        for name in getattr(module, "__all__", ()):
            yield f"vnlem.{room}.{name}", getattr(module, name)


EXPLAINED = {
    name: value for name, value in public_names() if inspect.isfunction(value) or inspect.isclass(value)
}


def test_the_lists_hold_what_they_should():
    assert len(EXPLAINED) > 90
    assert {"vnlem.denoise", "vnlem.Info", "vnlem.io.Metadata", "vnlem.theory.Recovery"} <= set(EXPLAINED)


@pytest.mark.parametrize("name", EXPLAINED)
def test_a_public_name_has_a_docstring_with_an_example(name):
    words = EXPLAINED[name].__doc__ or ""
    assert len(words.splitlines()[0]) > 10
    assert "\n    Examples\n    --------\n" in words
    assert ">>>" in words


@pytest.mark.parametrize("name", [name for name, value in EXPLAINED.items() if inspect.isclass(value)])
def test_the_public_methods_of_a_class_have_docstrings(name):
    for method, value in vars(EXPLAINED[name]).items():
        if not method.startswith("_") and (callable(value) or isinstance(value, property | classmethod)):
            assert value.__doc__, f"{name}.{method}"


@pytest.mark.parametrize(
    ("function", "params", "hidden"),
    [
        (vnlem.denoise_vnlem, VnlemParams, set()),
        (vnlem.denoise_vnlem_dd, VnlemDdParams, {"search", "adapt"}),
    ],
    ids=["vnlem", "vnlem-dd"],
)
def test_a_field_of_the_parameters_is_a_keyword_with_its_explanation(function, params, hidden):
    fields = {one.name: one for one in dataclasses.fields(params) if one.name not in hidden}
    keywords = inspect.signature(function).parameters
    assert set(fields) <= set(keywords)
    assert hidden.isdisjoint(keywords)
    words = " ".join(function.__doc__.split())
    for name, one in fields.items():
        assert f"{name} : {one.type.__name__}, optional {one.metadata['doc']}" in words
