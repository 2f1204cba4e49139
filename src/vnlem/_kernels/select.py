"""Selection of the nearest candidates."""

import numpy as np

from vnlem._kernels.jit import kernel


@kernel
def kth_smallest(values, k):
    """The k-th smallest (k from 1) of non-negative float32 `values`, infinity included.

    Bisection on the bit patterns, which sort like the numbers: each step is one vectorised count, where
    a quickselect would wait for a mispredicted branch at every other element.
    """
    patterns = values.view(np.int32)
    low = np.int32(0x7FFFFFFF)
    high = np.int32(0)
    for i in range(patterns.size):
        low = min(low, patterns[i])
        high = max(high, patterns[i])
    while low < high:
        middle = low + ((high - low) >> np.int32(1))
        count = np.int32(0)
        for i in range(patterns.size):
            count += np.int32(patterns[i] <= middle)
        if count >= k:
            high = middle
        else:
            low = middle + np.int32(1)
    return low


@kernel
def smallest(distances, limit, own, chosen):
    """Indices of the `limit` smallest finite distances, `own` first, the others in their order.

    distances : contiguous float32, none negative. Ties at the threshold go to the lower index, so the
    choice is the same everywhere. chosen : int32, one longer than `limit`. Returns the count.
    """
    patterns = distances.view(np.int32)
    infinity = np.int32(0x7F800000)
    finite = 0
    for i in range(patterns.size):
        finite += np.int32(patterns[i] < infinity)
    count = min(limit, finite)
    threshold = kth_smallest(distances, count)
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
    return count
