// Products of small matrices, in tiles that stay in registers while the inner dimension runs. Every number of
// a product is added up in the order of the inner dimension, whatever tile it lies in.
#pragma once
#include "simd.h"

namespace vnlem {

// The left factor of a product: element (a, i) is data[a * step + i * along], so it may be transposed.
struct Left {
    const float* data;
    int64_t step, along;
};

// The right factor: element (i, x) is data[i * step + x].
struct Right {
    const float* data;
    int64_t step;
};

// The product: element (a, x) is data[a * step + x].
struct Product {
    float* data;
    int64_t step;
};

enum class Into { kSet, kAdd, kSubtract };

// Two multiply-adds of four cycles may begin in every cycle, so eight or more sums must be under way. Factors
// take registers of their own where instructions cannot read them from memory.
constexpr int kTileRows = kRegisters >= 32 ? 8 : 4;
constexpr int kTileVectors = 2;
// Rows of a product come in multiples of it, as columns do.
constexpr int kEight = 8;

template <int Rows, int Vectors, int Wide, Into into>
inline void product_tile(Left left, Right right, int64_t depth, Product out) {
    Floats<Wide> sums[Rows][Vectors] = {};
    for (int64_t i = 0; i < depth; i++) {
        Floats<Wide> values[Vectors];
        unrolled<Vectors>([&](int v) { values[v] = load<Wide>(right.data + i * right.step + v * Wide); });
        unrolled<Rows>([&](int a) {
            const float factor = left.data[a * left.step + i * left.along];
            unrolled<Vectors>([&](int v) { sums[a][v] += factor * values[v]; });
        });
    }
    unrolled<Rows * Vectors>([&](int n) {
        float* const at = out.data + n / Vectors * out.step + n % Vectors * Wide;
        const Floats<Wide> sum = sums[n / Vectors][n % Vectors];
        if constexpr (into == Into::kSet) store<Wide>(at, sum);
        if constexpr (into == Into::kAdd) store<Wide>(at, load<Wide>(at) + sum);
        if constexpr (into == Into::kSubtract) store<Wide>(at, load<Wide>(at) - sum);
    });
}

// kTileRows rows of a product, from column x on: the widest tiles first.
template <Into into, int Vectors = kTileVectors, int Wide = kLanes>
inline void product_rows(Left left, Right right, int64_t depth, int64_t x, int64_t width, Product out) {
    for (; x + Vectors * Wide <= width; x += Vectors * Wide)
        product_tile<kTileRows, Vectors, Wide, into>(left, {right.data + x, right.step}, depth,
                                                     {out.data + x, out.step});
    if constexpr (Vectors > 1) product_rows<into, Vectors - 1, Wide>(left, right, depth, x, width, out);
    else if constexpr (Wide > kEight) product_rows<into, 1, Wide / 2>(left, right, depth, x, width, out);
}

// out = left right, or that added to or subtracted from it; rows and width: multiples of eight.
template <Into into>
inline void multiply(Left left, int64_t rows, Right right, int64_t width, int64_t depth, Product out) {
    for (int64_t a = 0; a < rows; a += kTileRows)
        product_rows<into>({left.data + a * left.step, left.step, left.along}, right, depth, 0, width,
                           {out.data + a * out.step, out.step});
}

}  // namespace vnlem
