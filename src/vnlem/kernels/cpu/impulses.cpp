// Pixels that may be impulses: see impulses.py.
#include <cmath>

#include "scratch.h"

namespace vnlem {
namespace {

constexpr int64_t kReach = 2, kSide = 2 * kReach + 1;

int64_t mirrored(int64_t index, int64_t size) {
    if (size == 1) return 0;
    const int64_t period = 2 * (size - 1);
    index = (index < 0 ? -index : index) % period;
    return index < size ? index : period - index;
}

// Of the rows around one, column by column; kReach columns are mirrored at both ends.
struct Rows {
    Array<double, 1> sums, largest, smallest;
    Array<int32_t, 1> extreme;
    Rows(Arena& arena, int64_t width)
        : sums(arena.empty<double>(width + 2 * kReach)),
          largest(arena.empty<double>(width + 2 * kReach)),
          smallest(arena.empty<double>(width + 2 * kReach)),
          extreme(arena.empty<int32_t>(width)) {}
};

void look_down(const double* const* rows, int64_t width, const Rows& found) {
    double *const sums = found.sums.data + kReach, *const largest = found.largest.data + kReach,
                  *const smallest = found.smallest.data + kReach;
    const double *const a = rows[0], *const b = rows[1], *const c = rows[2], *const d = rows[3], *const e = rows[4];
    for (int64_t x = 0; x < width; x++) {
        const double more = b[x] > c[x] ? b[x] : c[x], less = b[x] < c[x] ? b[x] : c[x];
        sums[x] = a[x] + b[x] + c[x] + d[x] + e[x];
        largest[x] = more > d[x] ? more : d[x];
        smallest[x] = less < d[x] ? less : d[x];
    }
    double* const all[] = {sums, largest, smallest};
    for (double* const each : all) {
        for (int64_t k = 1; k <= kReach; k++) {
            each[-k] = each[mirrored(-k, width)];
            each[width - 1 + k] = each[mirrored(width - 1 + k, width)];
        }
    }
}

// Sums are compared instead of means: they are exact for integers.
void mark_extremes(const double* row, int64_t width, double deviation, const Rows& found) {
    const double *const s = found.sums.data, *const l = found.largest.data + 1, *const m = found.smallest.data + 1;
    const double least = kSide * kSide * deviation;
    int32_t* const extreme = found.extreme.data;
    for (int64_t x = 0; x < width; x++) {
        const double value = row[x], sum = s[x] + s[x + 1] + s[x + 2] + s[x + 3] + s[x + 4];
        const bool largest = (value >= l[x]) & (value >= l[x + 1]) & (value >= l[x + 2]);
        const bool smallest = (value <= m[x]) & (value <= m[x + 1]) & (value <= m[x + 2]);
        extreme[x] = (largest | smallest) & (std::fabs(kSide * kSide * value - sum) > least);
    }
}

bool stands_out(const double* const* rows, int64_t width, int64_t x, double excess, int64_t others) {
    const double value = rows[kReach][x];
    int64_t not_above = 0, not_below = 0;
    for (int64_t down = 0; down < kSide; down++) {
        for (int64_t right = -kReach; right <= kReach; right++) {
            const double apart = value - rows[down][mirrored(x + right, width)];
            not_above += !(apart > excess);
            not_below += !(-apart > excess);
        }
    }
    return smaller_of(not_above, not_below) - 1 <= others;  // not its own neighbour
}

}  // namespace

VNLEM_EXPORT int64_t vnlem_find_extremes(const Array<const double, 2>& plane, double deviation, double excess,
                                         int64_t others, const Array<int64_t, 1>& places) {
    const int64_t height = plane.shape[0], width = plane.shape[1];
    Scratch<Rows> scratch(width);
    if (!scratch) return kOutOfMemory;
    int64_t count = 0;
    for (int64_t y = 0; y < height; y++) {
        const double* rows[kSide];
        for (int64_t k = 0; k < kSide; k++) rows[k] = plane[mirrored(y + k - kReach, height)].data;
        look_down(rows, width, *scratch);
        mark_extremes(rows[kReach], width, deviation, *scratch);
        for (int64_t x = 0; x < width; x++) {
            if (!scratch->extreme[x] || !stands_out(rows, width, x, excess, others)) continue;
            places[count] = y * width + x;
            count++;
        }
    }
    return count;
}

}  // namespace vnlem
