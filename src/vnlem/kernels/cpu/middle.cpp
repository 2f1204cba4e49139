// The median over planes: see middle.py.
#include "array.h"
#include "simd.h"

namespace vnlem {

namespace {

constexpr int kMost = 17;            // planes, as in middle.py
constexpr int kKept = kMost / 2 + 1;  // the least values, up to the median

// The median of `count` vectors that are `step` numbers apart, lane by lane.
template <int N>
Floats<N> middle(const float* values, int64_t count, int64_t step) {
    Floats<N> least[kKept];
    for (auto& kept : least) kept = spread<N>(__builtin_inff());
    for (int64_t i = 0; i < count; i++) {
        // A value moves along the sorted ones to its place, and pushes out the largest.
        Floats<N> value = load<N>(values + i * step);
        unrolled<kKept>([&](int k) {
            const Floats<N> less = smaller(value, least[k]);
            value = larger(value, least[k]);
            least[k] = less;
        });
    }
    return (least[(count - 1) / 2] + least[count / 2]) / spread<N>(2.0f);
}

}  // namespace

VNLEM_EXPORT int64_t vnlem_middle_of_planes(const Array<const float, 2>& planes, const Array<float, 1>& out) {
    const int64_t count = planes.shape[0], pixels = planes.shape[1];
    VNLEM_CHECK(0 < count && count <= kMost);
    int64_t x = 0;
    for (; x + kLanes <= pixels; x += kLanes) store<kLanes>(&out[x], middle<kLanes>(&planes(0, x), count, pixels));
    for (; x < pixels; x++) out[x] = middle<1>(&planes(0, x), count, pixels)[0];
    return 0;
}

}  // namespace vnlem
