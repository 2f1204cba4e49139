// Stage two of the search: distances of a patch to candidates at every angle, from one set of sums over rings.
#pragma once
#include <cmath>

#include "region.h"
#include "lanes.h"
#include "scratch.h"

namespace vnlem {

constexpr int kTogether = 16;  // candidates whose angles are tried together
constexpr int kRow = 8;        // lanes of a row of the features' layout

// Candidates come in whole groups of kTogether: past the end the last one is repeated.
inline int64_t groups_of(int64_t count) { return (count + kTogether - 1) / kTogether * kTogether; }

// Distances of a pixel to candidates, with scratch memory.
struct Distances {
    Array<float, 1> best;     // squared
    Array<float, 1> plain;    // inner products without rotation
    Array<int32_t, 1> which;  // +-number of the best angle, or kIdentity
    Array<float, 2> folded;   // (kTogether, 2 columns): products of each candidate, u then v
    Array<float, 2> across;   // (2 columns, kTogether): the same, candidates side by side

    Distances(Arena& arena, const Angles& angles, int64_t room)
        : best(arena.empty<float>(room)),
          plain(arena.empty<float>(room)),
          which(arena.empty<int32_t>(room)),
          folded(arena.empty<float>(kTogether, 2 * columns_of(angles))),
          across(arena.empty<float>(2 * columns_of(angles), kTogether)) {}

    static int64_t columns_of(const Angles& angles) { return kRow * (angles.starts.shape[0] - 1); }
};

// Products u + i v = conj(a) b of the coefficients of a with those of some others, rows of equal orders added up:
// columns of u, then of v, for each of the others. One loop over the rows of all sets of orders: successive loops
// of one to five rows take twice the time.
template <int Count>
inline void fold(const float* a, const float* const* others, int64_t lanes, const Angles& angles, int64_t columns,
                 float* folded) {
    const int64_t n_rows = angles.rows.shape[0], *const rows = angles.rows.data, *next = angles.starts.data + 1;
    Floats<kRow> u[Count] = {}, v[Count] = {};
    for (int64_t n = 0; n < n_rows; n++) {
        const int64_t f = rows[n];
        const Floats<kRow> a_re = load<kRow>(a + f), a_im = load<kRow>(a + lanes + f);
        for (int k = 0; k < Count; k++) {
            const Floats<kRow> re = load_once<kRow>(others[k] + f), im = load_once<kRow>(others[k] + lanes + f);
            u[k] = (u[k] + a_re * re) + a_im * im;
            v[k] = (v[k] + a_re * im) - a_im * re;
        }
        if (n + 1 == *next) {
            for (int k = 0; k < Count; k++) {
                store<kRow>(folded + 2 * k * columns, u[k]);
                store<kRow>(folded + (2 * k + 1) * columns, v[k]);
                u[k] = v[k] = Floats<kRow>{};
            }
            folded += kRow;
            next++;
        }
    }
}

// Registers of candidates that are tried at once; each comparison takes one register.
constexpr int kParts = kLanes == 16 ? 1 : 2;

struct BestTurns {
    Floats<kLanes> value[kParts];
    Ints<kLanes> which[kParts];
};

// Update the best inner products with candidates at +-angle, for some angles from number m on; ties keep the old
// one. +t and -t share their sums, one even and one odd in t.
template <int Count>
inline void try_angles(const float* across, const Angles& angles, int64_t columns, int64_t m, BestTurns& best) {
    typedef Floats<kLanes> V;
    const int64_t n_orders = angles.kept.shape[0], *const kept = angles.kept.data;
    const float *const cos = &angles.cos(m, 0), *const sin = &angles.sin(m, 0);
    V even[Count][kParts] = {}, odd[Count][kParts] = {};
    for (int64_t k = 0; k < n_orders; k++) {
        const float* const at = across + kTogether * kept[k];
        for (int part = 0; part < kParts; part++) {
            const V u = load<kLanes>(at + part * kLanes), v = load<kLanes>(at + kTogether * columns + part * kLanes);
            for (int t = 0; t < Count; t++) {
                even[t][part] += cos[t * n_orders + k] * u;
                odd[t][part] += sin[t * n_orders + k] * v;
            }
        }
    }
    const V zero = {};
    for (int t = 0; t < Count; t++) {
        const Ints<kLanes> number = Ints<kLanes>{} + int32_t(m + t);
        for (int part = 0; part < kParts; part++) {
            const V value = even[t][part] + larger(odd[t][part], -odd[t][part]);
            const Ints<kLanes> turned = odd[t][part] < zero ? -number : number;
            best.which[part] = value > best.value[part] ? turned : best.which[part];
            best.value[part] = larger(value, best.value[part]);
        }
    }
}

// Largest inner product of a pixel's patch with every candidate turned by the angles {0, +-t_1, ..., +-t_M}.
// Rotation multiplies coefficients of one order alike, so the products u, v of the coefficients are first added
// over the rings. Then candidates lie side by side, and the sums over the orders are taken for some angles at once.
inline void best_turns(const Features& region, int64_t own, const int32_t* candidates, int64_t count,
                       const Angles& angles, const Distances& out) {
    constexpr int kFold = kRegisters >= 32 || kLanes >= kRow ? 4 : 2;
    const int64_t columns = Distances::columns_of(angles), n_angles = angles.cos.shape[0];
    const float* const a = region.canonical_at(own);
    for (int64_t c = 0; c < count; c += kTogether) {
        for (int64_t i = 0; i < kTogether; i += kFold) {
            if (c + i >= count) break;
            const float* others[kFold];
            for (int k = 0; k < kFold; k++)
                others[k] = region.canonical_at(candidates[smaller_of(c + i + k, count - 1)]);
            fold<kFold>(a, others, region.dim() / 2, angles, columns, &out.folded(i, 0));
        }
        for (int64_t column = 0; column < 2 * columns; column += kRow)
            transpose_rows(&out.folded(0, column), 2 * columns, &out.across(column, 0), kTogether);
        for (int64_t n = 0; n < angles.repeats.shape[0]; n++) {
            for (int64_t half = 0; half < 2 * columns; half += columns) {
                const float* const extra = &out.across(half + angles.repeats(n, 0), 0);
                float* const kept = &out.across(half + angles.repeats(n, 1), 0);
                store<16>(kept, load<16>(kept) + load<16>(extra));
            }
        }
        for (int64_t i = 0; i < kTogether; i += kParts * kLanes) {
            BestTurns best = {};
            for (int part = 0; part < kParts; part++) best.value[part] -= INFINITY;
            const float* const across = &out.across(0, i);
            int64_t m = 0;
            for (; m + 3 <= n_angles; m += 3) try_angles<3>(across, angles, columns, m, best);
            for (; m < n_angles; m++) try_angles<1>(across, angles, columns, m, best);
            for (int part = 0; part < kParts; part++) {
                store<kLanes>(&out.best(c + i + part * kLanes), best.value[part]);
                store<kLanes>(&out.which(c + i + part * kLanes), best.which[part]);
            }
        }
    }
}

// Inner products of a with candidates among vectors (pixels, dim), eight at a time.
inline void inner_products(const float* a, const float* vectors, int64_t dim, const int32_t* candidates, int64_t count,
                           float* out) {
    for (int64_t c = 0; c < count; c += 8) {
        const float* others[8];
        Floats<kLanes> sums[8] = {};
        for (int k = 0; k < 8; k++) others[k] = vectors + candidates[smaller_of(c + k, count - 1)] * dim;
        for (int64_t f = 0; f < dim; f += kLanes) {
            const Floats<kLanes> here = load<kLanes>(a + f);
            for (int k = 0; k < 8; k++) sums[k] += here * load<kLanes>(others[k] + f);
        }
        store<8>(out + c, totals<kLanes>(sums));
    }
}

// Squared rotation-invariant distances of a pixel to candidates, and the best angles.
inline void accurate(const Features& region, const Search& search, const Rule& rule, int64_t own,
                     const int32_t* candidates, int64_t count, const Distances& out) {
    const float factor = float(rule.factor), offset = float(rule.offset);
    const float *const lengths = region.lengths.data, length = lengths[own];
    best_turns(region, own, candidates, count, search.angles, out);
    if (search.with_identity)
        inner_products(region.raw_at(own), region.raw.data, region.dim(), candidates, count, out.plain.data);
    for (int64_t c = 0; c < count; c++) {
        const float both = length + lengths[candidates[c]];
        float squared = larger_of(both - 2.0f * out.best[c], 0.0f);
        if (rule.with_margin) squared = factor * squared + offset;
        int32_t angle = out.which[c];
        if (search.with_identity) {
            // At a tie the unrotated patch wins: it needs no interpolation. No branch: noise decides, so it would be
            // mispredicted.
            const float unturned = larger_of(both - 2.0f * out.plain[c], 0.0f);
            angle = unturned <= squared ? int32_t(kIdentity) : angle;
            squared = smaller_of(unturned, squared);
        }
        const bool is_own = candidates[c] == own;
        out.which[c] = is_own ? int32_t(kIdentity) : angle;
        out.best[c] = is_own ? 0 : squared;
    }
}

}  // namespace vnlem
