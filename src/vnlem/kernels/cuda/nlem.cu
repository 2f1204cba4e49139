// Non-local patch regression: the nearest patches of the window, then the point nearest to them in power gamma.
// A warp for each pixel; patches are read in place, from a copy of the image in shared memory.
// Counterpart of vnlem.kernels.cpu.nlem and irls.h. Macros: SIZE_Y, SIZE_X (of a patch), CHANNELS, WARPS,
// MEDIAN (the power is one).

#include "../shared/regression.h"

#define AREA (SIZE_Y * SIZE_X)
#define LENGTH (CHANNELS * AREA)
#define TOGETHER 4 // patches of a lane that share the loads of the point
#define ROUNDS 8   // pixels of a patch that a lane adds up at a time

const int UNROLLED = SIZE_X <= 16 ? SIZE_X : 8;

struct Windows {
    const float* image; // (CHANNELS, height, width); symmetric beyond its border
    float* out;         // (CHANNELS, height, width)
    int height, width, reach_y, reach_x, n_neighbors;
    float decay, floor; // weights exp(-decay * max(squared distance - floor, 0))
    float gamma;        // power of the norm
    float remainder;    // the median stops when the estimated distance left is shorter
};

// Shared memory of a warp.
struct Patches {
    const float* tile; // pixels of the image
    const int* place;  // (LENGTH): offsets of the pixels of a patch from its first one
    int columns, plane;
    int* first;     // (n_neighbors): first pixel of each patch, the pixel's own patch first
    float* weights; // (n_neighbors)
    float* squared; // (n_neighbors): squared distances from the own patch
    float* terms;   // (n_neighbors)
    float* point;   // (LENGTH)
    int count;
};

// terms[j] = squared distance of patch j from the point, the mean over the channels.
__device__ void residuals(const Patches& p) {
    const int lane = threadIdx.x % 32;
    for (int begin = 0; begin < p.count; begin += 32 * TOGETHER) {
        const float* at[TOGETHER];
        float sums[TOGETHER];
#pragma unroll
        for (int t = 0; t < TOGETHER; ++t) {
            at[t] = p.tile + p.first[min(begin + 32 * t + lane, p.count - 1)];
            sums[t] = 0.0f;
        }
        for (int channel = 0; channel < CHANNELS; ++channel)
            for (int y = 0; y < SIZE_Y; ++y)
#pragma unroll UNROLLED
                for (int x = 0; x < SIZE_X; ++x) {
                    const float value = p.point[(channel * SIZE_Y + y) * SIZE_X + x];
#pragma unroll
                    for (int t = 0; t < TOGETHER; ++t) {
                        const float d = value - at[t][channel * p.plane + y * p.columns + x];
                        sums[t] = fmaf(d, d, sums[t]);
                    }
                }
#pragma unroll
        for (int t = 0; t < TOGETHER; ++t)
            if (begin + 32 * t + lane < p.count) p.terms[begin + 32 * t + lane] = sums[t] * (1.0f / CHANNELS);
    }
    __syncwarp();
}

// For each round of pixels: the sum over patches from `begin` on of their terms times their pixels, handed to
// `use` with the pixel's number. Returns the sum of the terms.
template <typename F>
__device__ float weighted_sums(const Patches& p, int begin, F use) {
    float whole = 0.0f;
    for (int from = 0; from < LENGTH; from += 32 * ROUNDS) {
        float sums[ROUNDS];
        int place[ROUNDS];
#pragma unroll
        for (int r = 0; r < ROUNDS; ++r) {
            sums[r] = 0.0f;
            place[r] = p.place[min(from + 32 * r + (int)threadIdx.x % 32, LENGTH - 1)];
        }
        whole = 0.0f;
        for (int j = begin; j < p.count; ++j) {
            const float term = p.terms[j];
            const float* patch = p.tile + p.first[j];
            whole += term;
#pragma unroll
            for (int r = 0; r < ROUNDS; ++r)
                if (from + 32 * r < LENGTH) sums[r] = fmaf(term, patch[place[r]], sums[r]);
        }
#pragma unroll
        for (int r = 0; r < ROUNDS; ++r) {
            const int a = from + 32 * r + threadIdx.x % 32;
            if (a < LENGTH) use(a, sums[r] / whole);
        }
    }
    return whole;
}

// Iteratively reweighted least squares from the weighted mean; the result is left in `point`.
__device__ void regression(const Patches& p, float gamma) {
    const int lane = threadIdx.x % 32;
    const float exponent = 0.5f * gamma - 1.0f;
    for (int j = lane; j < p.count; j += 32) p.terms[j] = p.weights[j];
    __syncwarp();
    for (int iteration = 0; iteration <= kMaxIterations; ++iteration) {
        if (iteration > 0) {
            residuals(p);
            for (int j = lane; j < p.count; j += 32)
                p.terms[j] = p.weights[j] * exp2f(exponent * log2f(p.terms[j] + kDelta));
            __syncwarp();
        }
        float step = 0.0f;
        weighted_sums(p, 0, [&](int a, float value) {
            const float d = value - p.point[a];
            step = fmaf(d, d, step);
            p.point[a] = value;
        });
        __syncwarp();
        step = warp_sum(step) * (1.0f / CHANNELS);
        if (exponent == 0.0f || (iteration > 0 && step < kStep * kStep)) return;
    }
}

// The ratio of the next step's length to this one's, from residuals at its two ends.
__device__ float contraction(const Patches& p, float step) {
    float along = 0.0f, total = 0.0f;
    for (int j = 1 + threadIdx.x % 32; j < p.count; j += 32) {
        const float squared = p.terms[j] + kDelta, v = p.weights[j] / sqrtf(squared);
        const float side = (p.terms[j] - p.squared[j] + step * step) / (2.0f * step);
        along += v * side * side / squared;
        total += v;
    }
    return warp_sum(along) / warp_sum(total);
}

// The Euclidean median; only patches other than the own one get a parabola, see kernels/cpu/irls.h.
// mean: (LENGTH), scratch.
__device__ void median(const Patches& p, float remainder, float* mean) {
    const int lane = threadIdx.x % 32;
    const float* own = p.tile + p.first[0];
    for (int a = lane; a < LENGTH; a += 32) p.point[a] = own[p.place[a]];
    for (int j = lane; j < p.count; j += 32) p.terms[j] = p.squared[j];
    __syncwarp();
    if (p.count == 1) return;
    float rate = 1.0f, last_step = 0.0f;
    for (int iteration = 1; iteration <= kMaxIterations; ++iteration) {
        if (iteration > 1) residuals(p);
        if (iteration == 2) rate = contraction(p, last_step);
        __syncwarp();
        for (int j = lane; j < p.count; j += 32) p.terms[j] = p.weights[j] / sqrtf(p.terms[j] + kDelta);
        __syncwarp();
        float distance = 0.0f;
        const float pull = weighted_sums(p, 1, [&](int a, float value) {
            const float d = value - own[p.place[a]];
            mean[a] = d;
            distance = fmaf(d, d, distance);
        });
        distance = sqrtf(warp_sum(distance) * (1.0f / CHANNELS));
        const float best = own_step(distance, p.weights[0], pull);
        const float share = distance > 0.0f ? best / distance : 0.0f;
        float step = 0.0f;
        for (int a = lane; a < LENGTH; a += 32) {
            const float value = own[p.place[a]] + share * mean[a], d = value - p.point[a];
            step = fmaf(d, d, step);
            p.point[a] = value;
        }
        __syncwarp();
        step = sqrtf(warp_sum(step) * (1.0f / CHANNELS));
        // The distance left after this step; steps shrink like a geometric series.
        const float root = sqrtf(best * best + kDelta);
        const float own_curvature = p.weights[0] * kDelta / (root * root * root);
        float ahead = step * pull / (own_curvature + pull);
        if (iteration > 2) rate = step / last_step;
        if (rate < 0.5f) ahead = fminf(ahead, 3.0f * rate * step);
        if (ahead < remainder) return;
        last_step = step;
    }
}

extern "C" __global__ void __launch_bounds__(32 * WARPS) nlem(const Windows w) {
    DYNAMIC_SHARED(float, memory);
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int y = blockIdx.x, left = blockIdx.y * WARPS, x = left + warp;
    const int rows = 2 * w.reach_y + SIZE_Y, columns = 2 * w.reach_x + SIZE_X + WARPS - 1;
    const int window = (2 * w.reach_y + 1) * (2 * w.reach_x + 1);
    float* tile = memory;
    int* place = (int*)(tile + CHANNELS * rows * columns);
    float* values = (float*)(place + LENGTH) + warp * (window + 3 * w.n_neighbors + (MEDIAN ? 2 : 1) * LENGTH);
    for (int i = threadIdx.x; i < CHANNELS * rows * columns; i += 32 * WARPS) {
        const int channel = i / (rows * columns);
        const int from_y = mirrored(y - w.reach_y - SIZE_Y / 2 + i / columns % rows, w.height);
        const int from_x = mirrored(left - w.reach_x - SIZE_X / 2 + i % columns, w.width);
        tile[i] = w.image[((long long)channel * w.height + from_y) * w.width + from_x];
    }
    for (int a = threadIdx.x; a < LENGTH; a += 32 * WARPS)
        place[a] = (a / AREA * rows + a % AREA / SIZE_X) * columns + a % SIZE_X;
    __syncthreads();
    if (x >= w.width) return;
    Patches p;
    p.tile = tile;
    p.place = place;
    p.columns = columns;
    p.plane = rows * columns;
    p.first = (int*)(values + window);
    p.weights = (float*)(p.first + w.n_neighbors);
    p.squared = p.weights + w.n_neighbors;
    p.point = p.squared + w.n_neighbors;

    // Squared distances of the own patch to those of the window that lie in the image, in `values`.
    const int top = max(y - w.reach_y, 0), bottom = min(y + w.reach_y + 1, w.height);
    const int begin = max(x - w.reach_x, 0), wide = min(x + w.reach_x + 1, w.width) - begin;
    const int corner = (top - y + w.reach_y) * columns + begin - left + w.reach_x;
    const int own = w.reach_y * columns + x - left + w.reach_x;
    const int own_place = (y - top) * wide + x - begin;
    for (int a = lane; a < LENGTH; a += 32) p.point[a] = tile[own + place[a]];
    // Until patches are chosen, the list holds parts of the window.
    p.terms = values;
    const int n_values = (bottom - top) * wide;
    for (int part = 0; part < n_values; part += w.n_neighbors) {
        p.count = min(w.n_neighbors, n_values - part);
        __syncwarp();
        for (int j = lane; j < p.count; j += 32)
            p.first[j] = corner + (part + j) / wide * columns + (part + j) % wide;
        __syncwarp();
        p.terms = values + part;
        residuals(p);
    }
    p.terms = values;
    if (lane == 0) values[own_place] = 0.0f;
    __syncwarp();
    const int chosen = smallest_of_warp(values, n_values, w.n_neighbors, own_place, p.first);
    // Patches with a weight too small to change a sum are left out.
    p.count = 0;
    for (int j = 0; j < chosen; j += 32) {
        const int at = p.first[min(j + lane, chosen - 1)];
        const float squared = values[at];
        const float weight = expf(-w.decay * fmaxf(squared - w.floor, 0.0f));
        const bool kept = j + lane < chosen && weight > kNegligible;
        const unsigned all = __ballot_sync(0xFFFFFFFFu, kept);
        __syncwarp();
        const int to = p.count + __popc(all & ((1u << lane) - 1));
        if (kept) {
            p.first[to] = corner + at / wide * columns + at % wide;
            p.weights[to] = weight;
            p.squared[to] = squared;
        }
        p.count += __popc(all);
        __syncwarp();
    }
#if MEDIAN
    median(p, w.remainder, p.point + LENGTH);
#else
    regression(p, w.gamma);
#endif
    if (lane < CHANNELS)
        w.out[((long long)lane * w.height + y) * w.width + x] =
            p.point[lane * AREA + SIZE_Y / 2 * SIZE_X + SIZE_X / 2];
}
