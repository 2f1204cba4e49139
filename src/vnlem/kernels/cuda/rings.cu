// Ring features: sample the rings around a pixel, transform, turn into the given frame. A thread for each pixel.
// Counterpart of vnlem.kernels.numba.rings. Macro: ORDERS (highest angular order + 1).

struct Rings {
    const float* planes;  // (channels, upsample, upsample, full_height, full_width), see features.upsample.phases
    const float* angles;  // (height, width), radians
    const int* where;     // (samples, 4, [offset in `planes` of one channel])
    const float* weights; // (samples, 4)
    const int* starts;    // (rings + 1), first sample of each ring
    const float* real;    // (rings, ORDERS, longest)
    const float* imag;
    const int* lane_of;   // (rings, ORDERS), lane of a coefficient or -1
    const int* padding;   // (n_padding), lanes that hold nothing
    float* raw;           // (height, width, dim)
    float* canonical;
    float* lengths;       // (height, width), squared
    int height, width, channels, n_rings, longest, lanes, centre_lane, halo, n_padding;
    int plane, full_width; // numbers of a channel's planes; of a row
    float centre;          // weight of the central pixel
};

extern "C" __global__ void rings(const Rings r) {
    const int x = blockIdx.y * blockDim.x + threadIdx.x, y = blockIdx.x;
    if (x >= r.width) return;
    const int half = r.channels * r.lanes;
    const long long pixel = (long long)y * r.width + x;
    float* raw = r.raw + pixel * 2 * half;
    float* canonical = r.canonical + pixel * 2 * half;
    // Cosine and sine of order * angle, by the addition theorem in double precision.
    float cosine[ORDERS], sine[ORDERS];
    double step_cos, step_sin, c = 1.0, s = 0.0;
    sincos((double)r.angles[pixel], &step_sin, &step_cos);
#pragma unroll
    for (int k = 0; k < ORDERS; ++k) {
        cosine[k] = (float)c;
        sine[k] = (float)s;
        const double next = c * step_cos - s * step_sin;
        s = s * step_cos + c * step_sin;
        c = next;
    }
    float length = 0.0f;
    for (int channel = 0; channel < r.channels; ++channel) {
        const float* here =
            r.planes + (long long)channel * r.plane + (long long)(y + r.halo) * r.full_width + x + r.halo;
        const float middle = r.centre * here[0];
        const int centre = channel * r.lanes + r.centre_lane;
        raw[centre] = canonical[centre] = middle;
        raw[half + centre] = canonical[half + centre] = 0.0f;
        for (int p = 0; p < r.n_padding; ++p) {
            const int at = channel * r.lanes + r.padding[p];
            raw[at] = canonical[at] = raw[half + at] = canonical[half + at] = 0.0f;
        }
        length += middle * middle;
        for (int ring = 0; ring < r.n_rings; ++ring) {
            float real[ORDERS], imag[ORDERS];
#pragma unroll
            for (int k = 0; k < ORDERS; ++k) real[k] = imag[k] = 0.0f;
            const int first = r.starts[ring], count = r.starts[ring + 1] - first;
            for (int sample = 0; sample < count; ++sample) {
                const int* where = r.where + 4 * (first + sample);
                const float* weights = r.weights + 4 * (first + sample);
                const float value = weights[0] * here[where[0]] + weights[1] * here[where[1]] +
                                    weights[2] * here[where[2]] + weights[3] * here[where[3]];
#pragma unroll
                for (int k = 0; k < ORDERS; ++k) {
                    const int at = (ring * ORDERS + k) * r.longest + sample;
                    real[k] = fmaf(r.real[at], value, real[k]);
                    imag[k] = fmaf(r.imag[at], value, imag[k]);
                }
            }
#pragma unroll
            for (int k = 0; k < ORDERS; ++k) {
                const int lane = r.lane_of[ring * ORDERS + k];
                if (lane < 0) continue;
                const int at = channel * r.lanes + lane;
                raw[at] = real[k];
                raw[half + at] = imag[k];
                // Turning a patch by minus an angle multiplies by exp(i k angle).
                canonical[at] = real[k] * cosine[k] - imag[k] * sine[k];
                canonical[half + at] = real[k] * sine[k] + imag[k] * cosine[k];
                length += real[k] * real[k] + imag[k] * imag[k];
            }
        }
    }
    r.lengths[pixel] = length;
}
