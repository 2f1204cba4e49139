// The gamma-power regression of weighted patches, argmin over P of sum_j w_j (|P - P_j|^2 + delta)^(gamma/2): shared
// by the CPU and CUDA. A guard instead of #pragma once: CUDA kernels are compiled as one text.
#ifndef VNLEM_SHARED_REGRESSION_H
#define VNLEM_SHARED_REGRESSION_H

#ifdef __CUDACC__
#define VNLEM_SHARED __device__ __forceinline__
#else
#include <math.h>
#define VNLEM_SHARED inline
#endif

[[maybe_unused]] constexpr float kDelta = 1e-6f;       // added to squared residuals
[[maybe_unused]] constexpr float kStep = 1e-4f;        // IRLS stops when the Euclidean norm of a step falls below this
[[maybe_unused]] constexpr int kMaxIterations = 500;
[[maybe_unused]] constexpr float kNegligible = 1e-8f;  // of the patch's own weight, one: lost in a sum of floats

// The s >= 0 that minimises weight * sqrt(s^2 + delta) + pull/2 * (distance - s)^2.
VNLEM_SHARED float own_step(float distance, float weight, float pull) {
    float low = 0.0f, high = distance, s = fmaxf(distance - weight / pull, 0.0f);
    for (int i = 0; i < 60; i++) {
        const float root = sqrtf(s * s + kDelta);
        const float slope = weight * s / root + pull * (s - distance);
        if (slope > 0.0f)
            high = s;
        else
            low = s;
        float next = s - slope / (weight * kDelta / (root * root * root) + pull);
        if (!(low <= next && next <= high)) next = 0.5f * (low + high);
        if (fabsf(next - s) <= 1e-6f * distance) return next;
        s = next;
    }
    return s;
}

#endif
