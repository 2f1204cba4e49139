// Ridge combination of a group of aligned patches: see combine.h.
#include "combine.h"

#include "group_algebra.h"

namespace vnlem {

namespace {

// A group whose load is smaller than this, relative to the trace of its Gram matrix, is solved in double precision.
// Blocks of pivots lose more digits than single pivots: at 3e-5 estimates were off by a tenth of the noise.
constexpr float kLeastLoad = 1e-4f;
// The smallest load that double precision resolves, relative to the trace.
constexpr double kLeastDoubleLoad = 1e-12;

typedef Floats<kLanes> Lanes;

// Whether the loads are too small for single precision, relative to the Gram matrix.
bool is_delicate(float trace, const Group& group) {
    bool small = false;
    for (int64_t i = 0; i < group.k; i++) small |= group.load.data[i] < kLeastLoad * trace;
    return small;
}

// Turn the Gram matrix of a centred group into its change Theta - I, in place; write the noise gains.
//
// Theta - I = -P diag(shrink), P = (G + diag(load))^-1 made to annihilate constants: each column of Theta sums to
// one. Columns k.. are padding: their load is one and they stay out of every sum; rows k.. hold garbage.
// gain[j] = sum_i Theta_ij^2 noise_i / noise_j.
void combination(float trace, const Group& group) {
    const Array<float, 2>& matrix = group.theta;
    const int64_t k = group.k, size = matrix.shape[0];
    // P annihilates constants, so adding a constant to all entries does not change the result. It keeps the inverse
    // small in their direction, where the Gram matrix of a centred group is zero.
    const float constant = trace / float(k * k);
    for (int64_t i = 0; i < k; i++) {
        float* const row = &matrix(i, 0);
        int64_t j = i / kBlock * kBlock;
        for (; j + kLanes <= k; j += kLanes) store<kLanes>(row + j, load<kLanes>(row + j) + constant);
        for (; j < k; j++) row[j] += constant;
    }
    for (int64_t i = 0; i < size; i++) matrix(i, i) += i < k ? group.load[i] : 1.0f;
    sweep(matrix, group.pivots);
    // The matrix is -A now, A the inverse, and -P = A 1 1^T A / (1^T A 1) - A.
    float* const sums = group.sums.data;
    for (int64_t j = 0; j < size; j += kLanes) {
        Lanes parts[4] = {};
        int64_t i = 0;
        for (; i + 4 <= k; i += 4)
            unrolled<4>([&](int a) { parts[a] += load<kLanes>(matrix.data + (i + a) * size + j); });
        for (; i < k; i++) parts[0] += load<kLanes>(matrix.data + i * size + j);
        store<kLanes>(sums + j, (parts[0] + parts[1]) + (parts[2] + parts[3]));
    }
    float total = 0;
    for (int64_t j = 0; j < k; j++) total += sums[j];
    for (int64_t j = 0; j < size; j += kLanes) {
        const Lanes of_column = load<kLanes>(sums + j) / -total, factor = load<kLanes>(group.shrink.data + j);
        Lanes squares[2] = {};
        const auto change = [&](int64_t i, Lanes& sum) {
            float* const at = matrix.data + i * size + j;
            const Lanes changed = (sums[i] * of_column + load<kLanes>(at)) * factor;
            store<kLanes>(at, changed);
            sum += group.noise[i] * changed * changed;
        };
        int64_t i = 0;
        for (; i + 2 <= k; i += 2) unrolled<2>([&](int a) { change(i + a, squares[a]); });
        if (i < k) change(i, squares[0]);
        store<kLanes>(group.gain.data + j, squares[0] + squares[1]);
    }
    for (int64_t j = 0; j < k; j++) sums[j] = matrix(j, j);
    for (int64_t j = 0; j < size; j += kLanes) {
        const Lanes gain = load<kLanes>(group.gain.data + j) / load<kLanes>(group.noise.data + j);
        store<kLanes>(group.gain.data + j, gain + 2.0f * load<kLanes>(sums + j) + 1.0f);
    }
}

// Replace a symmetric positive definite matrix by its inverse.
void invert(const Array<double, 2>& matrix) {
    const int64_t k = matrix.shape[1];
    for (int64_t p = 0; p < k; p++) {
        double* const own = &matrix(p, 0);
        const double pivot = 1.0 / own[p];
        own[p] = 1.0;
        for (int64_t j = 0; j < k; j++) own[j] *= pivot;
        for (int64_t i = 0; i < k; i++) {
            if (i == p) continue;
            double* const row = &matrix(i, 0);
            const double factor = row[p];
            row[p] = 0.0;
            for (int64_t j = 0; j < k; j++) row[j] -= factor * own[j];
        }
    }
}

// `combination` of the first n rows of the centred columns in double precision. Noise too weak for the loads to
// resolve still means less change: the load is raised, shrink is not.
void delicate_combination(int64_t n, const Group& group) {
    const int64_t k = group.k;
    const Array<double, 2> inverse = group.precise.part(0, k);
    const Array<double, 1> sums = group.precise[k];
    const Array<float, 2>& theta = group.theta;
    inverse.fill(0.0);
    for (int64_t u = 0; u < n; u++) {
        const float* const line = &group.columns(u, 0);
        for (int64_t i = 0; i < k; i++) {
            double* const row = &inverse(i, 0);
            for (int64_t j = 0; j < k; j++) row[j] += double(line[i]) * double(line[j]);
        }
    }
    double trace = 0;
    for (int64_t i = 0; i < k; i++) trace += inverse(i, i);
    for (int64_t i = 0; i < k; i++) {
        for (int64_t j = 0; j < k; j++) inverse(i, j) += trace / double(k * k);
        inverse(i, i) += larger_of(double(group.load[i]), kLeastDoubleLoad * trace);
    }
    invert(inverse);
    double total = 0;
    for (int64_t i = 0; i < k; i++) {
        sums[i] = 0;
        for (int64_t j = 0; j < k; j++) sums[i] += inverse(i, j);
        total += sums[i];
    }
    theta.fill(0.0f);
    for (int64_t i = 0; i < k; i++)
        for (int64_t j = 0; j < k; j++)
            theta(i, j) = float((sums[i] / total * sums[j] - inverse(i, j)) * double(group.shrink[j]));
    for (int64_t j = 0; j < k; j++) {
        double squares = 0;
        for (int64_t i = 0; i < k; i++) squares += double(group.noise[i]) * double(theta(i, j)) * double(theta(i, j));
        group.gain[j] = float(squares / double(group.noise[j]) + 2.0 * double(theta(j, j)) + 1.0);
    }
}

}  // namespace

Group::Group(Arena& arena, int64_t count, const Patch& patch)
    : k(count), members(arena.empty<int64_t>(count)), corners(arena.empty<int64_t>(count)) {
    const int64_t size = round_up(k, kBlock), length = round_up(patch.length(), kBlock) + kBlock;
    const int64_t n_rows = round_up(patch.pixels() - patch.wide + patch.row_step(), 8);
    noise = arena.empty<float>(size);
    weights = arena.empty<float>(k);
    gain = arena.empty<float>(size);
    load = arena.empty<float>(size);
    shrink = arena.empty<float>(size);
    sums = arena.empty<float>(size);
    mean = arena.empty<float>(length);
    rows = arena.empty<const float*>(patch.rows, size);
    upright = arena.zeros<float>(k, length);
    // The changes overwrite the columns, which are no longer needed: less memory stays in nearer caches.
    const Array<float, 1> shared = arena.zeros<float>(size * larger_of(n_rows, length));
    columns = array_at(shared.data, n_rows, size);
    changes = array_at(shared.data, size, length);
    estimate = arena.empty<float>(size, length);
    theta = arena.empty<float>(size, size);
    pivots = arena.empty<float>(2, kBlock, size);
    precise = arena.empty<double>(k + 1, k);
    if (arena.is_real()) {
        noise.fill(1.0f);
        shrink.fill(1.0f);
    }
}

float combine(const float* pilot, const float* working, const Patch& patch, const Array<const uint8_t, 1>& chosen,
              float changed, const RidgeRule& rule, const Group& group) {
    const int64_t k = group.k, size = group.theta.shape[0], length = group.changes.shape[1];
    const float tau = float(rule.tau), extra_load = float(rule.extra_load);
    // The share of the noise left in this group's working patches.
    const float left_over = larger_of(1.0f - __builtin_sqrtf(changed), larger_of(1.02f * tau, 0.02f));
    const float scale = float(rule.boost) * left_over * left_over;
    for (int64_t j = 0; j < k; j++) {
        const float noise = group.noise[j];
        group.load[j] = (rule.without_pilot ? extra_load : scale) * noise;
        group.shrink[j] = rule.without_pilot ? noise + group.load[j] : group.load[j];
    }
    locate(pilot, patch, group.members, chosen, group.upright, group.rows);
    gather_centred(group.rows, k, patch, group.mean, group.columns);
    gram(group.columns, patch.pixels(), group.theta);
    float trace = 0;
    for (int64_t j = 0; j < k; j++) trace += group.theta(j, j);
    if (is_delicate(trace, group)) {
        delicate_combination(patch.pixels(), group);
    } else {
        combination(trace, group);
    }
    locate(working, patch, group.members, chosen, group.upright, group.rows);
    gather_rows(group.rows, k, patch, group.changes);
    // The first of the rows is zero.
    multiply<Into::kSet>(Transposed{group.theta.data + size, size}, round_up(k, 4), {&group.changes(1, 0), length},
                         patch.length(), k - 1, {group.estimate.data, length});
    const float least_gain = float(1.0 / double(k));
    for (int64_t j = 0; j < k; j++) {
        const float gain = larger_of(group.gain.data[j], least_gain);
        group.weights.data[j] = 1.0f / (gain * __builtin_sqrtf(gain));
    }
    return 1.0f - smaller_of(tau / left_over, 1.0f);
}

}  // namespace vnlem
