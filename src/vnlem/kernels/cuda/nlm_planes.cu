// Non-local means of one plane of a stack, with windows in the planes around it too. As in nlm.cu a warp takes 32
// columns of squared differences; the planes are loaded into shared memory one after another.
// Counterpart of vnlem.kernels.cpu.nlm. Macros: RX, RY (radii of a patch), ROWS (pixels of a thread, one
// below the other), WARPS (of a block, one below the other).

#include "across.cuh"

struct Means {
    const float* planes; // (n_planes, height, width); symmetric beyond their borders
    float* out;          // (height, width)
    int n_planes, own, height, width, reach_y, reach_x;
    float decay, floor; // weights exp(-decay * max(squared distance - floor, 0))
};

extern "C" __global__ void __launch_bounds__(32 * WARPS) nlm_planes(const Means m) {
    DYNAMIC_SHARED(float, tile);
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int top = blockIdx.y * WARPS * ROWS, left = blockIdx.x * WIDTH;
    const int tile_rows = WARPS * ROWS + 2 * (RY + m.reach_y), tile_columns = 32 + 2 * m.reach_x;
    const float* here = tile + (warp * ROWS + m.reach_y) * tile_columns + m.reach_x + lane;
    const auto bring = [&](int plane) {
        __syncthreads();
        for (int i = threadIdx.x; i < tile_rows * tile_columns; i += 32 * WARPS) {
            const int y = mirrored(top - m.reach_y - RY + i / tile_columns, m.height);
            const int x = mirrored(left - m.reach_x - RX + i % tile_columns, m.width);
            tile[i] = m.planes[((long long)plane * m.height + y) * m.width + x];
        }
        __syncthreads();
    };
    bring(m.own);
    float own[LINES], total[ROWS] = {}, mean[ROWS] = {};
#pragma unroll
    for (int r = 0; r < LINES; ++r) own[r] = here[r * tile_columns];
    const int y0 = top + warp * ROWS, x0 = left + lane;
    for (int plane = 0; plane < m.n_planes; ++plane) {
        bring(plane);
        for (int dy = -m.reach_y; dy <= m.reach_y; ++dy)
            for (int dx = -m.reach_x; dx <= m.reach_x; ++dx) {
                const float* there = here + dy * tile_columns + dx;
                const bool in_row = x0 + dx >= 0 && x0 + dx < m.width;
                float squares[LINES], running = 0.0f;
#pragma unroll
                for (int r = 0; r < LINES; ++r) {
                    const float d = own[r] - there[r * tile_columns];
                    squares[r] = d * d;
                    if (r < 2 * RY) running += squares[r];
                }
#pragma unroll
                for (int r = 0; r < ROWS; ++r) {
                    running += squares[r + 2 * RY];
                    const float squared = sum_across(running);
                    running -= squares[r];
                    float weight = __expf(-m.decay * fmaxf(squared - m.floor, 0.0f));
                    const int y = y0 + r + dy;
                    if (!in_row || y < 0 || y >= m.height) weight = 0.0f;
                    total[r] += weight;
                    mean[r] = fmaf(weight, there[(r + RY) * tile_columns + RX], mean[r]);
                }
            }
    }
    if (lane >= WIDTH || x0 >= m.width) return;
#pragma unroll
    for (int r = 0; r < ROWS; ++r)
        if (y0 + r < m.height) m.out[(y0 + r) * m.width + x0] = mean[r] / total[r];
}
