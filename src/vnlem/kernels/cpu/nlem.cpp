// Non-local patch regression of one tile: nearest patches of the window, then IRLS over whole patches. See nlem.py.
#include <cmath>
#include <cstring>

#include "../shared/regression.h"
#include "irls.h"
#include "patch_distance.h"
#include "select.h"

namespace vnlem {

struct Regression {
    int64_t n_neighbors;
    double gamma, remainder;
};

namespace {

constexpr int64_t kSide = 16;  // pixels a side that share one table of patches

struct Buffers {
    Array<float, 3> distances;  // (pixels of a window, rows, columns)
    DistanceRows rows;
    Array<float, 2> near;   // distances to the window of some pixels of a row
    Array<float, 2> table;  // patches, padded with zeros to whole vectors
    Array<int64_t, 1> shift, index;
    Array<int32_t, 1> chosen;
    Array<float, 1> weights, squared, terms, point, sums;

    // One column more than needed: offsets a power of two apart would crowd a few cache sets.
    Buffers(Arena& arena, const Tile& tile, const Window& window, int64_t n_neighbors, int64_t window_area,
            int64_t length)
        : distances(arena.empty<float>(window_area, tile.bottom - tile.top, tile.right - tile.left + 1)),
          rows(arena, tile.right - tile.left + 2 * window.reach_x, window),
          near(arena.empty<float>(kSide, window_area)),
          table(arena.zeros<float>((kSide + 2 * window.reach_y) * (kSide + 2 * window.reach_x), length)),
          shift(arena.empty<int64_t>(window_area)),
          index(arena.empty<int64_t>(n_neighbors)),
          chosen(arena.empty<int32_t>(n_neighbors + kBlock)),
          weights(arena.zeros<float>(whole_vectors(n_neighbors))),
          squared(arena.empty<float>(n_neighbors)),
          terms(arena.empty<float>(n_neighbors)),
          point(arena.zeros<float>(length)),
          sums(arena.zeros<float>(length)) {}
};

// distances[o, y, x] = squared patch distance of pixel (top + y, left + x) to the o-th pixel of its window.
// Pixels of the window outside the image get infinity. A pair is computed once and written twice.
void window_distances(const Array<const float, 3>& padded, const Tile& tile, const Window& window,
                      const Buffers& scratch) {
    const int64_t height = padded.shape[1] - 2 * window.radius_y, width = padded.shape[2] - 2 * window.radius_x;
    const int64_t window_x = 2 * window.reach_x + 1, middle = window.reach_y * window_x + window.reach_x;
    const Array<float, 3>& out = scratch.distances;
    out.fill(__builtin_inff());
    out[middle].fill(0);
    const auto keep = [&](const float* row, int64_t y, int64_t left, int64_t right, int64_t offset) {
        const int64_t begin = larger_of(left, tile.left), end = smaller_of(right, tile.right);
        if (y < tile.top || y >= tile.bottom || end <= begin) return;
        std::memcpy(&out(middle + offset, y - tile.top, begin - tile.left), row + begin - left,
                    sizeof(float) * (end - begin));
    };
    for (int64_t dy = 0; dy <= window.reach_y; dy++) {
        for (int64_t dx = dy == 0 ? 1 : -window.reach_x; dx <= window.reach_x; dx++) {
            const Tile box = pairs_of_tile(tile, height, width, dy, dx);
            if (box.bottom <= box.top || box.right <= box.left) continue;
            const int64_t offset = dy * window_x + dx;
            distances_at_offset(padded, box, dy, dx, window, scratch.rows, [&](int64_t y, const float* row) {
                keep(row, y, box.left, box.right, offset);
                keep(row, y + dy, box.left + dx, box.right + dx, -offset);
            });
        }
    }
}

// The patches of some pixels, times scale, one after another; channel after channel in each.
void gather_patches(const Array<const float, 3>& padded, const Tile& pixels, const Window& window, float scale,
                    const Array<float, 2>& table) {
    const int64_t size_y = 2 * window.radius_y + 1, size_x = 2 * window.radius_x + 1;
    int64_t at = 0;
    for (int64_t y = pixels.top; y < pixels.bottom; y++) {
        for (int64_t x = pixels.left; x < pixels.right; x++) {
            float* __restrict to = table[at++].data;
            for (int64_t c = 0; c < padded.shape[0]; c++) {
                for (int64_t i = 0; i < size_y; i++, to += size_x) {
                    const float* const __restrict line = &padded(c, y + i, x);
                    for (int64_t k = 0; k < size_x; k++) to[k] = scale * line[k];
                }
            }
        }
    }
}

// Weights of the chosen patches; those too small to change a sum are left out. Returns how many there are.
int64_t weigh_chosen(const float* distances, int64_t own, int64_t count, const Decay& decay, const Buffers& scratch) {
    float* const weights = scratch.weights.data;
    for (int64_t j = 0; j < count; j++) scratch.squared[j] = weights[j] = distances[scratch.chosen[j]];
    weigh(weights, count, decay);
    int64_t kept = 0;
    for (int64_t j = 0; j < count; j++) {
        scratch.index[kept] = own + scratch.shift[scratch.chosen[j]];
        scratch.squared[kept] = scratch.squared[j];
        weights[kept] = weights[j];
        kept += weights[j] > kNegligible;
    }
    return kept;
}

}  // namespace

VNLEM_EXPORT int64_t vnlem_nlem_tile(const Array<const float, 3>& padded, const Tile& tile, const Window& window,
                                     const Decay& decay, const Regression& regression, const Array<float, 3>& out) {
    const int64_t n_channels = out.shape[0], height = out.shape[1], width = out.shape[2];
    const int64_t size_x = 2 * window.radius_x + 1, area = (2 * window.radius_y + 1) * size_x;
    const int64_t centre = window.radius_y * size_x + window.radius_x;
    const int64_t window_x = 2 * window.reach_x + 1, window_area = (2 * window.reach_y + 1) * window_x;
    const int64_t middle = window_area / 2, length = (n_channels * area + 15) / 16 * 16;
    // Channels share one squared distance, their mean.
    const float scale = float(1 / std::sqrt(double(n_channels)));
    Scratch<Buffers> scratch(tile, window, regression.n_neighbors, window_area, length);
    if (!scratch) return kOutOfMemory;
    window_distances(padded, tile, window, *scratch);
    const Patches patches{scratch->table, scratch->index.data};
    float guess = 0;
    // In blocks small enough that the patches they share stay in the second-level cache.
    for (int64_t top = tile.top; top < tile.bottom; top += kSide) {
        for (int64_t left = tile.left; left < tile.right; left += kSide) {
            const int64_t bottom = smaller_of(top + kSide, tile.bottom), right = smaller_of(left + kSide, tile.right);
            const Tile seen = {larger_of<int64_t>(0, top - window.reach_y), smaller_of(height, bottom + window.reach_y),
                               larger_of<int64_t>(0, left - window.reach_x), smaller_of(width, right + window.reach_x)};
            const int64_t stride = seen.right - seen.left;
            gather_patches(padded, seen, window, scale, scratch->table);
            for (int64_t o = 0; o < window_area; o++)
                scratch->shift[o] = (o / window_x - window.reach_y) * stride + o % window_x - window.reach_x;
            for (int64_t y = top; y < bottom; y++) {
                for (int64_t o = 0; o < window_area; o++) {
                    const float* const line = &scratch->distances(o, y - tile.top, left - tile.left);
                    for (int64_t k = 0; k < right - left; k++) scratch->near(k, o) = line[k];
                }
                for (int64_t x = left; x < right; x++) {
                    const Array<float, 1> here = scratch->near[x - left];
                    const Selected found =
                        smallest(Values(here), regression.n_neighbors, middle, guess, scratch->chosen);
                    guess = found.threshold;
                    const int64_t own = (y - seen.top) * stride + x - seen.left;
                    const int64_t count = weigh_chosen(here.data, own, found.count, decay, *scratch);
                    const float* const weights = scratch->weights.data;
                    if (regression.gamma == 1)
                        euclidean_median(patches, weights, scratch->squared.data, count, float(regression.remainder),
                                         scratch->point, scratch->sums.data, scratch->terms.data);
                    else
                        irls(patches, weights, count, float(regression.gamma), scratch->point, scratch->terms.data);
                    for (int64_t c = 0; c < n_channels; c++) out(c, y, x) = scratch->point[c * area + centre] / scale;
                }
            }
        }
    }
    return 0;
}

}  // namespace vnlem
