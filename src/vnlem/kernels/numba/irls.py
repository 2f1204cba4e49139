"""The gamma-power regression of weighted patches: argmin over P of sum_j w_j (|P - P_j|^2 + delta)^(gamma/2).

The patches are rows of a table, P_j = table[index[j]] for j < count, padded with zeros to a length that
vectors divide. Rows are taken four at a time: one load of the point serves four residuals, and one load
and store of the sum serves four rows.
"""

import numpy as np

from vnlem.kernels.numba.elementary import power_inplace
from vnlem.kernels.numba.jit import nested

DELTA = np.float32(1e-6)  # added to squared residuals
STEP = np.float32(1e-4)  # stop when the Euclidean norm of a step falls below this
MAX_ITERATIONS = 500


@nested
def squared_residuals(table, index, begin, end, point, out):
    """out[j] = |point - P_j|^2 for begin <= j < end."""
    n = point.size
    j = begin
    while j + 4 <= end:
        r0 = table[index[j]]
        r1 = table[index[j + 1]]
        r2 = table[index[j + 2]]
        r3 = table[index[j + 3]]
        s0 = np.float32(0.0)
        s1 = np.float32(0.0)
        s2 = np.float32(0.0)
        s3 = np.float32(0.0)
        for a in range(n):
            d0 = point[a] - r0[a]
            d1 = point[a] - r1[a]
            d2 = point[a] - r2[a]
            d3 = point[a] - r3[a]
            s0 += d0 * d0
            s1 += d1 * d1
            s2 += d2 * d2
            s3 += d3 * d3
        out[j] = s0
        out[j + 1] = s1
        out[j + 2] = s2
        out[j + 3] = s3
        j += 4
    while j < end:
        r0 = table[index[j]]
        s0 = np.float32(0.0)
        for a in range(n):
            d0 = point[a] - r0[a]
            s0 += d0 * d0
        out[j] = s0
        j += 1


@nested
def add_weighted(table, index, begin, end, weights, out):
    """out = sum over begin <= j < end of weights[j] P_j; returns the sum of these weights."""
    n = out.size
    for a in range(n):
        out[a] = np.float32(0.0)
    total = np.float32(0.0)
    j = begin
    while j + 4 <= end:
        w0 = weights[j]
        w1 = weights[j + 1]
        w2 = weights[j + 2]
        w3 = weights[j + 3]
        total += (w0 + w1) + (w2 + w3)
        r0 = table[index[j]]
        r1 = table[index[j + 1]]
        r2 = table[index[j + 2]]
        r3 = table[index[j + 3]]
        for a in range(n):
            out[a] += (w0 * r0[a] + w1 * r1[a]) + (w2 * r2[a] + w3 * r3[a])
        j += 4
    while j < end:
        w0 = weights[j]
        total += w0
        r0 = table[index[j]]
        for a in range(n):
            out[a] += w0 * r0[a]
        j += 1
    return total


@nested
def irls(table, index, weights, count, gamma, point, scratch, residual, bits):
    """Iteratively reweighted least squares from the weighted mean; returns the number of iterations.

    point : (n,) float32 result. scratch : (n,) float32, residual : float32 and bits : int32 of at least
    `count` entries.
    """
    n = point.size
    exponent = np.float32(0.5) * gamma - np.float32(1.0)
    terms = residual[:count]
    for j in range(count):
        terms[j] = weights[j]
    for a in range(n):
        point[a] = np.float32(np.inf)
    for iteration in range(MAX_ITERATIONS + 1):
        if iteration > 0:
            squared_residuals(table, index, 0, count, point, terms)
            for j in range(count):
                terms[j] += DELTA
            power_inplace(terms, exponent, bits[:count])
            for j in range(count):
                terms[j] *= weights[j]
        total = add_weighted(table, index, 0, count, terms, scratch)
        step = np.float32(0.0)
        for a in range(n):
            new = scratch[a] / total
            d = new - point[a]
            step += d * d
            point[a] = new
        # No guess from steps that shrink: below gamma = 1 they also do so, for a while, beside a saddle.
        if step < STEP * STEP or exponent == np.float32(0.0):
            return iteration
    return MAX_ITERATIONS


@nested
def euclidean_median(table, index, weights, distances, count, remainder, point, scratch, residual):
    """The minimiser for gamma = 1 where P_0, the patch itself, may outweigh the others.

    distances[j] = |P_0 - P_j|^2; the median has arrived when what is left of its way is shorter than
    `remainder`. IRLS creeps when the median lies close to a heavy patch, as it does at
    high noise: there the patch's own term is far from the parabola that IRLS puts over it. Here only the
    other patches get a parabola; what is left is one-dimensional, along the line from P_0 to the others'
    mean, and solved exactly. Every step lowers the same convex function, so the limit is the same, and
    P_0 itself, the median at most pixels of a very noisy image, is found in one step from its known
    distances. Returns the number of iterations.
    """
    n = point.size
    own = table[index[0]]
    for a in range(n):
        point[a] = own[a]
    if count == 1:
        return 0
    terms = residual[:count]
    for j in range(count):
        terms[j] = distances[j]
    rate = np.float32(1.0)  # by which the steps shrink
    last_step = np.float32(0.0)
    for iteration in range(1, MAX_ITERATIONS + 1):
        if iteration > 1:
            squared_residuals(table, index, 1, count, point, terms)
        if iteration == 2:
            rate = _contraction(distances, terms, weights, count, last_step)
        for j in range(count):
            terms[j] = weights[j] / np.sqrt(terms[j] + DELTA)
        pull = add_weighted(table, index, 1, count, terms, scratch)
        distance = np.float32(0.0)
        for a in range(n):
            scratch[a] = scratch[a] / pull - own[a]
            distance += scratch[a] * scratch[a]
        distance = np.sqrt(distance)
        best = _own_step(distance, weights[0], pull)
        share = best / distance if distance > 0 else np.float32(0.0)
        step = np.float32(0.0)
        for a in range(n):
            new = own[a] + share * scratch[a]
            d = new - point[a]
            step += d * d
            point[a] = new
        step = np.sqrt(step)
        # What is left after this step: the others' mean moves by less than the point did, and pulls
        # against the own term's curvature; and the steps shrink like a geometric series.
        root = np.sqrt(best * best + DELTA)
        own_curvature = weights[0] * DELTA / (root * root * root)
        ahead = step * pull / (own_curvature + pull)
        if iteration > 2:
            rate = step / last_step
        if rate < np.float32(0.5):
            ahead = min(ahead, np.float32(3.0) * rate * step)
        if ahead < remainder:
            return iteration
        last_step = step if iteration > 0 else np.float32(0.0)
    return MAX_ITERATIONS


@nested
def _contraction(before, after, weights, count, step):
    """By how much the next step will be shorter than this one, from residuals at its two ends.

    The step's map has the Jacobian sum_j v_j u_j u_j^T / sum_j v_j, with v_j = w_j / r_j and u_j the unit
    vector from P_j to the point; the cosine of u_j and the step follows from the three sides of a triangle.
    """
    along = np.float32(0.0)
    total = np.float32(0.0)
    for j in range(1, count):
        squared = after[j] + DELTA
        v = weights[j] / np.sqrt(squared)
        side = (after[j] - before[j] + step * step) / (np.float32(2.0) * step)
        along += v * side * side / squared
        total += v
    return along / total


@nested
def _own_step(distance, weight, pull):
    """The s >= 0 that minimises weight * sqrt(s^2 + delta) + pull/2 * (distance - s)^2."""
    low = np.float32(0.0)
    high = distance
    s = max(distance - weight / pull, np.float32(0.0))
    for _ in range(60):
        root = np.sqrt(s * s + DELTA)
        slope = weight * s / root + pull * (s - distance)
        if slope > 0:
            high = s
        else:
            low = s
        candidate = s - slope / (weight * DELTA / (root * root * root) + pull)
        if not (low <= candidate <= high):
            candidate = np.float32(0.5) * (low + high)
        if abs(candidate - s) <= np.float32(1e-6) * distance:
            return candidate
        s = candidate
    return s
