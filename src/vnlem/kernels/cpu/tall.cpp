// Blocks of vectors and products of them: see tall.py.
#include <initializer_list>

#include "matrix.h"
#include "scratch.h"

namespace vnlem {

struct Blocks {
    Array<const float, 2> first, second, third;
};

namespace {

// Rows taken together: those of two blocks of 40 vectors stay in the first-level cache. Also the number of terms
// that are added up in float.
constexpr int64_t kChunk = 64;

// work(offset of eight numbers in a block, their first column) for all of some rows.
template <class Work>
inline void for_each_eight(int64_t first, int64_t last, int64_t width, Work work) {
    for (int64_t i = first; i < last; i++)
        for (int64_t k = 0; k < width; k += 8) work(i * width + k, k);
}

// The same for some rows, whole groups of four; what `work` returns is added up for every column.
template <class Work>
inline void add_eights(int64_t first, int64_t last, int64_t width, double* sums, Work work) {
    constexpr int64_t kColumns = 64;
    for (int64_t start = first; start < last; start += kChunk) {
        const int64_t end = smaller_of(start + kChunk, last);
        for (int64_t left = 0; left < width; left += kColumns) {
            const int64_t right = smaller_of(left + kColumns, width);
            float part[kColumns] = {};
            for (int64_t i = start; i < end; i += 4) {
                for (int64_t k = left; k < right; k += 8) {
                    const int64_t at = i * width + k;
                    const Floats<8> two = work(at, k) + work(at + width, k);
                    const Floats<8> four = two + (work(at + 2 * width, k) + work(at + 3 * width, k));
                    store<8>(part + k - left, load<8>(part + k - left) + four);
                }
            }
            for (int64_t k = left; k < right; k++) sums[k] += double(part[k - left]);
        }
    }
}

struct Rows {
    Array<float, 2> rows;
    Rows(Arena& arena, int64_t height, int64_t width) : rows(arena.empty<float>(height, width)) {}
};

}  // namespace

VNLEM_EXPORT int64_t vnlem_inner_products(const Blocks& lefts, const Blocks& rights, int64_t first, int64_t last,
                                          const Array<double, 2>& out) {
    const int64_t out_step = out.shape[1];
    Scratch<Rows> scratch(out.shape[0], out_step);
    if (!scratch) return kOutOfMemory;
    const Array<float, 2> part = scratch->rows;
    for (int64_t start = first; start < last; start += kChunk) {
        const int64_t n = smaller_of(kChunk, last - start);
        float* to = part.data;
        for (const auto* a : {&lefts.first, &lefts.second, &lefts.third}) {
            const int64_t wide = a->shape[1];
            int64_t column = 0;
            for (const auto* b : {&rights.first, &rights.second, &rights.third}) {
                const int64_t width = b->shape[1];
                multiply<Into::kSet>({a->data + start * wide, 1, wide}, wide, {b->data + start * width, width}, width, n,
                                     {to + column, out_step});
                column += width;
            }
            to += wide * out_step;
        }
        for (int64_t k = 0; k < out.size(); k++) out.data[k] += double(part.data[k]);
    }
    return 0;
}

VNLEM_EXPORT int64_t vnlem_combine(const Blocks& blocks, const Array<const float, 2>& turn,
                                   const Array<const float, 1>& factors, int64_t first, int64_t last,
                                   const Array<float, 2>& out) {
    const int64_t width = out.shape[1];
    Scratch<Rows> scratch(kChunk, width);
    if (!scratch) return kOutOfMemory;
    const Array<float, 2> moved = scratch->rows;
    for (int64_t start = first; start < last; start += kChunk) {
        const int64_t n = smaller_of(kChunk, last - start);
        const float* right = turn.data;
        for (const auto* block : {&blocks.first, &blocks.second, &blocks.third}) {
            const int64_t wide = block->shape[1];
            if (wide == 0) continue;
            const Left left = {block->data + start * wide, wide, 1};
            const Product to = {moved.data, width};
            if (right == turn.data)
                multiply<Into::kSet>(left, n, {right, width}, width, wide, to);
            else
                multiply<Into::kAdd>(left, n, {right, width}, width, wide, to);
            right += wide * width;
        }
        float* const to = out.data + start * width;
        for_each_eight(0, n, width, [to, moved = moved.data, factors = factors.data](int64_t at, int64_t k) {
            store<8>(to + at, load<8>(factors + k) * load<8>(moved + at));
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
        multiply<Into::kSubtract>({x.data + start * wide, wide, 1}, n, {along.data, width}, width, wide,
                                  {block.data + start * width, width});
        add_eights(start, start + n, width, squares.data, [from = block.data](int64_t at, int64_t) {
            const Floats<8> r = load<8>(from + at);
            return r * r;
        });
    }
    return 0;
}

VNLEM_EXPORT int64_t vnlem_residual(const Array<const float, 2>& x, const Array<const float, 2>& image,
                                    const Array<const float, 1>& values, int64_t first, int64_t last,
                                    const Array<float, 2>& out, const Array<double, 1>& squares) {
    const auto residual = [x = x.data, image = image.data, values = values.data](int64_t at, int64_t k) {
        return load<8>(image + at) - load<8>(x + at) * load<8>(values + k);
    };
    if (out.shape[1] == 0) {
        add_eights(first, last, x.shape[1], squares.data, [=](int64_t at, int64_t k) {
            const Floats<8> r = residual(at, k);
            return r * r;
        });
        return 0;
    }
    add_eights(first, last, x.shape[1], squares.data, [residual, out = out.data](int64_t at, int64_t k) {
        const Floats<8> r = residual(at, k);
        store<8>(out + at, r);
        return r * r;
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
    add_eights(first, last, x.shape[1], products.data,
               [x = x.data, image = image.data, shifts = shifts.data](int64_t at, int64_t k) {
                   const Floats<8> own = load<8>(x + at);
                   const Floats<8> r = load<8>(shifts + k) * own - load<8>(image + at);
                   store<8>(image + at, r);
                   return own * r;
               });
    return 0;
}

VNLEM_EXPORT int64_t vnlem_advance(const Array<float, 2>& x, const Array<float, 2>& r, const Array<const float, 2>& p,
                                   const Array<const float, 2>& q, const Array<const float, 1>& factors, int64_t first,
                                   int64_t last, const Array<double, 1>& squares) {
    add_eights(first, last, x.shape[1], squares.data,
               [x = x.data, r = r.data, p = p.data, q = q.data, factors = factors.data](int64_t at, int64_t k) {
                   const Floats<8> factor = load<8>(factors + k);
                   store<8>(x + at, load<8>(x + at) + factor * load<8>(p + at));
                   const Floats<8> rest = load<8>(r + at) - factor * load<8>(q + at);
                   store<8>(r + at, rest);
                   return rest * rest;
               });
    return 0;
}

VNLEM_EXPORT int64_t vnlem_follow(const Array<float, 2>& p, const Array<const float, 2>& r,
                                  const Array<const float, 1>& factors, int64_t first, int64_t last) {
    for_each_eight(first, last, p.shape[1], [p = p.data, r = r.data, factors = factors.data](int64_t at, int64_t k) {
        store<8>(p + at, load<8>(r + at) + load<8>(factors + k) * load<8>(p + at));
    });
    return 0;
}

}  // namespace vnlem
