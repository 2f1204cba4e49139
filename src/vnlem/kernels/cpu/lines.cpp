// What lines of a picture have in common: see lines.py.
#include "scratch.h"
#include "simd.h"

namespace vnlem {
namespace {

constexpr int kWide = kLanes / 2;  // columns that are sorted together
using Wide = Vector<double, kWide>;

// Batcher's odd-even merge sort, lane by lane.
void sort_lanes(Wide* values, int64_t n) {
    for (int64_t sorted = 1; sorted < n; sorted *= 2) {
        for (int64_t apart = sorted; apart >= 1; apart /= 2) {
            for (int64_t first = apart % sorted; first + apart < n; first += 2 * apart) {
                for (int64_t i = first; i < smaller_of(first + apart, n - apart); i++) {
                    if ((i ^ (i + apart)) >= 2 * sorted) continue;  // not of the same two sorted parts
                    const Wide a = values[i], b = values[i + apart];
                    values[i] = smaller(a, b);
                    values[i + apart] = larger(a, b);
                }
            }
        }
    }
}

struct Sorted {
    Array<Wide, 1> values;
    Sorted(Arena& arena, int64_t n) : values(arena.empty<Wide>(n)) {}
};

}  // namespace

VNLEM_EXPORT int64_t vnlem_middle_means(const Array<const double, 2>& plane, int64_t height, int64_t lag,
                                        int64_t across, int64_t dropped, const Array<double, 2>& means) {
    const int64_t blocks = means.shape[0], columns = means.shape[1];
    const int64_t rows = plane.shape[across ? 1 : 0], each = rows / blocks;
    const int64_t down = across ? 1 : plane.shape[1], right = across ? plane.shape[1] : 1;
    VNLEM_CHECK(height <= each && columns + lag <= plane.shape[across ? 0 : 1] && 2 * dropped < height);
    Scratch<Sorted> scratch(height);
    if (!scratch) return kOutOfMemory;
    Wide* const values = scratch->values.data;
    for (int64_t block = 0; block < blocks; block++) {
        for (int64_t first = 0; first < columns; first += kWide) {
            const int64_t count = smaller_of<int64_t>(kWide, columns - first);
            for (int64_t lane = 0; lane < kWide; lane++) {
                // Spare lanes repeat the last column.
                const double* const here = &plane.data[block * each * down + (first + smaller_of(lane, count - 1)) * right];
                for (int64_t y = 0; y < height; y++)
                    values[y][lane] = lag ? here[y * down + lag * right] - here[y * down] : here[y * down];
            }
            sort_lanes(values, height);
            Wide sum = {};
            for (int64_t y = dropped; y < height - dropped; y++) sum += values[y];
            sum /= spread<kWide>(double(height - 2 * dropped));
            for (int64_t lane = 0; lane < count; lane++) means(block, first + lane) = sum[lane];
        }
    }
    return 0;
}

}  // namespace vnlem
