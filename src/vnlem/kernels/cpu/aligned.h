// The estimate of a pixel from its neighbours: weights W', alignment, gamma-power regression.
//
// The points of the regression never leave the span of the patches, so the result is the share of each patch in
// it; the estimate adds up the neighbours' central pixels with these shares. Patches are stored as differences
// from the pixel's own: then |P - P_j|^2 = |P|^2 - 2 <P, P_j> + |P_j|^2 loses no digits that matter, and needs one
// multiply-add per number.
//
// The pixel's own patch is not rotated, so the paper compares its pixels, with all their noise, with interpolated
// ones. What the pixels hold beyond the features (`sharp`) is one more coordinate, in which the own patch differs
// from all others.
#pragma once
#include "region.h"
#include "irls.h"
#include "lanes.h"
#include "scratch.h"

namespace vnlem {

// Neighbours of one pixel: the first entries of each array.
struct Nearest {
    Array<int64_t, 1> position;
    Array<float, 1> squared;
    Array<int64_t, 1> which;
    Nearest(Arena& arena, int64_t count)
        : position(arena.zeros<int64_t>(count)), squared(arena.zeros<float>(count)), which(arena.zeros<int64_t>(count)) {}
};

// Makes the estimates of one worker. Lengths of rows, and their number, are multiples of sixteen.
class Estimator {
public:
    Estimator(Arena& arena, int64_t n_neighbors, int64_t dim, const Array<const int64_t, 1>& lane_order)
        : lane_order_(lane_order),
          shares_(arena.zeros<float>(sixteens(n_neighbors))),
          weights_(arena.zeros<float>(sixteens(n_neighbors))),
          values_(arena.zeros<float>(sixteens(n_neighbors))),
          squared_(arena.zeros<float>(sixteens(n_neighbors))),
          rows_(arena.zeros<float>(sixteens(n_neighbors), dim)),
          point_(arena.empty<float>(dim)),
          own_turn_(arena.empty<float>(2, dim / 2)),
          orders_(arena.empty<double>(2, orders_of(lane_order))) {}

    // out (channels) = the estimate of pixel `own` from its n neighbours; bandwidth: its index in the rule.
    // Returns the iterations. Where all weights vanish the pixel keeps its value.
    int64_t estimate(const Features& region, const Search& search, const Rule& rule, int64_t bandwidth, int64_t own,
                     const Nearest& found, int64_t n, float* out) const {
        const int64_t channels = region.pixels.shape[2];
        const float* const pixels = region.pixels.data;
        if (!weigh(region, rule, bandwidth, own, found, n)) {
            for (int64_t channel = 0; channel < channels; channel++) out[channel] = pixels[own * channels + channel];
            return 0;
        }
        int64_t iterations = 0;
        if (rule.gamma != 2) {
            if (search.with_identity) turn_of(region.angle.data[own]);
            align(region, search, own, found, n);
            separate(region.sharp.data[own], own, found, n);
            iterations = regression(n, float(rule.gamma), float(rule.step));
        }
        for (int64_t channel = 0; channel < channels; channel++) {
            for (int64_t j = 0; j < n; j++) values_[j] = pixels[found.position[j] * channels + channel];
            Floats<16> sums = {};
            for (int64_t j = 0; j < n; j += 16) sums += load<16>(&shares_[j]) * load<16>(&values_[j]);
            out[channel] = total<16, float>(sums);
        }
        return iterations;
    }

private:
    Array<const int64_t, 1> lane_order_;
    Array<float, 1> shares_;   // the result; zero past the last patch, as the next three
    Array<float, 1> weights_;  // of sum one
    Array<float, 1> values_;
    Array<float, 1> squared_;  // lengths of the rows
    Array<float, 2> rows_;     // aligned neighbours less the own patch
    Array<float, 1> point_;
    Array<float, 2> own_turn_;
    Array<double, 2> orders_;

    static int64_t sixteens(int64_t count) { return (count + 15) / 16 * 16; }

    static int64_t orders_of(const Array<const int64_t, 1>& lane_order) {
        int64_t count = 0;
        for (int64_t f = 0; f < lane_order.shape[0]; f++) count = larger_of(count, lane_order[f] + 1);
        return count;
    }

    // Write the weights of the neighbours, of sum one, to weights_ and shares_; returns whether there are any.
    bool weigh(const Features& region, const Rule& rule, int64_t bandwidth, int64_t own, const Nearest& found,
               int64_t n) const {
        const float sharp = region.sharp.data[own], inverse = rule.inverse_bandwidths[bandwidth];
        const float noise = float(rule.noise);
        float* const weights = weights_.data;
        const float* const squared = found.squared.data;
        for (int64_t j = 0; j < n; j++) weights[j] = exp_negative(larger_of(squared[j] + sharp - noise, 0.0f) * inverse);
        int64_t own_at = -1;
        float largest = 0;
        for (int64_t j = 0; j < n; j++) {
            if (found.position[j] == own)
                own_at = j;
            else
                largest = larger_of(largest, weights[j]);
        }
        if (own_at >= 0) {
            weights[own_at] = exp_negative(larger_of(squared[own_at] - noise, 0.0f) * inverse);
            // If all other weights vanish the pixel keeps a weight, and its value.
            if (rule.own_as_best && n > 1) weights[own_at] = larger_of(largest, 1e-6f);
        }
        for (int64_t j = n; j < weights_.shape[0]; j++) weights[j] = shares_[j] = values_[j] = 0;
        const float sum = sum_of(weights, weights_.shape[0]);
        if (!(sum > 0)) return false;
        normalise(weights_, sum);
        for (int64_t j = 0; j < n; j++) shares_[j] = weights[j];
        return true;
    }

    static void normalise(const Array<float, 1>& weights, float sum) {
        const float factor = 1.0f / sum;
        for (int64_t j = 0; j < weights.shape[0]; j += 16) store<16>(&weights[j], factor * load<16>(&weights[j]));
    }

    // Cosine and sine of order * angle per lane, by the addition theorem.
    void turn_of(float angle) const {
        const double step_cos = std::cos(double(angle)), step_sin = std::sin(double(angle));
        const Array<double, 1> cos = orders_[0], sin = orders_[1];
        cos[0] = 1, sin[0] = 0;
        for (int64_t k = 1; k < cos.shape[0]; k++) {
            cos[k] = cos[k - 1] * step_cos - sin[k - 1] * step_sin;
            sin[k] = sin[k - 1] * step_cos + cos[k - 1] * step_sin;
        }
        for (int64_t f = 0; f < lane_order_.shape[0]; f++) {
            own_turn_(0, f) = float(cos[lane_order_[f]]);
            own_turn_(1, f) = float(sin[lane_order_[f]]);
        }
    }

    // rows_ = neighbours turned onto the pixel's own patch, in its canonical frame, minus that patch. Turning a patch
    // by an angle multiplies order k by exp(-i k angle). A neighbour that is not rotated goes from the image's frame
    // to the own one.
    void align(const Features& region, const Search& search, int64_t own, const Nearest& found, int64_t n) const {
        typedef Floats<kLanes> V;
        const int64_t dim = region.dim(), lanes = dim / 2;
        const float* const mine = region.canonical_at(own);
        // Chosen by index: angles are random, and branches on them would be mispredicted.
        const float* const frames[2] = {region.canonical.data, region.raw.data};
        const float* const cosines[2] = {search.cos.data, own_turn_[0].data};
        const float* const sines[2] = {search.sin.data, own_turn_[1].data};
        float *row = rows_.data, *const squared = squared_.data;
        for (int64_t j = 0; j < n; j++, row += dim) {
            const int64_t which = found.which[j], place = found.position[j];
            if (place == own) {
                for (int64_t f = 0; f < dim; f++) row[f] = 0;
                squared[j] = 0;
                continue;
            }
            const int64_t unturned = which == kIdentity, backward = unturned | (which < 0);
            const int64_t turn = (1 - unturned) * (which < 0 ? -which : which) * lanes;
            const float* const patch = frames[unturned] + place * dim;
            const float *const cos = cosines[unturned] + turn, *const sin = sines[unturned] + turn;
            const float sign = float(1 - 2 * backward);
            V squares_re = {}, squares_im = {};
            for (int64_t f = 0; f < lanes; f += kLanes) {
                const V re = load_once<kLanes>(patch + f), im = load_once<kLanes>(patch + lanes + f);
                const V c = load_once<kLanes>(cos + f), s = sign * load<kLanes>(sin + f);
                const V turned_re = (re * c - load<kLanes>(mine + f)) + im * s;
                const V turned_im = (im * c - load<kLanes>(mine + lanes + f)) - re * s;
                store<kLanes>(row + f, turned_re);
                store<kLanes>(row + lanes + f, turned_im);
                squares_re += turned_re * turned_re;
                squares_im += turned_im * turned_im;
            }
            squared[j] = total<kLanes, float>(squares_re + squares_im);
        }
    }

    // The coordinate in which the own patch differs from all others: an imaginary part of order zero.
    void separate(float sharp, int64_t own, const Nearest& found, int64_t n) const {
        if (sharp == 0) return;
        int64_t spare = 0;
        while (lane_order_[spare] != 0) spare++;
        for (int64_t j = 0; j < n; j++) {
            if (found.position[j] == own) continue;
            rows_(j, lane_order_.shape[0] + spare) = -std::sqrt(sharp);
            squared_[j] += sharp;
        }
    }

    // IRLS from the weighted mean until a step is shorter than smallest_step; returns the iterations.
    int64_t regression(int64_t n, float gamma, float smallest_step) const {
        const float exponent = 0.5f * gamma - 1.0f;
        point_.fill(0);
        move(n);
        for (int64_t iteration = 1; iteration <= kMaxIterations; iteration++) {
            residuals(n);
            reweight(shares_.data, weights_.data, shares_.shape[0], exponent);
            normalise(shares_, sum_of(shares_.data, shares_.shape[0]));
            // Shrinking steps prove nothing: below gamma = 1 they also shrink for a while near a saddle.
            if (move(n) < smallest_step * smallest_step) return iteration;
        }
        return kMaxIterations;
    }

    struct Rows {
        const float* data;
        int64_t dim;
        const float* operator[](int64_t j) const { return data + j * dim; }
    };

    // point = sum_j shares[j] rows[j]; returns the squared length of the step.
    float move(int64_t n) const {
        const int64_t dim = point_.shape[0];
        return move_point(Rows{rows_.data, dim}, shares_.data, 0, n, dim, point_.data,
                          [](Floats<kLanes> sum) { return sum; });
    }

    // shares[j] = |point - rows[j]|^2, eight at a time.
    void residuals(int64_t n) const {
        const int64_t dim = point_.shape[0];
        const float* const point = point_.data;
        Floats<kLanes> length = {};
        for (int64_t f = 0; f < dim; f += kLanes) length += load<kLanes>(point + f) * load<kLanes>(point + f);
        const float own = total<kLanes, float>(length);
        for (int64_t j = 0; j < n; j += 8) {
            const float* const rows = rows_[j].data;
            Floats<kLanes> sums[8] = {};
            for (int64_t f = 0; f < dim; f += kLanes) {
                const Floats<kLanes> here = load<kLanes>(point + f);
                for (int k = 0; k < 8; k++) sums[k] += here * load<kLanes>(rows + k * dim + f);
            }
            // Rounding must not make it negative.
            const Floats<8> squared = (own + load<8>(&squared_[j])) - 2.0f * totals<kLanes>(sums);
            store<8>(&shares_[j], larger(squared, Floats<8>{}));
        }
    }
};

}  // namespace vnlem
