// The median over planes. Counterpart of kernels/cpu/middle.cpp.
// Macro: MOST (planes).

#define KEPT (MOST / 2 + 1)

struct Middle {
    const float* planes; // (count, pixels)
    float* out;          // (pixels)
    long long pixels;
    int count;
};

extern "C" __global__ void middle(const Middle m) {
    const long long at = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= m.pixels) return;
    float least[KEPT]; // sorted
    for (int k = 0; k < KEPT; ++k) least[k] = __uint_as_float(INFINITY_BITS);
    for (int i = 0; i < m.count; ++i) {
        // A value moves along the sorted ones to its place, and pushes out the largest.
        float value = m.planes[i * m.pixels + at];
#pragma unroll
        for (int k = 0; k < KEPT; ++k) {
            const float less = fminf(value, least[k]);
            value = fmaxf(value, least[k]);
            least[k] = less;
        }
    }
    float lower = 0.0f, upper = 0.0f;
#pragma unroll
    for (int k = 0; k < KEPT; ++k) {
        if (k == (m.count - 1) / 2) lower = least[k];
        if (k == m.count / 2) upper = least[k];
    }
    m.out[at] = (lower + upper) / 2.0f;
}
