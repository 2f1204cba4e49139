// A group's patches: gathered from the images, and added back to the accumulators.
//
// As columns, pixels are rows and members lie side by side, as the Gram matrix needs them. As rows, a patch's
// pixels lie side by side, as in the image; each row of the patch begins at a multiple of eight.
#pragma once
#include "array.h"
#include "squares.h"

namespace vnlem {

constexpr int64_t round_up(int64_t count, int64_t unit) { return (count + unit - 1) / unit * unit; }

// The layout of the patches of a group.
struct Patch {
    Array<const int64_t, 2> offsets;  // (transforms, pixels): of the pixels from the corner, in the images
    Array<const int64_t, 2> places;   // the same in the accumulators, two numbers a pixel
    int64_t wide;                     // pixels side by side
    int64_t rows = offsets.shape[1] / wide;
    int64_t pixels() const { return offsets.shape[1]; }
    int64_t row_step() const { return round_up(wide, 8); }
    int64_t length() const { return rows * row_step(); }
};

// Where each row of each patch of a group begins: (rows, size). Those of turned members are copied upright.
inline void locate(const float* image, const Patch& patch, const Array<const int64_t, 1>& members,
                   const Array<const uint8_t, 1>& chosen, const Array<float, 2>& upright,
                   const Array<const float*, 2>& rows) {
    const int64_t k = chosen.shape[0], step = patch.row_step();
    for (int64_t r = 0; r < patch.rows; r++) {
        const float* const first = image + patch.offsets(0, r * patch.wide);
        const Array<const float*, 1> begins = rows[r];
        for (int64_t j = 0; j < k; j++) begins[j] = first + members[j];
    }
    for (int64_t j = 0; j < k; j++) {
        if (chosen[j] == 0) continue;
        const int64_t* const shifts = &patch.offsets(chosen[j], 0);
        const float* const corner = image + members[j];
        for (int64_t r = 0; r < patch.rows; r++) {
            float* const copied = &upright(j, r * step);
            for (int64_t x = 0; x < patch.wide; x++) copied[x] = corner[shifts[r * patch.wide + x]];
            rows(r, j) = copied;
        }
    }
}

// Columns (., size) of the group from its rows, their mean subtracted; columns beyond the members become zero,
// and the rest of `rows` is set. mean: scratch (length). Rows of `columns` beyond the patch's pixels hold garbage.
inline void gather_centred(const Array<const float*, 2>& rows, int64_t k, const Patch& patch,
                           const Array<float, 1>& mean, const Array<float, 2>& columns) {
    const int64_t size = columns.shape[1], step = patch.row_step(), wide = patch.wide;
    const float share = 1.0f / float(k);
    for (int64_t r = 0; r < patch.rows; r++) {
        const float** const begins = &rows(r, 0);
        for (int64_t x = 0; x < wide; x += kSquare) {
            Floats<kSquare> sums[4] = {};
            int64_t j = 0;
            for (; j + 4 <= k; j += 4)
                unrolled<4>([&](int a) { sums[a] += load<kSquare>(begins[j + a] + x); });
            for (; j < k; j++) sums[0] += load<kSquare>(begins[j] + x);
            store<kSquare>(&mean[r * step + x], ((sums[0] + sums[1]) + (sums[2] + sums[3])) * share);
        }
        // The mean minus itself is zero.
        for (int64_t j = k; j < size; j++) begins[j] = &mean[r * step];
    }
    for (int64_t first = 0; first < size; first += kSquare) {
        // The next row overwrites what runs over the end of a patch's row.
        for (int64_t r = 0; r < patch.rows; r++) {
            const float** const begins = &rows(r, first);
            for (int64_t x = 0; x < wide; x += kSquare) {
                const Floats<kSquare> centre = load<kSquare>(&mean[r * step + x]);
                Floats<kSquare> square[kSquare];
                unrolled<kSquare>([&](int a) { square[a] = load<kSquare>(begins[a] + x) - centre; });
                transpose(square);
                float* const to = &columns(r * wide + x, first);
                unrolled<kSquare>([&](int b) { store<kSquare>(to + b * size, square[b]); });
            }
        }
    }
}

// Rows (., length) of the group minus the first, which is not changed; numbers beyond a row of the patch become
// zero.
inline void gather_rows(const Array<const float*, 2>& rows, int64_t k, const Patch& patch,
                        const Array<float, 2>& out) {
    const int64_t step = patch.row_step();
    const Ints<kSquare> numbers = numbered<kSquare>();
    for (int64_t r = 0; r < patch.rows; r++) {
        const float* const* const begins = &rows(r, 0);
        for (int64_t x = 0; x < step; x += kSquare) {
            const Ints<kSquare> inside = numbers < int32_t(patch.wide - x);
            const Floats<kSquare> own = load<kSquare>(begins[0] + x);
            for (int64_t j = 1; j < k; j++) {
                const Floats<kSquare> change = load<kSquare>(begins[j] + x) - own;
                store<kSquare>(&out(j, r * step + x), inside ? change : Floats<kSquare>{});
            }
        }
    }
}

// Each number twice.
VNLEM_INLINE Floats<16> twice(Floats<8> row) {
    return __builtin_shufflevector(row, row, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
}
VNLEM_INLINE Floats<8> twice(Floats<4> row) { return __builtin_shufflevector(row, row, 0, 0, 1, 1, 2, 2, 3, 3); }

// Add a member's row (length) times window to the accumulators, two numbers per pixel, at its corner. first, second:
// factors of the row in the two. An upright member is added by vectors, with zeros for the pixels next to it.
inline void put_back(const float* row, const float* window, const Patch& patch, int64_t transform, float first,
                     float second, float* sums) {
    typedef Floats<2 * kSquare> Pairs;
    const int64_t step = patch.row_step(), n_rows = patch.rows, wide = patch.wide;
    const int64_t* shifts = &patch.places(transform, 0);
    const Pairs factors = (numbered<2 * kSquare>() & 1) == 0 ? Pairs{} + first : Pairs{} + second;
    for (int64_t r = 0; r < n_rows; r++, row += step, window += step, shifts += wide) {
        if (transform == 0) {
            for (int64_t x = 0; x < step; x += kSquare) {
                float* const at = sums + shifts[0] + 2 * x;
                const Pairs pairs = twice(load<kSquare>(row + x) * load<kSquare>(window + x));
                store<2 * kSquare>(at, load<2 * kSquare>(at) + factors * pairs);
            }
        } else {
            for (int64_t x = 0; x < wide; x++) {
                float* const at = sums + shifts[x];
                const float weighted = row[x] * window[x];
                at[0] += first * weighted;
                at[1] += second * weighted;
            }
        }
    }
}

}  // namespace vnlem
