"""Selection of the smallest of many numbers without sorting them."""

import numpy as np

from vnlem.kernels.numba.jit import nested


@nested
def smallest(values, n_values, count, chosen):
    """Indices of the `count` smallest of values[:n_values], ascending, into chosen; ties go to the first.

    The values must be finite and not negative; chosen has room for one more than count. A threshold that
    parts the wanted from the rest is found by bracketing, each step one vectorised count: a step by
    interpolation, which mostly hits, then one by halving, which always shrinks the bracket. Returns how
    many were chosen: count, or n_values where there are fewer.
    """
    if n_values <= count:
        for n in range(n_values):
            chosen[n] = n
        return n_values
    # The mean is a first bracket that vectorises; a running minimum and maximum would not.
    high = np.float32(0)
    for n in range(n_values):
        high += values[n]
    high /= np.float32(n_values)
    low, below_low = np.float32(0), 0
    below_high = _count_up_to(values, n_values, high)
    while below_high < count:
        low, below_low = high, below_high
        high = np.float32(2) * high + np.float32(1e-30)
        below_high = _count_up_to(values, n_values, high)
    interpolate = True
    # Invariant: at least count values are at most high; fewer than count are at most low, or low is 0.
    while below_high != count:
        share = np.float32(0.5)
        if interpolate:
            share = np.float32(count - below_low) / np.float32(below_high - below_low)
            share = min(max(share, np.float32(0.02)), np.float32(0.98))
        interpolate = not interpolate
        threshold = low + (high - low) * share
        if threshold <= low or threshold >= high:
            threshold = low + (high - low) * np.float32(0.5)
        if threshold <= low or threshold >= high:
            return _take_with_ties(values, n_values, low, high, count, chosen)
        below = _count_up_to(values, n_values, threshold)
        if below >= count:
            high, below_high = threshold, below
        else:
            low, below_low = threshold, below
    return _take_up_to(values, n_values, high, count, chosen)


@nested
def _count_up_to(values, n_values, threshold):
    """How many values are at most the threshold; counted in float32, which vectorises with the comparison."""
    total = np.float32(0)
    for n in range(n_values):
        total += np.float32(1) if values[n] <= threshold else np.float32(0)
    return np.int64(total)


@nested
def _take_up_to(values, n_values, threshold, count, chosen):
    """Indices of the values at most the threshold, without a branch to mispredict."""
    found = 0
    for n in range(n_values):
        chosen[found] = n
        found += np.int64(values[n] <= threshold)
    return count


@nested
def _take_with_ties(values, n_values, low, high, count, chosen):
    """The bracket holds no number between its ends: take what is below the tied value, then ties in order."""
    tied = high
    if _count_up_to(values, n_values, low) >= count:
        tied = low  # more than count zeros
    ties = count
    for n in range(n_values):
        ties -= np.int64(values[n] < tied)
    found = 0
    for n in range(n_values):
        if values[n] < tied:
            chosen[found] = n
            found += 1
        elif values[n] == tied and ties > 0:
            chosen[found] = n
            found += 1
            ties -= 1
    return found
