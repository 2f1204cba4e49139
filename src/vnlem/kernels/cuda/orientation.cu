// Gradients of the smoothed image, and the arc of directions that holds most of them. A thread for each pixel.
// Counterpart of vnlem.kernels.cpu.orientation. Macro: THREADS (of a block of `directions`).

#include "../shared/orientation.h"

struct Gradients {
    const float* padded; // (height + 2 radius, width + 2 radius)
    const float* gauss;  // (radius + 1)
    const float* slope;  // (radius + 1)
    float* magnitude;    // (height, width)
    float* direction;    // likewise, in [0, 1) of a turn
    int height, width, radius;
    float smallest; // gradients up to this count as zero
};

// Differences are taken before sums: a constant image has a gradient of exactly zero.
extern "C" __global__ void gradients(const Gradients g) {
    const int x = blockIdx.y * blockDim.x + threadIdx.x, y = blockIdx.x;
    if (x >= g.width) return;
    const int full = g.width + 2 * g.radius;
    const float* middle = g.padded + (long long)(y + g.radius) * full + x + g.radius;
    float gx = 0.0f, gy = 0.0f;
    for (int t = 0; t <= g.radius; ++t) {
        // Two columns at distance t, smoothed and differentiated along y.
        float smooth[2], sloped[2];
        for (int side = 0; side < 2; ++side) {
            const float* at = middle + (side ? t : -t);
            smooth[side] = g.gauss[0] * at[0];
            sloped[side] = 0.0f;
            for (int r = 1; r <= g.radius; ++r) {
                const float above = at[-(long long)r * full], below = at[(long long)r * full];
                smooth[side] += g.gauss[r] * (above + below);
                sloped[side] += g.slope[r] * (below - above);
            }
        }
        if (t == 0) {
            gy = g.gauss[0] * sloped[0];
        } else {
            gx += g.slope[t] * (smooth[1] - smooth[0]);
            gy += g.gauss[t] * (sloped[1] + sloped[0]);
        }
    }
    const float size = sqrtf(gx * gx + gy * gy);
    float share = 0.0f;
    if (size > g.smallest) {
        share = atan2f(gy, gx) * 0.15915494309189535f;
        if (share < 0.0f) share += 1.0f;
    }
    g.magnitude[(long long)y * g.width + x] = size > g.smallest ? size : 0.0f;
    g.direction[(long long)y * g.width + x] = share;
}

struct Directions {
    const float* magnitude; // (height + 2 border, width + 2 border)
    const float* direction;
    const int* offsets;    // (n_offsets, 2)
    const float* weights;  // (n_offsets)
    const float* taper;    // (reach + 1), the arc's right half
    float* angle;          // (height, width), radians
    int height, width, border, n_offsets, reach;
};

// Histogram of directions over the disc, smoothed by the tapered arc; its peak by a parabola.
extern "C" __global__ void directions(const Directions d) {
    // A column for each thread; the last bin is the first again.
    __shared__ float bins[(kBins + 1) * THREADS];
    const int x = blockIdx.y * THREADS + threadIdx.x, y = blockIdx.x;
    float* mine = bins + threadIdx.x;
    if (x >= d.width) return;
    for (int b = 0; b <= kBins; ++b) mine[b * THREADS] = 0.0f;
    const int full = d.width + 2 * d.border;
    for (int o = 0; o < d.n_offsets; ++o) {
        const long long at =
            (long long)(y + d.border + d.offsets[2 * o]) * full + x + d.border + d.offsets[2 * o + 1];
        const float place = d.direction[at] * (float)kBins;
        int bin = (int)place;
        const float fraction = place - (float)bin;
        if (bin >= kBins) bin -= kBins;
        const float size = d.weights[o] * d.magnitude[at];
        mine[bin * THREADS] += size * (1.0f - fraction);
        mine[(bin + 1) * THREADS] += size * fraction;
    }
    mine[0] += mine[kBins * THREADS];
    float total = 0.0f;
    for (int b = 0; b < kBins; ++b) total += mine[b * THREADS];
    float angle = 0.0f;
    if (total != 0.0f) {
        float before = 0.0f, best_value = -1.0f, first = 0.0f, last = 0.0f, beside[2] = {0.0f, 0.0f};
        int best = 0;
        for (int b = 0; b < kBins; ++b) {
            float arc = d.taper[0] * mine[b * THREADS];
            for (int t = 1; t <= d.reach; ++t)
                arc += d.taper[t] * (mine[(b - t + kBins) % kBins * THREADS] +
                                     mine[(b + t) % kBins * THREADS]);
            if (b == 0) first = arc;
            if (b == best + 1) beside[1] = arc;
            if (arc > best_value) {
                best = b;
                best_value = arc;
                beside[0] = before;
            }
            before = last = arc;
        }
        if (best == 0) beside[0] = last;
        if (best == kBins - 1) beside[1] = first;
        const float curvature = beside[0] - 2.0f * best_value + beside[1];
        float at = (float)best;
        if (curvature < 0.0f) at += 0.5f * (beside[0] - beside[1]) / curvature;
        if (at > kBins / 2) at -= (float)kBins;
        angle = at * (float)(2.0 * kPi / kBins);
    }
    d.angle[(long long)y * d.width + x] = angle;
}
