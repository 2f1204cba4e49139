// Elementary functions as arithmetic, for numbers and for vectors: loops around them vectorise, and results
// are the same with every compiler and system. Accurate to a few float roundings.
#pragma once
#include <cstring>

#include "simd.h"

namespace vnlem {

// exp(-x) for x >= 0; 0 beyond x = 80. V: float or a vector of floats.
// exp(-x) = exp(-x/64)^64: a short series around exp(-0.625), then six squarings.
template <class V>
inline V exp_negative(V x) {
    const V zero = V{} * 0.0f;
    const V end = zero + 80.0f;
    const V z = 0.625f - (1.0f / 64.0f) * (x < end ? x : end);
    V e = zero + 1.0f / 40320.0f;
    e = e * z + 1.0f / 5040.0f;
    e = e * z + 1.0f / 720.0f;
    e = e * z + 1.0f / 120.0f;
    e = e * z + 1.0f / 24.0f;
    e = e * z + 1.0f / 6.0f;
    e = e * z + 0.5f;
    e = e * z + 1.0f;
    e = e * z + 1.0f;
    e = e * 0.5352614285189903f;
    for (int i = 0; i < 6; i++) e = e * e;
    return x < end ? e : zero;
}

// values^exponent for positive values.
template <int N>
inline Floats<N> power(Floats<N> values, float exponent) {
    typedef Ints<N> Bits;
    const Bits half_root = Bits{} + 0x3F3504F3;  // of sqrt(1/2): the mantissa is in [sqrt(1/2), sqrt(2))
    Bits pattern;
    std::memcpy(&pattern, &values, sizeof values);
    const Bits shifted = pattern - half_root;
    const Bits mantissa_bits = (shifted & 0x7FFFFF) + half_root;
    Floats<N> mantissa;
    std::memcpy(&mantissa, &mantissa_bits, sizeof mantissa);
    const Floats<N> power_of_two = __builtin_convertvector(shifted >> 23, Floats<N>);
    // log(m) = 2 artanh(s), s = (m - 1)/(m + 1), |s| < 0.172
    const Floats<N> s = (mantissa - 1.0f) / (mantissa + 1.0f);
    const Floats<N> q = s * s;
    Floats<N> p = Floats<N>{} + 2.0f / 9.0f;
    p = p * q + 2.0f / 7.0f;
    p = p * q + 2.0f / 5.0f;
    p = p * q + 2.0f / 3.0f;
    p = p * q + 2.0f;
    Floats<N> exponent2 = exponent * (power_of_two + 1.4426950408889634f * s * p);
    exponent2 = larger(exponent2, Floats<N>{} - 126.0f);
    exponent2 = smaller(exponent2, Floats<N>{} + 126.0f);
    // The floor: conversion truncates towards zero.
    Bits whole = __builtin_convertvector(exponent2, Bits);
    whole += __builtin_convertvector(whole, Floats<N>) > exponent2;  // a true lane is -1
    const Floats<N> f = exponent2 - __builtin_convertvector(whole, Floats<N>);
    Floats<N> e = Floats<N>{} + 0.0001540353f;
    e = e * f + 0.0013333558f;
    e = e * f + 0.0096181291f;
    e = e * f + 0.0555033571f;
    e = e * f + 0.2402264791f;
    e = e * f + 0.6931471806f;
    e = e * f + 1.0f;
    const Bits scale_bits = (whole + 127) << 23;
    Floats<N> scale;
    std::memcpy(&scale, &scale_bits, sizeof scale);
    return e * scale;
}

}  // namespace vnlem
