"""Tiles of several passes: processed in any order, settled in order, never before their input is ready."""

import random
import threading

import pytest

from vnlem.pipeline.schedule import Schedule, Spans, Step
from vnlem.pipeline.workers import Pool


def spans(count, side, reach, size):
    """Spans of tiles of a side that read `reach` pixels around them."""
    begins = range(0, count, side)
    return [(max(begin - reach, 0), min(begin + side + reach, size)) for begin in begins]


PASSES = [
    Spans(spans(100, 20, 7, 100), spans(80, 20, 7, 80)),
    Spans(spans(100, 20, 25, 100), spans(80, 20, 25, 80)),
    Spans(spans(100, 10, 3, 100), spans(80, 40, 3, 80)),
    Spans([(30, 60)], [(10, 30), (20, 70)]),
]


class Recorded:
    """What happened in which order, and whether it was allowed."""

    def __init__(self):
        self.lock = threading.Lock()
        self.worked, self.settled = set(), []

    def work(self, step):
        with self.lock:
            assert step not in self.worked
            # All tiles of the previous pass that read the same pixels are settled.
            done = set(self.settled)
            assert all(other in done for other in tiles(step.number - 1) if overlap(other, step)), (
                f"{step} came too early"
            )
            self.worked.add(step)

    def settle(self, step):
        with self.lock:
            assert step in self.worked
            self.settled.append(step)


def tiles(number):
    if number < 0:
        return []
    rows, columns = PASSES[number]
    return [Step(number, row, column) for row in range(len(rows)) for column in range(len(columns))]


def overlap(a, b):
    pairs = (
        (PASSES[a.number].rows[a.row], PASSES[b.number].rows[b.row]),
        (PASSES[a.number].columns[a.column], PASSES[b.number].columns[b.column]),
    )
    return all(one[0] < other[1] and other[0] < one[1] for one, other in pairs)


@pytest.mark.parametrize("workers", [1, 4])
@pytest.mark.parametrize("seed", range(4))
def test_no_tile_comes_too_early_and_overlapping_ones_are_settled_in_order(workers, seed):
    chance = random.Random(seed)
    keys = {step: chance.random() for number in range(len(PASSES)) for step in tiles(number)}
    schedule = Schedule(PASSES, order=keys.__getitem__ if seed else None)
    seen = Recorded()
    told = []

    def work(step):
        seen.work(step)
        for settled in schedule.settling(step):
            seen.settle(settled)

    with Pool(workers) as pool:
        pool.for_each(work, schedule, lambda done, total: told.append((done, total)))
    assert len(seen.settled) == len(set(seen.settled)) == len(schedule) == len(keys)
    assert told[-1] == (len(keys), len(keys))
    place = {step: index for index, step in enumerate(seen.settled)}
    for number in range(len(PASSES)):
        for a in tiles(number):
            for b in tiles(number):
                if a < b and overlap(a, b):
                    assert place[a] < place[b]


@pytest.mark.parametrize("workers", [1, 3])
def test_an_error_in_one_tile_ends_the_work_of_all(workers):
    schedule = Schedule(PASSES)
    worked = []

    def work(step):
        worked.append(step)
        if len(worked) == 7:
            raise ZeroDivisionError
        for _ in schedule.settling(step):
            pass

    with Pool(workers) as pool, pytest.raises(ZeroDivisionError):
        pool.for_each(work, schedule)
    assert len(worked) < len(schedule)
