// What features look at around the pixels of some rows of an image: its grey values, its upsampled planes, and the
// energy of its discs. A thread for each pixel; an image is symmetric beyond its border.
// Counterparts of vnlem.features.canonical and .upsample. Macros: UPSAMPLE, TAPS (of the filters of `planes`).

struct Surround {
    const float* image; // (channels, height, width)
    int channels, height, width;
    int top, rows; // of the image; the output has `reach` more pixels on each side
    int reach;
    float* grey;          // (rows + 2 reach, width + 2 reach), mean over the channels
    float* planes;        // (channels, UPSAMPLE, UPSAMPLE, rows + 2 reach, width + 2 reach)
    const float* filters; // (UPSAMPLE, TAPS), of each phase
    int before;           // taps before the pixel
    const float* lengths; // (rows, width), squared, of the features
    float* sharp;         // (rows, width): what the discs hold beyond the features
    float share;          // from the sum of squares over a disc to its energy
};

extern "C" __global__ void grey(const Surround s) {
    const int x = blockIdx.y * blockDim.x + threadIdx.x, y = blockIdx.x, wide = s.width + 2 * s.reach;
    if (x >= wide) return;
    const long long from = (long long)mirrored(s.top + y - s.reach, s.height) * s.width + mirrored(x - s.reach, s.width);
    float sum = 0.0f;
    for (int c = 0; c < s.channels; ++c) sum += s.image[(long long)c * s.height * s.width + from];
    s.grey[(long long)y * wide + x] = sum / s.channels;
}

extern "C" __global__ void planes(const Surround s) {
    const int x = blockIdx.y * blockDim.x + threadIdx.x, y = blockIdx.x, wide = s.width + 2 * s.reach;
    if (x >= wide) return;
    int columns[TAPS];
#pragma unroll
    for (int b = 0; b < TAPS; ++b) columns[b] = mirrored(x - s.reach - s.before + b, s.width);
    const long long plane = (long long)(s.rows + 2 * s.reach) * wide;
    for (int c = 0; c < s.channels; ++c) {
        float sums[UPSAMPLE][UPSAMPLE];
#pragma unroll
        for (int i = 0; i < UPSAMPLE; ++i)
#pragma unroll
            for (int j = 0; j < UPSAMPLE; ++j) sums[i][j] = 0.0f;
        for (int a = 0; a < TAPS; ++a) {
            const int row = mirrored(s.top + y - s.reach - s.before + a, s.height);
            const float* line = s.image + ((long long)c * s.height + row) * s.width;
            float along[UPSAMPLE];
#pragma unroll
            for (int j = 0; j < UPSAMPLE; ++j) along[j] = 0.0f;
#pragma unroll
            for (int b = 0; b < TAPS; ++b) {
                const float value = line[columns[b]];
#pragma unroll
                for (int j = 0; j < UPSAMPLE; ++j) along[j] = fmaf(s.filters[j * TAPS + b], value, along[j]);
            }
#pragma unroll
            for (int i = 0; i < UPSAMPLE; ++i)
#pragma unroll
                for (int j = 0; j < UPSAMPLE; ++j)
                    sums[i][j] = fmaf(s.filters[i * TAPS + a], along[j], sums[i][j]);
        }
#pragma unroll
        for (int i = 0; i < UPSAMPLE; ++i)
#pragma unroll
            for (int j = 0; j < UPSAMPLE; ++j)
                s.planes[((c * UPSAMPLE + i) * UPSAMPLE + j) * plane + (long long)y * wide + x] = sums[i][j];
    }
}

// The disc reaches `reach` pixels and a half.
extern "C" __global__ void sharpness(const Surround s) {
    const int x = blockIdx.y * blockDim.x + threadIdx.x, y = blockIdx.x;
    if (x >= s.width) return;
    const int most = (2 * s.reach + 1) * (2 * s.reach + 1);
    const bool inside = x >= s.reach && x + s.reach < s.width;
    float total = 0.0f;
    for (int dy = -s.reach; dy <= s.reach; ++dy) {
        const float* line = s.image + (long long)mirrored(s.top + y + dy, s.height) * s.width;
        for (int dx = -s.reach; dx <= s.reach; ++dx) {
            if (4 * (dy * dy + dx * dx) > most) continue;
            const int column = inside ? x + dx : mirrored(x + dx, s.width);
            float square = 0.0f;
            for (int c = 0; c < s.channels; ++c) {
                const float value = line[(long long)c * s.height * s.width + column];
                square = fmaf(value, value, square);
            }
            total += square;
        }
    }
    const long long at = (long long)y * s.width + x;
    s.sharp[at] = fmaxf(total * s.share - s.lengths[at], 0.0f);
}
