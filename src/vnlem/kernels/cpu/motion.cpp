// Where the blocks of one frame lie in the next: see motion.py.
//
// Blocks overlap: each is two cells high and wide, and shares them with its neighbours. A row of cells is compared
// under all horizontal shifts while its pixels are in the cache.
#include "array.h"
#include "scratch.h"
#include "simd.h"

namespace vnlem {

struct BlockSearch {
    int64_t cell, longest;
    double cost;
    int64_t first;
};

namespace {

struct Buffers {
    Array<float, 1> columns;  // squared differences down a row of cells; it begins at the border of the first cell
    Array<float, 3> cells;    // (horizontal shifts, rows of cells, cells of a row)
    Array<float, 2> least;    // of the blocks
    Array<int32_t, 2> shifts;  // with the least difference, numbered in reading order
    Buffers(Arena& arena, const BlockSearch& search, int64_t rows, int64_t blocks)
        : columns(arena.zeros<float>(search.cell * (blocks + 1))),
          cells(arena.zeros<float>(2 * search.longest + 1, rows + 1, blocks + 1)),
          least(arena.empty<float>(rows, blocks)),
          shifts(arena.zeros<int32_t>(rows, blocks)) {
        for (int64_t i = 0; arena.is_real() && i < least.size(); i++) least.data[i] = __builtin_inff();
    }
};

// Sums of squared differences down `rows` rows, of `count` columns.
void sum_columns(const float* here, const float* there, int64_t width, int64_t rows, int64_t count, float* sums) {
    constexpr int kWide = 2;  // vectors side by side hide the latency of additions
    int64_t x = 0;
    for (; x + kWide * kLanes <= count; x += kWide * kLanes) {
        Floats<kLanes> columns[kWide] = {};
        for (int64_t y = 0; y < rows; y++)
            unrolled<kWide>([&](int i) {
                const int64_t at = y * width + x + i * kLanes;
                const Floats<kLanes> difference = load<kLanes>(here + at) - load<kLanes>(there + at);
                columns[i] += difference * difference;
            });
        unrolled<kWide>([&](int i) { store<kLanes>(sums + x + i * kLanes, columns[i]); });
    }
    for (; x < count; x++) {
        sums[x] = 0.0f;
        for (int64_t y = 0; y < rows; y++) {
            const float difference = here[y * width + x] - there[y * width + x];
            sums[x] += difference * difference;
        }
    }
}

float sum(const float* values, int64_t count) {
    constexpr int kWide = 8;
    Floats<kWide> sums = {};
    int64_t x = 0;
    for (; x + kWide <= count; x += kWide) sums += load<kWide>(values + x);
    float found = total<kWide, float>(sums);
    for (; x < count; x++) found += values[x];
    return found;
}

// Compare `count` blocks under one shift: `above` and `below` begin at the cells of the first one.
void keep_least(const float* above, const float* below, int64_t count, float cost, int32_t shift, float* least,
                int32_t* shifts) {
    for (int64_t j = 0; j < count; j++) {
        const float found = cost + ((above[j] + above[j + 1]) + (below[j] + below[j + 1]));
        shifts[j] = found < least[j] ? shift : shifts[j];
        least[j] = found < least[j] ? found : least[j];
    }
}

}  // namespace

VNLEM_EXPORT int64_t vnlem_block_motion(const Array<const float, 2>& here, const Array<const float, 2>& there,
                                        const BlockSearch& search, const Array<int64_t, 3>& moves) {
    const int64_t height = here.shape[0], width = here.shape[1], cell = search.cell, before = cell / 2;
    const int64_t longest = search.longest, side = 2 * longest + 1, reach = smaller_of(longest, width - 1);
    const int64_t rows = moves.shape[0], blocks = moves.shape[1];
    Scratch<Buffers> scratch(search, rows, blocks);
    if (!scratch) return kOutOfMemory;
    // Where a row of cells begins in the image; the one after it begins where it ends.
    const auto top_of = [&](int64_t row) {
        return smaller_of(height, larger_of<int64_t>(0, (search.first + row) * cell - before));
    };
    const auto inside = [&](int64_t top, int64_t bottom, int64_t dy) { return 0 <= top + dy && bottom + dy <= height; };
    for (int64_t dy = -longest; dy <= longest; dy++) {
        for (int64_t row = 0; row <= rows; row++) {
            const int64_t top = top_of(row), bottom = top_of(row + 1);
            if (top == bottom || !inside(top, bottom, dy)) continue;
            for (int64_t dx = -reach; dx <= reach; dx++) {
                const int64_t left = larger_of<int64_t>(0, -dx), right = smaller_of(width, width - dx);
                sum_columns(&here(top, left), &there(top + dy, left + dx), width, bottom - top, right - left,
                            &scratch->columns[before + left]);
                float* sums = &scratch->cells(dx + longest, row, 0);
                for (int64_t j = 0; j <= blocks; j++) sums[j] = sum(&scratch->columns[j * cell], cell);
            }
        }
        for (int64_t row = 0; row < rows; row++) {
            if (!inside(top_of(row), top_of(row + 2), dy)) continue;
            for (int64_t dx = -reach; dx <= reach; dx++) {
                // Blocks that leave the image do not count; at the border of the image they are cut.
                const int64_t from = dx < 0 ? (before - dx + cell - 1) / cell : 0;
                const int64_t to = dx > 0 ? (width - dx + before) / cell - 1 : blocks;
                if (from >= to) continue;
                const auto cells = scratch->cells[dx + longest];
                keep_least(&cells(row, from), &cells(row + 1, from), to - from,
                           float(search.cost) * float(std::abs(dy) + std::abs(dx)),
                           int32_t((dy + longest) * side + dx + longest), &scratch->least(row, from),
                           &scratch->shifts(row, from));
            }
        }
    }
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < blocks; j++) {
            moves(i, j, 0) = scratch->shifts(i, j) / side - longest;
            moves(i, j, 1) = scratch->shifts(i, j) % side - longest;
        }
    return 0;
}

struct Moves {
    Array<const int64_t, 4> onward, back;
    int64_t cell;
};

VNLEM_EXPORT int64_t vnlem_follow_motion(const Moves& moves, const Array<const int64_t, 2>& corners, int64_t plane,
                                         int64_t middle, const Array<int64_t, 3>& centres) {
    for (int64_t i = 0; i < corners.shape[0]; i++) {
        int64_t y, x;
        const auto start = [&] { y = corners(i, 0), x = corners(i, 1); };
        const auto note = [&](int64_t at, int64_t there) {
            centres(i, at, 0) = there;
            centres(i, at, 1) = y;
            centres(i, at, 2) = x;
        };
        // The move of the block that holds the middle of the patch.
        const auto step = [&](const Array<const int64_t, 3>& blocks) {
            const auto at = [&](int64_t corner, int64_t count) {
                return smaller_of(larger_of<int64_t>(corner + middle, 0) / moves.cell, count - 1);
            };
            const int64_t row = at(y, blocks.shape[0]), column = at(x, blocks.shape[1]);
            y += blocks(row, column, 0);
            x += blocks(row, column, 1);
        };
        start();
        note(0, plane);
        for (int64_t here = plane + 1; here < centres.shape[1]; here++) {
            step(moves.onward[here - 1]);
            note(here, here);
        }
        start();
        for (int64_t here = plane - 1; here >= 0; here--) {
            step(moves.back[here]);
            note(here + 1, here);
        }
    }
    return 0;
}

}  // namespace vnlem
