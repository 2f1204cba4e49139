"""Selection of the smallest of many numbers without sorting them.

A threshold that parts the wanted numbers from the rest is found by bracketing. Each step is one vectorised
count, where a quickselect would wait for a mispredicted branch at every other element. Numbers are compared
as numbers: NaN of either sign is never counted, so it ranks behind infinity.
"""

from typing import NamedTuple

import numpy as np

from vnlem.kernels.numba.jit import nested
from vnlem.kernels.numba.scratch import bits_as, bits_of, from_bits, larger_of, part, smaller_of
from vnlem.kernels.numba.vectors import BLOCK, bits_up_to, first_bit, store_places

INFINITY = np.float32(np.inf)
LARGEST = np.float32(3.4028235e38)  # of the finite ones
WIDER = np.float32(4)  # the bracket around a guess grows by this factor
FEW = 4  # so many times the wanted numbers are few: a threshold for them is found in a few steps
# Of every number of eight bits: which are set, from the lowest on, four bits for each, and above how many.
_PLACES = np.array(
    [
        sum(bit << 4 * n for n, bit in enumerate(k for k in range(8) if bits >> k & 1))
        | bits.bit_count() << 32
        for bits in range(256)
    ]
)


@nested
def _count_up_to(values, limit):
    """How many values are at most the limit; counted in float32, which vectorises with the comparison."""
    count = np.float32(0)
    for i in range(values.size):
        count += np.float32(1) if values[i] <= limit else np.float32(0)
    return np.int64(count)


@nested
def _halfway(low, high):
    """The number in the middle of all float32 numbers between two that are not negative."""
    first, last = bits_of(low), bits_of(high)
    return from_bits(np.int32(first + (last - first) // 2))


@nested
def threshold_of(values, k, guess):
    """A number up to which exactly k of the values lie; with ties, the k-th smallest itself (`_bracket`)."""
    threshold, _ = _bracket(values, k, k, guess)
    return threshold


@nested
def _bracket(values, k, most, guess):
    """A threshold, and how many values are at most it: k to `most` of them, or more with ties.

    values : float32, none negative, at most 2^24 of them, at least k of them finite. A bracket is sought
    around `guess`, the neighbour's answer as a rule, or around the mean where the guess is not positive.
    Then steps by interpolation, which mostly hit, take turns with halving, which always shrinks the bracket.
    """
    middle = np.float32(guess)
    if not np.float32(0) < middle < INFINITY:
        middle = np.float32(0)
        for i in range(values.size):
            middle += values[i] if values[i] < INFINITY else np.float32(0)
        middle = smaller_of(middle / np.float32(larger_of(values.size, 1)), LARGEST)
    # Fewer than k values are at most `low` (or low is below all), at least k are at most `high`.
    low, up_to_low = np.float32(-1), np.int64(0)
    high, up_to_high = LARGEST, np.int64(values.size)
    narrow = np.float32(1.0625)
    while True:
        count = _count_up_to(values, middle)
        if k <= count <= most:
            return middle, count
        if count > k:
            high, up_to_high = middle, count
            if low >= 0 or middle == 0:
                break
            middle /= narrow
        else:
            low, up_to_low = middle, count
            if high < LARGEST or middle >= high:
                break
            middle = smaller_of(larger_of(middle * narrow, np.float32(1e-30)), high)
        narrow *= WIDER
    low = larger_of(low, np.float32(0))
    interpolate = True
    while True:
        middle = _halfway(low, high)
        if interpolate:
            share = np.float32(k - up_to_low) / np.float32(larger_of(up_to_high - up_to_low, 1))
            straight = low + (high - low) * smaller_of(larger_of(share, np.float32(0.02)), np.float32(0.98))
            if low < straight < high:
                middle = straight
        interpolate = not interpolate
        if not low < middle < high:
            break
        count = _count_up_to(values, middle)
        if k <= count <= most:
            return middle, count
        if count > k:
            high, up_to_high = middle, count
        else:
            low, up_to_low = middle, count
    # No number lies between the ends: the k-th smallest is one of them.
    count = _count_up_to(values, low)
    return (low, count) if count >= k else (high, up_to_high)


@nested
def largest_up_to(values, threshold):
    """The largest of the values that are at most the threshold: the same whatever guess led to it."""
    # As whole numbers, which have the order of floats that are not negative: their maximum vectorises.
    numbers = bits_as(values, np.int32)
    limit = bits_of(threshold)
    largest = np.int32(0)
    for i in range(numbers.size):
        largest = larger_of(largest, numbers[i] if numbers[i] <= limit else np.int32(0))
    return from_bits(largest)


class Few(NamedTuple):
    """Some of many values, in their order, and where they are; room for all of them and sixteen more."""

    values: np.ndarray  # float32
    places: np.ndarray  # int32


@nested
def take_smallest(values, k, guess, few):
    """Take the k smallest of the values and some more: further steps are then made on few numbers.

    Returns how many were taken, and the threshold: a good `guess` for the next pixel.
    """
    threshold, _ = _bracket(values, k, FEW * k, guess)
    return take_up_to(values, threshold, few), threshold


@nested
def take_up_to(values, threshold, few):
    """Take all values that are at most the threshold; returns how many."""
    n = 0
    whole = values.size // BLOCK * BLOCK
    for start in range(0, whole, BLOCK):
        bits = bits_up_to(values, start, threshold)
        # Eight places are written whatever the bits: no branch that depends on them.
        low, high = _PLACES[bits & 255], _PLACES[bits >> 8]
        store_places(few.places, n, start, low)
        n += low >> 32
        store_places(few.places, n, start + 8, high)
        n += high >> 32
    for i in range(whole, values.size):
        few.places[n] = i
        n += np.int64(values[i] <= threshold)
    for i in range(n):
        few.values[i] = values[few.places[i]]
    return n


@nested
def smallest_of_few(few, n, limit, own, guess, chosen):
    """`smallest` of the first n that were taken, `own` among them; chosen: where they are of all values."""
    before = np.int64(0)
    for i in range(n):
        before += np.int64(few.places[i] < own)
    count, _ = smallest(part(few.values, 0, n), limit, before, guess, chosen)
    for j in range(count):
        chosen[j] = few.places[chosen[j]]
    return count


@nested
def smallest(values, limit, own, guess, chosen):
    """Indices of the `limit` smallest finite values, in their order.

    values : contiguous float32, none negative. Ties at the threshold go to the lower index, so the choice is
    the same everywhere. own : the index of a value of zero that is taken in any case and comes first in
    `chosen`, or -1. chosen : whole numbers, one longer than `limit`. Returns how many were chosen, and the
    threshold: a good `guess` for the next pixel.
    """
    at = 0
    if own >= 0:
        chosen[0] = own
        at = 1
    count = smaller_of(limit, _count_up_to(values, LARGEST))
    if count <= at:
        return at, np.float32(guess)
    threshold, up_to_threshold = _bracket(values, count, count, guess)
    if up_to_threshold == count:
        whole = values.size // BLOCK * BLOCK
        for start in range(0, whole, BLOCK):
            bits = bits_up_to(values, start, threshold)
            bits &= ~((np.int64(start <= own) & np.int64(own < start + BLOCK)) << (own & (BLOCK - 1)))
            if at + BLOCK <= chosen.shape[0]:
                # Eight places are written whatever the bits: no branch that depends on them.
                low, high = _PLACES[bits & 255], _PLACES[bits >> 8]
                store_places(chosen, at, start, low)
                at += low >> 32
                store_places(chosen, at, start + 8, high)
                at += high >> 32
                continue
            while bits != 0:
                chosen[at] = start + first_bit(bits)
                bits &= bits - 1
                at += 1
        for i in range(whole, values.size):
            # Written always, kept or overwritten: no branch to mispredict.
            chosen[at] = i
            at += np.int64(values[i] <= threshold) & np.int64(i != own)
        return count, threshold
    ties = count - at
    for i in range(values.size):
        ties -= np.int64(values[i] < threshold) & np.int64(i != own)
    for i in range(values.size):
        chosen[at] = i
        tied = np.int64(values[i] == threshold) & np.int64(ties > 0) & np.int64(i != own)
        ties -= tied
        at += (np.int64(values[i] < threshold) & np.int64(i != own)) | tied
    return at, threshold
