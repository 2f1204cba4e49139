// Groups of patches, each combined and put back: see ridge.py.
#include "combine.h"
#include "sheets.h"

namespace vnlem {

struct Ridge {
    Array<const int64_t, 2> transforms;
    Array<const float, 1> taps;
    RidgeRule rule;
};

struct GroupImages {
    Array<const float, 3> pilot, working, change, noise;
    int64_t plane_rows;
};

struct Corner {
    int64_t plane, top, left, plane_rows;
};

namespace {

// Members that are not put back count as noisier: their noise is partly that of members that are.
constexpr float kCopiedNoise = 4.0f;

// One channel of the images as flat arrays; residual, noise: sums over patches, at their corners.
struct Flat {
    const float *pilot, *working, *residual, *noise;
};

// Estimate groups and add them up. window (length): weights of the pixels of a patch.
// corner_of(position): where in the accumulators a member belongs, in pixels; negative if it is not put back.
template <class CornerOf>
void filter_groups(const Flat& images, const RidgeRule& rule, const Patch& patch, const Array<float, 1>& window,
                   const Array<const int32_t, 2>& positions, const Array<const uint8_t, 2>& chosen, const Group& group,
                   CornerOf corner_of, float* sums, float* weights) {
    const int64_t k = group.k;
    for (int64_t r = 0; r < positions.shape[0]; r++) {
        const Array<const int32_t, 1> members = positions[r];
        float change = 0, energy = 0;
        for (int64_t j = 0; j < k; j++) {
            const int64_t at = members[j];
            const float noise = images.noise[at];
            group.members[j] = at;
            group.corners[j] = corner_of(at);
            change += images.residual[at];
            energy += noise;
            group.noise[j] = group.corners[j] < 0 ? kCopiedNoise * noise : noise;
        }
        const float taken = combine(images.pilot, images.working, patch, chosen[r], change / energy, rule, group);
        for (int64_t j = 0; j < k; j++) {
            const int64_t corner = group.corners[j];
            if (corner < 0) continue;
            const float weight = group.weights[j];
            weights[corner] += weight;
            put_back(&group.estimate(j, 0), window.data, patch, chosen(r, j), weight, taken * weight, sums + 2 * corner);
        }
    }
}

// What the groups of a tile share.
struct TileScratch {
    Array<int64_t, 2> offsets, places;
    Array<float, 2> residual, noise, sums;
    Patch patch;
    Array<float, 1> window;
    Group group;

    TileScratch(Arena& arena, const GroupImages& images, const Ridge& ridge, int64_t k)
        : offsets(arena.empty<int64_t>(ridge.transforms.shape[0], ridge.transforms.shape[1])),
          places(arena.empty<int64_t>(ridge.transforms.shape[0], ridge.transforms.shape[1])),
          residual(arena.zeros<float>(images.plane_rows > 0 ? 0 : images.pilot.shape[1], images.pilot.shape[2])),
          noise(arena.zeros<float>(residual.shape[0], residual.shape[1])),
          sums(arena.empty<float>(2, images.pilot.shape[2])),
          patch{offsets, places, ridge.taps.shape[0]},
          window(arena.zeros<float>(patch.length())),
          group(arena, k, patch) {}
};

// Set the weights of a patch's pixels: the weight of the row times that of the column.
void set_window(const Patch& patch, const Array<const float, 1>& taps, const Array<float, 1>& window) {
    const int64_t p = taps.shape[0];
    for (int64_t row = 0; row < patch.rows; row++)
        for (int64_t x = 0; x < p; x++) window[row * patch.row_step() + x] = taps[row % p] * taps[x];
}

// Set where the pixels of a patch lie in planes of some rows and stride, `step` numbers for each pixel.
void set_offsets(const Ridge& ridge, int64_t plane_rows, int64_t stride, int64_t step, const Array<int64_t, 2>& offsets) {
    const int64_t p = ridge.taps.shape[0];
    for (int64_t i = 0; i < offsets.size(); i++) {
        const int64_t pixel = ridge.transforms.data[i];
        offsets.data[i] = step * ((pixel / (p * p) * plane_rows + pixel / p % p) * stride + pixel % p);
    }
}

void add(const float* values, int64_t count, float* into) {
    for (int64_t i = 0; i < count; i++) into[i] += values[i];
}

}  // namespace

VNLEM_EXPORT int64_t vnlem_box_of_members(const Array<const int32_t, 2>& positions, int64_t height, int64_t stride,
                                          const Array<int64_t, 2>& box) {
    int32_t least[3] = {INT32_MAX, INT32_MAX, INT32_MAX}, largest[3] = {-1, -1, -1};
    for (int64_t i = 0; i < positions.size(); i++) {
        const int32_t at = positions.data[i], row = at / int32_t(stride);
        const int32_t place[3] = {row / int32_t(height), row % int32_t(height), at % int32_t(stride)};
        for (int axis = 0; axis < 3; axis++) {
            least[axis] = smaller_of(least[axis], place[axis]);
            largest[axis] = larger_of(largest[axis], place[axis]);
        }
    }
    for (int axis = 0; axis < 3; axis++) {
        box(0, axis) = least[axis];
        box(1, axis) = largest[axis];
    }
    return 0;
}

VNLEM_EXPORT int64_t vnlem_join_planes_tile(const Array<const float, 5>& sums, const Array<const float, 4>& weights,
                                            const Corner& corner, int64_t depth, const Array<float, 5>& all_sums,
                                            const Array<float, 4>& all_weights) {
    const int64_t planes = weights.shape[1], rows = weights.shape[2], columns = weights.shape[3];
    for (int64_t c = 0; c < weights.shape[0]; c++) {
        for (int64_t plane = 0; plane < planes; plane++) {
            for (int64_t y = 0; y < rows; y++) {
                const int64_t there = corner.plane + plane, row = corner.top + y;
                add(&sums(c, plane, y, 0, 0), 2 * columns, &all_sums(c, there, row, corner.left, 0));
                for (int64_t from = plane; from >= larger_of<int64_t>(0, plane - depth + 1); from--)
                    add(&weights(c, from, y, 0), columns, &all_weights(c, there, row, corner.left));
            }
        }
    }
    return 0;
}

VNLEM_EXPORT int64_t vnlem_filter_tile(const GroupImages& images, const Ridge& ridge, const Array<const int32_t, 2>& positions,
                                       const Array<const uint8_t, 2>& chosen, const Corner& corner, const Sums& tile) {
    Scratch<TileScratch> scratch(images, ridge, positions.shape[1]);
    if (!scratch) return kOutOfMemory;
    const int64_t p = ridge.taps.shape[0], rows = images.pilot.shape[1], stride = images.pilot.shape[2];
    const int64_t own_stride = tile.weights.shape[2];
    const bool in_stack = images.plane_rows > 0;
    const int64_t n_own = in_stack ? rows * stride : tile.weights.step();
    set_offsets(ridge, images.plane_rows, stride, 1, scratch->offsets);
    set_offsets(ridge, corner.plane_rows, own_stride, 2, scratch->places);
    set_window(scratch->patch, ridge.taps, scratch->window);
    const auto corner_of = [&](int64_t at) {
        if (!in_stack) return at < n_own ? at : -1;
        const int64_t line = at / stride, plane = line / images.plane_rows - corner.plane;
        const int64_t row = plane * corner.plane_rows + line % images.plane_rows - corner.top;
        return row * own_stride + at % stride - corner.left;
    };
    RidgeRule rule = ridge.rule;
    for (int64_t c = 0; c < images.pilot.shape[0]; c++) {
        if (c == 1) rule.boost *= rule.colour_boost;
        const float* const change = images.change[c].data;
        const float* const noise = images.noise[smaller_of(c, images.noise.shape[0] - 1)].data;
        if (!in_stack) {
            patch_sums<float>(array_at(change, 1, rows, stride), p, scratch->sums, scratch->residual);
            patch_sums<float>(array_at(noise, 1, rows, stride), p, scratch->sums, scratch->noise);
        }
        const Flat flat = {images.pilot[c].data, images.working[c].data, in_stack ? change : scratch->residual.data,
                           in_stack ? noise : scratch->noise.data};
        filter_groups(flat, rule, scratch->patch, scratch->window, positions, chosen, scratch->group, corner_of,
                      tile.changes[c].data, tile.weights[c].data);
    }
    int64_t moved = 0;
    for (int64_t i = 0; i < positions.size(); i++) moved += chosen.data[i] > 0 || positions.data[i] >= n_own;
    return moved;
}

}  // namespace vnlem
