// Statistics of many numbers: see pixels.py.
#include "array.h"
#include "simd.h"

namespace vnlem {
namespace {

constexpr int kWide = 8;  // lanes of sums, the same on every processor
using Wide = Vector<double, kWide>;

}  // namespace

VNLEM_EXPORT int64_t vnlem_take_ends(const Array<const double, 1>& values, double low, double high,
                                     const Array<double, 1>& below, const Array<double, 1>& above,
                                     const Array<int64_t, 1>& counts) {
    const int64_t n = values.shape[0];
    VNLEM_CHECK(below.shape[0] >= n && above.shape[0] >= n);
    const double* const from = values.data;
    int64_t few = 0, many = 0, i = 0;
    const auto take = [&](double value) {
        if (value <= low) below[few++] = value;
        if (value >= high) above[many++] = value;
    };
    for (; i + kWide <= n; i += kWide) {
        const Wide v = load<kWide>(from + i);
        const Vector<int64_t, kWide> taken = (v <= spread<kWide>(low)) | (v >= spread<kWide>(high));
        if (total<kWide, int64_t>(taken))
            for (int lane = 0; lane < kWide; lane++) take(v[lane]);
    }
    for (; i < n; i++) take(from[i]);
    counts[0] = few;
    counts[1] = many;
    return 0;
}

VNLEM_EXPORT int64_t vnlem_sum_powers(const Array<const double, 1>& values, double about,
                                      const Array<double, 1>& sums) {
    const int64_t n = values.shape[0];
    Wide first = {}, second = {};
    int64_t i = 0;
    for (; i + kWide <= n; i += kWide) {
        const Wide apart = load<kWide>(&values.data[i]) - spread<kWide>(about);
        first += apart;
        second += apart * apart;
    }
    sums[0] = total<kWide, double>(first);
    sums[1] = total<kWide, double>(second);
    for (; i < n; i++) {
        sums[0] += values[i] - about;
        sums[1] += (values[i] - about) * (values[i] - about);
    }
    return 0;
}

}  // namespace vnlem
