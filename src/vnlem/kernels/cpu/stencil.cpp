// A graph on the pixels of an image as a stencil: see stencil.py.
#include "stencil.h"

#include <type_traits>

#include "lanes.h"
#include "scratch.h"

namespace vnlem {
namespace {

// Pixels whose weights are rearranged at a time: the weights stay in the second-level cache while in use.
constexpr int64_t kSegment = 128;
// Slots that are rearranged together.
constexpr int64_t kSlots = 8;
// Pixels side by side whose sums stay in registers: for windows that are wide enough, and for others.
constexpr int kMany = kRegisters / 4, kFew = 4;

// Weighted sums of vectors over the windows of pixels side by side, kVectors of kWide columns of each:
// out[a dim + x] = sum_{r, c < side} weights[(r side + c) kPixels + a] vectors[r row_step + (a + c) dim + x].
// side >= kPixels - 1: every vector is loaded once for all windows that hold it.
template <int kPixels, int kVectors, int kWide>
__attribute__((noinline, flatten)) void add_windows(const float* weights, const float* vectors, int64_t dim, int64_t row_step, int64_t side,
                 float* out) {
    Floats<kWide> sums[kPixels][kVectors] = {};
    // Column j of the row is column j - a of the window of pixel a.
    const auto add_column = [&](int first, int last) __attribute__((always_inline)) {
        Floats<kWide> values[kVectors];
        unrolled<kVectors>([&](int v) { values[v] = load_once<kWide>(vectors + v * kWide); });
        unrolled<kPixels>([&](int a) {
            if (a < first || a > last) return;
            const float weight = weights[a - a * kPixels];
            unrolled<kVectors>([&](int v) { sums[a][v] += weight * values[v]; });
        });
        vectors += dim;
        weights += kPixels;
    };
    for (int64_t r = 0; r < side; r++) {
        unrolled<kPixels - 1>([&](int j) { add_column(0, j); });
        for (int64_t j = kPixels - 1; j < side; j++) add_column(0, kPixels - 1);
        unrolled<kPixels - 1>([&](int j) { add_column(j + 1, kPixels - 1); });
        vectors += row_step - (side + kPixels - 1) * dim;
        weights -= (kPixels - 1) * kPixels;
    }
    unrolled<kPixels>([&](int a) {
        unrolled<kVectors>([&](int v) { store<kWide>(out + a * dim + v * kWide, sums[a][v]); });
    });
}

template <int N>
using Number = std::integral_constant<int, N>;

// visit(first column, Number<vectors>, Number<numbers in each>) for tiles side by side that make up `width`, a
// multiple of eight. Too few sums would wait for each other, so tiles of one vector are avoided if possible.
template <class Visit>
inline void for_each_tile(int64_t width, Visit visit) {
    int64_t column = 0;
    for (int64_t n = width / kLanes; n > 0; n = (width - column) / kLanes) {
        const int64_t vectors = n == 1 ? 1 : n == 2 || n == 4 ? 2 : 3;
        if (vectors == 1) visit(column, Number<1>(), Number<kLanes>());
        if (vectors == 2) visit(column, Number<2>(), Number<kLanes>());
        if (vectors == 3) visit(column, Number<3>(), Number<kLanes>());
        column += vectors * kLanes;
    }
    for (; column < width; column += 8) visit(column, Number<1>(), Number<8>());
}

// The weights of n_groups of kPixels neighbouring pixels, group after group, as add_windows needs them. A long
// piece of each slot is read at once: short ones would each wait for memory. Several slots are taken together, to
// write whole cache lines.
template <int kPixels>
void pack(const float* weights, const Array<int64_t, 1>& offsets, int64_t n_groups, float* packed) {
    const int64_t n = offsets.shape[0];
    for (int64_t first = 0; first < n; first += kSlots)
        for (int64_t group = 0; group < n_groups; group++)
            for (int64_t c = first; c < smaller_of(first + kSlots, n); c++)
                store<kPixels>(packed + (group * n + c) * kPixels,
                               load<kPixels>(weights + offsets[c] + group * kPixels));
}

struct Packed {
    Array<int64_t, 1> offsets;  // of the neighbours' weights, in reading order
    Array<float, 1> weights;
    Packed(Arena& arena, const PaddedSize& size)
        : offsets(arena.empty<int64_t>(size.side() * size.side())),
          weights(arena.empty<float>(kSegment * size.side() * size.side())) {
        if (!arena.is_real()) return;
        for (int64_t dy = -size.reach, c = 0; dy <= size.reach; dy++)
            for (int64_t dx = -size.reach; dx <= size.reach; dx++, c++) offsets[c] = size.weight_of(dy, dx);
    }
};

template <int kPixels>
void apply_to_row(const Array<const float, 3>& weights, const PaddedSize& size, const Array<const float, 2>& vectors,
                  int64_t y, const Packed& packed, const Array<float, 2>& out) {
    const int64_t dim = vectors.shape[1], side = size.side(), group_size = side * side * kPixels;
    for (int64_t left = 0; left < size.width; left += kSegment) {
        const int64_t n_groups = (smaller_of(kSegment, size.width - left) + kPixels - 1) / kPixels;
        pack<kPixels>(weights.data + size.weights_at(y) + left, packed.offsets, n_groups, packed.weights.data);
        for_each_tile(dim, [&](int64_t column, auto n_vectors, auto wide) {
            for (int64_t group = 0; group < n_groups; group++) {
                const int64_t own = size.at(y, left + group * kPixels);
                add_windows<kPixels, n_vectors, wide>(
                    packed.weights.data + group * group_size,
                    vectors.data + (own - size.reach * (size.stride + 1)) * dim + column, dim, size.stride * dim, side,
                    out.data + own * dim + column);
            }
        });
    }
}

}  // namespace

VNLEM_EXPORT int64_t vnlem_apply_stencil(const Array<const float, 3>& weights, const PaddedSize& size,
                                         const Array<const float, 2>& vectors, int64_t first, int64_t last,
                                         const Array<float, 2>& out) {
    Scratch<Packed> packed(size);
    if (!packed) return kOutOfMemory;
    for (int64_t y = first; y < last; y++) {
        if (size.side() >= kMany - 1)
            apply_to_row<kMany>(weights, size, vectors, y, *packed, out);
        else
            apply_to_row<kFew>(weights, size, vectors, y, *packed, out);
        const int64_t row = size.at(y, -size.reach);
        out.part(row, row + size.reach).fill(0);
        out.part(row + size.reach + size.width, row + size.stride).fill(0);
    }
    return 0;
}

VNLEM_EXPORT int64_t vnlem_stencil_degrees(const Array<const float, 3>& weights, const PaddedSize& size, int64_t first,
                                           int64_t last, const Array<double, 2>& out) {
    for (int64_t y = first; y < last; y++) {
        double* const sums = &out(y + size.reach, size.reach);
        for (int64_t dy = -size.reach; dy <= size.reach; dy++) {
            for (int64_t dx = -size.reach; dx <= size.reach; dx++) {
                const float* const own = weights.data + size.weights_at(y) + size.weight_of(dy, dx);
                for (int64_t x = 0; x < size.width; x++) sums[x] += double(own[x]);
            }
        }
    }
    return 0;
}

VNLEM_EXPORT int64_t vnlem_scale_stencil(const Array<float, 3>& weights, const PaddedSize& size,
                                         const Array<const float, 1>& factors, int64_t first, int64_t last) {
    for (int64_t y = first; y < last; y++) {
        const float* const here = &factors[size.at(y, 0)];
        for (int64_t dy = 0; dy <= size.reach; dy++) {
            for (int64_t dx = dy ? -size.reach : 0; dx <= size.reach; dx++) {
                const float* const there = here + dy * size.stride + dx;
                float* const own = &weights(y + size.reach, size.slot(dy, dx), size.reach);
                for (int64_t x = 0; x < size.width; x++) own[x] *= here[x] * there[x];
            }
        }
    }
    return 0;
}

VNLEM_EXPORT int64_t vnlem_coarsen_stencil(const Array<const float, 3>& weights, const PaddedSize& size, int64_t first,
                                           int64_t last, const Array<float, 3>& coarse,
                                           const PaddedSize& coarse_size) {
    for (int64_t y = first; y < last; y++) {
        const Array<float, 2> blocks = coarse[y / 2 + coarse_size.reach];
        for (int64_t dy = 0; dy <= size.reach; dy++) {
            for (int64_t dx = dy ? -size.reach : 0; dx <= size.reach; dx++) {
                const int64_t down = (y + dy) / 2 - y / 2;
                for (int64_t phase = 0; phase < smaller_of<int64_t>(2, size.width); phase++) {
                    const float* const own = &weights(y + size.reach, size.slot(dy, dx), size.reach + phase);
                    // How many blocks to the right the neighbour of pixels x = phase, phase + 2, ... lies.
                    const int64_t right = (phase + dx) >> 1;
                    // The left one of two blocks in a row holds the weight.
                    const bool turned = down == 0 && right < 0;
                    const int64_t slot = coarse_size.slot(down, turned ? -right : right);
                    // Both ends in one block: the pair counts twice, a pixel's own weight once.
                    const float share = down == 0 && right == 0 && (dy || dx) ? 2 : 1;
                    float* const sums = &blocks(slot, coarse_size.reach + (turned ? right : 0));
                    const int64_t n_blocks = (size.width - phase + 1) / 2;
                    for (int64_t k = 0; k < n_blocks; k++) sums[k] += share * own[2 * k];
                }
            }
        }
    }
    return 0;
}

namespace {

struct Parents {
    Array<int32_t, 1> parent;
    Parents(Arena& arena, int64_t n) : parent(arena.empty<int32_t>(n)) {
        if (!arena.is_real()) return;
        for (int64_t i = 0; i < n; i++) parent[i] = int32_t(i);
    }
    int32_t root_of(int32_t i) const {
        while (parent[i] != i) i = parent[i] = parent[parent[i]];
        return i;
    }
};

}  // namespace

VNLEM_EXPORT int64_t vnlem_count_components(const Array<const float, 3>& weights, const PaddedSize& size) {
    Scratch<Parents> parents(size.stride * (size.height + 2 * size.reach));
    if (!parents) return kOutOfMemory;
    int64_t count = size.height * size.width;
    // Nearest first: they connect most graphs, and then nothing more can change.
    for (int64_t far = 1; far <= size.reach; far++) {
        for (int64_t dy = 0; dy <= far; dy++) {
            for (int64_t dx = dy ? -far : 1; dx <= far; dx++) {
                if (dy < far && std::abs(dx) < far) continue;
                for (int64_t y = 0; y < size.height && count > 1; y++) {
                    const float* const own = &weights(y + size.reach, size.slot(dy, dx), size.reach);
                    for (int64_t x = 0; x < size.width; x++) {
                        if (!(own[x] > 0)) continue;
                        const int32_t a = parents->root_of(int32_t(size.at(y, x)));
                        const int32_t b = parents->root_of(int32_t(size.at(y + dy, x + dx)));
                        if (a == b) continue;
                        parents->parent[larger_of(a, b)] = smaller_of(a, b);
                        count--;
                    }
                }
            }
        }
    }
    return count;
}

namespace {

// visit(pixel of the image, its block) for all pixels of some rows of blocks, both padded.
template <class Visit>
void for_each_pixel(const PaddedSize& size, const PaddedSize& coarse, int64_t first, int64_t last, Visit visit) {
    for (int64_t y = 2 * first; y < smaller_of(2 * last, size.height); y++)
        for (int64_t x = 0; x < size.width; x++) visit(size.at(y, x), coarse.at(y / 2, x / 2));
}

// sums[k] += factor * values[k] for n k, a multiple of eight.
void add_multiple(float* sums, float factor, const float* values, int64_t n) {
    for (int64_t k = 0; k < n; k += 8) store<8>(sums + k, load<8>(sums + k) + factor * load<8>(values + k));
}

}  // namespace

VNLEM_EXPORT int64_t vnlem_restrict(const Array<const float, 2>& fine, const Array<const float, 1>& share,
                                    const PaddedSize& size, int64_t first, int64_t last,
                                    const Array<float, 2>& coarse, const PaddedSize& coarse_size) {
    for_each_pixel(size, coarse_size, first, last, [&](int64_t pixel, int64_t block) {
        add_multiple(coarse[block].data, share[pixel], fine[pixel].data, fine.shape[1]);
    });
    return 0;
}

VNLEM_EXPORT int64_t vnlem_prolong(const Array<const float, 2>& coarse, const PaddedSize& coarse_size,
                                   const Array<const float, 1>& share, const PaddedSize& size, int64_t first,
                                   int64_t last, const Array<float, 2>& fine) {
    for_each_pixel(size, coarse_size, first, last, [&](int64_t pixel, int64_t block) {
        add_multiple(fine[pixel].data, share[pixel], coarse[block].data, fine.shape[1]);
    });
    return 0;
}

}  // namespace vnlem
