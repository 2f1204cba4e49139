// The estimate of a pixel from its neighbours: weights, alignment, gamma-power regression. A block for each pixel.
// Counterpart of kernels/cpu/aligned.h. Macros: HALF (lanes of all channels), CHANNELS, MEAN (the power is two:
// the weighted mean, nothing to align), THREADS.

#include "estimate.cuh"

#define LINE (DIM + 4) // rows begin on different banks

// shares[j] = weights[j] / their sum.
__device__ void normalise(float* shares, int n, float* scratch) {
    float mine = 0.0f;
    for (int j = threadIdx.x; j < n; j += THREADS) mine += shares[j];
    const float whole = block_sum(mine, scratch);
    for (int j = threadIdx.x; j < n; j += THREADS) shares[j] = shares[j] / whole;
    __syncthreads();
}

// point = sum_j shares[j] rows[j] / sum_j shares[j]; returns the squared lengths of the point and of the step.
__device__ float2 move(const float* rows, const float* shares, int n, float* point, float2* scratch) {
    float2 squares = make_float2(0.0f, 0.0f);
    for (int f = threadIdx.x; f < DIM; f += THREADS) {
        float sum = 0.0f, whole = 0.0f;
        for (int j = 0; j < n; ++j) {
            sum = fmaf(shares[j], rows[j * LINE + f], sum);
            whole += shares[j];
        }
        const float value = sum / whole, step = value - point[f];
        squares.x += value * value;
        squares.y += step * step;
        point[f] = value;
    }
    for (int step = 16; step > 0; step >>= 1) {
        squares.x += __shfl_xor_sync(0xFFFFFFFFu, squares.x, step);
        squares.y += __shfl_xor_sync(0xFFFFFFFFu, squares.y, step);
    }
    if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = squares;
    __syncthreads();
    squares = scratch[0];
    for (int w = 1; w < THREADS / 32; ++w) {
        squares.x += scratch[w].x;
        squares.y += scratch[w].y;
    }
    return squares;
}

extern "C" __global__ void __launch_bounds__(THREADS) aligned(const Estimate e) {
    DYNAMIC_SHARED(float4, memory);
    __shared__ float scratch[32];
    float* shares = (float*)memory; // (n_neighbors), followed by the weights and what the regression needs
    const int room = ceil_div(e.n_neighbors, 4) * 4;
    float* weights = shares + room;
    const int place = blockIdx.x;
    const int here = e.top * e.width + place, n = e.counts[place];
    const int* position = e.position + (long long)place * e.n_neighbors;
    const float sharp_here = e.sharp[here];
    float largest = 0.0f;
    for (int j = threadIdx.x; j < n; j += THREADS) {
        const bool own = position[j] == here;
        const float squared = e.squared[(long long)place * e.n_neighbors + j] + (own ? 0.0f : sharp_here);
        weights[j] = expf(-fmaxf(squared - e.noise, 0.0f) * e.inverse_bandwidth);
        if (!own) largest = fmaxf(largest, weights[j]);
    }
    largest = block_max(largest, scratch);
    for (int j = threadIdx.x; j < n; j += THREADS) {
        // If all other weights vanish the pixel keeps a weight, and its value.
        if (e.own_as_best && n > 1 && position[j] == here) weights[j] = fmaxf(largest, 1e-6f);
        shares[j] = weights[j];
    }
    __syncthreads();
    normalise(shares, n, scratch);
#if !MEAN
    float* lengths = weights + room;    // (n) squared lengths of the rows
    float* point = lengths + room;      // (DIM)
    float* turn = point + DIM;          // (2, HALF): cosine and sine of order * own angle
    float* rows = turn + DIM;           // (n, LINE): neighbours turned onto the own patch, minus that patch
    for (int f = threadIdx.x; f < HALF; f += THREADS) {
        double s, c;
        sincos((double)e.orders[f] * (double)e.angle[here], &s, &c);
        turn[f] = (float)c;
        turn[HALF + f] = (float)s;
        point[f] = point[HALF + f] = 0.0f;
    }
    __syncthreads();
    const float* mine = e.canonical + (long long)here * DIM;
    for (int i = threadIdx.x; i < n * HALF; i += THREADS) {
        const int j = i / HALF, f = i % HALF;
        const int which = e.which[(long long)place * e.n_neighbors + j];
        const bool unturned = which == IDENTITY;
        const float* patch = (unturned ? e.raw : e.canonical) + (long long)position[j] * DIM;
        const int at = (which < 0 ? -which : which) * HALF + f;
        const float c = unturned ? turn[f] : e.cosine[at];
        // Turning a patch by an angle multiplies order k by exp(-i k angle).
        const float s = unturned ? -turn[HALF + f] : which < 0 ? -e.sine[at] : e.sine[at];
        const float re = patch[f], im = patch[HALF + f];
        rows[j * LINE + f] = re * c + im * s - mine[f];
        rows[j * LINE + HALF + f] = im * c - re * s - mine[HALF + f];
    }
    __syncthreads();
    // The coordinate in which the own patch differs from all others.
    for (int j = threadIdx.x; j < n; j += THREADS)
        if (sharp_here != 0.0f && position[j] != here) rows[j * LINE + HALF + e.spare] = -sqrtf(sharp_here);
    __syncthreads();
    // Four threads per row.
    const int quarter = threadIdx.x % 4;
    for (int first = 0; first < n; first += THREADS / 4) {
        const int j = first + threadIdx.x / 4;
        float sum = 0.0f;
        if (j < n)
            for (int f = 4 * quarter; f < DIM; f += 16) {
                const float4 v = *(const float4*)(rows + j * LINE + f);
                sum += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
            }
        sum += __shfl_xor_sync(0xFFFFFFFFu, sum, 1);
        sum += __shfl_xor_sync(0xFFFFFFFFu, sum, 2);
        if (j < n && quarter == 0) lengths[j] = sum;
    }
    __syncthreads();
    const float exponent = 0.5f * e.gamma - 1.0f;
    // The sums of all warps alternate between two places: one barrier is enough.
    __shared__ float2 sums[2][32];
    float length = move(rows, shares, n, point, sums[0]).x;
    for (int iteration = 1; iteration <= kMaxIterations; ++iteration) {
        for (int first = 0; first < n; first += THREADS / 4) {
            const int j = first + threadIdx.x / 4;
            float inner = 0.0f;
            if (j < n)
                for (int f = 4 * quarter; f < DIM; f += 16) {
                    const float4 v = *(const float4*)(rows + j * LINE + f), p = *(const float4*)(point + f);
                    inner += v.x * p.x + v.y * p.y + v.z * p.z + v.w * p.w;
                }
            inner += __shfl_xor_sync(0xFFFFFFFFu, inner, 1);
            inner += __shfl_xor_sync(0xFFFFFFFFu, inner, 2);
            if (j < n && quarter == 0) {
                // Rounding must not make it negative.
                const float residual = fmaxf(length + lengths[j] - 2.0f * inner, 0.0f) + kDelta;
                shares[j] = weights[j] * exp2f(exponent * log2f(residual));
            }
        }
        __syncthreads();
        const float2 squares = move(rows, shares, n, point, sums[iteration % 2]);
        length = squares.x;
        if (squares.y < e.step * e.step) break;
    }
    normalise(shares, n, scratch);
#endif
    for (int channel = 0; channel < CHANNELS; ++channel) {
        float value = 0.0f;
        for (int j = threadIdx.x; j < n; j += THREADS)
            value += shares[j] * e.pixels[(long long)channel * e.height * e.width + position[j]];
        value = block_sum(value, scratch);
        if (threadIdx.x == 0) e.out[(long long)channel * e.rows * e.width + place] = value;
    }
}
