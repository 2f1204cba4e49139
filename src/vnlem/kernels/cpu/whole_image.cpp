// Exact nearest neighbours over a whole image: see whole_image.py.
#include "aligned.h"
#include "turns.h"

namespace vnlem {

struct Index {
    Array<const int64_t, 1> order_of_lane;
    Array<const float, 2> order_moduli, ring_moduli;
};

struct Found {
    Array<int64_t, 2> position;
    Array<float, 2> squared;
    Array<int64_t, 2> which;
};

namespace {

constexpr int64_t kBatch = 64;
// Bounds and distances are rounded differently: a candidate is dismissed only if its bound exceeds the limit by this
// share of the squared lengths.
constexpr float kSlack = 2e-6f;

struct ImageSearch {
    const Features& region;
    const Search& search;
    const Rule& rule;
    const Index& index;
    Array<int32_t, 1> batch;  // candidates that no bound has dismissed
    Distances distances;      // of the batch
    Array<float, 2> sums;     // (2, orders)
    Array<float, 1> bounds;   // (width): the first bound for a row of pixels
    Nearest best;             // so far, in the order of `is_before`
    mutable int64_t n, waiting;

    ImageSearch(Arena& arena, const Features& region, const Search& search, const Rule& rule, const Index& index)
        : region(region),
          search(search),
          rule(rule),
          index(index),
          batch(arena.empty<int32_t>(kBatch)),
          distances(arena, search.angles, kBatch),
          sums(arena.empty<float>(2, index.order_moduli.shape[0])),
          bounds(arena.empty<float>(region.width)),
          best(arena, search.n_neighbors) {}

    // The first bound for the pixels from number `start` on: along the row, where it vectorises.
    void bound_row(int64_t own, int64_t start) const {
        bounds.fill(0);
        for (int64_t k = 0; k < index.order_moduli.shape[0]; k++) {
            const float mine = index.order_moduli(k, own), *const row = &index.order_moduli(k, start);
            for (int64_t x = 0; x < region.width; x++) bounds.data[x] += (row[x] - mine) * (row[x] - mine);
        }
    }

    // Squared distance of moduli.
    float ring_bound(int64_t own, int64_t candidate) const {
        const float *const a = index.ring_moduli[own].data, *const b = index.ring_moduli[candidate].data;
        Floats<16> squares = {};
        for (int64_t f = 0; f < index.ring_moduli.shape[1]; f += 16) {
            const Floats<16> difference = load<16>(a + f) - load<16>(b + f);
            squares += difference * difference;
        }
        return total<16, float>(squares);
    }

    // Largest inner product that any angle of each order could give: sum over orders of |c_k|.
    float phase_free_product(int64_t own, int64_t candidate) const {
        const int64_t lanes = index.order_of_lane.shape[0];
        const float *const a = region.canonical_at(own), *const b = region.canonical_at(candidate);
        const Array<float, 1> real = sums[0], imaginary = sums[1];
        sums.fill(0);
        for (int64_t f = 0; f < lanes; f++) {
            const int64_t k = index.order_of_lane[f];
            real[k] += a[f] * b[f] + a[lanes + f] * b[lanes + f];
            imaginary[k] += a[f] * b[lanes + f] - a[lanes + f] * b[f];
        }
        float sum = real[0];
        for (int64_t k = 1; k < real.shape[0]; k++)
            sum += std::sqrt(real[k] * real[k] + imaginary[k] * imaginary[k]);
        return sum;
    }

    // Whether a candidate passes all bounds; `passed` counts for each bound.
    bool may_be_near(int64_t own, int64_t candidate, float first_bound, float limit, int64_t* passed) const {
        const float lengths = region.lengths.data[own] + region.lengths.data[candidate];
        limit += kSlack * lengths;
        if (first_bound > limit) return false;
        passed[0]++;
        if (ring_bound(own, candidate) > limit) return false;
        passed[1]++;
        if (lengths - 2.0f * phase_free_product(own, candidate) > limit) return false;
        passed[2]++;
        return true;
    }

    // By distance, then position.
    bool is_before(float squared, int64_t position, int64_t at) const {
        return squared < best.squared[at] || (squared == best.squared[at] && position < best.position[at]);
    }

    // Put a candidate among the best.
    void insert(int64_t position, float squared, int64_t which) const {
        if (n == search.n_neighbors) {
            if (!is_before(squared, position, n - 1)) return;
            n--;
        }
        int64_t at = n++;
        for (; at > 0 && is_before(squared, position, at - 1); at--) {
            best.squared[at] = best.squared[at - 1];
            best.position[at] = best.position[at - 1];
            best.which[at] = best.which[at - 1];
        }
        best.squared[at] = squared;
        best.position[at] = position;
        best.which[at] = which;
    }

    void search_batch(int64_t own) const {
        if (waiting == 0) return;
        accurate(region, search, rule, own, batch.data, waiting, distances);
        for (int64_t c = 0; c < waiting; c++) insert(batch[c], distances.best[c], distances.which[c]);
        waiting = 0;
    }

    // The nearest of all pixels to pixel `own`, into best[0..n].
    void nearest(int64_t own, bool prune, const Array<int64_t, 1>& left) const {
        const int64_t height = region.height(), stride = region.stride(), reach = search.patch_distance;
        const int64_t own_y = own / stride, own_x = own % stride;
        // With a margin a rotated match never counts as nearer than it is.
        const float factor = rule.with_margin ? smaller_of(float(rule.factor), 1.0f) : 1.0f;
        n = waiting = 0;
        for (int pass = 0; pass < 2; pass++) {
            const bool near = pass == 0;
            const int64_t top = near ? larger_of<int64_t>(own_y - reach, 0) : 0;
            const int64_t bottom = near ? smaller_of(own_y + reach + 1, height) : height;
            for (int64_t y = top; y < bottom; y++) {
                if (prune) bound_row(own, y * stride);
                for (int64_t x = 0; x < region.width; x++) {
                    if ((std::abs(y - own_y) <= reach && std::abs(x - own_x) <= reach) != near) continue;
                    const int64_t candidate = y * stride + x;
                    left[0]++;
                    if (prune && n == search.n_neighbors &&
                        !may_be_near(own, candidate, bounds[x], best.squared[n - 1] / factor, &left[1]))
                        continue;
                    batch[waiting++] = int32_t(candidate);
                    if (waiting == kBatch) search_batch(own);
                }
            }
            search_batch(own);
        }
    }
};

}  // namespace

VNLEM_EXPORT int64_t vnlem_moduli(const Array<const float, 2>& features, const Array<const int64_t, 1>& order_of_lane,
                                  const Array<float, 2>& order_moduli, const Array<float, 2>& ring_moduli) {
    const int64_t lanes = order_of_lane.shape[0];
    order_moduli.fill(0);
    for (int64_t n = 0; n < features.shape[0]; n++) {
        for (int64_t f = 0; f < lanes; f++) {
            const float re = features(n, f), im = features(n, lanes + f);
            const float energy = re * re + im * im;
            order_moduli(order_of_lane[f], n) += energy;
            ring_moduli(n, f) = order_of_lane[f] == 0 ? re : std::sqrt(energy);
        }
    }
    for (int64_t i = 0; i < order_moduli.size(); i++) order_moduli.data[i] = std::sqrt(order_moduli.data[i]);
    return 0;
}

VNLEM_EXPORT int64_t vnlem_neighbours_in_image(const Features& region, const Search& search, const Rule& rule,
                                               const Index& index, const Array<const int64_t, 1>& pixels,
                                               int64_t prune, const Found& found, const Array<int64_t, 1>& left) {
    Scratch<ImageSearch> image(region, search, rule, index);
    if (!image) return kOutOfMemory;
    for (int64_t i = 0; i < pixels.shape[0]; i++) {
        image->nearest(pixels[i], prune != 0, left);
        for (int64_t j = 0; j < image->n; j++) {
            found.position(i, j) = image->best.position[j];
            found.squared(i, j) = image->best.squared[j];
            found.which(i, j) = image->best.which[j];
        }
    }
    return 0;
}

}  // namespace vnlem
