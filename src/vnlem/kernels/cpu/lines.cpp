// What lines of a picture have in common: see lines.py.
#include "scratch.h"
#include "simd.h"

namespace vnlem {
namespace {

constexpr int kWide = kLanes / 2;  // columns that are sorted together
constexpr int kFew = 16;           // values of each that are sorted in registers
using Wide = Vector<double, kWide>;

// The comparisons of Batcher's odd-even merge sort of n values: each puts the smaller of two values first. They begin
// with parts of `sorted` values in their order.
template <class Body>
constexpr void for_each_comparison(int64_t sorted, int64_t n, const Body& body) {
    for (; sorted < n; sorted *= 2)
        for (int64_t apart = sorted; apart >= 1; apart /= 2)
            for (int64_t first = apart % sorted; first + apart < n; first += 2 * apart)
                for (int64_t i = first; i < smaller_of(first + apart, n - apart); i++)
                    // Only values of the same two sorted parts.
                    if ((i ^ (i + apart)) < 2 * sorted) body(int32_t(i), int32_t(i + apart));
}

struct Pair {
    int32_t first, second;
};

// The comparisons of a few values, known to the compiler.
struct Few {
    int32_t count = 0;
    Pair pairs[64] = {};
    constexpr Few() {
        for_each_comparison(1, kFew, [&](int32_t i, int32_t j) { pairs[count++] = {i, j}; });
    }
};
constexpr Few kPairsOfFew;

void sort_few(Wide* values) {
    Wide v[kFew];
    unrolled<kFew>([&](int i) { v[i] = values[i]; });
    unrolled<kPairsOfFew.count>([&](int k) {
        const Pair at = kPairsOfFew.pairs[k];
        const Wide a = v[at.first], b = v[at.second];
        v[at.first] = smaller(a, b);
        v[at.second] = larger(a, b);
    });
    unrolled<kFew>([&](int i) { values[i] = v[i]; });
}

struct Sorted {
    Array<Wide, 1> values;
    Array<Pair, 1> pairs;
    Sorted(Arena& arena, int64_t n, int64_t comparisons)
        : values(arena.empty<Wide>(n)), pairs(arena.empty<Pair>(comparisons)) {}
};

}  // namespace

VNLEM_EXPORT int64_t vnlem_middle_means(const Array<const double, 2>& plane, int64_t height, int64_t lag,
                                        int64_t across, int64_t dropped, const Array<double, 2>& means) {
    const int64_t blocks = means.shape[0], columns = means.shape[1];
    const int64_t rows = plane.shape[across ? 1 : 0], each = rows / blocks;
    const int64_t down = across ? 1 : plane.shape[1], right = across ? plane.shape[1] : 1;
    VNLEM_CHECK(height <= each && columns + lag <= plane.shape[across ? 0 : 1] && 2 * dropped < height);
    // All but the last few values are first sorted in registers.
    const int32_t few = int32_t(height / kFew * kFew);
    const auto for_each = [&](const auto& body) {
        for_each_comparison(1, height - few, [&](int32_t i, int32_t j) { body(few + i, few + j); });
        for_each_comparison(kFew, height, body);
    };
    int64_t comparisons = 0;
    for_each([&](int32_t, int32_t) { comparisons++; });
    Scratch<Sorted> scratch(height, comparisons);
    if (!scratch) return kOutOfMemory;
    Pair* pair = scratch->pairs.data;
    for_each([&](int32_t i, int32_t j) { *pair++ = {i, j}; });
    Wide* const values = scratch->values.data;
    for (int64_t block = 0; block < blocks; block++) {
        for (int64_t first = 0; first < columns; first += kWide) {
            const int64_t count = smaller_of<int64_t>(kWide, columns - first);
            const double* const here = plane.data + block * each * down + first * right;
            if (count == kWide && right == 1) {
                for (int64_t y = 0; y < height; y++) {
                    const double* const at = here + y * down;
                    values[y] = lag ? load<kWide>(at + lag) - load<kWide>(at) : load<kWide>(at);
                }
            } else {
                for (int64_t lane = 0; lane < kWide; lane++) {
                    // Spare lanes repeat the last column.
                    const double* const from = here + smaller_of(lane, count - 1) * right;
                    for (int64_t y = 0; y < height; y++)
                        values[y][lane] = lag ? from[y * down + lag * right] - from[y * down] : from[y * down];
                }
            }
            for (int64_t y = 0; y < few; y += kFew) sort_few(values + y);
            for (const Pair* at = scratch->pairs.data; at < pair; at++) {
                const Wide a = values[at->first], b = values[at->second];
                values[at->first] = smaller(a, b);
                values[at->second] = larger(a, b);
            }
            Wide sum = {};
            for (int64_t y = dropped; y < height - dropped; y++) sum += values[y];
            sum /= spread<kWide>(double(height - 2 * dropped));
            for (int64_t lane = 0; lane < count; lane++) means(block, first + lane) = sum[lane];
        }
    }
    return 0;
}

}  // namespace vnlem
