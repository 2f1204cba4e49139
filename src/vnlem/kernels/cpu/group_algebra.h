// Matrices of a group of patches: their Gram matrix and its inverse, in blocks of 16 x 16. Both are symmetric:
// only blocks on and above the diagonal are computed.
#pragma once
#include "array.h"
#include "matrix.h"
#include "squares.h"

namespace vnlem {

constexpr int64_t kBlock = 16;

// out = columns^T columns for the first n rows of columns (., k), k a multiple of 16; on and above the diagonal.
inline void gram(const Array<float, 2>& columns, int64_t n, const Array<float, 2>& out) {
    const int64_t k = out.shape[0];
    for (int64_t i = 0; i < k; i += kBlock)
        multiply<Into::kSet>(Transposed{columns.data + i, k}, kBlock, {columns.data + i, k}, k - i, n, {&out(i, i), k});
}

// Turn a symmetric positive definite matrix (k, k), k a multiple of 16, into minus its inverse, in place.
// The sweep operator, sixteen pivots B at a time: B becomes -1/B, the rest P of its rows becomes Q = P/B, and P^T Q
// is subtracted from the rest of the matrix. A positive definite matrix needs no pivoting. scratch: (2, 16, k).
inline void sweep(const Array<float, 2>& matrix, const Array<float, 3>& scratch) {
    const int64_t k = matrix.shape[0];
    float* const before = scratch[0].data;
    float* const turned = scratch[1].data;
    alignas(64) float block[kBlock * kBlock];
    const Transposed inverse = {block, kBlock};  // symmetric
    for (int64_t p = 0; p < k; p += kBlock) {
        const int64_t after = p + kBlock, rest = k - after;
        float* const pivots = matrix.data + p * k;
        invert_square(pivots + p, k, block);
        // P lies above the pivots, as a column of blocks, and to their right; `turned` is Q.
        transpose(matrix.data + p, k, p, kBlock, before, k);
        multiply<Into::kSet>(inverse, kBlock, {before, k}, p, kBlock, {turned, k});
        multiply<Into::kSet>(inverse, kBlock, {pivots + after, k}, rest, kBlock, {turned + after, k});
        for (int64_t i = 0; i < p; i += kBlock) {
            const Transposed own = {before + i, k};
            float* const row = matrix.data + i * k;
            multiply<Into::kSubtract>(own, kBlock, {turned + i, k}, p - i, kBlock, {row + i, k});
            multiply<Into::kSubtract>(own, kBlock, {turned + after, k}, rest, kBlock, {row + after, k});
        }
        for (int64_t i = after; i < k; i += kBlock)
            multiply<Into::kSubtract>(Transposed{pivots + i, k}, kBlock, {turned + i, k}, k - i, kBlock,
                                      {matrix.data + i * k + i, k});
        transpose(turned, k, kBlock, p, matrix.data + p, k);
        for (int64_t a = 0; a < kBlock; a++) {
            for (int64_t x = 0; x < kBlock; x += kLanes)
                store<kLanes>(pivots + a * k + p + x, -load<kLanes>(block + a * kBlock + x));
            for (int64_t x = after; x < k; x += kLanes)
                store<kLanes>(pivots + a * k + x, load<kLanes>(turned + a * k + x));
        }
    }
    for (int64_t i = 0; i < k; i += kBlock)
        transpose(matrix.data + i * k + i + kBlock, k, kBlock, k - i - kBlock, matrix.data + (i + kBlock) * k + i, k);
}

}  // namespace vnlem
