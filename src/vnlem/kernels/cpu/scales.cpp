// Filters along the rows and the columns of planes: see scales.py. Compiled without fused multiply-adds: every product
// and every sum is rounded separately, as on a GPU.
#include "scratch.h"

namespace vnlem {

struct Taps {
    Array<const double, 2> weights;
    Array<const int32_t, 2> steps;
    int64_t halves;
    double divisor;
};

namespace {

// The pixel that a mirror at either border of a line shows at i.
int64_t mirrored(int64_t i, int64_t count) {
    const int64_t period = ((i % (2 * count)) + 2 * count) % (2 * count);
    return period < count ? period : 2 * count - 1 - period;
}

struct Lines {
    Array<double, 1> sums, line;
    Lines(Arena& arena, int64_t out_width, int64_t width, int64_t reach)
        : sums(arena.empty<double>(out_width)), line(arena.empty<double>(width + 2 * reach)) {}
};

// sums[x] += weight * the pixel of a line, or the sum of two, that belongs to x. kStep: from each to the next.
template <int kStep>
void add(double weight, const double* first, const double* second, int64_t count, double* sums) {
    if (second) {
        for (int64_t x = 0; x < count; x++) sums[x] += weight * (first[kStep * x] + second[kStep * x]);
    } else {
        for (int64_t x = 0; x < count; x++) sums[x] += weight * first[kStep * x];
    }
}

}  // namespace

VNLEM_EXPORT int64_t vnlem_filter_planes(const Array<const double, 3>& planes, const Taps& down, const Taps& across,
                                         const Array<double, 3>& out) {
    const int64_t height = planes.shape[1], width = planes.shape[2], out_width = out.shape[2];
    const int64_t phases = across.weights.shape[0], step = across.halves ? 2 : 1;
    int64_t reach = 0;
    for (int64_t k = 0; k < across.steps.size(); k++)
        reach = larger_of<int64_t>(reach, 2 + (across.steps.data[k] < 0 ? -across.steps.data[k] : across.steps.data[k]));
    Scratch<Lines> scratch(out_width, width, reach);
    if (!scratch) return kOutOfMemory;
    double *const sums = scratch->sums.data, *const line = scratch->line.data + reach;
    for (int64_t c = 0; c < planes.shape[0]; c++) {
        for (int64_t y = 0; y < out.shape[1]; y++) {
            const int64_t phase_y = y % down.weights.shape[0], at = y / down.weights.shape[0] * (down.halves ? 2 : 1);
            for (int64_t x = 0; x < width; x++) line[x] = 0;
            for (int64_t k = 0; k < down.weights.shape[1]; k++) {
                const int64_t shift = down.steps(phase_y, k);
                const double* const first = &planes(c, mirrored(down.halves ? at - shift : at + shift, height), 0);
                const double* const second = down.halves ? &planes(c, mirrored(at + 1 + shift, height), 0) : nullptr;
                add<1>(down.weights(phase_y, k), first, second, width, line);
            }
            for (int64_t x = 0; x < width; x++) line[x] /= down.divisor;
            for (int64_t x = 0; x < reach; x++) {
                line[-1 - x] = line[mirrored(-1 - x, width)];
                line[width + x] = line[mirrored(width + x, width)];
            }
            for (int64_t phase = 0; phase < phases; phase++) {
                const int64_t count = (out_width - phase + phases - 1) / phases;
                for (int64_t x = 0; x < count; x++) sums[x] = 0;
                for (int64_t k = 0; k < across.weights.shape[1]; k++) {
                    const int64_t shift = across.steps(phase, k);
                    const double weight = across.weights(phase, k);
                    if (step == 2) add<2>(weight, line - shift, line + 1 + shift, count, sums);
                    else add<1>(weight, line + shift, nullptr, count, sums);
                }
                double* const to = &out(c, y, 0) + phase;
                for (int64_t x = 0; x < count; x++) to[phases * x] = sums[x] / across.divisor;
            }
        }
    }
    return 0;
}

}  // namespace vnlem
