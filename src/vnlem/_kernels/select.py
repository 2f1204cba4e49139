"""Selection of the nearest candidates."""

import numpy as np

from vnlem._kernels.jit import nested


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
    Bisection: each step is one vectorised count, where a quickselect would wait for a mispredicted branch
    at every other element. It begins in a bracket around `guess`, the neighbour's answer as a rule.
    """
    width = np.int32(1 << 19)  # a sixteenth of the guess
    low = np.int32(0)
    high = np.int32(0x7F800000)
    if guess > width and guess < high - width:
        if _count_up_to(patterns, guess - width) < k:
            low = guess - width + np.int32(1)
            if _count_up_to(patterns, guess + width) >= k:
                high = guess + width
        else:
            high = guess - width
    while low < high:
        middle = low + ((high - low) >> np.int32(1))
        count = _count_up_to(patterns, middle)
        if count == k:
            return middle
        if count > k:
            high = middle
        else:
            low = middle + np.int32(1)
    return low


@nested
def smallest(distances, limit, own, guess, chosen):
    """Indices of the `limit` smallest finite distances, `own` first, the others in their order.

    distances : contiguous float32, none negative. Ties at the threshold go to the lower index, so the
    choice is the same everywhere. chosen : int32, one longer than `limit`. Returns the count and the bit
    pattern of the threshold, a good `guess` for the next pixel.
    """
    patterns = distances.view(np.int32)
    infinity = np.int32(0x7F800000)
    finite = 0
    for i in range(patterns.size):
        finite += np.int32(patterns[i] < infinity)
    count = min(limit, finite)
    threshold = threshold_of(patterns, count, guess)
    below = 0
    for i in range(patterns.size):
        below += np.int32(patterns[i] < threshold)
    ties = count - below - np.int32(patterns[own] >= threshold)
    chosen[0] = own
    at = 1
    for i in range(patterns.size):
        # Written always, kept or overwritten: no branch to mispredict.
        chosen[at] = i
        tied = np.int32(patterns[i] == threshold) & np.int32(ties > 0)
        take = (np.int32(patterns[i] < threshold) | tied) & np.int32(i != own) & np.int32(at < count)
        ties -= tied & take
        at += take
    return count, threshold
