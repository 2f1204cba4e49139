// Block matching in the sheets of a tile: see match.py.
#include "candidates.h"
#include "sheets.h"

namespace vnlem {

struct GroupSearch {
    int64_t transforms;
    Array<const float, 1> weights;
    Array<const int64_t, 2> sheets;
    int64_t n_full, n_copied, patch_size, radius;
    double factor, penalty, flat_energy;
    Array<const uint8_t, 2> moves;
};

namespace {

struct Buffers {
    Array<float, 2> energy;  // squared norms of the patches; infinite if there is none
    Array<float, 2> level, contrast;  // as in `SearchWindow`
    Array<double, 2> sums;
    Array<SearchWindow, 1> windows;
    Ranks ranks;

    Buffers(Arena& arena, const PatchShape& shape, const MatchRule& rule, int64_t rows, int64_t windows,
            int64_t members)
        : energy(arena.empty<float>(rows, shape.stride)),
          level(arena.zeros<float>(rows, shape.stride)),
          contrast(arena.zeros<float>(rows, shape.stride)),
          sums(arena.empty<double>(2, shape.stride)),
          windows(arena.empty<SearchWindow>(windows)),
          ranks(arena, shape, rule, windows, members) {}
};

// A patch that reaches outside its sheet's image is no candidate.
void leave_out_hidden(const Array<uint8_t, 2>& outside, int64_t patch_size, const Array<float, 2>& energy) {
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

// Squared norms and invariants of all patches.
void prepare(const Tall& tall, int64_t patch_size, const Buffers& buffers) {
    buffers.energy.fill(INFINITY);
    patch_squares(tall.compared, patch_size, buffers.sums, buffers.energy);
    patch_sums(tall.compared, patch_size, buffers.sums, buffers.level);
    const float scale = float(1 / (double(patch_size) * std::sqrt(double(tall.compared.shape[0]))));
    for (int64_t y = 0; y + patch_size <= buffers.level.shape[0]; y++) {
        const float* const energy = buffers.energy[y].data;
        float* const level = buffers.level[y].data;
        float* const contrast = buffers.contrast[y].data;
        for (int64_t x = 0; x + patch_size <= buffers.level.shape[1]; x++) {
            level[x] *= scale;
            const float rest = energy[x] - level[x] * level[x];
            contrast[x] = std::sqrt(rest > 0 ? rest : 0.0f);
        }
    }
    leave_out_hidden(tall.outside, patch_size, buffers.energy);
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

// The penalty on the rank of a turned member of this group.
float penalty_of(const Tall& tall, const GroupSearch& search, int64_t top, int64_t left) {
    const int64_t side = search.patch_size, stride = tall.compared.shape[2];
    double noise = 0;
    for (int64_t c = 0; c < tall.pilot.shape[0]; c++) {
        const double weight = search.weights[c];
        noise += sum_over(&tall.variance(c, top, left), stride, side, [](double v) { return v; }) * weight * weight;
    }
    if (search.flat_energy > 0) {
        double energy = 0;
        for (int64_t plane = 0; plane < tall.compared.shape[0]; plane++) {
            const float* const patch = &tall.compared(plane, top, left);
            const double mean = sum_over(patch, stride, side, [](double v) { return v; }) / double(side * side);
            energy += sum_over(patch, stride, side, [=](double v) { return (v - mean) * (v - mean); });
        }
        if (energy < search.flat_energy * noise) return INFINITY;
    }
    return float(search.penalty * noise);
}

}  // namespace

VNLEM_EXPORT int64_t vnlem_match_tile(const Tall& tall, const GroupSearch& search, const Array<const int64_t, 2>& references,
                                      const Array<const int64_t, 3>& corners, const Array<int32_t, 2>& positions,
                                      const Array<uint8_t, 2>& chosen) {
    const Array<const float, 3> image = tall.compared;
    const int64_t n_sheets = search.sheets.shape[0], stride = image.shape[2], members = positions.shape[1];
    const PatchShape shape = {search.patch_size, image.shape[0], stride, image.step()};
    const MatchRule rule(search.radius, search.transforms, search.n_full, search.n_copied, search.factor,
                         search.moves);
    Scratch<Buffers> scratch(shape, rule, image.shape[1], n_sheets, members);
    if (!scratch) return kOutOfMemory;
    const Buffers& buffers = *scratch;
    prepare(tall, search.patch_size, buffers);
    Matcher matcher(shape, rule, buffers.ranks);
    for (int64_t r = 0; r < references.shape[0]; r++) {
        const int64_t top = references(r, 0), left = references(r, 1);
        for (int64_t sheet = 0; sheet < n_sheets; sheet++) {
            const int64_t y = corners(r, sheet, 0), x = corners(r, sheet, 1);
            const int64_t rows = search.sheets(sheet, 1), columns = search.sheets(sheet, 2);
            VNLEM_CHECK(y + rows + shape.side - 1 <= image.shape[1]);
            VNLEM_CHECK(x + rounded_up(columns, kWide) + shape.side - 1 <= stride);
            buffers.windows[sheet] = {&image(0, y, x), &buffers.energy(y, x), &buffers.level(y, x),
                                      &buffers.contrast(y, x), rows, columns, y * stride + x,
                                      sheet >= search.n_full && search.sheets(sheet, 3)};
        }
        const bool moves = search.transforms > 1 || n_sheets > search.n_full;
        const int64_t own = (top - corners(r, 0, 0)) * buffers.ranks.lanes + left - corners(r, 0, 1);
        matcher.match({&image(0, top, left), buffers.energy(top, left), buffers.level(top, left),
                       buffers.contrast(top, left), moves ? penalty_of(tall, search, top, left) : INFINITY, own,
                       top % rule.cell * rule.cell + left % rule.cell},
                      buffers.windows);
        matcher.write(buffers.windows, positions[r], chosen[r]);
    }
    return 0;
}

}  // namespace vnlem
