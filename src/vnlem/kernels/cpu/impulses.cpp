// Pixels that may be impulses: see impulses.py.
#include <cmath>

#include "scratch.h"
#include "simd.h"

namespace vnlem {
namespace {

constexpr int64_t kReach = 2, kSide = 2 * kReach + 1;
constexpr int kOthers = 2;  // as in impulses.py
constexpr int kWide = kLanes / 2;
template <int N>
using Wide = Vector<double, N>;

int64_t mirrored(int64_t index, int64_t size) {
    if (0 <= index && index < size) return index;
    if (size == 1) return 0;
    const int64_t period = 2 * (size - 1);
    index = (index < 0 ? -index : index) % period;
    return index < size ? index : period - index;
}

// Of three rows, column by column; kReach columns are mirrored at both ends.
struct Columns {
    Array<double, 1> largest, smallest;
    Columns(Arena& arena, int64_t width)
        : largest(arena.empty<double>(width + 2 * kReach)), smallest(arena.empty<double>(width + 2 * kReach)) {}
};

template <int N>
void look_down(const double* const* rows, int64_t x, double* largest, double* smallest) {
    const Wide<N> a = load<N>(rows[1] + x), b = load<N>(rows[2] + x), c = load<N>(rows[3] + x);
    store<N>(largest + x, larger(larger(a, b), c));
    store<N>(smallest + x, smaller(smaller(a, b), c));
}

void look_down(const double* const* rows, int64_t width, const Columns& found) {
    double *const largest = found.largest.data + kReach, *const smallest = found.smallest.data + kReach;
    int64_t x = 0;
    for (; x + kWide <= width; x += kWide) look_down<kWide>(rows, x, largest, smallest);
    for (; x < width; x++) look_down<1>(rows, x, largest, smallest);
    double* const both[] = {largest, smallest};
    for (double* const each : both) {
        for (int64_t k = 1; k <= kReach; k++) {
            each[-k] = each[mirrored(-k, width)];
            each[width - 1 + k] = each[mirrored(width - 1 + k, width)];
        }
    }
}

// By how much a pixel must be outside the range of its neighbours.
struct Beyond {
    double excess, noise, share;  // of the range, in addition to the noise
    template <class T>
    T of(T range) const {
        return larger(T{} + excess, noise + share * range);
    }
};

// The two values in the middle of four.
template <int N>
struct Middle {
    Wide<N> low, high;
    Middle(const double* a, const double* b, const double* c, const double* d) {
        const Wide<N> v[] = {load<N>(a), load<N>(b), load<N>(c), load<N>(d)};
        const Wide<N> first = larger(smaller(v[0], v[1]), smaller(v[2], v[3]));
        const Wide<N> second = smaller(larger(v[0], v[1]), larger(v[2], v[3]));
        low = smaller(first, second);
        high = larger(first, second);
    }
};

// False for nearly all pixels of noise. Beside a pixel are four columns: the third largest of their maxima is at most
// `high` of `Range`, the third smallest of their minima at least `low`.
template <int N>
Vector<int64_t, N> may_stand_out(const double* row, int64_t x, const Columns& columns, const Beyond& beyond) {
    const double *const l = columns.largest.data + x, *const s = columns.smallest.data + x;
    const Wide<N> high = Middle<N>(l, l + 1, l + 3, l + 4).low, low = Middle<N>(s, s + 1, s + 3, s + 4).high;
    const Wide<N> value = load<N>(row + x);
    return larger(value - high, low - value) > beyond.of(high - low);
}

// Whether a pixel is the largest or smallest of 3x3, and differs from the mean of 5x5. Sums are compared instead of
// means: they are exact for integers.
bool is_extreme(const double* const* rows, int64_t width, int64_t x, double deviation) {
    const double value = rows[kReach][x];
    double sum = 0, most = value, fewest = value;
    for (int64_t right = -kReach; right <= kReach; right++) {
        const int64_t at = mirrored(x + right, width);
        double down = 0;
        for (int64_t k = 0; k < kSide; k++) down += rows[k][at];
        sum += down;
        for (int64_t k = 1; k < kSide - 1 && -1 <= right && right <= 1; k++) {
            most = larger(most, rows[k][at]);
            fewest = smaller(fewest, rows[k][at]);
        }
    }
    constexpr int64_t kSquare = kSide * kSide;
    return (value == most || value == fewest) && std::fabs(kSquare * value - sum) > kSquare * deviation;
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

bool stands_out(const double* const* rows, int64_t width, int64_t x, const Beyond& beyond) {
    const Range range(rows, width, x);
    const double low = range.low[kOthers], high = range.high[kOthers], value = rows[kReach][x];
    return larger_of(value - high, low - value) > beyond.of(high - low);
}

}  // namespace

VNLEM_EXPORT int64_t vnlem_find_extremes(const Array<const double, 2>& plane, int64_t top, int64_t bottom,
                                         double deviation, double excess, double noise, double share,
                                         const Array<int64_t, 1>& places) {
    const int64_t height = plane.shape[0], width = plane.shape[1];
    VNLEM_CHECK(places.shape[0] >= (bottom - top) * width);
    Scratch<Columns> scratch(width);
    if (!scratch) return kOutOfMemory;
    const Beyond beyond = {excess, noise, share};
    int64_t count = 0;
    for (int64_t y = top; y < bottom; y++) {
        const double* rows[kSide];
        for (int64_t k = 0; k < kSide; k++) rows[k] = plane[mirrored(y + k - kReach, height)].data;
        look_down(rows, width, *scratch);
        const auto look = [&](int64_t x) {
            if (is_extreme(rows, width, x, deviation) && stands_out(rows, width, x, beyond))
                places[count++] = y * width + x;
        };
        int64_t x = 0;
        for (; x + kWide <= width; x += kWide) {
            const auto marks = may_stand_out<kWide>(rows[kReach], x, *scratch, beyond);
            if (!any(marks)) continue;
            for (int64_t lane = 0; lane < kWide; lane++)
                if (marks[lane]) look(x + lane);
        }
        for (; x < width; x++)
            if (may_stand_out<1>(rows[kReach], x, *scratch, beyond)[0]) look(x);
    }
    return count;
}

}  // namespace vnlem
