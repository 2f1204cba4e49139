// Correlation of a patch with the candidates of a window.
//
// A panel is some rows of kWide candidates, whose sums stay in registers.
#include "correlation.h"

#include "unroll.h"

namespace vnlem {

namespace {

// As many rows as leave registers for the taps of a column.
constexpr int kMostRows = kRegisters == 32 ? 8 : 6;
constexpr int kMostTaps = 8;

// Add the products with kTaps rows of a patch to the sums of kRows rows of candidates, or to zero if these are the
// first. Column by column: an image row is loaded once for all taps that it meets.
template <int kTaps, int kRows>
void add_products(const float* pixels, const float* patch, int64_t stride, int64_t side, bool first, Wide* sums) {
    Wide sum[kRows];
    unroll<kRows>([&](auto a) { sum[a] = first ? Wide{} : sums[a]; });
    for (int64_t x = 0; x < side; x++) {
        Wide taps[kTaps];
        unroll<kTaps>([&](auto v) { taps[v] = spread<kWide>(patch[v * stride + x]); });
        unroll<kTaps + kRows - 1>([&](auto y) {
            const Wide value = load<kWide>(pixels + y * stride + x);
            unroll<kRows>([&](auto a) {
                constexpr int v = decltype(y)::value - decltype(a)::value;
                if constexpr (0 <= v && v < kTaps) sum[a] += taps[v] * value;
            });
        });
    }
    unroll<kRows>([&](auto a) { sums[a] = sum[a]; });
}

typedef void (*AddProducts)(const float*, const float*, int64_t, int64_t, bool, Wide*);
template <int... kCase>
inline AddProducts add_products_for(int64_t taps, int64_t rows, std::integer_sequence<int, kCase...>) {
    static constexpr AddProducts table[] = {add_products<kCase / kMostRows + 1, kCase % kMostRows + 1>...};
    return table[(taps - 1) * kMostRows + rows - 1];
}

// begin(0) = 0, ..., begin(parts) = length: parts of about equal length, none longer than `most`.
struct Parts {
    int64_t length, count;
    Parts(int64_t length, int64_t most) : length(length), count((length + most - 1) / most) {}
    int64_t begin(int64_t part) const { return part * length / count; }
};

}  // namespace

void rank_shifted(const SearchWindow& given_window, const PatchShape& given_shape, const float* reference, float norm,
                  int64_t lanes, const Array<float, 1>& given_values) {
    // Copies: the compiler then knows that no store can change them.
    const SearchWindow window = given_window;
    const PatchShape shape = given_shape;
    const Array<float, 1> values = given_values;
    const Parts rows(window.rows, kMostRows), strips(shape.side, kMostTaps);
    const int64_t end = rounded_up(window.columns, kWide);
    for (int64_t panel = 0; panel < rows.count; panel++) {
        const int64_t top = rows.begin(panel), height = rows.begin(panel + 1) - top;
        for (int64_t left = 0; left < end; left += kWide) {
            Wide sums[kMostRows];
            for (int64_t plane = 0; plane < shape.planes; plane++) {
                for (int64_t strip = 0; strip < strips.count; strip++) {
                    const int64_t row = strips.begin(strip), taps = strips.begin(strip + 1) - row;
                    const int64_t at = plane * shape.plane_step + row * shape.stride;
                    add_products_for(taps, height, std::make_integer_sequence<int, kMostTaps * kMostRows>())(
                        window.pixels + top * shape.stride + left + at, reference + at, shape.stride, shape.side,
                        plane == 0 && strip == 0, sums);
                }
            }
            for (int64_t a = 0; a < height; a++) {
                const Wide value = squared_distance(window.energy + (top + a) * shape.stride + left, norm, sums[a],
                                                    window.columns - left);
                store<kWide, float>(values.data + (top + a) * lanes + left, value);
            }
        }
    }
    for (int64_t y = 0; y < window.rows; y++)
        for (int64_t x = end; x < lanes; x++) values[y * lanes + x] = INFINITY;
    for (int64_t i = window.rows * lanes; i < values.shape[0]; i++) values[i] = INFINITY;
}

}  // namespace vnlem
