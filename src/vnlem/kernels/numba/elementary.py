"""Elementary functions written as arithmetic, so that the loops around them vectorise.

LLVM has no vector exp or pow without a vendor library; a call per element would cost more than the rest of
a non-local kernel. Both are good to a few float32 roundings.
"""

import numpy as np

from vnlem.kernels.numba.jit import inlined, nested
from vnlem.kernels.numba.scratch import bits_as

_LOG2_E = np.float32(1.4426950408889634)
# 2^f on [0, 1) and log2(1 + m) on [sqrt(1/2) - 1, sqrt(2) - 1]: minimax coefficients, lowest order first.
_EXP2 = tuple(
    np.float32(c)
    for c in (1.0, 0.6931471806, 0.2402264791, 0.0555033571, 0.0096181291, 0.0013333558, 0.0001540353)
)


@inlined
def exp_negative(x):
    """exp(-x) for x >= 0 in float32; 0 beyond x = 80.

    exp(-x) = exp(-x/64)^64: a short Taylor series near zero, then six squarings.
    """
    y = np.float32(1.0 / 64.0) * min(x, np.float32(80.0))
    # exp(-y) for y in [0, 1.25], centred at 0.625 to halve the series.
    z = np.float32(0.625) - y
    e = np.float32(1.0 / 40320.0)
    e = e * z + np.float32(1.0 / 5040.0)
    e = e * z + np.float32(1.0 / 720.0)
    e = e * z + np.float32(1.0 / 120.0)
    e = e * z + np.float32(1.0 / 24.0)
    e = e * z + np.float32(1.0 / 6.0)
    e = e * z + np.float32(0.5)
    e = e * z + np.float32(1.0)
    e = e * z + np.float32(1.0)
    e = e * np.float32(0.5352614285189903)  # exp(-0.625)
    e = e * e
    e = e * e
    e = e * e
    e = e * e
    e = e * e
    e = e * e
    return e if x < np.float32(80.0) else np.float32(0.0)


@nested
def power_inplace(values, exponent, bits):
    """values[i] **= exponent for positive float32 `values`; `bits` is an int32 scratch of the same length."""
    n = values.size
    pattern = bits_as(values, np.int32)
    mantissa = bits_as(bits, np.float32)
    half_root = np.int32(0x3F3504F3)  # bits of sqrt(1/2): the mantissa is taken in [sqrt(1/2), sqrt(2))
    for i in range(n):
        shifted = pattern[i] - half_root
        bits[i] = (shifted & np.int32(0x7FFFFF)) + half_root
        pattern[i] = shifted >> np.int32(23)
    for i in range(n):
        power_of_two = np.float32(pattern[i])
        # log(m) = 2 artanh(s), s = (m - 1)/(m + 1), |s| < 0.172
        s = (mantissa[i] - np.float32(1.0)) / (mantissa[i] + np.float32(1.0))
        q = s * s
        p = np.float32(2.0 / 9.0)
        p = p * q + np.float32(2.0 / 7.0)
        p = p * q + np.float32(2.0 / 5.0)
        p = p * q + np.float32(2.0 / 3.0)
        p = p * q + np.float32(2.0)
        exponent2 = exponent * (power_of_two + _LOG2_E * s * p)
        exponent2 = min(max(exponent2, np.float32(-126.0)), np.float32(126.0))
        whole = np.floor(exponent2)
        f = exponent2 - whole
        e = _EXP2[6]
        e = e * f + _EXP2[5]
        e = e * f + _EXP2[4]
        e = e * f + _EXP2[3]
        e = e * f + _EXP2[2]
        e = e * f + _EXP2[1]
        e = e * f + _EXP2[0]
        bits[i] = (np.int32(whole) + np.int32(127)) << np.int32(23)
        values[i] = e * mantissa[i]
