"""A few hundred calls of any kind, the same ones every time; `make fuzz` draws thousands."""

import inspect

import pytest
from any_call import COMMON, RANGES, draw, problems

from vnlem.registry import METHODS, find_method

CHUNK = 25


@pytest.mark.parametrize("method", METHODS)
def test_every_parameter_of_a_method_is_drawn(method):
    names = set(inspect.signature(find_method(method)).parameters)
    assert names <= {*RANGES, *COMMON}, "add the new parameter to RANGES in tests/any_call.py"


@pytest.mark.parametrize("first", range(0, 400, CHUNK))
def test_any_call_is_refused_in_one_sentence_or_gives_a_sound_image(first):
    cases = map(draw, range(first, first + CHUNK))
    wrong = {str(case): found for case in cases if (found := problems(case))}
    assert not wrong
