// Square blocks in registers: transposition, and the inverse of 16 x 16 numbers.
#pragma once
#include "simd.h"

namespace vnlem {

// Side of the squares that are transposed at once: eight, or fewer if a register holds fewer numbers.
constexpr int kSquare = kLanes < 8 ? kLanes : 8;

// Rows become columns: blocks of one, of two, then of four are swapped across the diagonal.
VNLEM_INLINE void transpose(Floats<8> (&rows)[8]) {
    unrolled<4>([&](int n) {
        const Floats<8> a = rows[2 * n], b = rows[2 * n + 1];
        rows[2 * n] = __builtin_shufflevector(a, b, 0, 8, 2, 10, 4, 12, 6, 14);
        rows[2 * n + 1] = __builtin_shufflevector(a, b, 1, 9, 3, 11, 5, 13, 7, 15);
    });
    unrolled<4>([&](int n) {
        const int i = n + (n & 2);
        const Floats<8> a = rows[i], b = rows[i + 2];
        rows[i] = __builtin_shufflevector(a, b, 0, 1, 8, 9, 4, 5, 12, 13);
        rows[i + 2] = __builtin_shufflevector(a, b, 2, 3, 10, 11, 6, 7, 14, 15);
    });
    unrolled<4>([&](int i) {
        const Floats<8> a = rows[i], b = rows[i + 4];
        rows[i] = __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11);
        rows[i + 4] = __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15);
    });
}

VNLEM_INLINE void transpose(Floats<4> (&rows)[4]) {
    unrolled<2>([&](int n) {
        const Floats<4> a = rows[2 * n], b = rows[2 * n + 1];
        rows[2 * n] = __builtin_shufflevector(a, b, 0, 4, 2, 6);
        rows[2 * n + 1] = __builtin_shufflevector(a, b, 1, 5, 3, 7);
    });
    unrolled<2>([&](int i) {
        const Floats<4> a = rows[i], b = rows[i + 2];
        rows[i] = __builtin_shufflevector(a, b, 0, 1, 4, 5);
        rows[i + 2] = __builtin_shufflevector(a, b, 2, 3, 6, 7);
    });
}

// to[b * to_step + a] = from[a * step + b] for a < rows, b < columns, both multiples of eight.
inline void transpose(const float* from, int64_t step, int64_t rows, int64_t columns, float* to, int64_t to_step) {
    for (int64_t a = 0; a < rows; a += kSquare) {
        for (int64_t b = 0; b < columns; b += kSquare) {
            Floats<kSquare> square[kSquare];
            unrolled<kSquare>([&](int i) { square[i] = load<kSquare>(from + (a + i) * step + b); });
            transpose(square);
            unrolled<kSquare>([&](int i) { store<kSquare>(to + (b + i) * to_step + a, square[i]); });
        }
    }
}

// The inverse of a symmetric positive definite square: from[a * step + b], a, b < 16, to[16 * a + b].
// Pivots are swept one by one: with r the row of pivot d, r / d replaces its row and column, -1 / d replaces d, and
// r_a r_b / d is subtracted from the rest. That leaves minus the inverse.
inline __attribute__((flatten)) void invert_square(const float* from, int64_t step, float* to) {
    constexpr int kSide = 16, kParts = kSide / kLanes;
    typedef Floats<kLanes> Part;
    Part rows[kSide][kParts];
    const Ints<kLanes> numbers = numbered<kLanes>();
    unrolled<kSide * kParts>([&](int n) {
        rows[n / kParts][n % kParts] = load<kLanes>(from + n / kParts * step + n % kParts * kLanes);
    });
    unrolled<kSide>([&](int p) {
        float column[kSide];
        unrolled<kParts>([&](int v) { store<kLanes>(column + v * kLanes, rows[p][v]); });
        const float inverse = 1.0f / column[p];
        Part pivot[kParts];
        unrolled<kParts>([&](int v) {
            pivot[v] = numbers == p - v * kLanes ? Part{} - inverse : rows[p][v] * inverse;
        });
        unrolled<kSide * kParts>([&](int n) {
            const int a = n / kParts, v = n % kParts;
            const Part row = numbers == p - v * kLanes ? Part{} : rows[a][v];
            rows[a][v] = a == p ? pivot[v] : row - column[a] * pivot[v];
        });
    });
    unrolled<kSide * kParts>([&](int n) {
        store<kLanes>(to + n / kParts * kSide + n % kParts * kLanes, -rows[n / kParts][n % kParts]);
    });
}

}  // namespace vnlem
