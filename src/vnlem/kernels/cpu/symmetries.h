// The correlations of a patch under the eight symmetries of the square, for less than the cost of two.
//
// The left-right and top-bottom reflections split a patch into four parts, each even or odd under either. A
// reflection only changes the signs of the odd parts. Transposition splits the part that is even under both, and
// the part that is odd under both, once more; it swaps the other two. So eight products of parts are enough, and
// their signed sums are the correlations.
#pragma once
#include "correlation.h"
#include "unroll.h"

namespace vnlem {

constexpr int kSymmetries = 8;  // in the order of `neighbours.groups.symmetries`

// Visit the pixels of a square, y and x below the middle, grouped by symmetry: diagonal(y) the four corners of a
// square; pair(y, x) four at (y, x) and four at (x, y), y < x; middle(y) the four ends of the axes; centre() alone.
// Even sides have no axes. kSide: the side if the compiler knows it and can unroll the loops, else 0.
template <int kSide, class Diagonal, class Pair, class Middle, class Centre>
inline __attribute__((always_inline)) void visit_orbits(int64_t side, Diagonal diagonal, Pair pair, Middle middle,
                                                        Centre centre) {
    if constexpr (kSide > 0) {
        unroll<kSide / 2>([&](auto y) {
            diagonal(y);
            unroll<kSide / 2 - 1 - decltype(y)::value>([&](auto beyond) { pair(y, y + 1 + beyond); });
            if (kSide % 2) middle(y);
        });
        if (kSide % 2) centre();
        return;
    }
    for (int64_t y = 0; y < side / 2; y++) {
        diagonal(y);
        for (int64_t x = y + 1; x < side / 2; x++) pair(y, x);
        if (side % 2) middle(y);
    }
    if (side % 2) centre();
}

// Numbers of a reference patch that multiply the image's parts, in the order of the visit; returns where they end.
inline float* split_reference(const float* patch, int64_t stride, int64_t side, float* to) {
    struct Split {
        float even, odd_rows, odd_columns, odd;  // under both reflections, or under those of rows or columns
    };
    const int64_t last = side - 1;
    // Means over the pixels that reflections map to each other; one on an axis is its own image.
    const auto split = [&](int64_t y, int64_t x) {
        const float* const above = patch + y * stride;
        const float* const below = patch + (last - y) * stride;
        const float even_above = above[x] + above[last - x], odd_above = above[x] - above[last - x];
        const float even_below = below[x] + below[last - x], odd_below = below[x] - below[last - x];
        return Split{0.25f * (even_above + even_below), 0.25f * (even_above - even_below),
                     0.25f * (odd_above + odd_below), 0.25f * (odd_above - odd_below)};
    };
    visit_orbits<0>(
        side,
        [&](int64_t y) {
            const Split part = split(y, y);
            *to++ = part.even, *to++ = part.odd, *to++ = part.odd_rows, *to++ = part.odd_columns;
        },
        [&](int64_t y, int64_t x) {
            const Split part = split(y, x), other = split(x, y);
            *to++ = 0.5f * (part.even + other.even), *to++ = 0.5f * (part.even - other.even);
            *to++ = 0.5f * (part.odd + other.odd), *to++ = 0.5f * (part.odd - other.odd);
            *to++ = part.odd_rows, *to++ = other.odd_rows, *to++ = part.odd_columns, *to++ = other.odd_columns;
        },
        [&](int64_t y) {
            const Split part = split(y, side / 2), other = split(side / 2, y);
            *to++ = 0.5f * (part.even + other.even), *to++ = 0.5f * (part.even - other.even);
            *to++ = part.odd_rows, *to++ = other.odd_columns;
        },
        [&] { *to++ = split(side / 2, side / 2).even; });
    return to;
}

// Sums and differences of a row's pixels that lie opposite each other in patches, for kWide candidates: sums in the
// first half, differences where the second pixel was, the middle as it is.
inline void split_row(const float* row, int64_t side, Wide* to) {
    for (int64_t x = 0; x < side / 2; x++) {
        const Wide left = load<kWide>(row + x), right = load<kWide>(row + side - 1 - x);
        to[x] = left + right;
        to[side - 1 - x] = left - right;
    }
    if (side % 2) to[side / 2] = load<kWide>(row + side / 2);
}

// The products of parts: even under both reflections, or odd, and the same or opposite when transposed; odd under one
// reflection, with the reference's own part and with the one that is swapped in when it is transposed.
struct PartProducts {
    Wide even_same, even_opposite, odd_same, odd_opposite;
    Wide rows_own, rows_swapped, columns_own, columns_swapped;
};

// Add the products with a plane of the reference, numbers from `split_reference`; rows (side, side): of the image, from
// `split_row`. kSide: the side if the compiler knows it, else 0. Returns where the numbers end.
template <int kSide>
inline __attribute__((always_inline)) const float* add_part_products(const Wide* rows, const float* numbers,
                                                                     int64_t any_side, PartProducts& sums) {
    const int64_t side = kSide ? kSide : any_side, last = side - 1, middle = side / 2;
    const auto at = [&](int64_t y, int64_t x) { return rows[y * side + x]; };
    visit_orbits<kSide>(
        side,
        [&](int64_t y) {
            const Wide even = at(y, y), even_below = at(last - y, y);
            const Wide odd = at(y, last - y), odd_below = at(last - y, last - y);
            const Wide odd_rows = even - even_below, odd_columns = odd + odd_below;
            sums.even_same += numbers[0] * (even + even_below);
            sums.odd_same += numbers[1] * (odd - odd_below);
            sums.rows_own += numbers[2] * odd_rows;
            sums.rows_swapped += numbers[3] * odd_rows;
            sums.columns_own += numbers[3] * odd_columns;
            sums.columns_swapped += numbers[2] * odd_columns;
            numbers += 4;
        },
        [&](int64_t y, int64_t x) {
            const Wide even_1 = at(y, x), even_1_below = at(last - y, x);
            const Wide even_2 = at(x, y), even_2_below = at(last - x, y);
            const Wide both_1 = even_1 + even_1_below, both_2 = even_2 + even_2_below;
            sums.even_same += numbers[0] * (both_1 + both_2);
            sums.even_opposite += numbers[1] * (both_1 - both_2);
            const Wide odd_rows_1 = even_1 - even_1_below, odd_rows_2 = even_2 - even_2_below;
            sums.rows_own += numbers[4] * odd_rows_1;
            sums.rows_swapped += numbers[7] * odd_rows_1;
            sums.rows_own += numbers[5] * odd_rows_2;
            sums.rows_swapped += numbers[6] * odd_rows_2;
            const Wide odd_1 = at(y, last - x), odd_1_below = at(last - y, last - x);
            const Wide odd_2 = at(x, last - y), odd_2_below = at(last - x, last - y);
            const Wide neither_1 = odd_1 - odd_1_below, neither_2 = odd_2 - odd_2_below;
            sums.odd_same += numbers[2] * (neither_1 + neither_2);
            sums.odd_opposite += numbers[3] * (neither_1 - neither_2);
            const Wide odd_columns_1 = odd_1 + odd_1_below, odd_columns_2 = odd_2 + odd_2_below;
            sums.columns_own += numbers[6] * odd_columns_1;
            sums.columns_swapped += numbers[5] * odd_columns_1;
            sums.columns_own += numbers[7] * odd_columns_2;
            sums.columns_swapped += numbers[4] * odd_columns_2;
            numbers += 8;
        },
        [&](int64_t y) {
            const Wide above = at(y, middle), below = at(last - y, middle);
            const Wide beside = at(middle, y), odd_columns = at(middle, last - y);
            const Wide both = above + below, odd_rows = above - below;
            sums.even_same += numbers[0] * (both + beside);
            sums.even_opposite += numbers[1] * (both - beside);
            sums.rows_own += numbers[2] * odd_rows;
            sums.rows_swapped += numbers[3] * odd_rows;
            sums.columns_own += numbers[3] * odd_columns;
            sums.columns_swapped += numbers[2] * odd_columns;
            numbers += 4;
        },
        [&] { sums.even_same += *numbers++ * at(middle, middle); });
    return numbers;
}

// The largest correlation so far of each candidate, and the number of its transform.
struct BestFit {
    Wide largest = spread<kWide>(-INFINITY);
    WideInts which = {};

    void compete(Wide correlation, int32_t number) {
        const WideInts better = correlation > largest;
        largest = better ? correlation : largest;
        which = better ? WideInts{} + number : which;
    }
};

// The same among the transforms that each candidate may have.
struct AllowedFit : BestFit {
    WideInts allowed;  // bits

    void compete(Wide correlation, int32_t number) {
        const WideInts known = (allowed & (1 << number)) != 0;
        BestFit::compete(known ? correlation : largest, number);
    }
};

// Let the symmetries least to end compete, numbered from `first`; ties go to the first one.
template <class Fit>
inline void compete(const PartProducts& sums, int32_t first, int32_t least, int32_t end, Fit& fit) {
    const Wide even = sums.even_same + sums.even_opposite, odd = sums.odd_same + sums.odd_opposite;
    const Wide even_turned = sums.even_same - sums.even_opposite, odd_turned = sums.odd_opposite - sums.odd_same;
    const Wide as_is = even + sums.rows_own, upside_down = even - sums.rows_own;
    const Wide more = sums.columns_own + odd, less = sums.columns_own - odd;
    const Wide turned = even_turned + sums.rows_swapped, turned_down = even_turned - sums.rows_swapped;
    const Wide turned_more = odd_turned - sums.columns_swapped, turned_less = odd_turned + sums.columns_swapped;
    if (least <= 0) fit.compete(as_is + more, first);
    if (end <= 1) return;
    fit.compete(turned + turned_more, first + 1);
    fit.compete(upside_down - less, first + 2);
    fit.compete(turned_down + turned_less, first + 3);
    if (end <= 4) return;
    fit.compete(as_is - more, first + 4);
    fit.compete(turned_down - turned_less, first + 5);
    fit.compete(upside_down + less, first + 6);
    fit.compete(turned - turned_more, first + 7);
}

}  // namespace vnlem
