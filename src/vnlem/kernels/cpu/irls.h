// The gamma-power regression of weighted patches: argmin over P of sum_j w_j (|P - P_j|^2 + delta)^(gamma/2).
#pragma once
#include <cmath>

#include "../shared/regression.h"
#include "array.h"
#include "elementary.h"

namespace vnlem {

// Patches that are rows of a table, P_j = table[index[j]], padded with zeros to whole vectors of sixteen.
struct Patches {
    Array<const float, 2> table;
    const int64_t* index;
    const float* operator[](int64_t j) const { return table[index[j]].data; }
};

// The sum of some numbers, in an order that does not depend on the processor.
inline float sum_of(const float* values, int64_t count) {
    Floats<16> sums = {};
    int64_t i = 0;
    for (; i + 16 <= count; i += 16) sums += load<16>(values + i);
    float sum = total<16, float>(sums);
    for (; i < count; i++) sum += values[i];
    return sum;
}

// weights[j] (squared[j] + delta)^exponent, in place of squared.
inline void reweight(float* squared, const float* weights, int64_t count, float exponent) {
    int64_t j = 0;
    for (; j + kLanes <= count; j += kLanes) {
        const Floats<kLanes> terms = power<kLanes>(load<kLanes>(squared + j) + kDelta, exponent);
        store<kLanes>(squared + j, load<kLanes>(weights + j) * terms);
    }
    for (; j < count; j++) squared[j] = weights[j] * power<1>(Floats<1>{squared[j] + kDelta}, exponent)[0];
}

// take(f, sum of weights[j] rows[j] over begin <= j < end) for `Vectors` vectors from column f on.
template <int Vectors, class Rows, class Take>
inline void sum_columns(const Rows& rows, const float* weights, int64_t begin, int64_t end, int64_t f, Take take) {
    Floats<kLanes> sums[Vectors] = {};
    for (int64_t j = begin; j < end; j++) {
        const float* const row = rows[j] + f;
        for (int v = 0; v < Vectors; v++) sums[v] += weights[j] * load<kLanes>(row + v * kLanes);
    }
    for (int v = 0; v < Vectors; v++) take(f + v * kLanes, sums[v]);
}

// The same for all n columns, a multiple of sixteen. rows[j]: a pointer to n numbers. As many columns at a time as
// keep the multipliers busy; each sum runs over j alone.
template <class Rows, class Take>
inline void sum_rows(const Rows& rows, const float* weights, int64_t begin, int64_t end, int64_t n, Take take) {
    int64_t f = 0;
    for (; f + 8 * kLanes <= n; f += 8 * kLanes) sum_columns<8>(rows, weights, begin, end, f, take);
    for (; f + 4 * kLanes <= n; f += 4 * kLanes) sum_columns<4>(rows, weights, begin, end, f, take);
    for (; f + 2 * kLanes <= n; f += 2 * kLanes) sum_columns<2>(rows, weights, begin, end, f, take);
    for (; f < n; f += kLanes) sum_columns<1>(rows, weights, begin, end, f, take);
}

// Move a point (n) to where to(f, sum) says, from the weighted sum of rows; returns the squared length of the step.
template <class Rows, class To>
inline float move_point(const Rows& rows, const float* weights, int64_t begin, int64_t end, int64_t n, float* point,
                        To to) {
    Floats<kLanes> squares = {};
    sum_rows(rows, weights, begin, end, n, [&](int64_t f, Floats<kLanes> sum) {
        const Floats<kLanes> moved = to(sum), step = moved - load<kLanes>(point + f);
        squares += step * step;
        store<kLanes>(point + f, moved);
    });
    return total<kLanes, float>(squares);
}

// out[j] = |point - P_j|^2 for begin <= j < end, eight at a time: one load of the point serves all.
template <class Rows>
inline void squared_residuals(const Rows& rows, int64_t begin, int64_t end, const float* point, int64_t n, float* out) {
    constexpr int kTogether = 8;
    for (int64_t j = begin; j < end; j += kTogether) {
        const float* row[kTogether];
        for (int k = 0; k < kTogether; k++) row[k] = rows[smaller_of(j + k, end - 1)];
        Floats<kLanes> sums[kTogether] = {};
        for (int64_t f = 0; f < n; f += kLanes) {
            const Floats<kLanes> here = load<kLanes>(point + f);
            for (int k = 0; k < kTogether; k++) {
                const Floats<kLanes> difference = here - load<kLanes>(row[k] + f);
                sums[k] += difference * difference;
            }
        }
        for (int k = 0; k < kTogether && j + k < end; k++) out[j + k] = total<kLanes, float>(sums[k]);
    }
}

// Iteratively reweighted least squares from the weighted mean; returns the number of iterations.
// point (n): the result. terms: room for count numbers.
inline int64_t irls(const Patches& patches, const float* weights, int64_t count, float gamma,
                    const Array<float, 1>& point, float* terms) {
    const int64_t n = point.shape[0];
    const float exponent = 0.5f * gamma - 1.0f;
    for (int64_t j = 0; j < count; j++) terms[j] = weights[j];
    point.fill(__builtin_inff());
    for (int64_t iteration = 0; iteration <= kMaxIterations; iteration++) {
        if (iteration > 0) {
            squared_residuals(patches, 0, count, point.data, n, terms);
            reweight(terms, weights, count, exponent);
        }
        const float sum = sum_of(terms, count);
        const float squared_step = move_point(patches, terms, 0, count, n, point.data,
                                              [=](Floats<kLanes> pulled) { return pulled / sum; });
        // Shrinking steps prove nothing: below gamma = 1 they also shrink for a while near a saddle.
        if (squared_step < kStep * kStep || exponent == 0) return iteration;
    }
    return kMaxIterations;
}

// The ratio of the next step's length to this one's, from squared residuals at its two ends.
// The step's map has the Jacobian sum_j v_j u_j u_j^T / sum_j v_j, with v_j = w_j / r_j and u_j the unit vector
// from P_j to the point; the cosine of u_j and the step follows from the three sides of a triangle.
inline float contraction(const float* before, const float* after, const float* weights, int64_t count, float step) {
    float along = 0, sum = 0;
    for (int64_t j = 1; j < count; j++) {
        const float squared = after[j] + kDelta;
        const float v = weights[j] / std::sqrt(squared);
        const float side = (after[j] - before[j] + step * step) / (2.0f * step);
        along += v * side * side / squared;
        sum += v;
    }
    return along / sum;
}

// The minimiser for gamma = 1 where P_0, the patch itself, may outweigh the others; returns the iterations.
//
// distances[j] = |P_0 - P_j|^2; the iteration stops when the estimated distance to the median is below
// `remainder`. IRLS creeps when the median lies close to a heavy patch, as it does at high noise: there the
// patch's own term is far from the parabola that IRLS puts over it. Here only the other patches get a parabola;
// the remaining problem is one-dimensional, along the line from P_0 to the others' mean, and is solved exactly.
// Every step lowers the same convex function, so the limit is the same. P_0 itself, the median at most pixels of
// a very noisy image, is found in one step from its known distances. point, terms: as in irls;
// scratch: room for n numbers.
inline int64_t euclidean_median(const Patches& patches, const float* weights, const float* distances, int64_t count,
                                float remainder, const Array<float, 1>& point, float* scratch, float* terms) {
    const int64_t n = point.shape[0];
    const float* const own = patches[0];
    for (int64_t a = 0; a < n; a++) point.data[a] = own[a];
    if (count == 1) return 0;
    for (int64_t j = 0; j < count; j++) terms[j] = distances[j];
    float rate = 1;  // by which the steps shrink
    float last_step = 0;
    for (int64_t iteration = 1; iteration <= kMaxIterations; iteration++) {
        if (iteration > 1) squared_residuals(patches, 1, count, point.data, n, terms);
        if (iteration == 2) rate = contraction(distances, terms, weights, count, last_step);
        for (int64_t j = 0; j < count; j++) terms[j] = weights[j] / std::sqrt(terms[j] + kDelta);
        const float pull = sum_of(terms + 1, count - 1);
        Floats<kLanes> squares = {};
        sum_rows(patches, terms, 1, count, n, [&](int64_t a, Floats<kLanes> pulled) {
            const Floats<kLanes> away = pulled / pull - load<kLanes>(own + a);
            squares += away * away;
            store<kLanes>(scratch + a, away);
        });
        const float distance = std::sqrt(total<kLanes, float>(squares));
        const float best = own_step(distance, weights[0], pull);
        const float share = distance > 0 ? best / distance : 0;
        squares = Floats<kLanes>{};
        for (int64_t a = 0; a < n; a += kLanes) {
            const Floats<kLanes> moved = load<kLanes>(own + a) + share * load<kLanes>(scratch + a);
            const Floats<kLanes> change = moved - load<kLanes>(point.data + a);
            squares += change * change;
            store<kLanes>(point.data + a, moved);
        }
        const float step = std::sqrt(total<kLanes, float>(squares));
        // The distance left after this step: the others' mean moves by less than the point did, and pulls against
        // the own term's curvature; the steps shrink like a geometric series.
        const float root = std::sqrt(best * best + kDelta);
        const float own_curvature = weights[0] * kDelta / (root * root * root);
        float ahead = step * pull / (own_curvature + pull);
        if (iteration > 2) rate = step / last_step;
        if (rate < 0.5f) ahead = smaller_of(ahead, 3.0f * rate * step);
        if (ahead < remainder) return iteration;
        last_step = step;
    }
    return kMaxIterations;
}

}  // namespace vnlem
