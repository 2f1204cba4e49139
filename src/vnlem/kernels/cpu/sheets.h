// The images of a tile as VNLR's kernels see them: see sheets.py.
#pragma once
#include "array.h"

namespace vnlem {

struct Images {
    Array<const float, 3> noisy;
    Array<float, 3> working, pilot;
    Array<const float, 3> variance;
};

struct Tall {
    Array<float, 3> compared, pilot, working, change, variance;
    Array<uint8_t, 2> outside;
};

struct Sums {
    Array<float, 4> changes;
    Array<float, 3> weights;
};

// Sums of patch_size numbers side by side, from columns into out.
template <class Sum, class Out>
inline void slide(const Sum* columns, int64_t count, int64_t patch_size, Sum* total, Out* out) {
    for (int64_t x = 0; x < count; x++) total[x] = columns[x];
    for (int64_t shift = 1; shift < patch_size; shift++)
        for (int64_t x = 0; x < count; x++) total[x] += columns[x + shift];
    for (int64_t x = 0; x < count; x++) out[x] = Out(total[x]);
}

// Sums of value(number) of planes (depth, rows, stride) over every patch, at its corner, into out (rows, stride).
// Summed in the precision of scratch (2, stride), in the same order of pixels wherever the patch lies.
// Corners without a whole patch are not written.
template <class Sum, class Out, class Value>
inline void sum_over_patches(const Array<const float, 3>& planes, int64_t patch_size, const Array<Sum, 2>& scratch,
                             const Array<Out, 2>& out, Value value) {
    const int64_t depth = planes.shape[0], rows = planes.shape[1], stride = planes.shape[2];
    Sum* const columns = scratch[0].data;
    for (int64_t y = 0; y + patch_size <= rows; y++) {
        for (int64_t x = 0; x < stride; x++) columns[x] = 0;
        for (int64_t plane = 0; plane < depth; plane++) {
            for (int64_t dy = 0; dy < patch_size; dy++) {
                const float* const line = &planes(plane, y + dy, 0);
                for (int64_t x = 0; x < stride; x++) columns[x] += value(Sum(line[x]));
            }
        }
        slide(columns, stride - patch_size + 1, patch_size, scratch[1].data, &out(y, 0));
    }
}

template <class Sum, class Out>
inline void patch_sums(const Array<const float, 3>& planes, int64_t patch_size, const Array<Sum, 2>& scratch,
                       const Array<Out, 2>& out) {
    sum_over_patches(planes, patch_size, scratch, out, [](Sum number) { return number; });
}

template <class Sum, class Out>
inline void patch_squares(const Array<const float, 3>& planes, int64_t patch_size, const Array<Sum, 2>& scratch,
                          const Array<Out, 2>& out) {
    sum_over_patches(planes, patch_size, scratch, out, [](Sum number) { return number * number; });
}

}  // namespace vnlem
