// The estimate of a pixel from at most 64 neighbours by gamma-power regression. A warp for each pixel; the regression
// needs only the inner products of the aligned neighbours, which tensor cores compute.
// Counterpart of kernels/cpu/aligned.h, as is aligned.cu. Macros: HALF (lanes of all channels), CHANNELS, GROUPS
// (of eight neighbours), UNTURNED (neighbours may be taken as the image has them), WARPS, ROWS, COLUMNS (pixels of a
// block).

#include "estimate.cuh"

#define TALL ((GROUPS + 1) / 2) // tiles of 16 rows
#define STRIDE (HALF + 16)      // of the tables: rows begin on different banks

// Two coordinates of a neighbour. Tensor cores take them in half precision: that rounding is far below the noise.
#if __CUDA_ARCH__ >= 800 && (__CUDACC_VER_MAJOR__ > 12 || (__CUDACC_VER_MAJOR__ == 12 && __CUDACC_VER_MINOR__ > 0))
#define TENSOR_CORES 1
typedef unsigned Two;
__device__ __forceinline__ Two two_of(float re, float im) {
    Two both;
    asm("cvt.rn.satfinite.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(im), "f"(re));
    return both;
}
#else
#define TENSOR_CORES 0
typedef float2 Two;
__device__ __forceinline__ Two two_of(float re, float im) { return make_float2(re, im); }
#endif

// gram[i][j]: inner products of neighbours 16 i.. with neighbours 8 j.., as tensor cores lay them out: lane 4 g + t has
// rows g and g + 8, columns 2 t and 2 t + 1. Adds the products of 16 coordinates; lane 4 g + t gives four of them, for
// the neighbours 8 j + g.
__device__ __forceinline__ void add_products(float (&gram)[TALL][GROUPS][4], const Two (&first)[GROUPS],
                                             const Two (&second)[GROUPS]) {
#if TENSOR_CORES
#pragma unroll
    for (int i = 0; i < TALL; ++i) {
        const bool whole = 2 * i + 1 < GROUPS;
        const Two below_first = whole ? first[2 * i + whole] : 0, below_second = whole ? second[2 * i + whole] : 0;
#pragma unroll
        for (int j = 0; j < GROUPS; ++j)
            asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                : "+f"(gram[i][j][0]), "+f"(gram[i][j][1]), "+f"(gram[i][j][2]), "+f"(gram[i][j][3])
                : "r"(first[2 * i]), "r"(below_first), "r"(second[2 * i]), "r"(below_second), "r"(first[j]),
                  "r"(second[j]));
    }
#else
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    for (int k = 0; k < 4; ++k)
        for (int part = 0; part < 4; ++part) {
            float row[2 * TALL], column[GROUPS][2];
            row[2 * TALL - 1] = 0.0f;
#pragma unroll
            for (int j = 0; j < GROUPS; ++j) {
                const Two two = part < 2 ? first[j] : second[j];
                const float mine = part % 2 ? two.y : two.x;
                row[j] = __shfl_sync(0xFFFFFFFFu, mine, 4 * g + k);
                column[j][0] = __shfl_sync(0xFFFFFFFFu, mine, 8 * t + k);
                column[j][1] = __shfl_sync(0xFFFFFFFFu, mine, 8 * t + 4 + k);
            }
#pragma unroll
            for (int i = 0; i < TALL; ++i)
#pragma unroll
                for (int j = 0; j < GROUPS; ++j)
#pragma unroll
                    for (int c = 0; c < 4; ++c) gram[i][j][c] += row[2 * i + c / 2] * column[j][c % 2];
        }
#endif
}

__device__ __forceinline__ Two turned(float re, float im, float c, float s, float own_re, float own_im) {
    return two_of(re * c + im * s - own_re, im * c - re * s - own_im);
}

// The inner products of all neighbours, turned onto the own patch, minus that patch. position, which: those of
// neighbours g, 8 + g, ...; if there are none, those of the own patch. cosine, sine: (angles, STRIDE).
__device__ __forceinline__ void inner_products(const Estimate& e, int here, const int (&position)[GROUPS],
                                               const int (&which)[GROUPS], const float* cosine, const float* sine,
                                               float (&gram)[TALL][GROUPS][4]) {
    const int t = threadIdx.x % 4;
    const float* own = e.canonical + (long long)here * DIM + 4 * t;
#pragma unroll
    for (int i = 0; i < TALL; ++i)
#pragma unroll
        for (int j = 0; j < GROUPS; ++j)
#pragma unroll
            for (int c = 0; c < 4; ++c) gram[i][j][c] = 0.0f;
#pragma unroll 1
    for (int from = 0; from < HALF; from += 16) {
        Two coordinates[4][GROUPS];
        const float4 own_re = *(const float4*)(own + from), own_im = *(const float4*)(own + HALF + from);
#pragma unroll
        for (int j = 0; j < GROUPS; ++j) {
            const float4* all = (const float4*)(UNTURNED && which[j] >= e.n_angles ? e.raw : e.canonical);
            const unsigned patch = (unsigned)position[j] * (DIM / 4) + from / 4 + t; // in 32 bits: registers are few
            const int at = abs(which[j]) * STRIDE + from + 4 * t;
            const float4 re = all[patch], im = all[patch + HALF / 4];
            const float4 c = *(const float4*)(cosine + at), s = *(const float4*)(sine + at);
            // Turning a patch by an angle multiplies order k by exp(-i k angle).
            const float way = which[j] < 0 ? -1.0f : 1.0f;
            coordinates[0][j] = turned(re.x, im.x, c.x, way * s.x, own_re.x, own_im.x);
            coordinates[1][j] = turned(re.y, im.y, c.y, way * s.y, own_re.y, own_im.y);
            coordinates[2][j] = turned(re.z, im.z, c.z, way * s.z, own_re.z, own_im.z);
            coordinates[3][j] = turned(re.w, im.w, c.w, way * s.w, own_re.w, own_im.w);
        }
        add_products(gram, coordinates[0], coordinates[1]);
        add_products(gram, coordinates[2], coordinates[3]);
    }
}

// gram * shares; lane 4 g + t has the shares of neighbours 16 t + g and 16 t + 8 + g, and gets their products.
// buffer: (64) numbers of the warp.
__device__ __forceinline__ float2 times(const float (&gram)[TALL][GROUPS][4], float2 shares, float* buffer) {
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    __syncwarp();
    buffer[16 * t + g] = shares.x;
    buffer[16 * t + 8 + g] = shares.y;
    __syncwarp();
    float sums[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) sums[i] = 0.0f;
#pragma unroll
    for (int j = 0; j < GROUPS; ++j) {
        const float2 share = *(const float2*)(buffer + 8 * j + 2 * t);
#pragma unroll
        for (int i = 0; i < TALL; ++i)
#pragma unroll
            for (int half = 0; half < 2; ++half)
                sums[2 * i + half] = fmaf(gram[i][j][2 * half], share.x,
                                          fmaf(gram[i][j][2 * half + 1], share.y, sums[2 * i + half]));
    }
    // Lanes 4 g.. hold parts of the same sums: each hands over those that are not its own.
    float four[4], two[2];
#pragma unroll
    for (int i = 0; i < 4; ++i)
        four[i] = (t & 2 ? sums[4 + i] : sums[i]) +
                  __shfl_xor_sync(0xFFFFFFFFu, t & 2 ? sums[i] : sums[4 + i], 2);
#pragma unroll
    for (int i = 0; i < 2; ++i)
        two[i] = (t & 1 ? four[2 + i] : four[i]) +
                 __shfl_xor_sync(0xFFFFFFFFu, t & 1 ? four[i] : four[2 + i], 1);
    return make_float2(two[0], two[1]);
}

// What a lane knows of its two neighbours.
struct Pair {
    int position[2];
    float weight[2];
    float length[2]; // squared, of the aligned neighbour minus the own patch
    bool other[2];   // not the own patch
};

// The shares of a lane's neighbours in the estimate. beyond: what the own patch has in a coordinate that all others
// lack, squared. own: the neighbour that is the own patch, or -1.
__device__ float2 shares_of(const Estimate& e, const float (&gram)[TALL][GROUPS][4], const Pair& pair, float beyond,
                            int own, float* buffer) {
    const float exponent = 0.5f * e.gamma - 1.0f;
    float2 raw = make_float2(pair.weight[0], pair.weight[1]), shares = make_float2(0.0f, 0.0f), inner = shares;
    for (int iteration = 0; iteration <= kMaxIterations; ++iteration) {
        const float whole = warp_sum(raw.x + raw.y);
        float2 product = times(gram, raw, buffer);
        const float others = beyond * (whole - (own < 0 ? 0.0f : buffer[max(own, 0)]));
        if (pair.other[0]) product.x += others;
        if (pair.other[1]) product.y += others;
        const float2 before = shares, inner_before = inner;
        shares = make_float2(raw.x / whole, raw.y / whole);
        inner = make_float2(product.x / whole, product.y / whole);
        const float length = warp_sum(shares.x * inner.x + shares.y * inner.y);
        const float step = warp_sum((shares.x - before.x) * (inner.x - inner_before.x) +
                                    (shares.y - before.y) * (inner.y - inner_before.y));
        if (iteration > 0 && step < e.step * e.step) break;
        // Rounding must not make residuals negative.
        const float first = fmaxf(length + pair.length[0] - 2.0f * inner.x, 0.0f) + kDelta;
        const float second = fmaxf(length + pair.length[1] - 2.0f * inner.y, 0.0f) + kDelta;
        raw.x = pair.weight[0] * exp2f(exponent * log2f(first));
        raw.y = pair.weight[1] * exp2f(exponent * log2f(second));
    }
    return shares;
}

// Positions, weights of a lane's neighbours 16 t + g and 16 t + 8 + g.
__device__ Pair weigh(const Estimate& e, int place, int here, int n, float beyond) {
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    Pair pair;
    float largest = 0.0f;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const int j = 16 * t + 8 * half + g;
        const long long at = (long long)place * e.n_neighbors + j;
        pair.position[half] = j < n ? e.position[at] : here;
        pair.other[half] = pair.position[half] != here;
        const float squared = j < n ? e.squared[at] + (pair.other[half] ? beyond : 0.0f) : 0.0f;
        pair.weight[half] = j < n ? expf(-fmaxf(squared - e.noise, 0.0f) * e.inverse_bandwidth) : 0.0f;
        if (pair.other[half]) largest = fmaxf(largest, pair.weight[half]);
    }
    for (int step = 16; step > 0; step >>= 1) largest = fmaxf(largest, __shfl_xor_sync(0xFFFFFFFFu, largest, step));
#pragma unroll
    for (int half = 0; half < 2; ++half)
        // If all other weights vanish the pixel keeps a weight, and its value.
        if (e.own_as_best && n > 1 && !pair.other[half] && 16 * t + 8 * half + g < n)
            pair.weight[half] = fmaxf(largest, 1e-6f);
    return pair;
}

extern "C" __global__ void __launch_bounds__(32 * WARPS) regress(const Estimate e) {
    DYNAMIC_SHARED(float4, memory);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const int tables = e.n_angles + (UNTURNED ? WARPS : 0); // the last ones: a warp's own angle
    float* cosine = (float*)memory;
    float* sine = cosine + tables * STRIDE;
    float* buffer = sine + tables * STRIDE + 64 * warp;
    for (int i = threadIdx.x; i < e.n_angles * HALF; i += 32 * WARPS) {
        cosine[i / HALF * STRIDE + i % HALF] = e.cosine[i];
        sine[i / HALF * STRIDE + i % HALF] = e.sine[i];
    }
    __syncthreads();
    for (int p = warp; p < ROWS * COLUMNS; p += WARPS) {
        const int y = blockIdx.x * ROWS + p / COLUMNS, x = blockIdx.y * COLUMNS + p % COLUMNS;
        if (y >= e.rows || x >= e.width) continue;
        const int place = y * e.width + x, here = e.top * e.width + place, n = e.counts[place];
        const float beyond = e.sharp[here];
#if UNTURNED
        __syncwarp();
        for (int f = lane; f < HALF; f += 32) {
            double s, c;
            sincos((double)e.orders[f] * (double)e.angle[here], &s, &c);
            cosine[(e.n_angles + warp) * STRIDE + f] = (float)c;
            sine[(e.n_angles + warp) * STRIDE + f] = -(float)s;
        }
        __syncwarp();
#endif
        int position[GROUPS], which[GROUPS], own = -1;
#pragma unroll
        for (int j = 0; j < GROUPS; ++j) {
            const long long at = (long long)place * e.n_neighbors + 8 * j + g;
            const bool there = 8 * j + g < n;
            position[j] = there ? e.position[at] : here;
            which[j] = position[j] != here ? e.which[at] : 0;
            if (UNTURNED && which[j] == IDENTITY) which[j] = e.n_angles + warp;
            if (there && position[j] == here) own = 8 * j + g;
        }
        for (int step = 16; step > 2; step >>= 1) own = max(own, __shfl_xor_sync(0xFFFFFFFFu, own, step));
        float gram[TALL][GROUPS][4];
        inner_products(e, here, position, which, cosine, sine, gram);
        Pair pair = weigh(e, place, here, n, beyond);
        // The products of neighbours with themselves.
        __syncwarp();
#pragma unroll
        for (int j = 0; j < GROUPS; ++j)
            if (t == g / 2) buffer[8 * j + g] = g % 2 ? gram[j / 2][j][j % 2 * 2 + 1] : gram[j / 2][j][j % 2 * 2];
        __syncwarp();
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int j = 16 * t + 8 * half + g;
            pair.length[half] = j < n ? buffer[j] + (pair.other[half] ? beyond : 0.0f) : 0.0f;
        }
        const float2 shares = shares_of(e, gram, pair, beyond, own, buffer);
        for (int channel = 0; channel < CHANNELS; ++channel) {
            const float* pixels = e.pixels + (long long)channel * e.height * e.width;
            const float value = warp_sum(shares.x * pixels[pair.position[0]] + shares.y * pixels[pair.position[1]]);
            if (lane == 0) e.out[(long long)channel * e.rows * e.width + place] = value;
        }
    }
}
