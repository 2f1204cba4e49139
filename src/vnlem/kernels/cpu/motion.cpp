// Where the blocks of one frame lie in the next: see motion.py.
#include "array.h"
#include "simd.h"

namespace vnlem {

struct BlockSearch {
    int64_t cell, half, longest;
    double cost;
};

namespace {

// Sum of squared differences of two rows.
float squared_difference(const float* a, const float* b, int64_t count) {
    constexpr int kWide = 16;
    Floats<kWide> sums = {};
    int64_t x = 0;
    for (; x + kWide <= count; x += kWide) {
        const Floats<kWide> difference = load<kWide>(a + x) - load<kWide>(b + x);
        sums += difference * difference;
    }
    float sum = total<kWide, float>(sums);
    for (; x < count; x++) sum += (a[x] - b[x]) * (a[x] - b[x]);
    return sum;
}

}  // namespace

VNLEM_EXPORT int64_t vnlem_block_motion(const Array<const float, 2>& here, const Array<const float, 2>& there,
                                        const BlockSearch& search, const Array<int64_t, 3>& moves) {
    const int64_t height = here.shape[0], width = here.shape[1], longest = search.longest;
    const float cost = float(search.cost);
    for (int64_t i = 0; i < moves.shape[0]; i++) {
        for (int64_t j = 0; j < moves.shape[1]; j++) {
            const int64_t middle_y = i * search.cell + search.cell / 2, middle_x = j * search.cell + search.cell / 2;
            const int64_t top = larger_of<int64_t>(0, middle_y - search.half);
            const int64_t bottom = smaller_of(height, middle_y + search.half);
            const int64_t left = larger_of<int64_t>(0, middle_x - search.half);
            const int64_t right = smaller_of(width, middle_x + search.half);
            float least = __builtin_inff();
            moves(i, j, 0) = moves(i, j, 1) = 0;
            for (int64_t dy = larger_of(-longest, -top); dy <= smaller_of(longest, height - bottom); dy++) {
                for (int64_t dx = larger_of(-longest, -left); dx <= smaller_of(longest, width - right); dx++) {
                    float sum = cost * float(std::abs(dy) + std::abs(dx));
                    for (int64_t y = top; y < bottom && sum < least; y++)
                        sum += squared_difference(&here(y, left), &there(y + dy, left + dx), right - left);
                    if (sum < least) {
                        least = sum;
                        moves(i, j, 0) = dy;
                        moves(i, j, 1) = dx;
                    }
                }
            }
        }
    }
    return 0;
}

}  // namespace vnlem
