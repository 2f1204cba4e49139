// Features of a region, and the parameters of the search in it: see vnlem.py.
#pragma once
#include "array.h"

namespace vnlem {

struct Features {
    Array<const float, 3> raw, canonical;
    Array<const float, 2> lengths, sharp, angle;
    Array<const float, 3> pixels;
    int64_t width;

    int64_t height() const { return lengths.shape[0]; }
    // Pixels of a row, padding included: pixel number = row * stride + column.
    int64_t stride() const { return lengths.shape[1]; }
    int64_t dim() const { return canonical.shape[2]; }
    const float* raw_at(int64_t place) const { return raw.data + place * dim(); }
    const float* canonical_at(int64_t place) const { return canonical.data + place * dim(); }
};

struct Angles {
    Array<const int64_t, 1> starts, rows, kept;
    Array<const int64_t, 2> repeats;
    Array<const float, 2> cos, sin;
};

struct Search {
    int64_t patch_distance, n_candidates, n_neighbors, with_identity;
    Array<const float, 2> cos, sin;
    Angles angles;
};

struct Rule {
    int64_t with_margin;
    double factor, offset, noise;
    Array<const float, 1> inverse_bandwidths;
    int64_t own_as_best;
    double gamma, step;
};

constexpr int64_t kIdentity = 1 << 20;  // the angle of a neighbour that is not rotated; see vnlem.py

}  // namespace vnlem
