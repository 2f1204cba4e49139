// Non-local means of an image, or of one plane of a stack with windows in the planes around it too. A warp takes 32
// columns of squared differences, of which the inner ones become pixels: sums over a patch are running sums down
// the columns, then sums across the lanes. Planes are loaded into shared memory one after another.
// Counterpart of vnlem.kernels.cpu.nlm. Macros: RX, RY (radii of a patch), CHANNELS, ROWS (pixels of a thread,
// one below another), WARPS (of a block, one below another), PARTS (warps that share a window, by its rows).

#define WIDTH (32 - 2 * RX)   // pixels of a warp side by side
#define LINES (ROWS + 2 * RY) // rows of pixels that a thread looks at

// The sum of `value` over lanes l..l + 2 RX, by blocks of 1, 2, 4, ... lanes.
__device__ __forceinline__ float sum_across(float value) {
    float block = value, sum = 0.0f;
    int begin = 0;
#pragma unroll
    for (int size = 1; size <= 2 * RX + 1; size *= 2) {
        if ((2 * RX + 1) & size) {
            sum += begin == 0 ? block : __shfl_sync(0xFFFFFFFFu, block, (threadIdx.x + begin) % 32);
            begin += size;
        }
        if (2 * size <= 2 * RX + 1) block += __shfl_sync(0xFFFFFFFFu, block, (threadIdx.x + size) % 32);
    }
    return sum;
}

struct Means {
    const float* planes; // (n_planes, CHANNELS, height, width); symmetric beyond their borders
    float* out;          // (CHANNELS, height, width)
    int n_planes, own, height, width, reach_y, reach_x; // own: the plane whose pixels are wanted
    float decay, floor; // weights exp(-decay * max(squared distance - floor, 0))
};

extern "C" __global__ void __launch_bounds__(32 * WARPS * PARTS) nlm(const Means m) {
    DYNAMIC_SHARED(float, tile);
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % WARPS;
    const int part = PARTS > 1 ? threadIdx.x / (32 * WARPS) : 0;
    const int top = blockIdx.y * WARPS * ROWS, left = blockIdx.x * WIDTH;
    const int tile_rows = WARPS * ROWS + 2 * (RY + m.reach_y), tile_columns = 32 + 2 * m.reach_x;
    const int layer = tile_rows * tile_columns;
    const auto bring = [&](int plane) {
        __syncthreads();
        for (int i = threadIdx.x; i < CHANNELS * layer; i += 32 * WARPS * PARTS) {
            const int y = mirrored(top - m.reach_y - RY + i / tile_columns % tile_rows, m.height);
            const int x = mirrored(left - m.reach_x - RX + i % tile_columns, m.width);
            tile[i] = m.planes[(((long long)plane * CHANNELS + i / layer) * m.height + y) * m.width + x];
        }
        __syncthreads();
    };
    bring(m.own);
    const float* here = tile + (warp * ROWS + m.reach_y) * tile_columns + m.reach_x + lane;
    float own[CHANNELS][LINES], total[ROWS] = {}, mean[CHANNELS][ROWS] = {};
#pragma unroll
    for (int c = 0; c < CHANNELS; ++c)
#pragma unroll
        for (int r = 0; r < LINES; ++r) own[c][r] = here[c * layer + r * tile_columns];
    const int y0 = top + warp * ROWS, x0 = left + lane;
    const int window = 2 * m.reach_y + 1;
    const int first = part * window / PARTS - m.reach_y, last = (part + 1) * window / PARTS - m.reach_y;
    for (int plane = 0; plane < m.n_planes; ++plane) {
        if (m.n_planes > 1) bring(plane);
        for (int dy = first; dy < last; ++dy) {
            for (int dx = -m.reach_x; dx <= m.reach_x; ++dx) {
                const float* there = here + dy * tile_columns + dx;
                const bool in_row = x0 + dx >= 0 && x0 + dx < m.width;
                float squares[LINES], running = 0.0f;
#pragma unroll
                for (int r = 0; r < LINES; ++r) {
                    squares[r] = 0.0f;
#pragma unroll
                    for (int c = 0; c < CHANNELS; ++c) {
                        const float d = own[c][r] - there[c * layer + r * tile_columns];
                        squares[r] = fmaf(d, d, squares[r]);
                    }
                    if (r < 2 * RY) running += squares[r];
                }
#pragma unroll
                for (int r = 0; r < ROWS; ++r) {
                    running += squares[r + 2 * RY];
                    const float squared = sum_across(running) * (1.0f / CHANNELS);
                    running -= squares[r];
                    float weight = __expf(-m.decay * fmaxf(squared - m.floor, 0.0f));
                    const int y = y0 + r + dy;
                    if (!in_row || y < 0 || y >= m.height) weight = 0.0f;
                    total[r] += weight;
#pragma unroll
                    for (int c = 0; c < CHANNELS; ++c)
                        mean[c][r] = fmaf(weight, there[c * layer + (r + RY) * tile_columns + RX], mean[c][r]);
                }
            }
        }
    }
    // The first part adds the sums of the others, in their order.
    __syncthreads();
    for (int other = 1; other < PARTS; ++other) {
        float* sums = tile + (other - 1) * (CHANNELS + 1) * ROWS * 32 * WARPS + warp * 32 + lane;
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            if (part == other) sums[r * 32 * WARPS] = total[r];
#pragma unroll
            for (int c = 0; c < CHANNELS; ++c)
                if (part == other) sums[((c + 1) * ROWS + r) * 32 * WARPS] = mean[c][r];
        }
    }
    __syncthreads();
    if (part > 0 || lane >= WIDTH || x0 >= m.width) return;
    for (int other = 1; other < PARTS; ++other) {
        const float* sums = tile + (other - 1) * (CHANNELS + 1) * ROWS * 32 * WARPS + warp * 32 + lane;
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            total[r] += sums[r * 32 * WARPS];
#pragma unroll
            for (int c = 0; c < CHANNELS; ++c) mean[c][r] += sums[((c + 1) * ROWS + r) * 32 * WARPS];
        }
    }
#pragma unroll
    for (int r = 0; r < ROWS; ++r)
        if (y0 + r < m.height)
#pragma unroll
            for (int c = 0; c < CHANNELS; ++c)
                m.out[((long long)c * m.height + y0 + r) * m.width + x0] = mean[c][r] / total[r];
}
