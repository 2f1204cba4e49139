// Ring features: sample the rings around a pixel, transform, turn into the given frame. A thread for each pixel;
// a warp collects the features of its pixels in shared memory, to write them side by side.
// Counterpart of vnlem.kernels.cpu.rings. Macro: ORDERS (highest angular order + 1).

struct Rings {
    const float* planes;  // (channels, upsample, upsample, full_height, full_width), see features.upsample.phases
    const float* angles;  // (height, width), radians
    const int* where;     // (samples, 4, [offset in `planes` of one channel])
    const float* weights; // (samples, 4)
    const int* starts;    // (rings + 1), first sample of each ring
    const float* rows;    // (samples, 2, 4 * FOURS): what a sample adds to the real and imaginary coefficients
    const int* fours_of;  // (rings), groups of four orders that a ring has
    const int* lane_of;   // (rings, ORDERS), lane of a coefficient or -1
    const int* order_of;  // (lanes), angular order of a lane
    float* raw;           // (height, width, dim)
    float* canonical;
    float* lengths;       // (height, width), squared
    int height, width, channels, n_rings, lanes, centre_lane, halo;
    int plane, full_width; // numbers of a channel's planes; of a row
    float centre;          // weight of the central pixel
};

#define FOURS ((ORDERS + 3) / 4)

// Cosine and sine of order * angle, by the addition theorem in double precision.
__device__ void turns_of(double angle, float* cosine, float* sine) {
    double step_cos, step_sin, c = 1.0, s = 0.0;
    sincos(angle, &step_sin, &step_cos);
#pragma unroll
    for (int k = 0; k < ORDERS; ++k) {
        cosine[k] = (float)c;
        sine[k] = (float)s;
        const double next = c * step_cos - s * step_sin;
        s = s * step_cos + c * step_sin;
        c = next;
    }
}

// The features of one channel of a pixel into mine (2 * lanes); returns their squared length.
__device__ float sample(const Rings& r, const float* here, float* mine) {
    for (int l = 0; l < 2 * r.lanes; ++l) mine[l] = 0.0f;
    const float middle = r.centre * here[0];
    mine[r.centre_lane] = middle;
    float length = middle * middle;
    for (int ring = 0; ring < r.n_rings; ++ring) {
        float real[4 * FOURS], imag[4 * FOURS];
#pragma unroll
        for (int k = 0; k < 4 * FOURS; ++k) real[k] = imag[k] = 0.0f;
        const int fours = r.fours_of[ring], last = r.starts[ring + 1];
#pragma unroll 4
        for (int sample = r.starts[ring]; sample < last; ++sample) {
            const int4 where = ((const int4*)r.where)[sample];
            const float4 weights = ((const float4*)r.weights)[sample];
            const float value = weights.x * here[where.x] + weights.y * here[where.y] + weights.z * here[where.z] +
                                weights.w * here[where.w];
            const float4* rows = (const float4*)r.rows + 2 * FOURS * sample;
#pragma unroll
            for (int four = 0; four < FOURS; ++four) {
                if (four >= fours) continue;
                const float4 re = rows[four], im = rows[FOURS + four];
                real[4 * four] = fmaf(re.x, value, real[4 * four]);
                real[4 * four + 1] = fmaf(re.y, value, real[4 * four + 1]);
                real[4 * four + 2] = fmaf(re.z, value, real[4 * four + 2]);
                real[4 * four + 3] = fmaf(re.w, value, real[4 * four + 3]);
                imag[4 * four] = fmaf(im.x, value, imag[4 * four]);
                imag[4 * four + 1] = fmaf(im.y, value, imag[4 * four + 1]);
                imag[4 * four + 2] = fmaf(im.z, value, imag[4 * four + 2]);
                imag[4 * four + 3] = fmaf(im.w, value, imag[4 * four + 3]);
            }
        }
#pragma unroll
        for (int k = 0; k < ORDERS; ++k) {
            const int lane = r.lane_of[ring * ORDERS + k];
            if (lane < 0) continue;
            mine[lane] = real[k];
            mine[r.lanes + lane] = imag[k];
            length += real[k] * real[k] + imag[k] * imag[k];
        }
    }
    return length;
}

extern "C" __global__ void rings(const Rings r) {
    DYNAMIC_SHARED(float, memory);
    const int lane = threadIdx.x % 32, warps = blockDim.x / 32;
    const int line = 2 * r.lanes + 1; // odd: no two pixels on the same bank
    float* stage = memory + threadIdx.x / 32 * 32 * (line + 2 * ORDERS);
    float* turns = stage + 32 * line; // (32, 2, ORDERS)
    const int y = blockIdx.x, x0 = (blockIdx.y * warps + threadIdx.x / 32) * 32;
    const int count = min(32, r.width - x0), half = r.channels * r.lanes;
    const long long first = (long long)y * r.width + x0;
    float length = 0.0f;
    if (lane < count)
        turns_of(r.angles[first + lane], turns + lane * 2 * ORDERS, turns + (lane * 2 + 1) * ORDERS);
    for (int channel = 0; channel < r.channels; ++channel) {
        const float* here =
            r.planes + (long long)channel * r.plane + (long long)(y + r.halo) * r.full_width + x0 + lane + r.halo;
        if (lane < count) length += sample(r, here, stage + lane * line);
        __syncwarp();
        for (int p = 0; p < count; ++p)
            for (int l = lane; l < r.lanes; l += 32) {
                const float re = stage[p * line + l], im = stage[p * line + r.lanes + l];
                const float* turn = turns + p * 2 * ORDERS + r.order_of[l];
                const float c = turn[0], s = turn[ORDERS];
                const long long at = (first + p) * 2 * half + channel * r.lanes + l;
                r.raw[at] = re;
                r.raw[at + half] = im;
                // Turning a patch by minus an angle multiplies by exp(i k angle).
                r.canonical[at] = re * c - im * s;
                r.canonical[at + half] = re * s + im * c;
            }
        __syncwarp();
    }
    if (lane < count) r.lengths[first + lane] = length;
}
