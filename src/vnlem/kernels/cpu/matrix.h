// Products of small matrices, in tiles that stay in registers while the inner dimension runs. Every number of
// a product is added up in the order of the inner dimension, whatever tile it lies in.
#pragma once
#include "simd.h"

namespace vnlem {

// The left factor of a product: element (a, i) is data[a * step + i * along].
struct Left {
    const float* data;
    int64_t step, along;
    float at(int64_t a, int64_t i) const { return data[a * step + i * along]; }
    Left from(int64_t row) const { return {data + row * step, step, along}; }
};

// A left factor that is transposed: element (a, i) is data[i * along + a].
struct Transposed {
    const float* data;
    int64_t along;
    float at(int64_t a, int64_t i) const { return data[i * along + a]; }
    Transposed from(int64_t row) const { return {data + row, along}; }
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

// x86 starts two multiply-adds of four cycles in every cycle, so eight sums must be in flight; ARM's larger
// processors start four. With more sums, where there are registers for them, a vector is loaded for more rows.
constexpr int kTileVectors = 2;
constexpr int kTileRows = kRegisters >= 32 ? 8 : 4;

template <int Rows, int Vectors, int Wide, Into into, class AnyLeft>
VNLEM_INLINE void product_tile(AnyLeft left, Right right, int64_t depth, Product out) {
    Floats<Wide> sums[Rows][Vectors] = {};
    for (int64_t i = 0; i < depth; i++) {
        Floats<Wide> values[Vectors];
        unrolled<Vectors>([&](int v) { values[v] = load<Wide>(right.data + i * right.step + v * Wide); });
        unrolled<Rows>([&](int a) {
            const float factor = left.at(a, i);
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

// Some rows of a product, from column x on: the widest tiles first.
template <Into into, int Rows, int Vectors = kTileVectors, int Wide = kLanes, class AnyLeft>
VNLEM_INLINE void product_rows(AnyLeft left, Right right, int64_t depth, int64_t x, int64_t width, Product out) {
    constexpr int kRows = Vectors > 1 && Rows > kTileRows ? kTileRows : Rows;
    for (; x + Vectors * Wide <= width; x += Vectors * Wide)
        for (int a = 0; a < Rows; a += kRows)
            product_tile<kRows, Vectors, Wide, into>(left.from(a), {right.data + x, right.step}, depth,
                                                     {out.data + a * out.step + x, out.step});
    if constexpr (Vectors > 1) product_rows<into, Rows, Vectors - 1, Wide>(left, right, depth, x, width, out);
    else if constexpr (Wide > 8) product_rows<into, Rows, 1, Wide / 2>(left, right, depth, x, width, out);
}

// Set out to left right, or add it to or subtract it from out; rows: a multiple of four, width: one of eight.
template <Into into, class AnyLeft = Left>
__attribute__((noinline)) void multiply(AnyLeft left, int64_t rows, Right right, int64_t width, int64_t depth,
                                        Product out) {
    int64_t a = 0;
    for (; a + 8 <= rows; a += 8)
        product_rows<into, 8>(left.from(a), right, depth, 0, width, {out.data + a * out.step, out.step});
    if (a < rows) product_rows<into, 4>(left.from(a), right, depth, 0, width, {out.data + a * out.step, out.step});
}

}  // namespace vnlem
