// Blocks of vectors and products of them: see tall.py.
#include <initializer_list>

#include "array.h"
#include "scratch.h"
#include "simd.h"

namespace vnlem {

struct Blocks {
    Array<const float, 2> first, second, third;
};

namespace {

// Rows taken together: those of two blocks of 40 vectors stay in the first-level cache. Also the number of terms
// that are added up in float.
constexpr int64_t kChunk = 64;
// Rows of a product whose sums are held in registers.
constexpr int kRows = kRegisters / 4;

// The left factor of a product: step to the next row, `along` to the next term of the sum.
struct Left {
    const float* at;
    int64_t step, along;
};

// kRows rows by kVectors vectors of a product; put(row, column, sums) gets them.
template <int kVectors, int kWide, class Put>
inline void multiply_tile(Left left, const float* right, int64_t right_step, int64_t depth, Put put) {
    Floats<kWide> sums[kRows][kVectors] = {};
    const float* rows[kRows];
    for (int a = 0; a < kRows; a++) rows[a] = left.at + a * left.step;
    for (int64_t i = 0; i < depth; i++) {
        Floats<kWide> values[kVectors];
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; v++) values[v] = load<kWide>(right + i * right_step + v * kWide);
#pragma GCC unroll 8
        for (int a = 0; a < kRows; a++) {
            const float factor = rows[a][i * left.along];
#pragma GCC unroll 4
            for (int v = 0; v < kVectors; v++) sums[a][v] += factor * values[v];
        }
    }
#pragma GCC unroll 8
    for (int a = 0; a < kRows; a++)
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; v++) put(a, v * kWide, sums[a][v]);
}

// The product of n_rows (whole groups of eight) of left with right (depth, width).
// put(row, column, Floats<N>) gets every sum once.
template <class Put>
inline void multiply(Left left, int64_t n_rows, const float* right, int64_t width, int64_t depth, Put put) {
    for (int64_t i = 0; i < n_rows; i += kRows) {
        const Left here = {left.at + i * left.step, left.step, left.along};
        int64_t j = 0;
        const auto put_here = [&](int a, int x, auto sums) __attribute__((always_inline)) { put(i + a, j + x, sums); };
        for (; j + 2 * kLanes <= width; j += 2 * kLanes)
            multiply_tile<2, kLanes>(here, right + j, width, depth, put_here);
        for (; j + kLanes <= width; j += kLanes) multiply_tile<1, kLanes>(here, right + j, width, depth, put_here);
        for (; j < width; j += 8) multiply_tile<1, 8>(here, right + j, width, depth, put_here);
    }
}

// sums[k] += values[k], in double.
template <class Values>
inline void add_to(double* sums, Values values) {
    constexpr int kHalf = int(sizeof(Values) / sizeof(float)) / 2;
    Floats<kHalf> halves[2];
    __builtin_memcpy(halves, &values, sizeof values);
    for (int h = 0; h < 2; h++) {
        double* const to = sums + h * kHalf;
        store<kHalf>(to, load<kHalf>(to) + __builtin_convertvector(halves[h], Vector<double, kHalf>));
    }
}

// work(offset of eight numbers in a block, their first column) for all of some rows.
template <class Work>
inline void for_each_eight(int64_t first, int64_t last, int64_t width, Work work) {
    for (int64_t i = first; i < last; i++)
        for (int64_t k = 0; k < width; k += 8) work(i * width + k, k);
}

struct Moved {
    Array<float, 2> rows;
    Moved(Arena& arena, int64_t width) : rows(arena.empty<float>(kChunk, width)) {}
};

}  // namespace

VNLEM_EXPORT int64_t vnlem_inner_products(const Blocks& lefts, const Blocks& rights, int64_t first, int64_t last,
                                          const Array<double, 2>& out) {
    for (int64_t start = first; start < last; start += kChunk) {
        const int64_t n = smaller_of(kChunk, last - start);
        int64_t row = 0;
        for (const auto* a : {&lefts.first, &lefts.second, &lefts.third}) {
            const int64_t wide = a->shape[1];
            int64_t column = 0;
            for (const auto* b : {&rights.first, &rights.second, &rights.third}) {
                const int64_t width = b->shape[1];
                multiply({a->data + start * wide, 1, wide}, wide, b->data + start * width, width, n,
                         [&](int64_t i, int64_t j, auto sums) { add_to(&out(row + i, column + j), sums); });
                column += width;
            }
            row += wide;
        }
    }
    return 0;
}

VNLEM_EXPORT int64_t vnlem_combine(const Blocks& blocks, const Array<const float, 2>& turn,
                                   const Array<const float, 1>& factors, int64_t first, int64_t last,
                                   const Array<float, 2>& out) {
    const int64_t width = out.shape[1];
    Scratch<Moved> scratch(width);
    if (!scratch) return kOutOfMemory;
    const Array<float, 2> moved = scratch->rows;
    for (int64_t start = first; start < last; start += kChunk) {
        const int64_t n = smaller_of(kChunk, last - start);
        int64_t row = 0;
        moved.fill(0);
        for (const auto* block : {&blocks.first, &blocks.second, &blocks.third}) {
            const int64_t wide = block->shape[1];
            multiply({block->data + start * wide, wide, 1}, n, turn.data + row * width, width, wide,
                     [&](int64_t i, int64_t j, auto sums) {
                         constexpr int kWide = sizeof(sums) / sizeof(float);
                         float* const to = &moved(i, j);
                         store<kWide>(to, load<kWide>(to) + sums);
                     });
            row += wide;
        }
        float* const to = out.data + start * width;
        for_each_eight(0, n, width, [&](int64_t at, int64_t k) {
            store<8>(to + at, load<8>(factors.data + k) * load<8>(moved.data + at));
        });
    }
    return 0;
}

VNLEM_EXPORT int64_t vnlem_subtract_product(const Array<float, 2>& block, const Array<const float, 2>& x,
                                            const Array<const float, 2>& along, int64_t first, int64_t last,
                                            const Array<double, 1>& squares) {
    const int64_t width = block.shape[1], wide = x.shape[1];
    for (int64_t start = first; start < last; start += kChunk) {
        const int64_t n = smaller_of(kChunk, last - start);
        multiply({x.data + start * wide, wide, 1}, n, along.data, width, wide,
                 [&](int64_t i, int64_t j, auto sums) {
                     constexpr int kWide = sizeof(sums) / sizeof(float);
                     float* const to = &block(start + i, j);
                     store<kWide>(to, load<kWide>(to) - sums);
                 });
        for_each_eight(start, start + n, width, [&](int64_t at, int64_t k) {
            const Floats<8> r = load<8>(block.data + at);
            add_to(&squares[k], r * r);
        });
    }
    return 0;
}

VNLEM_EXPORT int64_t vnlem_residual(const Array<const float, 2>& x, const Array<const float, 2>& image,
                                    const Array<const float, 1>& values, int64_t first, int64_t last,
                                    const Array<float, 2>& out, const Array<double, 1>& squares) {
    const bool is_wanted = out.shape[1] > 0;
    for_each_eight(first, last, x.shape[1], [&](int64_t at, int64_t k) {
        const Floats<8> r = load<8>(image.data + at) - load<8>(x.data + at) * load<8>(values.data + k);
        if (is_wanted) store<8>(out.data + at, r);
        add_to(&squares[k], r * r);
    });
    return 0;
}

VNLEM_EXPORT int64_t vnlem_take_columns(const Array<const float, 2>& block, const Array<const int64_t, 1>& columns,
                                        int64_t first, int64_t last, const Array<float, 2>& out) {
    for (int64_t i = first; i < last; i++)
        for (int64_t k = 0; k < columns.shape[0]; k++) out(i, k) = block(i, columns[k]);
    return 0;
}

VNLEM_EXPORT int64_t vnlem_shifted(const Array<const float, 2>& x, const Array<float, 2>& image,
                                   const Array<const float, 1>& shifts, int64_t first, int64_t last,
                                   const Array<double, 1>& products) {
    for_each_eight(first, last, x.shape[1], [&](int64_t at, int64_t k) {
        const Floats<8> own = load<8>(x.data + at);
        const Floats<8> r = load<8>(shifts.data + k) * own - load<8>(image.data + at);
        store<8>(image.data + at, r);
        add_to(&products[k], own * r);
    });
    return 0;
}

VNLEM_EXPORT int64_t vnlem_advance(const Array<float, 2>& x, const Array<float, 2>& r, const Array<const float, 2>& p,
                                   const Array<const float, 2>& q, const Array<const float, 1>& factors, int64_t first,
                                   int64_t last, const Array<double, 1>& squares) {
    for_each_eight(first, last, x.shape[1], [&](int64_t at, int64_t k) {
        const Floats<8> factor = load<8>(factors.data + k);
        store<8>(x.data + at, load<8>(x.data + at) + factor * load<8>(p.data + at));
        const Floats<8> rest = load<8>(r.data + at) - factor * load<8>(q.data + at);
        store<8>(r.data + at, rest);
        add_to(&squares[k], rest * rest);
    });
    return 0;
}

VNLEM_EXPORT int64_t vnlem_follow(const Array<float, 2>& p, const Array<const float, 2>& r,
                                  const Array<const float, 1>& factors, int64_t first, int64_t last) {
    for_each_eight(first, last, p.shape[1], [&](int64_t at, int64_t k) {
        store<8>(p.data + at, load<8>(r.data + at) + load<8>(factors.data + k) * load<8>(p.data + at));
    });
    return 0;
}

}  // namespace vnlem
