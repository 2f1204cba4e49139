// How much of the change of an estimate is kept, pixel by pixel. Counterpart of vnlem.estimate.change.

struct Change {
    const float* noisy;    // (channels, height * width), as estimate and variance
    const float* estimate;
    const float* variance;
    double* energy;        // (height * width): of the change, in units of the noise; mean over the channels
    const double* means;   // of the energy, over windows
    float* out;            // (channels, height * width)
    long long pixels;      // of a channel
    int channels;
    float nothing, everything; // root mean squares of a change
};

extern "C" __global__ void change_energy(const Change c) {
    const long long at = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= c.pixels) return;
    float sum = 0.0f;
    for (int i = 0; i < c.channels; ++i) {
        const long long here = i * c.pixels + at;
        const float change = c.estimate[here] - c.noisy[here];
        sum += change * change / c.variance[here];
    }
    c.energy[at] = sum / c.channels;
}

extern "C" __global__ void shrink_change(const Change c) {
    const long long at = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= c.pixels) return;
    const float size = sqrtf((float)c.means[at]);
    const float share = fminf(fmaxf((size - c.nothing) / (c.everything - c.nothing), 0.0f), 1.0f);
    for (int i = 0; i < c.channels; ++i) {
        const long long here = i * c.pixels + at;
        // In this order an estimate that is kept entirely keeps its bits.
        c.out[here] = c.estimate[here] - (1.0f - share) * (c.estimate[here] - c.noisy[here]);
    }
}
