// Vectors that are added up or turned over together.
#pragma once
#include "simd.h"

namespace vnlem {

// Sums of the lanes of eight vectors: cheaper than eight times `total`. Halves are added first, as there.
template <int N>
inline Floats<8> totals(const Floats<N>* v) {
    if constexpr (N > 4) {
        Floats<N / 2> halves[8];
        for (int k = 0; k < 8; k++) {
            Floats<N / 2> parts[2];
            __builtin_memcpy(parts, v + k, sizeof parts);
            halves[k] = parts[0] + parts[1];
        }
        return totals<N / 2>(halves);
    } else {
        Floats<4> sums[2];
        for (int k = 0; k < 2; k++) {
            const Floats<4>*a = v + 4 * k, *c = a + 2;
            const Floats<4> ab = __builtin_shufflevector(a[0], a[1], 0, 1, 4, 5) +
                                 __builtin_shufflevector(a[0], a[1], 2, 3, 6, 7);
            const Floats<4> cd = __builtin_shufflevector(c[0], c[1], 0, 1, 4, 5) +
                                 __builtin_shufflevector(c[0], c[1], 2, 3, 6, 7);
            sums[k] = __builtin_shufflevector(ab, cd, 0, 2, 4, 6) + __builtin_shufflevector(ab, cd, 1, 3, 5, 7);
        }
        Floats<8> all;
        __builtin_memcpy(&all, sums, sizeof all);
        return all;
    }
}

// Eight rows of eight numbers become columns: blocks of one, two and four change places across the diagonal.
inline void transpose(Floats<8>* rows) {
    Floats<8> mixed[8];
    for (int a = 0; a < 8; a += 2) {
        mixed[a] = __builtin_shufflevector(rows[a], rows[a + 1], 0, 8, 2, 10, 4, 12, 6, 14);
        mixed[a + 1] = __builtin_shufflevector(rows[a], rows[a + 1], 1, 9, 3, 11, 5, 13, 7, 15);
    }
    for (int a = 0; a < 8; a += a % 4 ? 3 : 1) {
        rows[a] = __builtin_shufflevector(mixed[a], mixed[a + 2], 0, 1, 8, 9, 4, 5, 12, 13);
        rows[a + 2] = __builtin_shufflevector(mixed[a], mixed[a + 2], 2, 3, 10, 11, 6, 7, 14, 15);
    }
    for (int a = 0; a < 4; a++) {
        mixed[a] = __builtin_shufflevector(rows[a], rows[a + 4], 0, 1, 2, 3, 8, 9, 10, 11);
        mixed[a + 4] = __builtin_shufflevector(rows[a], rows[a + 4], 4, 5, 6, 7, 12, 13, 14, 15);
    }
    for (int a = 0; a < 8; a++) rows[a] = mixed[a];
}

// to[b * to_step + a] = from[a * step + b] for a, b < 8.
inline void transpose(const float* from, int64_t step, float* to, int64_t to_step) {
    Floats<8> rows[8];
    for (int a = 0; a < 8; a++) rows[a] = load<8>(from + a * step);
    transpose(rows);
    for (int a = 0; a < 8; a++) store<8>(to + a * to_step, rows[a]);
}

}  // namespace vnlem
