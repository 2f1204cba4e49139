// Neighbours under the rotation-invariant distance: the nearest of the window by the aligned distance, then the
// better half of them by the distance at every angle of the search set. A block for TILE x TILE pixels, whose
// windows it searches together; then a warp for each pixel.
// Counterpart of vnlem.kernels.numba.vnlem and .neighbours. Macros: TILE, HALF (lanes of all channels), BLOCKS
// (of eight columns of equal orders), WITH_MARGIN, WITH_IDENTITY.

#define WARPS 8
#define OWN (TILE * TILE)
#define COLUMNS (8 * BLOCKS)
#define DIM (2 * HALF)
#define IDENTITY 32767

struct Region {
    const float* raw;       // (height, width, DIM)
    const float* canonical; // likewise
    const float* lengths;   // (height, width), squared
    const int* starts;      // (BLOCKS + 1): rows of lanes that hold equal orders
    const int* rows;        // first lanes of these rows
    const float* cosine;    // (n_angles, COLUMNS), of order * angle
    const float* sine;
    int* position;          // (pixels, n_neighbors), pixel number in the region
    float* squared;         // (pixels, n_neighbors), squared distance of features
    short* which;           // (pixels, n_neighbors), +-number of the angle, or IDENTITY
    int* counts;            // (pixels)
    int height, width;      // of the region
    int top, bottom;        // its rows whose pixels are worked on
    int reach, n_candidates, n_neighbors, n_angles;
    float factor, offset;   // a rotated match counts as factor * its squared distance + offset
};

__device__ __forceinline__ float squared_from(float a, float b, float inner) {
    return fmaxf(a + b - 2.0f * inner, 0.0f);
}

__device__ __forceinline__ float dot4(float4 a, float4 b, float sum) {
    return fmaf(a.w, b.w, fmaf(a.z, b.z, fmaf(a.y, b.y, fmaf(a.x, b.x, sum))));
}

// How many of n numbers are at most the number with these bits; a warp counts together.
__device__ __forceinline__ int count_up_to(const float* values, int n, unsigned bits) {
    int count = 0;
    for (int i = threadIdx.x % 32; i < n; i += 32) count += __float_as_uint(values[i]) <= bits;
    for (int step = 16; step > 0; step >>= 1) count += __shfl_xor_sync(0xFFFFFFFFu, count, step);
    return count;
}

// Places of the `wanted` smallest of n numbers into chosen, in their order, by one warp; ties go to the first.
// `own`, where it is not negative, comes first and is among them in any case. Returns how many.
__device__ int smallest_of_warp(const float* values, int n, int wanted, int own, int* chosen) {
    const int lane = threadIdx.x % 32;
    const int count = min(wanted, n);
    unsigned low = 0, high = INFINITY_BITS;
    while (low < high) {
        const unsigned middle = low + (high - low) / 2;
        if (count_up_to(values, n, middle) >= count)
            high = middle;
        else
            low = middle + 1;
    }
    const int below = low == 0 ? 0 : count_up_to(values, n, low - 1);
    int ties = count - below - (own >= 0 && __float_as_uint(values[own]) >= low ? 1 : 0);
    int at = own >= 0 ? 1 : 0;
    if (own >= 0 && lane == 0) chosen[0] = own;
    for (int first = 0; first < n; first += 32) {
        const int i = first + lane;
        const unsigned bits = i < n ? __float_as_uint(values[i]) : 0xFFFFFFFFu;
        const bool other = i < n && i != own;
        const unsigned less = __ballot_sync(0xFFFFFFFFu, other && bits < low);
        const unsigned equal = __ballot_sync(0xFFFFFFFFu, other && bits == low);
        const unsigned before = (1u << lane) - 1;
        const int ties_before = __popc(equal & before);
        const bool take = other && (bits < low || (bits == low && ties_before < ties));
        if (take) chosen[at + __popc(less & before) + min(ties_before, max(ties, 0))] = i;
        at += __popc(less) + min(__popc(equal), max(ties, 0));
        ties -= __popc(equal);
    }
    __syncwarp();
    return count;
}

// Distances of the tile's pixels to all pixels of their windows together, rows x columns from (row, column) on.
__device__ void window_distances(const Region& r, const float* features, const float* own, const float* own_lengths,
                                 int row, int column, int side, bool second, float* distances) {
    for (int c = threadIdx.x; c < side * side; c += 32 * WARPS) {
        const int y = row + c / side, x = column + c % side;
        if (y < 0 || y >= r.height || x < 0 || x >= r.width) continue;
        const long long place = (long long)y * r.width + x;
        const float4* vector = (const float4*)(features + place * DIM);
        float sums[OWN];
#pragma unroll
        for (int p = 0; p < OWN; ++p) sums[p] = 0.0f;
        for (int f = 0; f < DIM / 4; ++f) {
            const float4 value = vector[f];
#pragma unroll
            for (int p = 0; p < OWN; ++p) sums[p] = dot4(value, *(const float4*)(own + p * DIM + 4 * f), sums[p]);
        }
        const float length = r.lengths[place];
#pragma unroll
        for (int p = 0; p < OWN; ++p) {
            float distance = squared_from(own_lengths[p], length, sums[p]);
            // Rotation must beat the unrotated patch by more than noise can.
            if (WITH_MARGIN) distance = second ? fminf(distance, distances[p * side * side + c])
                                               : r.factor * distance + r.offset;
            distances[p * side * side + c] = distance;
        }
    }
    __syncthreads();
}

// The squared distance to one candidate at its best angle, and that angle.
__device__ float accurate(const Region& r, const float* own_canonical, const float* own_raw, float own_length,
                          int candidate, const float* cosine, const float* sine, int& which) {
    const float* there = r.canonical + (long long)candidate * DIM;
    float u[COLUMNS], v[COLUMNS];
#pragma unroll
    for (int block = 0; block < BLOCKS; ++block) {
#pragma unroll
        for (int l = 0; l < 8; ++l) u[8 * block + l] = v[8 * block + l] = 0.0f;
        for (int n = r.starts[block]; n < r.starts[block + 1]; ++n) {
            const int f = r.rows[n];
#pragma unroll
            for (int part = 0; part < 8; part += 4) {
                const float4 ar = *(const float4*)(own_canonical + f + part);
                const float4 ai = *(const float4*)(own_canonical + HALF + f + part);
                const float4 br = *(const float4*)(there + f + part);
                const float4 bi = *(const float4*)(there + HALF + f + part);
                const float a_re[4] = {ar.x, ar.y, ar.z, ar.w}, a_im[4] = {ai.x, ai.y, ai.z, ai.w};
                const float b_re[4] = {br.x, br.y, br.z, br.w}, b_im[4] = {bi.x, bi.y, bi.z, bi.w};
#pragma unroll
                for (int l = 0; l < 4; ++l) {
                    const int k = 8 * block + part + l;
                    u[k] = fmaf(a_im[l], b_im[l], fmaf(a_re[l], b_re[l], u[k]));
                    v[k] = fmaf(-a_im[l], b_re[l], fmaf(a_re[l], b_im[l], v[k]));
                }
            }
        }
    }
    float best = -__uint_as_float(INFINITY_BITS);
    which = 0;
    for (int m = 0; m < r.n_angles; ++m) {
        float even = 0.0f, odd = 0.0f;
#pragma unroll
        for (int k = 0; k < COLUMNS; ++k) {
            even = fmaf(u[k], cosine[m * COLUMNS + k], even);
            odd = fmaf(v[k], sine[m * COLUMNS + k], odd);
        }
        if (even + fabsf(odd) > best) {
            best = even + fabsf(odd);
            which = odd >= 0.0f ? m : -m;
        }
    }
    const float length = r.lengths[candidate];
    float squared = squared_from(own_length, length, best);
    if (WITH_MARGIN) squared = r.factor * squared + r.offset;
    if (WITH_IDENTITY) {
        const float4* vector = (const float4*)(r.raw + (long long)candidate * DIM);
        float plain = 0.0f;
        for (int f = 0; f < DIM / 4; ++f) plain = dot4(vector[f], *(const float4*)(own_raw + 4 * f), plain);
        // At a tie no rotation is taken: it needs no interpolation.
        const float unturned = squared_from(own_length, length, plain);
        if (unturned <= squared) {
            squared = unturned;
            which = IDENTITY;
        }
    }
    return squared;
}

extern "C" __global__ void __launch_bounds__(32 * WARPS) rid(const Region r) {
    DYNAMIC_SHARED(float4, memory);
    __shared__ float own_lengths[OWN];
    const int side = 2 * r.reach + TILE;
    float* own_canonical = (float*)memory;
    float* own_raw = own_canonical + OWN * DIM;
    float* cosine = own_raw + OWN * DIM;
    float* sine = cosine + r.n_angles * COLUMNS;
    float* distances = sine + r.n_angles * COLUMNS; // (OWN, side * side)
    const int window = (2 * r.reach + 1) * (2 * r.reach + 1);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    // For each warp: the values of one window, the candidates, their distances and angles.
    const int most = r.n_candidates;
    float* values = distances + OWN * side * side + warp * (window + 3 * most + 1);
    int* candidates = (int*)(values + window);
    float* best = (float*)(candidates + most);
    int* angles = (int*)(best + most);
    const int y0 = r.top + blockIdx.x * TILE, x0 = blockIdx.y * TILE;
    for (int i = threadIdx.x; i < OWN * DIM; i += 32 * WARPS) {
        const int p = i / DIM, y = min(y0 + p / TILE, r.height - 1), x = min(x0 + p % TILE, r.width - 1);
        const long long from = ((long long)y * r.width + x) * DIM + i % DIM;
        own_canonical[i] = r.canonical[from];
        own_raw[i] = r.raw[from];
    }
    for (int i = threadIdx.x; i < OWN; i += 32 * WARPS)
        own_lengths[i] = r.lengths[(long long)min(y0 + i / TILE, r.height - 1) * r.width +
                                   min(x0 + i % TILE, r.width - 1)];
    for (int i = threadIdx.x; i < r.n_angles * COLUMNS; i += 32 * WARPS) {
        cosine[i] = r.cosine[i];
        sine[i] = r.sine[i];
    }
    __syncthreads();
    const int row = y0 - r.reach, column = x0 - r.reach;
    window_distances(r, r.canonical, own_canonical, own_lengths, row, column, side, false, distances);
    if (WITH_MARGIN) window_distances(r, r.raw, own_raw, own_lengths, row, column, side, true, distances);
    for (int p = warp; p < OWN; p += WARPS) {
        const int y = y0 + p / TILE, x = x0 + p % TILE;
        if (y >= r.bottom || x >= r.width) continue;
        const int top = max(y - r.reach, 0), bottom = min(y + r.reach + 1, r.height);
        const int left = max(x - r.reach, 0), wide = min(x + r.reach + 1, r.width) - left;
        const int n_values = (bottom - top) * wide;
        const int own = (y - top) * wide + x - left;
        for (int i = lane; i < n_values; i += 32) {
            const int at = (top + i / wide - row) * side + left + i % wide - column;
            values[i] = i == own ? 0.0f : distances[p * side * side + at];
        }
        __syncwarp();
        const int n = smallest_of_warp(values, n_values, r.n_candidates, own, candidates);
        const int here = y * r.width + x;
        for (int c = lane; c < n; c += 32) {
            const int candidate = (top + candidates[c] / wide) * r.width + left + candidates[c] % wide;
            int angle;
            const float squared = accurate(r, own_canonical + p * DIM, own_raw + p * DIM, own_lengths[p], candidate,
                                           cosine, sine, angle);
            candidates[c] = candidate;
            best[c] = candidate == here ? 0.0f : squared;
            angles[c] = candidate == here ? IDENTITY : angle;
        }
        __syncwarp();
        int* kept = (int*)values;
        const int found = smallest_of_warp(best, n, r.n_neighbors, -1, kept);
        const long long to = (long long)((y - r.top) * r.width + x) * r.n_neighbors;
        for (int k = lane; k < found; k += 32) {
            r.position[to + k] = candidates[kept[k]];
            r.squared[to + k] = best[kept[k]];
            r.which[to + k] = (short)angles[kept[k]];
        }
        if (lane == 0) r.counts[(y - r.top) * r.width + x] = found;
        __syncwarp();
    }
}
