// Stage one of the search: distances from pixels side by side to all pixels of their search windows.
#pragma once
#include <cmath>

#include "region.h"
#include "lanes.h"
#include "scratch.h"

namespace vnlem {

// Pixels of a row whose windows are searched together; an even number.
constexpr int64_t kPixels = 16;
// The numbers of a window are padded to a multiple of this: loops over them have no remainder.
constexpr int64_t kWhole = 64;
// Candidates of a row that are compared together. The image is padded by as many columns.
constexpr int kCandidates = 8;

inline int64_t whole_of(int64_t count) { return (count + kWhole - 1) / kWhole * kWhole; }

// Pixels x, x + 1, ... of row y, and rows top to bottom of their windows.
struct Span {
    int64_t y, x, pixels, top, bottom;
    int64_t reach, width;  // of the windows, of the image

    // Where the rows of the window of pixel x + p begin; pixels come in pairs that begin at one column.
    int64_t first_column(int64_t p) const { return larger_of<int64_t>(x + p - p % 2 - reach, 0); }
};

// The windows of a span: those of pixel x + p begin at first_column(p), row after row.
struct Windows {
    int64_t columns;                      // of the windows of two pixels side by side
    Array<float, 2> distances, unturned;  // (kPixels, rows * columns, padded by whole_of)
    Array<float, 2> masks;                // (kPixels, columns): see mark

    Windows(Arena& arena, int64_t reach)
        : columns((2 * reach + 1 + kCandidates) / kCandidates * kCandidates),
          distances(arena.empty<float>(kPixels, whole_of((2 * reach + 1) * columns))),
          unturned(arena.empty<float>(kPixels, whole_of((2 * reach + 1) * columns))),
          masks(arena.empty<float>(kPixels, columns)) {}

    int64_t count(const Span& span) const { return (span.bottom - span.top) * columns; }

    // Where pixel x + p lies in its own window.
    int64_t own(const Span& span, int64_t p) const {
        return (span.y - span.top) * columns + span.x + p - span.first_column(p);
    }

    // masks[p]: 0 at columns of the window of pixel x + p, infinity at the others.
    void mark(const Span& span) const {
        for (int64_t p = 0; p < (span.pixels + 1) / 2 * 2; p++) {
            const int64_t left = span.first_column(p);
            const int64_t begin = larger_of<int64_t>(span.x + p - span.reach, 0) - left;
            const int64_t end = smaller_of(span.x + p + span.reach + 1, span.width) - left;
            for (int64_t column = 0; column < columns; column++)
                masks(p, column) = begin <= column && column < end ? 0 : INFINITY;
        }
    }
};

// Compare the vectors (H, W, dim) of the pixels of a span with those of their windows, into out (as distances).
//
// term(a, b, sum): the sum plus the term of two numbers; finish(totals, p, row, column): eight distances from eight
// sums. All pixels are compared with one row of candidates while it is in the first-level cache. Two pixels and some
// candidates at a time: many running sums share few loads. Past the last column of the vectors that column is
// repeated; the masks make those distances infinite.
template <int Lanes, class Term, class Finish>
inline void compare_windows(const Array<const float, 3>& vectors, const Span& span, const Windows& windows,
                            const Array<float, 2>& out, Term term, Finish finish) {
    constexpr int kAtOnce = kRegisters >= 32 ? 8 : 4;
    const int64_t dim = vectors.shape[2], last = vectors.shape[1] - 1, columns = windows.columns;
    const float* const here = vectors[span.y].data;
    for (int64_t row = span.top; row < span.bottom; row++) {
        const float* const line = vectors[row].data;
        const int64_t at = (row - span.top) * columns;
        for (int64_t p = 0; p < span.pixels; p += 2) {
            const int64_t x = span.x + p, left = span.first_column(p);
            const float *const own = here + x * dim, *const pair = here + smaller_of(x + 1, last) * dim;
            const int64_t used = smaller_of(columns, (span.width - left + kCandidates - 1) / kCandidates * kCandidates);
            for (int64_t column = used; column < columns; column++)
                out(p, at + column) = out(p + 1, at + column) = INFINITY;
            for (int64_t column = 0; column < used; column += kCandidates) {
                Floats<Lanes> sums[2][kCandidates];
                for (int first = 0; first < kCandidates; first += kAtOnce) {
                    const float* other[kAtOnce];
                    Floats<Lanes> sum_a[kAtOnce] = {}, sum_b[kAtOnce] = {};
                    for (int k = 0; k < kAtOnce; k++) other[k] = line + smaller_of(left + column + first + k, last) * dim;
                    for (int64_t f = 0; f < dim; f += Lanes) {
                        const Floats<Lanes> a = load<Lanes>(own + f), b = load<Lanes>(pair + f);
                        for (int k = 0; k < kAtOnce; k++) {
                            const Floats<Lanes> c = load_once<Lanes>(other[k] + f);
                            sum_a[k] = term(a, c, sum_a[k]);
                            sum_b[k] = term(b, c, sum_b[k]);
                        }
                    }
                    for (int k = 0; k < kAtOnce; k++) {
                        sums[0][first + k] = sum_a[k];
                        sums[1][first + k] = sum_b[k];
                    }
                }
                for (int k = 0; k < 2; k++) {
                    const Floats<8> distances = finish(totals<Lanes>(sums[k]), p + k, row, left + column);
                    store<8>(&out(p + k, at + column), distances + load<8>(&windows.masks(p + k, column)));
                }
            }
        }
    }
}

// Squared distances of features, from inner products and their squared lengths.
inline void window_distances(const Array<const float, 3>& features, const Array<const float, 2>& lengths,
                             const Span& span, const Windows& windows, const Array<float, 2>& out) {
    compare_windows<kLanes>(
        features, span, windows, out, [](auto a, auto b, auto sum) { return sum + a * b; },
        [&](Floats<8> inner, int64_t p, int64_t row, int64_t column) {
            const Floats<8> both = lengths(span.y, span.x + p) + load<8>(&lengths(row, column));
            return larger(both - 2.0f * inner, Floats<8>{});
        });
}

// Stage-one distances of the pixels of a span to their windows, into windows.distances.
inline void search_windows(const Features& region, const Rule& rule, const Span& span, const Windows& windows) {
    windows.mark(span);
    window_distances(region.canonical, region.lengths, span, windows, windows.distances);
    if (!rule.with_margin) return;
    window_distances(region.raw, region.lengths, span, windows, windows.unturned);
    const float factor = float(rule.factor), offset = float(rule.offset);
    for (int64_t p = 0; p < span.pixels; p++) {
        float* const turned = windows.distances[p].data;
        const float* const plain = windows.unturned[p].data;
        for (int64_t c = 0; c < windows.count(span); c++)
            turned[c] = smaller_of(factor * turned[c] + offset, plain[c]);
    }
}

}  // namespace vnlem
