"""Plain loops in place of the vector instructions of `simd`, `masks` and `squares`, and of `arrays`.

They use nothing but what Numba offers to everybody, so they work with any release of it. A vector is a tuple
of eight numbers. Each function means what its namesake means; results agree to rounding.
"""

import numpy as np

from vnlem.kernels.numba.jit import allocating, inlined, nested
from vnlem.kernels.numba.lengths import BLOCK, LANES


@nested
def load(array, k):
    return (
        array[k],
        array[k + 1],
        array[k + 2],
        array[k + 3],
        array[k + 4],
        array[k + 5],
        array[k + 6],
        array[k + 7],
    )


@nested
def store(array, k, v):
    for i in range(LANES):
        array[k + i] = v[i]


@nested
def spread(number):
    x = np.float32(number)
    return x, x, x, x, x, x, x, x


@nested
def item(array, k):
    return array[k]


@nested
def plus(a, b):
    return (
        a[0] + b[0],
        a[1] + b[1],
        a[2] + b[2],
        a[3] + b[3],
        a[4] + b[4],
        a[5] + b[5],
        a[6] + b[6],
        a[7] + b[7],
    )


@nested
def times(a, b):
    return (
        a[0] * b[0],
        a[1] * b[1],
        a[2] * b[2],
        a[3] * b[3],
        a[4] * b[4],
        a[5] * b[5],
        a[6] * b[6],
        a[7] * b[7],
    )


@nested
def minus(a, b):
    return plus(a, times(spread(np.float32(-1)), b))


@nested
def multiply_add(a, b, c):
    return plus(times(a, b), c)


@nested
def total(v):
    return ((v[0] + v[1]) + (v[2] + v[3])) + ((v[4] + v[5]) + (v[6] + v[7]))


@nested
def totals(a, b, c, d, e, f, g, h):
    return total(a), total(b), total(c), total(d), total(e), total(f), total(g), total(h)


@nested
def lane(v, k):
    return spread(v[k])


@nested
def larger(a, b):
    return (
        a[0] if a[0] > b[0] else b[0],
        a[1] if a[1] > b[1] else b[1],
        a[2] if a[2] > b[2] else b[2],
        a[3] if a[3] > b[3] else b[3],
        a[4] if a[4] > b[4] else b[4],
        a[5] if a[5] > b[5] else b[5],
        a[6] if a[6] > b[6] else b[6],
        a[7] if a[7] > b[7] else b[7],
    )


@nested
def where_larger(a, b, x, y):
    return (
        x[0] if a[0] > b[0] else y[0],
        x[1] if a[1] > b[1] else y[1],
        x[2] if a[2] > b[2] else y[2],
        x[3] if a[3] > b[3] else y[3],
        x[4] if a[4] > b[4] else y[4],
        x[5] if a[5] > b[5] else y[5],
        x[6] if a[6] > b[6] else y[6],
        x[7] if a[7] > b[7] else y[7],
    )


@nested
def magnitude(v):
    return larger(v, times(spread(np.float32(-1)), v))


@nested
def add_pair(array, k, first, second, number):
    array[k] += first * number
    array[k + 1] += second * number


@nested
def add_pairs(array, k, first, second, numbers, j):
    for i in range(LANES):
        array[k + 2 * i] += first * numbers[j + i]
        array[k + 2 * i + 1] += second * numbers[j + i]


@nested
def bits_up_to(array, k, limit):
    bits = np.int64(0)
    for i in range(BLOCK):
        bits |= np.int64(array[k + i] <= limit) << i
    return bits


@nested
def bits_near(a, b, k, own_a, own_b, limit):
    bits = np.int64(0)
    for i in range(BLOCK):
        first, second = a[k + i] - own_a, b[k + i] - own_b
        bits |= np.int64(first * first + second * second < limit) << i
    return bits


@nested
def first_bit(bits):
    number = np.int64(0)
    while bits & 1 == 0:
        bits >>= 1
        number += 1
    return number


@nested
def store_places(array, k, first, places):
    for i in range(8):
        array[k + i] = first + (places >> 4 * i & 15)


@nested
def transpose(source, at, step, target, to, target_step):
    for a in range(LANES):
        for b in range(LANES):
            target[to + b * target_step + a] = source[at + a * step + b]


@nested
def transpose_from(source, places, j, shift, target, to, target_step):
    for a in range(LANES):
        at = places[j + a] + shift
        for b in range(LANES):
            target[to + b * target_step + a] = source[at + b]


@nested
def invert_square(source, at, step, target):
    side = 2 * LANES
    for a in range(side):
        for b in range(side):
            target[side * a + b] = source[at + a * step + b]
    for p in range(side):
        pivot = np.float32(1) / target[side * p + p]
        target[side * p + p] = np.float32(1)
        for b in range(side):
            target[side * p + b] *= pivot
        for a in range(side):
            if a != p:
                factor = target[side * a + p]
                target[side * a + p] = np.float32(0)
                for b in range(side):
                    target[side * a + b] -= factor * target[side * p + b]


@allocating
def empty(shape, dtype):
    return np.empty(shape, dtype)


@allocating
def zeros(shape, dtype):
    return np.zeros(shape, dtype)


@nested
def as_row(array):
    return array.reshape(-1)


@nested
def as_rows(array):
    return array.reshape(array.size // max(array.shape[-1], 1), array.shape[-1])


@inlined
def part(array, begin, end):
    return array[begin:end]


@inlined
def view_at(array, index):
    return array[index]


@inlined
def fill(array, value):
    array[:] = value


@nested
def larger_of(a, b):
    return max(a, b)


@nested
def smaller_of(a, b):
    return min(a, b)


@nested
def bits_as(array, dtype):
    return array.view(dtype)


@nested
def bits_of(number):
    return np.float32(number).view(np.int32)


@nested
def from_bits(bits):
    return np.int32(bits).view(np.float32)
