"""Random calls, damaged files and command lines, always the same; `make fuzz` runs thousands."""

import any_call
import any_case
import pytest

from vnlem.registry import METHODS

CALLS, FILES, CHUNK = 300, 100, 50


@pytest.mark.parametrize("method", METHODS)
def test_every_parameter_of_a_method_is_drawn(method):
    names = any_case.parameters_of(method, "stack")
    assert names <= set(any_case.RANGES), "add the new parameter to RANGES in tests/any_case.py"


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, CALLS, CHUNK))
def test_any_call_is_refused_in_one_sentence_or_gives_a_sound_image(first):
    assert not wrong(any_call, first)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, FILES, CHUNK))
def test_any_damaged_file_is_refused_in_one_sentence_or_gives_a_sound_file(first):
    pytest.importorskip("zarr", reason="needs the extra 'large'")
    pytest.importorskip("h5py", reason="one of the formats")
    import any_file

    assert not wrong(any_file, first)


@pytest.mark.slow
def test_any_command_ends_with_a_file_or_with_one_sentence():
    pytest.importorskip("zarr", reason="needs the extra 'large'")
    pytest.importorskip("h5py", reason="one of the formats")
    import any_command

    assert not wrong(any_command, 0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "number"),
    [("any_file", 70276), ("any_call", 300069), ("any_call", 301908), ("any_call", 201048)],
)
def test_cases_that_once_went_wrong(kind, number):
    module = pytest.importorskip(kind, reason="needs the extra 'large'")
    assert not module.problems(module.draw(number))


def wrong(kind, first):
    """What is wrong with which of the drawn cases."""
    cases = map(kind.draw, range(first, first + CHUNK))
    return {str(case): found for case in cases if (found := kind.problems(case))}
