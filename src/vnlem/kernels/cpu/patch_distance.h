// Squared distances between all patches of a region and their copies at one offset, by box sums.
//
// A sum over a patch adds blocks of 1, 2, 4, ... rows, then of columns, always in the same order. So a distance
// depends on its two patches alone and not on the region it was computed with: any tiling of an image gives the
// same bits. A running sum would be a little cheaper but would not have this property.
#pragma once
#include <type_traits>

#include "elementary.h"
#include "scratch.h"

namespace vnlem {

struct Window {
    int64_t radius_y, radius_x, reach_y, reach_x;
};

struct Decay {
    double rate, floor;
};

typedef Floats<kLanes> Lanes;

// Squared distances become weights; values has room for whole vectors.
inline void weigh(float* values, int64_t count, const Decay& decay) {
    const float rate = float(decay.rate), floor = float(decay.floor);
    for (int64_t x = 0; x < count; x += kLanes) {
        const Lanes above = larger(load<kLanes>(values + x) - floor, Lanes{});
        store<kLanes>(values + x, exp_negative(rate * above));
    }
}

inline int64_t whole_vectors(int64_t count) { return (count + kLanes - 1) / kLanes * kLanes; }

// The pixels p for which p or p + (dy, dx) lies in the tile, dy >= 0. Both lie in the image.
inline Tile pairs_of_tile(const Tile& tile, int64_t height, int64_t width, int64_t dy, int64_t dx) {
    return {larger_of<int64_t>(0, tile.top - dy), smaller_of(tile.bottom, height - dy),
            dx > 0 ? larger_of<int64_t>(0, tile.left - dx) : larger_of(tile.left, -dx),
            dx > 0 ? smaller_of(tile.right, width - dx) : smaller_of(tile.right - dx, width)};
}

// Blocks of 1, 2, 4, ... rows are kept as long as larger sums need them: the block of 2^level rows that ends
// with row t is at index t modulo 2^level + 1 of its level.
inline int64_t place_of_block(int level, int64_t t) {
    const int64_t held = (int64_t(1) << level) + 1;
    return held + level - 2 + (t + held) % held;
}

struct DistanceRows {
    static constexpr int kMostLevels = 16;
    Array<float, 2> blocks;  // of rows of squared differences
    Array<float, 2> sums;    // over the rows of a patch, and of some of these side by side
    Array<float, 1> distances;

    // For regions of at most this many columns. Rows have room for whole vectors, and for the patch of the last one.
    DistanceRows(Arena& arena, int64_t columns, const Window& window)
        : blocks(arena.zeros<float>(place_of_block(levels(window.radius_y), -1) + 1, width(columns, window))),
          sums(arena.zeros<float>(3, width(columns, window))),
          distances(arena.zeros<float>(width(columns, window))) {}

    static int levels(int64_t radius) {
        int count = 0;
        while ((2 * radius + 1) >> (count + 1)) count++;
        return count;
    }
    static int64_t width(int64_t columns, const Window& window) {
        return whole_vectors(columns + 2 * window.radius_x) + kLanes;
    }
};

// Calls work with the size as a constant if it is a common one, else with 0.
template <class Work>
inline void with_constant_size(int64_t size, Work work) {
    switch (size) {
        case 3: return work(std::integral_constant<int, 3>());
        case 5: return work(std::integral_constant<int, 5>());
        case 7: return work(std::integral_constant<int, 7>());
        case 9: return work(std::integral_constant<int, 9>());
        case 13: return work(std::integral_constant<int, 13>());
        default: return work(std::integral_constant<int, 0>());
    }
}

// row[x] = mean over channels of the squared difference of the pixels at first + x and at first + shift + x.
inline void squared_differences(const Array<const float, 3>& image, int64_t first, int64_t shift, int64_t count,
                                float* __restrict row) {
    const float share = 1.0f / float(image.shape[0]);
    for (int64_t c = 0; c < image.shape[0]; c++) {
        const float* const __restrict here = image[c].data + first;
        const float* const __restrict there = here + shift;
        for (int64_t x = 0; x < count; x++) {
            const float difference = here[x] - there[x];
            row[x] = difference * difference + (c > 0 ? row[x] : 0.0f);
        }
    }
    if (image.shape[0] > 1)
        for (int64_t x = 0; x < count; x++) row[x] *= share;
}

// sums = the sum of the last `size` rows, of which row t is the newest. Size: 0, or `size`.
// Not inlined, to keep all addresses in registers.
template <int Size>
__attribute__((noinline)) void add_up_rows(int64_t t, int64_t any_size, int64_t wide, const DistanceRows& rows) {
    const int64_t size = Size > 0 ? Size : any_size;  // odd
    const int n_levels = DistanceRows::levels(size / 2) + 1;
    const float* const row = &rows.blocks(place_of_block(0, t), 0);
    float* newest[DistanceRows::kMostLevels];
    const float *before[DistanceRows::kMostLevels], *part[DistanceRows::kMostLevels];
    for (int level = 1; level < n_levels; level++) {
        newest[level] = &rows.blocks(place_of_block(level, t), 0);
        before[level] = &rows.blocks(place_of_block(level - 1, t - (int64_t(1) << (level - 1))), 0);
        // Smaller parts of the sum are newer.
        part[level] = &rows.blocks(place_of_block(level, t - (size & ((int64_t(1) << level) - 1))), 0);
    }
    float* const sums = rows.sums[0].data;
    for (int64_t x = 0; x < wide; x += kLanes) {
        Lanes block = load<kLanes>(row + x);
        Lanes sum = block;
        for (int level = 1; level < n_levels; level++) {
            block += load<kLanes>(before[level] + x);
            store<kLanes>(newest[level] + x, block);
            if (size >> level & 1) sum += load<kLanes>(part[level] + x);
        }
        store<kLanes>(sums + x, sum);
    }
}

// The sums of Size consecutive numbers from each of some positions side by side.
template <int Size>
inline Lanes sum_of_next(const float* values) {
    constexpr int kFirst = Size > 8 ? 8 : Size > 4 ? 4 : Size > 2 ? 2 : 1;
    if constexpr (Size == 1)
        return load<kLanes>(values);
    else
        return sum_of_next<kFirst>(values) + sum_of_next<Size - kFirst>(values + kFirst);
}

// distances[x] = sum of sums[x : x + size] for x < columns.
template <int Size>
inline void add_up_columns(int64_t any_size, int64_t columns, const DistanceRows& rows) {
    float* const out = rows.distances.data;
    const float* current = rows.sums[0].data;
    if constexpr (Size > 0 && Size < 8) {
        for (int64_t x = 0; x < columns; x += kLanes) store<kLanes>(out + x, sum_of_next<Size>(current + x));
        return;
    }
    // Blocks of 1, 4, 16, ... numbers: up to three of each are part of the sum.
    for (int64_t span = 1, begin = 0; begin < any_size; span *= 4) {
        const int64_t size = Size > 0 ? Size : any_size, parts = size / span % 4;
        for (int64_t x = 0; x < columns; x += kLanes) {
            Lanes sum = span > 1 ? load<kLanes>(out + x) : Lanes{};
            for (int64_t part = 0; part < parts; part++) sum += load<kLanes>(current + x + begin + part * span);
            store<kLanes>(out + x, sum);
        }
        begin += parts * span;
        float* const following = rows.sums[current == rows.sums[1].data ? 2 : 1].data;
        for (int64_t x = 0; x < columns + size - 4 * span; x += kLanes) {
            const float* const from = current + x;
            store<kLanes>(following + x, (load<kLanes>(from) + load<kLanes>(from + span)) +
                                             (load<kLanes>(from + 2 * span) + load<kLanes>(from + 3 * span)));
        }
        current = following;
    }
}

// Calls use_row(y, d) for every row of a box of pixels, d[x] = mean over channels of
// |patch(y, left + x) - patch(y + dy, left + x + dx)|^2. d has room for whole vectors and may be written.
//
// padded: (channels, height + 2 radius_y, width + 2 radius_x); both patches lie inside it.
template <class UseRow>
inline void distances_at_offset(const Array<const float, 3>& padded, const Tile& box, int64_t dy, int64_t dx,
                                const Window& window, const DistanceRows& rows, UseRow use_row) {
    const int64_t size_y = 2 * window.radius_y + 1, size_x = 2 * window.radius_x + 1;
    const int64_t columns = box.right - box.left, wide = columns + size_x - 1;
    for (int64_t t = 0; t < box.bottom - box.top + size_y - 1; t++) {
        const int64_t first = (box.top + t) * padded.shape[2] + box.left;
        squared_differences(padded, first, dy * padded.shape[2] + dx, wide, &rows.blocks(place_of_block(0, t), 0));
        with_constant_size(size_y, [&](auto size) { add_up_rows<size.value>(t, size_y, wide, rows); });
        if (t < size_y - 1) continue;
        with_constant_size(size_x, [&](auto size) { add_up_columns<size.value>(size_x, columns, rows); });
        use_row(box.top + t - size_y + 1, rows.distances.data);
    }
}

}  // namespace vnlem
