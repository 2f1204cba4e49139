// Gradients of the smoothed image, and the arc of directions that holds most of them: see orientation.py.
#include <cmath>

#include "../shared/orientation.h"
#include "scratch.h"
#include "simd.h"

namespace vnlem {

struct Disc {
    Array<const int64_t, 2> offsets;
    Array<const float, 1> weights, taper;
    int64_t arc_bins;
};

struct Directions {
    Array<float, 2> angle, confidence, second;
    Array<uint8_t, 2> has_second;
};

namespace {

typedef Floats<kLanes> Lanes;
// A second arc counts as an orientation if it has at least this share of the first one's mass (as in SIFT).
constexpr float kSecondShare = 0.8f;
// Histograms filled in turn: equal bins of neighbouring pixels do not wait for each other.
constexpr int kHistograms = 4;
constexpr int kRoom = 80;  // two numbers of every bin, in whole vectors

struct Rows {
    Array<float, 1> smooth, sloped, gx, gy;  // smoothed and differentiated along y, then the gradient
    Rows(Arena& arena, int64_t full, int64_t width)
        : smooth(arena.empty<float>(full)),
          sloped(arena.empty<float>(full)),
          gx(arena.empty<float>(width)),
          gy(arena.empty<float>(width)) {}
};

}  // namespace

VNLEM_EXPORT int64_t vnlem_gradients(const Array<const float, 2>& padded, const Array<const float, 1>& gauss,
                                     const Array<const float, 1>& slope, double smallest,
                                     const Array<float, 2>& magnitude, const Array<float, 2>& direction) {
    const int64_t radius = gauss.shape[0] - 1, full = padded.shape[1], width = magnitude.shape[1];
    Scratch<Rows> scratch(full, width);
    if (!scratch) return kOutOfMemory;
    float *const __restrict smooth = scratch->smooth.data, *const __restrict sloped = scratch->sloped.data;
    float *const __restrict gx = scratch->gx.data, *const __restrict gy = scratch->gy.data;
    // Differences are taken before sums: a constant image has a gradient of exactly zero.
    for (int64_t y = 0; y < magnitude.shape[0]; y++) {
        const float* const row = padded[y + radius].data;
        for (int64_t x = 0; x < full; x++) {
            smooth[x] = gauss[0] * row[x];
            sloped[x] = 0;
        }
        for (int64_t t = 1; t <= radius; t++) {
            const float *const above = padded[y + radius - t].data, *const below = padded[y + radius + t].data;
            const float g = gauss[t], d = slope[t];
            for (int64_t x = 0; x < full; x++) {
                smooth[x] += g * (above[x] + below[x]);
                sloped[x] += d * (below[x] - above[x]);
            }
        }
        for (int64_t x = 0; x < width; x++) {
            gx[x] = 0;
            gy[x] = gauss[0] * sloped[x + radius];
        }
        for (int64_t t = 1; t <= radius; t++) {
            const float g = gauss[t], d = slope[t];
            for (int64_t x = 0; x < width; x++) {
                gx[x] += d * (smooth[x + radius + t] - smooth[x + radius - t]);
                gy[x] += g * (sloped[x + radius + t] + sloped[x + radius - t]);
            }
        }
        for (int64_t x = 0; x < width; x++) {
            const float size = std::sqrt(gx[x] * gx[x] + gy[x] * gy[x]);
            const bool counts = size > float(smallest);
            const float turns = counts ? std::atan2(gy[x], gx[x]) * float(1 / (2 * kPi)) : 0.0f;
            magnitude(y, x) = counts ? size : 0.0f;
            direction(y, x) = turns < 0 ? turns + 1.0f : turns;
        }
    }
    return 0;
}

namespace {

struct Histograms {
    Array<int32_t, 1> lower;  // per pixel: the lower bin of its direction,
    Array<float, 2> parts;    // and how its magnitude is shared with the upper one
    Array<int64_t, 1> shift;  // whole groups of offsets; those past the last have no weight
    Array<float, 1> share;
    Array<float, 2> pairs;    // (kHistograms, kRoom): for each lower bin, its part and that of the upper one
    Array<float, 1> sums;     // of all histograms, after one number
    Array<float, 1> wrapped;  // the histogram, extended at both ends by its other end
    Array<float, 1> arc;      // one turn twice: reading past the last bin needs no wrapping

    Histograms(Arena& arena, int64_t pixels, int64_t n_offsets, int64_t reach)
        : lower(arena.empty<int32_t>(pixels)),
          parts(arena.empty<float>(pixels, 2)),
          shift(arena.zeros<int64_t>(n_offsets)),
          share(arena.zeros<float>(n_offsets)),
          pairs(arena.zeros<float>(kHistograms, kRoom)),
          sums(arena.zeros<float>(1 + kRoom)),
          wrapped(arena.zeros<float>(kRoom + 2 * reach)),
          arc(arena.zeros<float>(kRoom)) {}
};

void share_between_bins(const Array<const float, 2>& magnitude, const Array<const float, 2>& direction,
                        const Histograms& made) {
    for (int64_t n = 0; n < magnitude.size(); n++) {
        const float at = direction.data[n] * float(kBins);
        const int32_t bin = int32_t(at);
        const float fraction = at - float(bin);
        made.lower.data[n] = bin >= kBins ? bin - kBins : bin;
        made.parts.data[2 * n] = magnitude.data[n] * (1.0f - fraction);
        made.parts.data[2 * n + 1] = magnitude.data[n] * fraction;
    }
}

// Directions around pixel `middle` into the histogram `wrapped`, from `reach` on; returns their sum.
float collect(const Histograms& made, int64_t middle, int64_t reach) {
    made.pairs.fill(0);
    for (int64_t o = 0; o < made.shift.shape[0]; o += kHistograms) {
        for (int h = 0; h < kHistograms; h++) {
            const int64_t n = middle + made.shift.data[o + h];
            // Pairs do not overlap: a load reads exactly what was stored, or none of it.
            float* const pair = made.pairs.data + h * kRoom + 2 * made.lower.data[n];
            store<2>(pair, load<2>(pair) + made.share.data[o + h] * load<2>(made.parts.data + 2 * n));
        }
    }
    float* const sums = made.sums.data;
    Lanes all = {};
    for (int64_t b = 0; b < kRoom; b += kLanes) {
        const float* const from = made.pairs.data + b;
        const Lanes sum = (load<kLanes>(from) + load<kLanes>(from + kRoom)) +
                          (load<kLanes>(from + 2 * kRoom) + load<kLanes>(from + 3 * kRoom));
        store<kLanes>(sums + 1 + b, sum);
        all += sum;
    }
    sums[0] = sums[2 * kBins];
    float* const wrapped = made.wrapped.data;
    for (int b = 0; b < kBins; b++) wrapped[reach + b] = sums[2 * b] + sums[2 * b + 1];
    for (int64_t b = 0; b < reach; b++) {
        wrapped[b] = wrapped[b + kBins];
        wrapped[reach + kBins + b] = wrapped[reach + b];
    }
    return total<kLanes, float>(all);
}

// The arcs: the histogram smoothed by the taper. Returns the first of the largest.
int64_t smooth(const Histograms& made, const Array<const float, 1>& taper) {
    const int64_t reach = taper.shape[0] - 1;
    float* const arc = made.arc.data;
    Lanes largest = {};
    for (int b = 0; b < kBins; b += kLanes) {
        const float* const middle = made.wrapped.data + reach + b;
        Lanes sum = taper[0] * load<kLanes>(middle);
        for (int64_t t = 1; t <= reach; t++) sum += taper[t] * (load<kLanes>(middle - t) + load<kLanes>(middle + t));
        store<kLanes>(arc + b, sum);
    }
    for (int b = 0; b < kBins; b++) arc[kBins + b] = arc[b];
    for (int b = 0; b < kBins; b += kLanes) largest = larger(load<kLanes>(arc + b), largest);
    float most = 0;
    for (int lane = 0; lane < kLanes; lane++) most = larger_of(most, float(largest[lane]));
    int64_t best = 0;
    while (best + 1 < kBins && arc[best] < most) best++;
    return best;
}

// The angle of a peak, by a parabola through three arcs, in (-pi, pi].
float angle_of(const Array<float, 1>& arc, int64_t best) {
    const float before = arc[best == 0 ? kBins - 1 : best - 1], here = arc[best], after = arc[best + 1];
    const float curvature = before - 2.0f * here + after;
    float at = float(best);
    if (curvature < 0) at += 0.5f * (before - after) / curvature;
    if (at > float(kBins / 2)) at -= float(kBins);
    return at * float(2 * kPi / kBins);
}

}  // namespace

VNLEM_EXPORT int64_t vnlem_dominant_directions(const Array<const float, 2>& magnitude,
                                               const Array<const float, 2>& direction, const Disc& disc,
                                               const Directions& found) {
    const int64_t height = found.angle.shape[0], width = found.angle.shape[1], full = magnitude.shape[1];
    const int64_t border = (magnitude.shape[0] - height) / 2, reach = disc.taper.shape[0] - 1;
    const int64_t n_offsets = disc.offsets.shape[0];
    Scratch<Histograms> scratch(magnitude.size(), (n_offsets + kHistograms - 1) / kHistograms * kHistograms, reach);
    if (!scratch) return kOutOfMemory;
    share_between_bins(magnitude, direction, *scratch);
    for (int64_t o = 0; o < n_offsets; o++) {
        scratch->shift[o] = disc.offsets(o, 0) * full + disc.offsets(o, 1);
        scratch->share[o] = disc.weights[o];
    }
    const Array<float, 1>& arc = scratch->arc;
    for (int64_t y = 0; y < height; y++) {
        for (int64_t x = 0; x < width; x++) {
            const float all = collect(*scratch, (y + border) * full + x + border, reach);
            if (all == 0) continue;
            const int64_t best = smooth(*scratch, disc.taper);
            found.angle(y, x) = angle_of(arc, best);
            if (found.second.size() == 0) continue;
            // The best other arc that is a peak, not the slope of the first one.
            int64_t other = -1;
            float elsewhere = 0;
            for (int64_t b = best + disc.arc_bins; b <= best + kBins - disc.arc_bins; b++) {
                elsewhere = larger_of(elsewhere, arc[b]);
                const bool is_peak = arc[b] >= arc[b + 1] && arc[b] >= arc[b - 1];
                if (is_peak && (other < 0 || arc[b] > arc[other])) other = b;
            }
            if (other >= kBins) other -= kBins;
            found.confidence(y, x) = (arc[best] - elsewhere) / all;
            const bool has_second = other >= 0 && arc[other] >= kSecondShare * arc[best];
            found.second(y, x) = has_second ? angle_of(arc, other) : found.angle(y, x);
            found.has_second(y, x) = has_second;
        }
    }
    return 0;
}

}  // namespace vnlem
