"""Selection of the nearest candidates."""

import numpy as np

from vnlem.kernels.numba.jit import nested

BLOCK = 16
INFINITY_BITS = 0x7F800000
FIRST_STEP = 1 << 19  # a sixteenth of a number


@nested
def _count_up_to(patterns, limit):
    count = np.int32(0)
    for i in range(patterns.size):
        count += np.int32(patterns[i] <= limit)
    return count


@nested
def threshold_of(patterns, k, guess):
    """A bit pattern up to which exactly k of the numbers lie; with ties, the k-th smallest itself.

    patterns : bits of non-negative float32 numbers, infinity included; they sort like the numbers.
    Each step is one vectorised count, where a quickselect would wait for a mispredicted branch at every
    other element. A bracket is sought around `guess`, the neighbour's answer as a rule; then steps by
    interpolation, which mostly hit, take turns with steps by halving, which always shrink the bracket.
    """
    # Fewer than k numbers lie below `low`, at least k up to `high`.
    low, below = np.int64(0), np.int64(0)
    high, up_to = np.int64(INFINITY_BITS), np.int64(patterns.size)
    step = np.int64(FIRST_STEP)
    middle = np.int64(guess)
    seeking = 0 < middle < high
    interpolate = False
    while low < high:
        if not seeking:
            middle = low + (high - low) // 2
            if interpolate:
                middle = low + (high - low) * (k - below) // max(up_to - below, 1)
            interpolate = not interpolate
        middle = min(max(middle, low), high - 1)
        count = np.int64(_count_up_to(patterns, np.int32(middle)))
        if count == k:
            return np.int32(middle)
        if count > k:
            high, up_to = middle, count
        else:
            low, below = middle + 1, count
        if seeking:
            seeking = low == 0 or high == INFINITY_BITS
            middle += -step if count > k else step
            step *= 4
    return np.int32(low)


@nested
def smallest(distances, limit, own, guess, chosen):
    """Indices of the `limit` smallest finite distances, `own` first, the others in their order.

    distances : contiguous float32, none negative. Ties at the threshold go to the lower index, so the
    choice is the same everywhere. chosen : int32, one longer than `limit`. Returns the count and the bit
    pattern of the threshold, a good `guess` for the next pixel.
    """
    patterns = distances.view(np.int32)
    finite = np.int64(_count_up_to(patterns, np.int32(INFINITY_BITS - 1)))
    count = min(limit, finite)
    threshold = threshold_of(patterns, count, guess)
    below = np.int64(_count_up_to(patterns, np.int32(threshold - 1)))
    ties = count - below - np.int32(patterns[own] >= threshold)
    chosen[0] = own
    at = 1
    for start in range(0, patterns.size, BLOCK):
        # Few blocks hold any; the others are passed over with one comparison of vectors.
        block = patterns[start : start + BLOCK]
        if _count_up_to(block, threshold) == 0:
            continue
        for i in range(start, start + block.size):
            # Written always, kept or overwritten: no branch to mispredict.
            chosen[at] = i
            tied = np.int32(patterns[i] == threshold) & np.int32(ties > 0)
            take = (np.int32(patterns[i] < threshold) | tied) & np.int32(i != own) & np.int32(at < count)
            ties -= tied & take
            at += take
    return count, threshold
