// Pixels that may be impulses: see impulses.py.
#include <cmath>

#include "scratch.h"
#include "simd.h"

namespace vnlem {
namespace {

constexpr int64_t kReach = 2, kSide = 2 * kReach + 1, kAround = kSide * kSide - 1;
constexpr int kOthers = 2;  // as in impulses.py
constexpr int kWide = kLanes / 2;
constexpr int64_t kSpare = 2 * kReach + kWide;
using Wide = Vector<double, kWide>;

int64_t mirrored(int64_t index, int64_t size) {
    if (0 <= index && index < size) return index;
    if (size == 1) return 0;
    const int64_t period = 2 * (size - 1);
    index = (index < 0 ? -index : index) % period;
    return index < size ? index : period - index;
}

// Of the rows around one, column by column; kReach columns are mirrored at both ends, and zeros fill a vector.
struct Rows {
    Array<double, 1> values, sums, largest, smallest;
    Array<int64_t, 1> extreme;
    Rows(Arena& arena, int64_t width)
        : values(arena.zeros<double>(width + kSpare)),
          sums(arena.zeros<double>(width + kSpare)),
          largest(arena.zeros<double>(width + kSpare)),
          smallest(arena.zeros<double>(width + kSpare)),
          extreme(arena.empty<int64_t>(width + kSpare)) {}
};

template <int N>
void look_down(const double* const* rows, int64_t x, const Rows& found) {
    Vector<double, N> v[kSide];
    for (int64_t k = 0; k < kSide; k++) v[k] = load<N>(rows[k] + x);
    store<N>(found.values.data + x, v[2]);
    store<N>(found.sums.data + kReach + x, v[0] + v[1] + v[2] + v[3] + v[4]);
    store<N>(found.largest.data + kReach + x, larger(larger(v[1], v[2]), v[3]));
    store<N>(found.smallest.data + kReach + x, smaller(smaller(v[1], v[2]), v[3]));
}

void look_down(const double* const* rows, int64_t width, const Rows& found) {
    int64_t x = 0;
    for (; x + kWide <= width; x += kWide) look_down<kWide>(rows, x, found);
    for (; x < width; x++) look_down<1>(rows, x, found);
    double* const all[] = {found.sums.data + kReach, found.largest.data + kReach, found.smallest.data + kReach};
    for (double* const each : all) {
        for (int64_t k = 1; k <= kReach; k++) {
            each[-k] = each[mirrored(-k, width)];
            each[width - 1 + k] = each[mirrored(width - 1 + k, width)];
        }
    }
}

// Sums are compared instead of means: they are exact for integers.
void mark_extremes(int64_t width, double deviation, const Rows& found) {
    constexpr int64_t kSquare = kSide * kSide;
    const Wide least = spread<kWide>(kSquare * deviation);
    for (int64_t x = 0; x < width; x += kWide) {
        const double *const s = found.sums.data + x, *const l = found.largest.data + x + 1,
                            *const m = found.smallest.data + x + 1;
        Wide sum = load<kWide>(s);
        for (int64_t k = 1; k < kSide; k++) sum += load<kWide>(s + k);
        const Wide value = load<kWide>(found.values.data + x), apart = double(kSquare) * value - sum;
        const Wide most = larger(larger(load<kWide>(l), load<kWide>(l + 1)), load<kWide>(l + 2));
        const Wide fewest = smaller(smaller(load<kWide>(m), load<kWide>(m + 1)), load<kWide>(m + 2));
        store<kWide>(found.extreme.data + x, ((value == most) | (value == fewest)) & (larger(apart, -apart) > least));
    }
}

bool any(const int64_t* marks) {
    int64_t either = 0;
    for (int k = 0; k < kWide; k++) either |= marks[k];
    return either != 0;
}

// False for most pixels that do not stand out, at once.
bool may_stand_out(const double* const* rows, int64_t width, int64_t x, double excess) {
    if (x < kReach || x - kReach + 8 > width) return true;
    const Vector<double, 8> value = spread<8>(rows[kReach][x]), least = spread<8>(excess);
    Vector<int64_t, 8> above = {}, below = {};
    for (int64_t k = 0; k < kSide; k++) {
        const Vector<double, 8> apart = value - load<8>(rows[k] + x - kReach);
        above += apart > least;
        below += -apart > least;
    }
    // A comparison that is true counts as -1.
    int64_t seen[2] = {};
    for (int64_t k = 0; k < kSide; k++) {
        seen[0] -= above[k];
        seen[1] -= below[k];
    }
    return larger_of(seen[0], seen[1]) >= kAround - kOthers;
}

// The range of the neighbours, mirrored at the edges, without the outermost on both sides.
struct Range {
    double low[kOthers + 1], high[kOthers + 1];  // from the outermost inwards
    Range(const double* const* rows, int64_t width, int64_t x) {
        for (int k = 0; k <= kOthers; k++) {
            low[k] = HUGE_VAL;
            high[k] = -HUGE_VAL;
        }
        for (int64_t down = 0; down < kSide; down++)
            for (int64_t right = -kReach; right <= kReach; right++)
                if (down != kReach || right != 0) add(rows[down][mirrored(x + right, width)]);
    }
    void add(double value) {
        double less = value, more = value;
        for (int k = 0; k <= kOthers; k++) {
            const double a = low[k], b = high[k];
            low[k] = smaller_of(a, less);
            less = larger_of(a, less);
            high[k] = larger_of(b, more);
            more = smaller_of(b, more);
        }
    }
};

bool stands_out(const double* const* rows, int64_t width, int64_t x, double excess, double spread) {
    if (!may_stand_out(rows, width, x, excess)) return false;
    const Range range(rows, width, x);
    const double low = range.low[kOthers], high = range.high[kOthers], value = rows[kReach][x];
    return larger_of(value - high, low - value) > larger_of(excess, spread * (high - low));
}

}  // namespace

VNLEM_EXPORT int64_t vnlem_find_extremes(const Array<const double, 2>& plane, int64_t top, int64_t bottom,
                                         double deviation, double excess, double spread,
                                         const Array<int64_t, 1>& places) {
    const int64_t height = plane.shape[0], width = plane.shape[1];
    VNLEM_CHECK(places.shape[0] >= (bottom - top) * width);
    Scratch<Rows> scratch(width);
    if (!scratch) return kOutOfMemory;
    int64_t count = 0;
    for (int64_t y = top; y < bottom; y++) {
        const double* rows[kSide];
        for (int64_t k = 0; k < kSide; k++) rows[k] = plane[mirrored(y + k - kReach, height)].data;
        look_down(rows, width, *scratch);
        mark_extremes(width, deviation, *scratch);
        const int64_t* const extreme = scratch->extreme.data;
        for (int64_t x = 0; x < width; x++) {
            if (x % kWide == 0 && !any(extreme + x)) {
                x += kWide - 1;
                continue;
            }
            if (extreme[x] && stands_out(rows, width, x, excess, spread)) places[count++] = y * width + x;
        }
    }
    return count;
}

}  // namespace vnlem
