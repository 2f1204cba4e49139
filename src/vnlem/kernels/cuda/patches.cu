// Before and after matching and estimation: sums over patches, and the means of what was put back.
// Counterpart of vnlem.estimate.aggregate, and like it sums over a patch in double precision, columns first.

// The sum of `value(row, column)` over a patch.
template <typename F>
__device__ __forceinline__ double patch_sum(int size, F value) {
    double total = 0.0;
    for (int column = 0; column < size; ++column) {
        double vertical = 0.0;
        for (int row = 0; row < size; ++row) vertical += value(row, column);
        total += vertical;
    }
    return total;
}

struct Planes {
    const float* image; // (channels, rows, stride)
    const byte* outside; // (rows, stride): pixels that show nothing of the image; null if there are none
    float* energy;      // (rows - size + 1, stride)
    int channels, rows, stride, size, first; // size: of a patch; first: row to begin with
};

// Squared norms of all patches; infinite if a patch leaves the image.
extern "C" __global__ void patch_energy(const Planes p) {
    const int x = blockIdx.y * blockDim.x + threadIdx.x, y = p.first + blockIdx.x;
    if (x >= p.stride) return;
    float result = __uint_as_float(INFINITY_BITS);
    if (x <= p.stride - p.size) {
        const double energy = patch_sum(p.size, [&](int row, int column) {
            double squares = 0.0;
            for (int c = 0; c < p.channels; ++c) {
                const double v = p.image[((long long)c * p.rows + y + row) * p.stride + x + column];
                squares += v * v;
            }
            return squares;
        });
        int missing = 0;
        if (p.outside)
            for (int i = 0; i < p.size * p.size; ++i) missing += p.outside[(y + i / p.size) * p.stride + x + i % p.size];
        if (missing == 0) result = (float)energy;
    }
    p.energy[(long long)y * p.stride + x] = result;
}

struct Penalties {
    const float* image; // (channels, height, width), in which patches are compared
    const float* variance; // (height, width) of the noise in it, summed over the channels
    float* penalty;     // (height - size + 1, width - size + 1)
    int channels, height, width, size, first; // first: in the first pass a flat patch is only shifted
    double share, flat;
};

// What is added to the rank of a patch that is turned or reflected.
extern "C" __global__ void patch_penalty(const Penalties p) {
    const int x = blockIdx.y * blockDim.x + threadIdx.x, y = blockIdx.x;
    if (x > p.width - p.size) return;
    const double noise =
        patch_sum(p.size, [&](int row, int column) { return (double)p.variance[(y + row) * p.width + x + column]; });
    double penalty = p.share * noise;
    if (p.first) {
        double squares = 0.0, levels = 0.0;
        squares = patch_sum(p.size, [&](int row, int column) {
            double sum = 0.0;
            for (int c = 0; c < p.channels; ++c) {
                const double v = p.image[((long long)c * p.height + y + row) * p.width + x + column];
                sum += v * v;
            }
            return sum;
        });
        for (int c = 0; c < p.channels; ++c) {
            const double sum = patch_sum(p.size, [&](int row, int column) {
                return (double)p.image[((long long)c * p.height + y + row) * p.width + x + column];
            });
            levels += sum * sum;
        }
        if (squares - levels / (p.size * p.size) < p.flat * noise) penalty = __uint_as_float(INFINITY_BITS);
    }
    p.penalty[(long long)y * (p.width - p.size + 1) + x] = (float)penalty;
}

struct Maps {
    const float* noisy; // (channels, rows, stride); null: `changed` holds the squared difference
    const float* working;
    const float* changed;
    const float* variance;
    float* residual; // (channels, rows - size + 1, stride): patch sums of (noisy - working)^2
    float* noise;    // likewise, of the variance; null if it is not wanted
    int rows, stride, size, first; // first: row to begin with
};

// What the combination of a group needs to know of each patch.
extern "C" __global__ void patch_maps(const Maps m) {
    const int x = blockIdx.y * blockDim.x + threadIdx.x, y = m.first + blockIdx.x, channel = blockIdx.z;
    if (x > m.stride - m.size) return;
    const long long from = (long long)channel * m.rows * m.stride + (long long)y * m.stride + x;
    const long long to = (long long)channel * (m.rows - m.size + 1) * m.stride + (long long)y * m.stride + x;
    m.residual[to] = (float)patch_sum(m.size, [&](int row, int column) {
        const long long at = from + row * m.stride + column;
        if (m.changed) return (double)m.changed[at];
        const double difference = (double)m.noisy[at] - (double)m.working[at];
        return difference * difference;
    });
    if (!m.noise) return;
    m.noise[to] =
        (float)patch_sum(m.size, [&](int row, int column) { return (double)m.variance[from + row * m.stride + column]; });
}

struct Sums {
    const long long* sums;    // (channels, height, width, 2), see ridge.cu
    const long long* weights; // (channels, height, width), at the patches' top left corners
    const float* working;     // (channels, height, width)
    const float* taps;        // (size): weights of the rows of a patch, and of its columns
    float* new_pilot;
    float* new_working;
    int height, width, size;
    double unit; // of the weights, in units of the sums
};

// The new pilot and the new working image: the weighted mean of the changes, over all patches that cover a pixel.
extern "C" __global__ void weighted_means(const Sums s) {
    const int x = blockIdx.y * blockDim.x + threadIdx.x, y = blockIdx.x, channel = blockIdx.z;
    if (x >= s.width) return;
    const long long plane = (long long)channel * s.height * s.width;
    double weight = 0.0;
    for (int row = max(0, y - s.size + 1); row <= y; ++row)
        for (int column = max(0, x - s.size + 1); column <= x; ++column)
            weight += (double)(s.taps[y - row] * s.taps[x - column]) *
                      (double)s.weights[plane + (long long)row * s.width + column];
    const long long at = plane + (long long)y * s.width + x;
    const longlong2 sum = *(const longlong2*)(s.sums + 2 * at);
    // Near the border of a part of an image there may be no group; those pixels are not needed.
    const double total = weight > 0.0 ? weight * s.unit : 1.0;
    s.new_pilot[at] = s.working[at] + (float)((double)sum.x / total);
    s.new_working[at] = s.working[at] + (float)((double)sum.y / total);
}

struct Largest {
    const float* values;
    unsigned* bits; // of the largest magnitude; zero at the start
    long long count;
};

// The largest magnitude: bits of non-negative numbers sort like the numbers.
extern "C" __global__ void largest_magnitude(const Largest l) {
    __shared__ float scratch[32];
    float largest = 0.0f;
    const long long step = (long long)gridDim.x * blockDim.x;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < l.count; i += step)
        largest = fmaxf(largest, fabsf(l.values[i]));
    largest = block_max(largest, scratch);
    if (threadIdx.x == 0) atomicMax(l.bits, __float_as_uint(largest));
}
