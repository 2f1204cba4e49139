// VNLEM on one tile: see vnlem.py.
#include "aligned.h"
#include "diffusion.h"
#include "select.h"
#include "turns.h"

namespace vnlem {

struct Neighbours {
    Array<int64_t, 3> position;
    Array<float, 3> squared;
    Array<int64_t, 3> which;
    Array<int64_t, 2> counts;
};

namespace {

// Columns of a band, processed from top to bottom before the next band: the features of their windows stay in the
// second-level cache.
constexpr int64_t kBand = 32;

// The search of one worker.
struct Searcher {
    const Features& region;
    const Search& search;
    const Rule& rule;
    Windows windows;
    Array<int32_t, 1> places;  // pixel number of each entry of a window, from the window's first
    Array<int32_t, 1> candidates, kept;
    Distances distances;
    Nearest found;

    Searcher(Arena& arena, const Features& region, const Search& search, const Rule& rule)
        : region(region),
          search(search),
          rule(rule),
          windows(arena, search.patch_distance),
          places(arena.empty<int32_t>((2 * search.patch_distance + 1) * windows.columns)),
          // Choosing writes whole blocks, wherever they begin.
          candidates(arena.empty<int32_t>(search.n_candidates + 1 + kBlock)),
          kept(arena.empty<int32_t>(search.n_candidates + 1 + kBlock)),
          distances(arena, search.angles, whole_of(search.n_candidates)),
          found(arena, search.n_neighbors) {
        if (!arena.is_real()) return;
        for (int64_t place = 0; place < places.shape[0]; place++)
            places[place] = int32_t(place / windows.columns * region.stride() + place % windows.columns);
    }

    Span span_at(int64_t y, int64_t x, int64_t right) const {
        const int64_t reach = search.patch_distance;
        return {y,     x,           smaller_of(kPixels, right - x), larger_of<int64_t>(y - reach, 0),
                smaller_of(y + reach + 1, region.height()), reach, region.width};
    }

    // Stage one: the N1 nearest of the window of pixel x + p by windows.distances, into candidates; returns how
    // many. guess: see smallest.
    int64_t nearest(const Span& span, int64_t p, float* guess) const {
        const int64_t count = windows.count(span), whole = whole_of(count), own = windows.own(span, p);
        const Array<float, 1> values = windows.distances[p].part(0, whole);
        values.part(count, whole).fill(INFINITY);
        values[own] = 0;
        // The pixel itself is always taken: without it all weights could vanish.
        const Selected chosen = smallest(Values(values), search.n_candidates, own, *guess, candidates);
        *guess = chosen.threshold;
        const int64_t first = span.top * region.stride() + span.first_column(p);
        for (int64_t c = 0; c < chosen.count; c++) candidates[c] = int32_t(first + places[candidates[c]]);
        return chosen.count;
    }

    // Stage two: the best of the candidates by the accurate distance, into found; returns how many.
    int64_t refine(int64_t own, int64_t count, float* guess) const {
        accurate(region, search, rule, own, candidates.data, count, distances);
        const Array<float, 1> best = distances.best.part(0, whole_of(count));
        best.part(count, best.shape[0]).fill(INFINITY);
        const Selected chosen = smallest(Values(best), search.n_neighbors, -1, *guess, kept);
        *guess = chosen.threshold;
        for (int64_t k = 0; k < chosen.count; k++) {
            const int64_t c = kept[k];
            found.position[k] = candidates[c];
            found.squared[k] = best[c];
            found.which[k] = distances.which[c];
        }
        return chosen.count;
    }
};

struct Buffers {
    Searcher searcher;
    Estimator estimator;
    Buffers(Arena& arena, const Features& region, const Search& search, const Rule& rule,
            const Array<const int64_t, 1>& lane_order)
        : searcher(arena, region, search, rule), estimator(arena, search.n_neighbors, region.dim(), lane_order) {}
};

}  // namespace

VNLEM_EXPORT int64_t vnlem_squared_lengths(const Array<const float, 3>& features, const Array<float, 2>& out) {
    const int64_t dim = features.shape[2];
    for (int64_t place = 0; place < out.size(); place++) {
        const float* const vector = features.data + place * dim;
        Floats<16> sums = {};
        for (int64_t f = 0; f < dim; f += 16) sums += load<16>(vector + f) * load<16>(vector + f);
        out.data[place] = total<16, float>(sums);
    }
    return 0;
}

VNLEM_EXPORT int64_t vnlem_neighbours_of_tile(const Features& region, const Search& search, const Rule& rule,
                                              int64_t top, int64_t left, const Neighbours& out) {
    Scratch<Searcher> searcher(region, search, rule);
    if (!searcher) return kOutOfMemory;
    const int64_t height = out.counts.shape[0], width = out.counts.shape[1];
    const Nearest& found = searcher->found;
    for (int64_t y = 0; y < height; y++) {
        for (int64_t x = 0; x < width; x += kPixels) {
            const Span span = searcher->span_at(top + y, left + x, left + width);
            search_windows(region, rule, span, searcher->windows);
            float guesses[2] = {};
            for (int64_t p = 0; p < span.pixels; p++) {
                const int64_t own = span.y * region.stride() + span.x + p;
                const int64_t n = searcher->refine(own, searcher->nearest(span, p, &guesses[0]), &guesses[1]);
                out.counts(y, x + p) = n;
                for (int64_t j = 0; j < n; j++) {
                    out.position(y, x + p, j) = found.position[j];
                    out.squared(y, x + p, j) = found.squared[j];
                    out.which(y, x + p, j) = found.which[j];
                }
            }
        }
    }
    return 0;
}

VNLEM_EXPORT int64_t vnlem_denoise_tile(const Features& region, const Search& search, const Rule& rule,
                                        const Diffusion& diffusion, const Array<const int64_t, 1>& lane_order,
                                        int64_t top, int64_t left, const Array<float, 4>& out) {
    Scratch<Buffers> buffers(region, search, rule, lane_order);
    if (!buffers) return kOutOfMemory;
    const Searcher& searcher = buffers->searcher;
    const int64_t height = out.shape[1], width = out.shape[2];
    int64_t iterations = 0;
    for (int64_t band = 0; band < width; band += kBand) {
        const int64_t right = smaller_of(band + kBand, width);
        for (int64_t y = 0; y < height; y++) {
            for (int64_t x = band; x < right; x += kPixels) {
                const Span span = searcher.span_at(top + y, left + x, left + right);
                if (diffusion.blended || !diffusion.is_used()) search_windows(region, rule, span, searcher.windows);
                if (diffusion.is_used()) rank_by_diffusion(diffusion, span, searcher.windows);
                float guesses[2] = {};
                for (int64_t p = 0; p < span.pixels; p++) {
                    const int64_t own = span.y * region.stride() + span.x + p;
                    const int64_t n = searcher.refine(own, searcher.nearest(span, p, &guesses[0]), &guesses[1]);
                    for (int64_t b = 0; b < out.shape[0]; b++)
                        iterations += buffers->estimator.estimate(region, search, rule, b, own, searcher.found, n,
                                                                  &out(b, y, x + p, 0));
                }
            }
        }
    }
    return iterations;
}

VNLEM_EXPORT int64_t vnlem_estimate_all(const Features& region, const Search& search, const Rule& rule,
                                        const Array<const int64_t, 1>& lane_order,
                                        const Array<const int64_t, 1>& pixels,
                                        const Array<const int64_t, 2>& position, const Array<const float, 2>& squared,
                                        const Array<const int64_t, 2>& which, const Array<float, 2>& out) {
    struct Buffers {
        Nearest found;
        Estimator estimator;
        Buffers(Arena& arena, int64_t count, int64_t dim, const Array<const int64_t, 1>& lane_order)
            : found(arena, count), estimator(arena, count, dim, lane_order) {}
    };
    const int64_t n = position.shape[1];
    Scratch<Buffers> buffers(n, region.dim(), lane_order);
    if (!buffers) return kOutOfMemory;
    for (int64_t i = 0; i < pixels.shape[0]; i++) {
        for (int64_t j = 0; j < n; j++) {
            buffers->found.position[j] = position(i, j);
            buffers->found.squared[j] = squared(i, j);
            buffers->found.which[j] = which(i, j);
        }
        buffers->estimator.estimate(region, search, rule, 0, pixels[i], buffers->found, n, &out(i, 0));
    }
    return 0;
}

VNLEM_EXPORT int64_t vnlem_estimate_candidates(const Features& region, const Search& search, const Rule& rule,
                                               const Array<const int64_t, 1>& lane_order,
                                               const Array<const int64_t, 1>& pixels,
                                               const Array<const int64_t, 2>& candidates,
                                               const Array<float, 2>& out) {
    Scratch<Buffers> buffers(region, search, rule, lane_order);
    if (!buffers) return kOutOfMemory;
    const Searcher& searcher = buffers->searcher;
    for (int64_t i = 0; i < pixels.shape[0]; i++) {
        const int64_t count = candidates.shape[1];
        float guess = 0;
        for (int64_t c = 0; c < count; c++) searcher.candidates[c] = int32_t(candidates(i, c));
        const int64_t n = searcher.refine(pixels[i], count, &guess);
        buffers->estimator.estimate(region, search, rule, 0, pixels[i], searcher.found, n, &out(i, 0));
    }
    return 0;
}

}  // namespace vnlem
