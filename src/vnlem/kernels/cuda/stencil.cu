// The graph of all pairs of pixels within a window, stored and applied as a stencil. A thread for each pixel, or
// for four numbers of a pixel. Counterpart of vnlem.kernels.cpu.stencil and .affinity.
// Weights are (slots, height, width): forward offsets in reading order, then the pixel itself. The two weights of a
// pair are equal: only the one at the first pixel is stored.

struct Stencil {
    float* weights;
    int height, width, reach;
};

__device__ __forceinline__ int slot_of(int dy, int dx, int reach) {
    return dy == 0 ? dx - 1 : reach + (dy - 1) * (2 * reach + 1) + dx + reach;
}

__device__ __forceinline__ int forward_slots(int reach) { return reach + reach * (2 * reach + 1); }

// Calls use(weight, other pixel) for the pixel itself and all neighbours in the image, in reading order.
template <typename F>
__device__ __forceinline__ void for_neighbours(const Stencil& s, int y, int x, F use) {
    const long long plane = (long long)s.height * s.width;
    const int here = y * s.width + x;
    const int left = max(-s.reach, -x), right = min(s.reach, s.width - 1 - x);
    for (int dy = max(-s.reach, -y); dy <= min(s.reach, s.height - 1 - y); ++dy)
        for (int dx = left; dx <= right; ++dx) {
            const int other = here + dy * s.width + dx;
            if (dy < 0 || (dy == 0 && dx < 0))
                use(s.weights[slot_of(-dy, -dx, s.reach) * plane + other], other);
            else
                use(s.weights[(dx == 0 && dy == 0 ? forward_slots(s.reach) : slot_of(dy, dx, s.reach)) * plane + here],
                    other);
        }
}

// The weight of two pixels, zero if they are too far apart.
__device__ float weight_between(const Stencil& s, int y, int x, int other_y, int other_x) {
    const int dy = other_y - y, dx = other_x - x;
    if (abs(dy) > s.reach || abs(dx) > s.reach) return 0.0f;
    if (dy < 0 || (dy == 0 && dx < 0)) return weight_between(s, other_y, other_x, y, x);
    const int slot = dy == 0 && dx == 0 ? forward_slots(s.reach) : slot_of(dy, dx, s.reach);
    return s.weights[((long long)slot * s.height + y) * s.width + x];
}

struct Product {
    Stencil graph;
    const float* vectors; // (pixels, n), n a multiple of four
    float* out;
    int n;
};

extern "C" __global__ void stencil_apply(const Product p) {
    const int groups = p.n / 4;
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    const int pixel = (int)(i / groups), part = (int)(i % groups);
    if (pixel >= p.graph.height * p.graph.width) return;
    const float* vectors = p.vectors + 4 * part;
    float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    for_neighbours(p.graph, pixel / p.graph.width, pixel % p.graph.width, [&](float weight, int other) {
        const float4 v = *(const float4*)(vectors + (long long)other * p.n);
        sum.x = fmaf(weight, v.x, sum.x);
        sum.y = fmaf(weight, v.y, sum.y);
        sum.z = fmaf(weight, v.z, sum.z);
        sum.w = fmaf(weight, v.w, sum.w);
    });
    *(float4*)(p.out + (long long)pixel * p.n + 4 * part) = sum;
}

struct Degrees {
    Stencil graph;
    double* out; // (pixels)
};

extern "C" __global__ void stencil_degrees(const Degrees d) {
    const int pixel = blockIdx.x * blockDim.x + threadIdx.x;
    if (pixel >= d.graph.height * d.graph.width) return;
    double total = 0.0;
    for_neighbours(d.graph, pixel / d.graph.width, pixel % d.graph.width,
                   [&](float weight, int other) { total += weight; });
    d.out[pixel] = total;
}

struct Weights {
    Stencil graph;
    const float* factors; // (pixels): inverse scales, or factors
    float noise;          // what is subtracted from squared distances
    int gaussian;         // squared distances become weights; otherwise weights are multiplied
};

// exp(-max(squared - noise, 0) * factors[p] * factors[q]), or weight * factors[p] * factors[q], in place; a block
// along y for each slot. Weights of neighbours outside the image become zero.
extern "C" __global__ void stencil_weights(const Weights w) {
    const Stencil& s = w.graph;
    const int pixel = blockIdx.x * blockDim.x + threadIdx.x, slot = blockIdx.y, side = 2 * s.reach + 1;
    if (pixel >= s.height * s.width) return;
    float* at = s.weights + (long long)slot * s.height * s.width + pixel;
    int dy = 0, dx = 0;
    const bool itself = slot == forward_slots(s.reach);
    if (!itself) {
        dy = slot < s.reach ? 0 : (slot - s.reach) / side + 1;
        dx = slot < s.reach ? slot + 1 : (slot - s.reach) % side - s.reach;
    }
    const int y = pixel / s.width + dy, x = pixel % s.width + dx;
    if (y >= s.height || x < 0 || x >= s.width) {
        *at = 0.0f;
        return;
    }
    const float both = w.factors[pixel] * w.factors[y * s.width + x];
    if (!w.gaussian)
        *at *= both;
    else
        *at = itself ? 1.0f : expf(-fmaxf(*at - w.noise, 0.0f) * both);
}

struct Scales {
    Stencil graph; // of squared distances
    float* out;    // (pixels)
    float noise;
    int count;
};

// The squared distance of every pixel, minus the noise, to the count-th nearest of its window. A warp for each.
extern "C" __global__ void stencil_scales(const Scales s) {
    DYNAMIC_SHARED(float, memory);
    const int lane = threadIdx.x % 32, warps = blockDim.x / 32, side = 2 * s.graph.reach + 1;
    float* values = memory + threadIdx.x / 32 * side * side;
    const int pixel = blockIdx.x * warps + threadIdx.x / 32;
    if (pixel >= s.graph.height * s.graph.width) return;
    const int y = pixel / s.graph.width, x = pixel % s.graph.width;
    const int top = max(y - s.graph.reach, 0), left = max(x - s.graph.reach, 0);
    const int wide = min(x + s.graph.reach + 1, s.graph.width) - left;
    const int n = (min(y + s.graph.reach + 1, s.graph.height) - top) * wide, own = (y - top) * wide + x - left;
    // The pixel itself is left out: the pixels after it move up by one.
    for (int i = lane; i < n; i += 32)
        if (i != own)
            values[i - (i > own)] =
                fmaxf(weight_between(s.graph, y, x, top + i / wide, left + i % wide) - s.noise, 0.0f);
    __syncwarp();
    if (n == 1) {
        if (lane == 0) s.out[pixel] = 0.0f;
        return;
    }
    const unsigned farthest = kth_of_warp<1>(values, n - 1, min(s.count, n - 1));
    if (lane == 0) s.out[pixel] = __uint_as_float(farthest);
}

struct Coarser {
    Stencil fine;
    Stencil coarse;
};

// Blocks of 2 x 2 pixels become one; the weights between them are added up. A block along y for each slot.
extern "C" __global__ void stencil_coarsen(const Coarser c) {
    const Stencil& s = c.coarse;
    const int block = blockIdx.x * blockDim.x + threadIdx.x, slot = blockIdx.y, side = 2 * s.reach + 1;
    if (block >= s.height * s.width) return;
    int dy = 0, dx = 0;
    if (slot < forward_slots(s.reach)) {
        dy = slot < s.reach ? 0 : (slot - s.reach) / side + 1;
        dx = slot < s.reach ? slot + 1 : (slot - s.reach) % side - s.reach;
    }
    const int row = block / s.width, column = block % s.width;
    float sum = 0.0f;
    if (row + dy < s.height && column + dx >= 0 && column + dx < s.width)
        for (int i = 0; i < 4; ++i)
            for (int j = 0; j < 4; ++j) {
                const int y = 2 * row + i / 2, x = 2 * column + i % 2;
                const int other_y = 2 * (row + dy) + j / 2, other_x = 2 * (column + dx) + j % 2;
                if (max(y, other_y) < c.fine.height && max(x, other_x) < c.fine.width)
                    sum += weight_between(c.fine, y, x, other_y, other_x);
            }
    s.weights[(long long)slot * s.height * s.width + block] = sum;
}

struct Parts {
    Stencil graph;
    const int* labels; // (pixels): a pixel of the same part
    int* out;          // (pixels): the smallest such pixel found so far
    int* changed;      // (1)
};

extern "C" __global__ void stencil_parts(const Parts p) {
    const int pixel = blockIdx.x * blockDim.x + threadIdx.x;
    if (pixel >= p.graph.height * p.graph.width) return;
    int lowest = p.labels[p.labels[pixel]];
    for_neighbours(p.graph, pixel / p.graph.width, pixel % p.graph.width, [&](float weight, int other) {
        if (weight > 0.0f) lowest = min(lowest, p.labels[other]);
    });
    p.out[pixel] = lowest;
    if (lowest != p.labels[pixel]) *p.changed = 1;
}
