// Non-local means of one tile of an image, or of a plane with planes around it: see nlm.py.
#include <cstring>

#include "patch_distance.h"

namespace vnlem {

struct PiledPlanes {
    Array<const float, 3> pixels;
    int64_t height, n_planes, own;
};

namespace {

// Accumulators of the weighted means of a tile's pixels.
struct Means {
    const Array<const float, 3>& padded;
    const Tile& tile;
    Array<float, 3> out;    // (channels, height, width)
    Array<float, 2> total;  // (rows, columns): sums of weights

    // Add the values from padded (from_y, from_x) on to pixels (y, left ... right) that lie in the tile.
    void add(int64_t y, int64_t left, int64_t right, const float* weights, int64_t from_y, int64_t from_x) const {
        const int64_t begin = larger_of(left, tile.left), count = smaller_of(right, tile.right) - begin;
        if (y < tile.top || y >= tile.bottom || count <= 0) return;
        const float* const __restrict weight = weights + begin - left;
        float* const __restrict sums = &total(y - tile.top, begin - tile.left);
        for (int64_t c = 0; c < padded.shape[0]; c++) {
            const float* const __restrict values = &padded(c, from_y, from_x + begin - left);
            float* const __restrict means = &out(c, y, begin);
            for (int64_t x = 0; x < count; x++) {
                means[x] += weight[x] * values[x];
                sums[x] += c == 0 ? weight[x] : 0.0f;
            }
        }
    }

    void divide() const {
        for (int64_t c = 0; c < out.shape[0]; c++) {
            for (int64_t y = tile.top; y < tile.bottom; y++) {
                float* const __restrict means = &out(c, y, tile.left);
                const float* const __restrict sums = &total(y - tile.top, 0);
                for (int64_t x = 0; x < tile.right - tile.left; x++) means[x] /= sums[x];
            }
        }
    }
};

struct Buffers {
    Array<float, 2> total;
    DistanceRows rows;
    Buffers(Arena& arena, const Tile& tile, int64_t columns, const Window& window)
        : total(arena.empty<float>(tile.bottom - tile.top, tile.right - tile.left)), rows(arena, columns, window) {}
};

}  // namespace

VNLEM_EXPORT int64_t vnlem_nlm_tile(const Array<const float, 3>& padded, const Tile& tile, const Window& window,
                                    const Decay& decay, const Array<float, 3>& out) {
    const int64_t height = out.shape[1], width = out.shape[2];
    Scratch<Buffers> scratch(tile, tile.right - tile.left + 2 * window.reach_x, window);
    if (!scratch) return kOutOfMemory;
    const Means means{padded, tile, out, scratch->total};
    // The pixel itself has weight one.
    scratch->total.fill(1);
    for (int64_t c = 0; c < out.shape[0]; c++)
        for (int64_t y = tile.top; y < tile.bottom; y++)
            std::memcpy(&out(c, y, tile.left), &padded(c, y + window.radius_y, tile.left + window.radius_x),
                        sizeof(float) * (tile.right - tile.left));
    for (int64_t dy = 0; dy <= window.reach_y; dy++) {
        for (int64_t dx = dy == 0 ? 1 : -window.reach_x; dx <= window.reach_x; dx++) {
            const Tile box = pairs_of_tile(tile, height, width, dy, dx);
            if (box.bottom <= box.top || box.right <= box.left) continue;
            // Each pair of pixels is visited once: its weight serves both.
            distances_at_offset(padded, box, dy, dx, window, scratch->rows, [&](int64_t y, float* row) {
                weigh(row, box.right - box.left, decay);
                const int64_t from_y = y + window.radius_y, from_x = box.left + window.radius_x;
                means.add(y, box.left, box.right, row, from_y + dy, from_x + dx);
                means.add(y + dy, box.left + dx, box.right + dx, row, from_y, from_x);
            });
        }
    }
    means.divide();
    return 0;
}

VNLEM_EXPORT int64_t vnlem_nlm_planes_tile(const PiledPlanes& piled, const Tile& tile, const Window& window,
                                           const Decay& decay, const Array<float, 2>& out) {
    const int64_t width = out.shape[1], rows_of_plane = piled.height + 2 * window.radius_y;
    const int64_t base = piled.own * rows_of_plane;
    Scratch<Buffers> scratch(tile, tile.right - tile.left, window);
    if (!scratch) return kOutOfMemory;
    const Means means{piled.pixels, tile, array_at(out.data, 1, out.shape[0], width), scratch->total};
    scratch->total.fill(0);
    for (int64_t y = tile.top; y < tile.bottom; y++) out[y].part(tile.left, tile.right).fill(0);
    for (int64_t plane = 0; plane < piled.n_planes; plane++) {
        for (int64_t dy = -window.reach_y; dy <= window.reach_y; dy++) {
            for (int64_t dx = -window.reach_x; dx <= window.reach_x; dx++) {
                const Tile box = {base + larger_of(tile.top, -dy), base + smaller_of(tile.bottom, piled.height - dy),
                                  larger_of(tile.left, -dx), smaller_of(tile.right, width - dx)};
                if (box.bottom <= box.top || box.right <= box.left) continue;
                const int64_t jump = (plane - piled.own) * rows_of_plane + dy;
                distances_at_offset(piled.pixels, box, jump, dx, window, scratch->rows, [&](int64_t y, float* row) {
                    weigh(row, box.right - box.left, decay);
                    means.add(y - base, box.left, box.right, row, y + jump + window.radius_y,
                              box.left + dx + window.radius_x);
                });
            }
        }
    }
    means.divide();
    return 0;
}

}  // namespace vnlem
