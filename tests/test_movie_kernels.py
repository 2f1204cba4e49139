"""Motion and medians of movies against the plain reference."""

import numpy as np
import pytest

from vnlem.estimate.transients import middle_of
from vnlem.kernels.cpu.motion import BlockSearch, Moves, block_motion, follow_motion
from vnlem.reference import vnlr_stack as reference

CELL, LONGEST = 8, 12
SIZES = [(40, 51), (64, 64), (17, 9), (5, 70), (1, 1), (9, 300)]


def two_frames(height, width, seed=0):
    """A frame and the same moved, both with noise."""
    rng = np.random.default_rng(seed)
    here = rng.normal(0, 1, (height, width))
    there = np.roll(here, (2, -3), (0, 1)) + rng.normal(0, 0.3, here.shape)
    return here.astype(np.float32), there.astype(np.float32)


@pytest.mark.parametrize("size", SIZES)
def test_blocks_move_as_in_the_reference(size):
    here, there = two_frames(*size)
    expected = reference._moves(here.astype(float), there.astype(float), 0.01)
    moves = np.full(expected.shape, 99)
    block_motion(here, there, BlockSearch(CELL, LONGEST, 0.01), moves)
    np.testing.assert_array_equal(moves, expected)


def test_rows_of_blocks_are_found_one_by_one():
    here, there = two_frames(45, 60)
    search = BlockSearch(CELL, LONGEST, 0.01)
    moves, alone = np.zeros((2, 6, 8, 2), np.int64)
    block_motion(here, there, search, moves)
    for row in range(len(alone)):
        block_motion(here, there, search._replace(first=row), alone[row : row + 1])
    np.testing.assert_array_equal(alone, moves)


def test_of_equal_shifts_the_first_is_taken():
    flat = np.ones((30, 30), np.float32)
    moves = np.zeros((4, 4, 2), np.int64)
    block_motion(flat, flat, BlockSearch(CELL, 1, 0.0), moves)
    assert moves[1, 1].tolist() == [-1, -1]
    block_motion(flat, flat, BlockSearch(CELL, 1, 0.1), moves)
    assert not moves.any()


@pytest.mark.parametrize("plane", [0, 2, 4])
def test_windows_follow_the_motion_as_in_the_reference(plane):
    rng = np.random.default_rng(plane)
    onward, back = rng.integers(-12, 13, (2, 4, 3, 5, 2))
    corners = rng.integers(0, 40, (30, 2))
    centres = np.zeros((30, 5, 3), np.int64)
    follow_motion(Moves(onward, back, CELL), corners, plane, 3, centres)
    for corner, found in zip(corners, centres, strict=True):
        places = {plane: corner}
        for here in range(plane, 4):
            places[here + 1] = places[here] + reference._move_at(onward[here], *places[here], 7)
        for here in range(plane, 0, -1):
            places[here - 1] = places[here] + reference._move_at(back[here - 1], *places[here], 7)
        order = [plane, *(other for other in range(5) if other != plane)]
        assert found.tolist() == [[other, *places[other]] for other in order]


@pytest.mark.parametrize("count", [1, 2, 9, 16, 17])
def test_the_middle_of_planes_is_their_median(count):
    planes = np.random.default_rng(count).normal(0, 1, (count, 1, 7, 29)).astype(np.float32)
    np.testing.assert_allclose(middle_of(planes), np.median(planes, axis=0), rtol=1e-6)
