// Tiles of products of matrices, held in registers: how many rows and columns.
#pragma once
#include <type_traits>

#include "simd.h"

namespace vnlem {

// Rows of a tile; with three vectors each, their sums leave registers for the operands.
constexpr int kTileRows = kRegisters / 4;

template <int N>
using Number = std::integral_constant<int, N>;

// visit(first column, Number<vectors>, Number<numbers in each>) for tiles side by side that make up `width`, a
// multiple of eight. Narrow tiles wait for their sums, so none has one vector where that can be avoided.
template <class Visit>
inline void for_each_tile(int64_t width, Visit visit) {
    int64_t column = 0;
    for (int64_t n = width / kLanes; n > 0; n = (width - column) / kLanes) {
        if (n == 1) {
            visit(column, Number<1>(), Number<kLanes>());
            column += kLanes;
        } else if (n == 2 || n == 4) {
            visit(column, Number<2>(), Number<kLanes>());
            column += 2 * kLanes;
        } else {
            visit(column, Number<3>(), Number<kLanes>());
            column += 3 * kLanes;
        }
    }
    for (; column < width; column += 8) visit(column, Number<1>(), Number<8>());
}

}  // namespace vnlem
