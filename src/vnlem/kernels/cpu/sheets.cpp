// Fill the images of a tile, and write the result back into the image: see sheets.py.
#include "sheets.h"

#include "scratch.h"

namespace vnlem {

struct CutPlace {
    int64_t top, left, height, width, first;
};

struct Totals {
    Array<float, 4> changes;
    Array<float, 3> weights, next_weights;
};

struct TilePlace {
    int64_t top, left, height, width;
};

VNLEM_EXPORT int64_t vnlem_cut(const Images& images, const Array<const float, 1>& weights, const CutPlace& place,
                               const Tall& tall) {
    const bool varies = images.variance.shape[2] > 1;
    for (int64_t c = 0; c < images.noisy.shape[0]; c++) {
        const float weight = weights[c];
        for (int64_t y = 0; y < place.height; y++) {
            const int64_t from = place.top + y, to = place.first + y;
            const float* const noisy = &images.noisy(c, from, place.left);
            const float* const working = &images.working(c, from, place.left);
            const float* const pilot = &images.pilot(c, from, place.left);
            float* const to_working = &tall.working(c, to, 0);
            float* const to_pilot = &tall.pilot(c, to, 0);
            float* const to_change = &tall.change(c, to, 0);
            float* const to_compared = &tall.compared(c, to, 0);
            float* const to_variance = &tall.variance(c, to, 0);
            for (int64_t x = 0; x < place.width; x++) {
                const float difference = noisy[x] - working[x];
                to_change[x] = difference * difference;
                to_working[x] = working[x];
            }
            for (int64_t x = 0; x < place.width; x++) {
                to_pilot[x] = pilot[x];
                to_compared[x] = weight * pilot[x];
            }
            for (int64_t x = 0; x < place.width; x++)
                to_variance[x] = varies ? images.variance(c, from, place.left + x) : images.variance(c, 0, 0);
            float* const rows[] = {to_working, to_pilot, to_change, to_compared, to_variance};
            for (float* const row : rows)
                for (int64_t x = place.width; x < tall.pilot.shape[2]; x++) row[x] = 0;
        }
    }
    return 0;
}

namespace {

void join(const Sums& tile, const TilePlace& place, const Totals& total) {
    const int64_t n_channels = total.weights.shape[0], n_rows = total.weights.shape[1];
    const int64_t n_columns = total.weights.shape[2];
    const int64_t left = larger_of<int64_t>(0, -place.left), right = smaller_of(place.width, n_columns - place.left);
    for (int64_t c = 0; c < n_channels; c++) {
        for (int64_t y = 0; y < place.height; y++) {
            const Array<float, 2> changes = tile.changes[c][y];
            const Array<float, 1> weights = tile.weights[c][y];
            const int64_t row = place.top + y;
            if (0 <= row && row < n_rows && left < right) {
                float* const to_changes = &total.changes(c, row, place.left + left, 0);
                float* const to_weights = &total.weights(c, row, place.left + left);
                const float* const from_changes = changes.data + 2 * left;
                const float* const from_weights = weights.data + left;
                for (int64_t x = 0; x < 2 * (right - left); x++) to_changes[x] += from_changes[x];
                for (int64_t x = 0; x < right - left; x++) to_weights[x] += from_weights[x];
            }
            changes.fill(0);
            weights.fill(0);
        }
    }
}

// Change the pixels of a row; count those that no patch covers.
int64_t finish(const Totals& total, const Array<const float, 1>& taps, const Tile& place, const Images& images,
               const Array<float, 2>& scratch) {
    const int64_t patch_size = taps.shape[0];
    const Array<float, 1> column_sums = scratch[0];
    float* const sums = scratch[1].data;
    const int64_t begin = larger_of<int64_t>(place.left - patch_size + 1, 0), width = place.right - place.left;
    int64_t missing = 0;
    for (int64_t c = 0; c < total.weights.shape[0]; c++) {
        for (int64_t y = place.top; y < place.bottom; y++) {
            // A pixel's weight is the sum over all patches that cover it: their corners lie above and to the left.
            column_sums.fill(0);
            float* const into = column_sums.data + patch_size - 1 - (place.left - begin);
            for (int64_t corner = larger_of<int64_t>(y - patch_size + 1, 0); corner <= y; corner++) {
                const float* const line = &total.weights(c, corner, begin);
                const float tap = taps[y - corner];
                for (int64_t x = 0; x < place.right - begin; x++) into[x] += tap * line[x];
            }
            for (int64_t x = 0; x < width; x++) sums[x] = 0;
            for (int64_t shift = 0; shift < patch_size; shift++)
                for (int64_t x = 0; x < width; x++) sums[x] += taps[shift] * column_sums.data[x + shift];
            const float* const changes = &total.changes(c, y, place.left, 0);
            float* const pilot = &images.pilot(c, y, place.left);
            float* const working = &images.working(c, y, place.left);
            for (int64_t x = 0; x < width; x++) {
                missing += !(sums[x] > 0);
                const float old = working[x];
                pilot[x] = old + changes[2 * x] / sums[x];
                working[x] = old + changes[2 * x + 1] / sums[x];
            }
        }
    }
    return missing;
}

// Clear the sums for the next pass, once the changes are applied.
void clear(const Totals& total, const Tile& place) {
    for (int64_t c = 0; c < total.weights.shape[0]; c++) {
        for (int64_t y = place.top; y < place.bottom; y++) {
            total.changes[c][y].part(place.left, place.right).fill(0);
            total.next_weights[c][y].part(place.left, place.right).fill(0);
        }
    }
}

struct RowSums {
    Array<float, 2> rows;
    RowSums(Arena& arena, int64_t length) : rows(arena.empty<float>(2, length)) {}
};

struct PatchSums {
    Array<double, 2> rows;
    PatchSums(Arena& arena, int64_t length) : rows(arena.empty<double>(2, length)) {}
};

}  // namespace

VNLEM_EXPORT int64_t vnlem_sum_patches(const Array<const float, 3>& planes, int64_t patch_size, int64_t squared,
                                       const Array<double, 3>& sums) {
    const int64_t rows = planes.shape[1], columns = planes.shape[2];
    Scratch<PatchSums> scratch(columns);
    if (!scratch) return kOutOfMemory;
    for (int64_t c = 0; c < planes.shape[0]; c++) {
        const Array<const float, 3> plane = {planes[c].data, {1, rows, columns}};
        if (squared)
            patch_squares(plane, patch_size, scratch->rows, sums[c]);
        else
            patch_sums(plane, patch_size, scratch->rows, sums[c]);
    }
    return 0;
}

VNLEM_EXPORT int64_t vnlem_settle(const Sums& tile, const TilePlace& place, const Totals& total,
                                  const Array<const float, 1>& taps, const Tile& done, const Tile& needed, const Images& images) {
    const Tile changed = {larger_of(done.top, needed.top), smaller_of(done.bottom, needed.bottom),
                               larger_of(done.left, needed.left), smaller_of(done.right, needed.right)};
    Scratch<RowSums> scratch(larger_of<int64_t>(changed.right - changed.left, 0) + taps.shape[0]);
    if (!scratch) return kOutOfMemory;
    join(tile, place, total);
    int64_t missing = 0;
    if (changed.right > changed.left) missing = finish(total, taps, changed, images, scratch->rows);
    if (done.bottom > done.top && done.right > done.left) clear(total, done);
    return missing;
}

}  // namespace vnlem
