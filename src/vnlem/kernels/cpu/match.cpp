// Block matching in the sheets of a tile, or in the planes of a stack: see match.py.
#include "candidates.h"
#include "sheets.h"

namespace vnlem {

struct Field {
    Array<const float, 4> image, measures;
    int64_t transforms, patch_size, depth, radius, n_full, n_copied;
    double factor, penalty, flat_energy;
    Array<const uint8_t, 2> moves;
};

namespace {

struct Buffers {
    Array<SearchWindow, 1> windows;
    Ranks ranks;

    Buffers(Arena& arena, const PatchShape& shape, const MatchRule& rule, int64_t windows, int64_t members)
        : windows(arena.empty<SearchWindow>(windows)), ranks(arena, shape, rule, windows, members) {}
};

struct SumRows {
    Array<double, 2> rows;
    SumRows(Arena& arena, int64_t stride) : rows(arena.empty<double>(2, stride)) {}
};

// A patch that reaches outside its sheet's image is no candidate.
void leave_out_hidden(const Array<const uint8_t, 2>& outside, int64_t patch_size, const Array<float, 2>& energy) {
    uint8_t hidden = 0;
    for (int64_t i = 0, count = outside.size(); i < count; i++) hidden |= outside.data[i];
    if (!hidden) return;
    const int64_t last = patch_size - 1;
    for (int64_t y = 0; y + last < energy.shape[0]; y++)
        for (int64_t x = 0; x + last < energy.shape[1]; x++)
            // A sheet shows a convex part of its image: a patch whose corners are inside is inside.
            if (outside(y, x) | outside(y + last, x) | outside(y, x + last) | outside(y + last, x + last))
                energy(y, x) = INFINITY;
}

// The sum of f(pixel) over a patch, row by row.
template <class Function>
double sum_over(const float* patch, int64_t stride, int64_t side, Function f) {
    double sum = 0;
    for (int64_t y = 0; y < side; y++) {
        double of_row = 0;
        for (int64_t x = 0; x < side; x++) of_row += f(double(patch[y * stride + x]));
        sum += of_row;
    }
    return sum;
}

// The energy of a patch about the means of its channels.
double energy_about_mean(const float* patch, const PatchShape& shape) {
    const double pixels = double(shape.side * shape.side * shape.planes / shape.channels);
    double energy = 0;
    for (int64_t c = 0; c < shape.channels; c++) {
        const auto sum = [&](auto f) {
            double total = 0;
            for (int64_t plane = c; plane < shape.planes; plane += shape.channels)
                total += sum_over(patch + plane * shape.plane_step, shape.stride, shape.side, f);
            return total;
        };
        const double mean = sum([](double v) { return v; }) / pixels;
        energy += sum([=](double v) { return (v - mean) * (v - mean); });
    }
    return energy;
}

}  // namespace

VNLEM_EXPORT int64_t vnlem_measure_patches(const Array<const float, 4>& image, int64_t patch_size, int64_t depth,
                                           int64_t plane, const Array<const uint8_t, 2>& outside,
                                           const Array<float, 4>& measures) {
    const int64_t layers = depth * image.shape[1], rows = image.shape[2], stride = image.shape[3];
    const Array<float, 2> energy = measures[0][plane], level = measures[1][plane], contrast = measures[2][plane];
    Scratch<SumRows> scratch(stride);
    if (!scratch) return kOutOfMemory;
    VNLEM_CHECK(plane + depth <= image.shape[0]);
    const Array<const float, 3> pixels = array_at(image[plane].data, layers, rows, stride);
    energy.fill(INFINITY);
    level.fill(0);
    contrast.fill(0);
    patch_squares(pixels, patch_size, scratch->rows, energy);
    patch_sums(pixels, patch_size, scratch->rows, level);
    const float scale = float(1 / (double(patch_size) * std::sqrt(double(layers))));
    for (int64_t y = 0; y + patch_size <= rows; y++) {
        const float* const squares = energy[y].data;
        float* const constant = level[y].data;
        float* const others = contrast[y].data;
        for (int64_t x = 0; x + patch_size <= stride; x++) {
            constant[x] *= scale;
            const float rest = squares[x] - constant[x] * constant[x];
            others[x] = std::sqrt(rest > 0 ? rest : 0.0f);
        }
    }
    leave_out_hidden(outside, patch_size, energy);
    return 0;
}

VNLEM_EXPORT int64_t vnlem_match_tile(const Field& field, const Array<const int64_t, 1>& references,
                                      const Array<const int64_t, 3>& windows, const Array<const double, 1>& noise,
                                      const Array<int32_t, 2>& positions, const Array<uint8_t, 2>& chosen) {
    const int64_t channels = field.image.shape[1], stride = field.image.shape[3], n_windows = windows.shape[1];
    const int64_t plane_size = field.image.shape[2] * stride;
    const PatchShape shape = {field.patch_size, field.depth * channels, stride, plane_size, channels};
    const MatchRule rule(field.radius, field.transforms, field.n_full, field.n_copied, field.factor, field.moves);
    Scratch<Buffers> scratch(shape, rule, n_windows, positions.shape[1]);
    if (!scratch) return kOutOfMemory;
    const Buffers& buffers = *scratch;
    const float *const energy = field.measures[0].data, *const level = field.measures[1].data;
    const float* const contrast = field.measures[2].data;
    const bool moves = field.transforms > 1 || n_windows > field.n_full;
    const auto pixels_at = [&](int64_t at) { return field.image[at / plane_size].data + at % plane_size; };
    Matcher matcher(shape, rule, buffers.ranks);
    for (int64_t r = 0; r < references.shape[0]; r++) {
        const int64_t at = references[r], away = at - windows(r, 0, 0);
        for (int64_t w = 0; w < n_windows; w++) {
            const Array<const int64_t, 1> window = windows[r][w];
            const int64_t first = window[0], rows = window[1], columns = window[2];
            VNLEM_CHECK(first / stride % field.image.shape[2] + rows + shape.side - 1 <= field.image.shape[2]);
            VNLEM_CHECK(first % stride + rounded_up(columns, kWide) + shape.side - 1 <= stride);
            buffers.windows[w] = {pixels_at(first), energy + first, level + first, contrast + first,
                                  rows, columns, first, window[3] != 0};
        }
        const float* const pixels = pixels_at(at);
        float penalty = moves ? float(field.penalty * noise[r]) : INFINITY;
        if (moves && field.flat_energy > 0 && energy_about_mean(pixels, shape) < field.flat_energy * noise[r])
            penalty = INFINITY;
        matcher.match({pixels, energy[at], level[at], contrast[at], penalty,
                       away / stride * buffers.ranks.lanes + away % stride,
                       at / stride % rule.cell * rule.cell + at % stride % rule.cell},
                      buffers.windows);
        matcher.write(buffers.windows, positions[r], chosen[r]);
    }
    return 0;
}

}  // namespace vnlem
