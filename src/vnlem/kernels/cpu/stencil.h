// A graph on the pixels of an image as a stencil: see stencil.py.
#pragma once
#include "array.h"

namespace vnlem {

struct PaddedSize {
    int64_t height, width, reach, stride;

    int64_t side() const { return 2 * reach + 1; }
    // Forward offsets; also the slot of the pixel itself.
    int64_t n_forward() const { return reach + reach * side(); }
    int64_t n_slots() const { return n_forward() + 1; }
    // Number of a pixel with the padding.
    int64_t at(int64_t y, int64_t x) const { return (y + reach) * stride + x + reach; }

    // The slot of a forward offset, or of the pixel itself.
    int64_t slot(int64_t dy, int64_t dx) const {
        if (dy == 0) return dx > 0 ? dx - 1 : n_forward();
        return reach + (dy - 1) * side() + dx + reach;
    }
    // Where the weights of row y begin.
    int64_t weights_at(int64_t y) const { return (y + reach) * n_slots() * stride + reach; }
    // Offset from there to the weight of a neighbour; if the neighbour comes before the pixel, it holds the weight.
    int64_t weight_of(int64_t dy, int64_t dx) const {
        const bool behind = dy < 0 || (dy == 0 && dx < 0);
        return behind ? (dy * n_slots() + slot(-dy, -dx)) * stride + dx : slot(dy, dx) * stride;
    }
};

}  // namespace vnlem
