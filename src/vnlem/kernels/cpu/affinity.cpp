// Weights of the patch graph: see affinity.py.
#include "elementary.h"
#include "stencil.h"
#include "windows.h"

namespace vnlem {
namespace {

// Pixels of a row processed together; rows are padded to whole groups of eight.
constexpr int kWide = smaller_of(kLanes, 8);

// to[b * step + a] = factor * from[a][b] for a, b < 8.
__attribute__((noinline, flatten)) void store_square(const float* const* from, float factor, float* to, int64_t step) {
    Floats<8> rows[8];
    unrolled<8>([&](int a) { rows[a] = factor * load<8>(from[a]); });
    transpose(rows);
    unrolled<8>([&](int a) { store<8>(to + a * step, rows[a]); });
}

// Copy the windows of a span to their slots. A window stores the slots of a pixel side by side, the weights store the
// pixels of a slot side by side: squares of eight by eight are transposed.
void store_windows(const Span& span, const Windows& windows, float factor, const PaddedSize& size,
                   const Array<float, 3>& weights) {
    const int64_t reach = span.reach, whole = reach >= 8 ? span.pixels / 8 * 8 : 0;
    const float* own[kPixels];
    for (int64_t p = 0; p < span.pixels; p++) own[p] = windows.distances[p].data + windows.own(span, p);
    for (int64_t dy = 0; dy < span.bottom - span.top; dy++) {
        const int64_t line = dy * windows.columns, leftmost = dy ? -reach : 1;
        float* const to = &weights(span.y + reach, size.slot(dy, leftmost), span.x + reach);
        for (int64_t step = leftmost; whole && step <= reach; step += 8) {
            // The last square begins earlier and writes some slots twice.
            const int64_t dx = smaller_of(step, reach - 7);
            for (int64_t p = 0; p < whole; p += 8) {
                const float* from[8];
                for (int a = 0; a < 8; a++) from[a] = own[p + a] + line + dx;
                store_square(from, factor, to + (dx - leftmost) * size.stride + p, size.stride);
            }
        }
        for (int64_t p = whole; p < span.pixels; p++)
            for (int64_t dx = leftmost; dx <= reach; dx++)
                to[(dx - leftmost) * size.stride + p] = factor * own[p][line + dx];
    }
}

}  // namespace

VNLEM_EXPORT int64_t vnlem_half_windows(const Features& region, const Rule& rule, int64_t top, int64_t bottom,
                                        int64_t left, int64_t right, double factor, const PaddedSize& size,
                                        const Array<float, 3>& weights) {
    const int64_t reach = size.reach;
    Scratch<Windows> windows(reach);
    if (!windows) return kOutOfMemory;
    for (int64_t y = top; y < bottom; y++) {
        const int64_t last = smaller_of(y + reach + 1, region.height());
        for (int64_t x = left; x < right; x += kPixels) {
            const Span span = {y, x, smaller_of(kPixels, right - x), y, last, reach, region.width};
            search_windows(region, rule, span, *windows);
            store_windows(span, *windows, float(factor), size, weights);
        }
    }
    return 0;
}

namespace {

// The distances of kWide pixels to all others of their windows.
struct Around {
    Array<int32_t, 2> bits;  // (others, kWide): bits of floats; those of non-negative floats sort like the floats
    Around(Arena& arena, const PaddedSize& size) : bits(arena.empty<int32_t>(size.side() * size.side() - 1, kWide)) {}
};

// The count-th smallest number of each lane, or the largest finite one if there are fewer.
Ints<kWide> smallest_of_lanes(const Array<int32_t, 2>& bits, int32_t count) {
    typedef Ints<kWide> Lanes;
    const int64_t n = bits.shape[0];
    const Lanes infinity = Lanes{} + 0x7F800000;
    Lanes low = infinity, high = {}, finite = {};
    for (int64_t c = 0; c < n; c++) {
        const Lanes value = load<kWide>(bits.data + c * kWide);
        const Lanes is_finite = value < infinity;
        finite -= is_finite;
        low = smaller(low, value);
        high = larger(high, value & is_finite);
    }
    const Lanes wanted = smaller(finite, Lanes{} + count);
    // Fewer than `wanted` numbers are at most `low`; at least `wanted` are at most `high`.
    low -= 1;
    Lanes up_to_high = finite;
    while (total<kWide, int32_t>((high - low > 1) & (up_to_high != wanted)) != 0) {
        const Lanes middle = low + (high - low) / 2;
        Lanes up_to = {};
        for (int64_t c = 0; c < n; c++) up_to -= load<kWide>(bits.data + c * kWide) <= middle;
        const Lanes enough = up_to >= wanted;
        high = enough ? middle : high;
        up_to_high = enough ? up_to : up_to_high;
        low = enough ? low : middle;
    }
    Lanes found = {};
    for (int64_t c = 0; c < n; c++) {
        const Lanes value = load<kWide>(bits.data + c * kWide);
        found = larger(found, value & (value <= high));
    }
    return found & (wanted > 0);
}

}  // namespace

VNLEM_EXPORT int64_t vnlem_local_scales(const Array<const float, 3>& squared, const PaddedSize& size, double noise,
                                        int64_t count, int64_t first, int64_t last, const Array<float, 1>& out) {
    Scratch<Around> around(size);
    if (!around) return kOutOfMemory;
    const int64_t reach = size.reach;
    Ints<kWide> lane;
    for (int k = 0; k < kWide; k++) lane[k] = k;
    for (int64_t y = first; y < last; y++) {
        for (int64_t x = 0; x < size.width; x += kWide) {
            const float* const own = squared.data + size.weights_at(y) + x;
            int32_t* to = around->bits.data;
            for (int64_t dy = -reach; dy <= reach; dy++) {
                const bool is_inside = 0 <= y + dy && y + dy < size.height;
                for (int64_t dx = -reach; dx <= reach; dx++) {
                    if (dy == 0 && dx == 0) continue;
                    const Floats<kWide> value = load<kWide>(own + size.weight_of(dy, dx)) - float(noise);
                    const Floats<kWide> corrected = larger(value, Floats<kWide>{});
                    Ints<kWide> bits;
                    std::memcpy(&bits, &corrected, sizeof bits);
                    const Ints<kWide> column = lane + int32_t(x + dx);
                    const Ints<kWide> known = (column >= 0) & (column < int32_t(size.width)) & -int32_t(is_inside);
                    store<kWide>(to, known ? bits : Ints<kWide>{} + 0x7F800000);
                    to += kWide;
                }
            }
            const Ints<kWide> found = smallest_of_lanes(around->bits, int32_t(count));
            std::memcpy(&out[size.at(y, x)], &found, sizeof found);
        }
    }
    return 0;
}

VNLEM_EXPORT int64_t vnlem_gaussian_weights(const Array<float, 3>& weights, const PaddedSize& size,
                                            const Array<const float, 1>& inverse_scales, double noise, int64_t first,
                                            int64_t last) {
    const Floats<kWide> zero = {};
    const float subtracted = float(noise);
    const int64_t reach = size.reach, width = size.width;
    for (int64_t y = first; y < last; y++) {
        const float* const here = &inverse_scales[size.at(y, 0)];
        for (int64_t dy = 0; dy <= reach; dy++) {
            for (int64_t dx = dy ? -reach : 1; dx <= reach; dx++) {
                const float* const there = here + dy * size.stride + dx;
                float* const own = &weights(y + reach, size.slot(dy, dx), reach);
                for (int64_t x = 0; x < width; x += kWide) {
                    const Floats<kWide> inverse = load<kWide>(here + x) * load<kWide>(there + x);
                    const Floats<kWide> corrected = larger(load<kWide>(own + x) - subtracted, zero);
                    store<kWide>(own + x, inverse > zero ? exp_negative(corrected * inverse) : zero);
                }
            }
        }
        float* const itself = &weights(y + reach, size.n_forward(), reach);
        for (int64_t x = 0; x < width; x++) itself[x] = 1;
    }
    return 0;
}

}  // namespace vnlem
