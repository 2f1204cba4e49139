// Vectors that are summed or transposed together.
#pragma once
#include "simd.h"

namespace vnlem {

// A vector that several sums use. GCC would load it again for each of them, and such loops are bound by loads; it
// does not repeat a volatile access.
template <int N>
inline Floats<N> load_once(const float* from) {
    return *reinterpret_cast<const volatile typename VectorOf<float, N>::unaligned*>(from);
}

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
        return __builtin_shufflevector(sums[0], sums[1], 0, 1, 2, 3, 4, 5, 6, 7);
    }
}

// Eight rows of eight numbers become columns.
inline void transpose(Floats<8>* rows) {
    Floats<8> pairs[8], fours[8];
    for (int a = 0; a < 8; a += 2) {
        pairs[a] = __builtin_shufflevector(rows[a], rows[a + 1], 0, 8, 1, 9, 4, 12, 5, 13);
        pairs[a + 1] = __builtin_shufflevector(rows[a], rows[a + 1], 2, 10, 3, 11, 6, 14, 7, 15);
    }
    for (int a = 0; a < 8; a += 4) {
        for (int k = 0; k < 2; k++) {
            const Floats<8> low = pairs[a + k], high = pairs[a + k + 2];
            fours[a + 2 * k] = __builtin_shufflevector(low, high, 0, 1, 8, 9, 4, 5, 12, 13);
            fours[a + 2 * k + 1] = __builtin_shufflevector(low, high, 2, 3, 10, 11, 6, 7, 14, 15);
        }
    }
    for (int a = 0; a < 4; a++) {
        rows[a] = __builtin_shufflevector(fours[a], fours[a + 4], 0, 1, 2, 3, 8, 9, 10, 11);
        rows[a + 4] = __builtin_shufflevector(fours[a], fours[a + 4], 4, 5, 6, 7, 12, 13, 14, 15);
    }
}

// to[b * to_step + a] = from[a * step + b] for a < 16, b < 8. Sixteen numbers are stored at once if a register
// holds them: a load that overlaps two pending stores waits for both.
inline void transpose_rows(const float* from, int64_t step, float* to, int64_t to_step) {
    Floats<8> low[8], high[8];
    for (int a = 0; a < 8; a++) {
        low[a] = load<8>(from + a * step);
        high[a] = load<8>(from + (a + 8) * step);
    }
    transpose(low);
    transpose(high);
    for (int b = 0; b < 8; b++) {
        if constexpr (kLanes == 16) {
            store<16>(to + b * to_step, __builtin_shufflevector(low[b], high[b], 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11,
                                                                12, 13, 14, 15));
        } else {
            store<8>(to + b * to_step, low[b]);
            store<8>(to + b * to_step + 8, high[b]);
        }
    }
}

}  // namespace vnlem
