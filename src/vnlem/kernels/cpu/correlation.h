// Correlation of a patch with the candidates of a window, and their ranks by shifts alone.
//
// Squared distances come as |c|^2 - 2 <c, r> + |r|^2, one multiply-add per pixel.
#pragma once
#include <cmath>

#include "array.h"
#include "simd.h"

namespace vnlem {

constexpr int kWide = kLanes;  // candidates side by side that are compared at once
typedef Floats<kWide> Wide;
typedef Ints<kWide> WideInts;

// A patch in the images: side * side pixels in each of some planes.
struct PatchShape {
    int64_t side, planes, stride, plane_step;
    int64_t channels = 1;  // per depth; channels keep their order when depths are reversed
};

// Rows and columns of candidates, and pointers to the corner of the first one. Candidates are read kWide at a time:
// rows of the image have kWide - 1 numbers more than the last candidate needs.
struct SearchWindow {
    const float* pixels;
    const float* energy;  // squared norms
    // Invariants: numbers of a patch that no transform changes, and whose differences are at most the distance of the
    // patches: its part along a constant patch, and the length of the rest.
    const float *level, *contrast;
    int64_t rows, columns;
    int64_t first;  // position of the first candidate
    bool forgets_near;  // whether candidates at its centre are left out
};

inline int64_t rounded_up(int64_t count, int64_t step) { return (count + step - 1) / step * step; }

// Which of kWide lanes are before an end.
inline WideInts lanes_before(int64_t end) {
    WideInts lanes;
    for (int lane = 0; lane < kWide; lane++) lanes[lane] = lane;
    return lanes < (WideInts{} + int32_t(smaller_of<int64_t>(end, kWide)));
}

// |candidate|^2 + |reference|^2 - 2 product, infinite beyond the end; not below zero, but NaN stays NaN.
inline Wide squared_distance(const float* energy, float norm, Wide product, int64_t end) {
    const Wide distance = larger(Wide{}, (load<kWide>(energy) + norm) - 2.0f * product);
    return end >= kWide ? distance : lanes_before(end) ? distance : spread<kWide>(INFINITY);
}

// Squared distances of all candidates of a window to the reference patch; values: rows of `lanes` numbers, infinite
// where there is no candidate.
void rank_shifted(const SearchWindow& window, const PatchShape& shape, const float* reference, float norm, int64_t lanes,
                  const Array<float, 1>& values);

}  // namespace vnlem
