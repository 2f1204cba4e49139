// Shared by NLM on images (nlm.cu) and on stacks (nlm_planes.cu). Macros: RX, RY (radii of a patch), ROWS (pixels
// of a thread, one below the other).

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
