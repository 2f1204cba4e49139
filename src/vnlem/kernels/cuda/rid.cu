// Neighbours under the rotation-invariant distance: the nearest of the window by the aligned distance, then the
// better half of them by the distance at every angle of the search set. A block for TILE x TILE pixels, whose
// windows it searches together; then a warp for each pixel.
// Counterpart of kernels/cpu/vnlem.cpp and windows.h. Macros: TILE, HALF (lanes of all channels), BLOCKS
// (of eight columns of equal orders), WITH_MARGIN, WITH_IDENTITY, DIFFUSION (candidates are ranked by it), GRAPH
// (only the distances of the first stage are needed, as weights of a graph), WARPS, TOGETHER (candidates of a
// thread), CHUNK (numbers of each that are processed at a time), BLOCKS_OF_SM.

#define OWN (TILE * TILE)
#define COLUMNS (8 * BLOCKS)
#define DIM (2 * HALF)
#define IDENTITY 32767
#define WITH_RAW (WITH_MARGIN || WITH_IDENTITY)
#define LOADS (TOGETHER * CHUNK / 4)
#define AT_ONCE 2 // rows of eight lanes that are loaded together

struct Region {
    const float* raw;       // (height, width, DIM)
    const float* canonical; // likewise
    const float* lengths;   // (height, width), squared
    const int* block_of;    // (HALF / 8): of each row of eight lanes; -1 where they hold nothing
    const float* cosine;    // (n_angles, COLUMNS), of order * angle
    const float* sine;
    int* position;          // (pixels, n_neighbors), pixel number in the region
    float* squared;         // (pixels, n_neighbors), squared distance of features
    short* which;           // (pixels, n_neighbors), +-number of the angle, or IDENTITY
    int* counts;            // (pixels)
    int height, width;      // of the region
    int top, bottom;        // its rows whose pixels are processed
    int reach, n_candidates, n_neighbors, n_angles;
    float factor, offset;   // a rotated match counts as factor * its squared distance + offset
    const float* embedding; // (height, width, n_coordinates) of the diffusion map
    const float* trust;     // (height, width): its share in the ranking of candidates
    int n_coordinates;      // a multiple of four
    float scale;            // from squared distances of features to those of the graph
    float* weights;         // (slots, height, width) of the graph, see stencil.cu
};

__device__ __forceinline__ float squared_from(float a, float b, float inner) {
    return fmaxf(a + b - 2.0f * inner, 0.0f);
}

__device__ __forceinline__ float dot4(float4 a, float4 b, float sum) {
    return fmaf(a.w, b.w, fmaf(a.z, b.z, fmaf(a.y, b.y, fmaf(a.x, b.x, sum))));
}

// Distances of the tile's pixels to all pixels of their windows together, side x side from (row, column) on.
// The candidates' features pass through `chunk` (side * side, CHUNK + 4), some numbers of each at a time.
__device__ void window_distances(const Region& r, const float* features, const float* own, const float* own_lengths,
                                 int row, int column, int side, bool second, float* chunk, float* distances) {
    const int count = side * side;
    for (int first = 0; first < count; first += TOGETHER * 32 * WARPS) {
        float sums[TOGETHER][OWN];
#pragma unroll
        for (int t = 0; t < TOGETHER; ++t)
#pragma unroll
            for (int p = 0; p < OWN; ++p) sums[t][p] = 0.0f;
        const int here = min(count - first, TOGETHER * 32 * WARPS);
        // What a thread loads into `chunk`: numbers of some candidates, four at a time.
        int place[LOADS];
#pragma unroll
        for (int i = 0; i < LOADS; ++i) {
            const int c = first + min((int)(threadIdx.x + i * 32 * WARPS) / (CHUNK / 4), here - 1);
            const int y = min(max(row + c / side, 0), r.height - 1), x = min(max(column + c % side, 0), r.width - 1);
            place[i] = y * r.width + x;
        }
        const int four = threadIdx.x % (CHUNK / 4) * 4;
        for (int from = 0; from < DIM; from += CHUNK) {
            __syncthreads();
#pragma unroll
            for (int i = 0; i < LOADS; ++i) {
                const int c = (threadIdx.x + i * 32 * WARPS) / (CHUNK / 4);
                if (c < here)
                    *(float4*)(chunk + c * (CHUNK + 4) + four) =
                        *(const float4*)(features + (long long)place[i] * DIM + from + four);
            }
            __syncthreads();
#pragma unroll 1
            for (int f = 0; f < CHUNK; f += 4) {
                float4 values[TOGETHER];
#pragma unroll
                for (int t = 0; t < TOGETHER; ++t) {
                    const int c = min((int)threadIdx.x + t * 32 * WARPS, here - 1);
                    values[t] = *(const float4*)(chunk + c * (CHUNK + 4) + f);
                }
#pragma unroll
                for (int p = 0; p < OWN; ++p) {
                    const float4 mine = *(const float4*)(own + p * DIM + from + f);
#pragma unroll
                    for (int t = 0; t < TOGETHER; ++t) sums[t][p] = dot4(values[t], mine, sums[t][p]);
                }
            }
        }
#pragma unroll
        for (int t = 0; t < TOGETHER; ++t) {
            const int c = first + threadIdx.x + t * 32 * WARPS;
            if (c >= count) continue;
            const int y = row + c / side, x = column + c % side;
            if (y < 0 || y >= r.height || x < 0 || x >= r.width) continue;
            const float length = r.lengths[(long long)y * r.width + x];
#pragma unroll
            for (int p = 0; p < OWN; ++p) {
                float distance = squared_from(own_lengths[p], length, sums[t][p]);
                // Rotation must beat the unrotated patch by more than noise can.
                if (WITH_MARGIN) distance = second ? fminf(distance, distances[p * count + c])
                                                   : r.factor * distance + r.offset;
                distances[p * count + c] = distance;
            }
        }
    }
    __syncthreads();
}

// The features of the tile's own pixels.
__device__ void load_own(const Region& r, int y0, int x0, float* own_canonical, float* own_raw, float* own_lengths) {
    for (int i = threadIdx.x; i < OWN * DIM; i += 32 * WARPS) {
        const int p = i / DIM, y = min(y0 + p / TILE, r.height - 1), x = min(x0 + p % TILE, r.width - 1);
        const long long from = ((long long)y * r.width + x) * DIM + i % DIM;
        own_canonical[i] = r.canonical[from];
        if (WITH_RAW) own_raw[i] = r.raw[from];
    }
    for (int i = threadIdx.x; i < OWN; i += 32 * WARPS)
        own_lengths[i] = r.lengths[(long long)min(y0 + i / TILE, r.height - 1) * r.width +
                                   min(x0 + i % TILE, r.width - 1)];
}

#if !GRAPH
#if DIFFUSION
// Replaces the patch distances of pixel (y, x) in `values` by diffusion distances. With trust t below one the result
// is t * diffusion + (1 - t) * patches, each divided by its mean over the window. buffer: as long as values.
__device__ void rank_by_diffusion(const Region& r, int y, int x, int top, int left, int wide, int n, float* values,
                                  float* buffer) {
    const int lane = threadIdx.x % 32, own = (y - top) * wide + x - left;
    const float* here = r.embedding + ((long long)y * r.width + x) * r.n_coordinates;
    float sum = 0.0f, total = 0.0f, lowest = __uint_as_float(INFINITY_BITS);
    for (int i = lane; i < n; i += 32) {
        const float* there = r.embedding + ((long long)(top + i / wide) * r.width + left + i % wide) * r.n_coordinates;
        float squared = 0.0f;
        // From differences, because neighbours' coordinates agree in their leading digits.
        for (int k = 0; k < r.n_coordinates; k += 4) {
            const float4 a = *(const float4*)(here + k), b = *(const float4*)(there + k);
            const float4 d = make_float4(a.x - b.x, a.y - b.y, a.z - b.z, a.w - b.w);
            squared = dot4(d, d, squared);
        }
        buffer[i] = squared;
        sum += squared;
        total += values[i];
        if (i != own) lowest = fminf(lowest, values[i]);
    }
    sum = warp_sum(sum);
    total = warp_sum(total);
    for (int step = 16; step > 0; step >>= 1) lowest = fminf(lowest, __shfl_xor_sync(0xFFFFFFFFu, lowest, step));
    const float trust = r.trust[(long long)y * r.width + x];
    // Noise raises all patch distances alike: subtract the smallest, not counting the pixel's own.
    const float share = trust * n / fmaxf(sum, 1e-30f);
    const float rest = (1.0f - trust) * n / fmaxf(total - n * lowest, 1e-30f);
    for (int i = lane; i < n; i += 32)
        values[i] = trust == 1.0f ? buffer[i] : share * buffer[i] + rest * fmaxf(values[i] - lowest, 0.0f);
    __syncwarp();
}
#endif

// The squared distance of a pixel to its candidates at their best angles, and these angles: two lanes of a warp for
// each candidate, the first four orders of every eight to one of them and the last four to the other.
__device__ float accurate(const Region& r, const float* own_canonical, const float* own_raw, float own_length,
                          int candidate, const float* cosine, const float* sine, int& which) {
    const int part = threadIdx.x % 2 * 4;
    const float* there = r.canonical + (long long)candidate * DIM + part;
    float u[BLOCKS][4], v[BLOCKS][4];
#pragma unroll
    for (int block = 0; block < BLOCKS; ++block)
#pragma unroll
        for (int l = 0; l < 4; ++l) u[block][l] = v[block][l] = 0.0f;
#pragma unroll 1
    for (int from = 0; from < HALF; from += 8 * AT_ONCE) {
        float4 re[AT_ONCE], im[AT_ONCE];
#pragma unroll
        for (int i = 0; i < AT_ONCE; ++i) {
            re[i] = *(const float4*)(there + from + 8 * i);
            im[i] = *(const float4*)(there + HALF + from + 8 * i);
        }
#pragma unroll
        for (int i = 0; i < AT_ONCE; ++i) {
            const float4 ar = *(const float4*)(own_canonical + from + 8 * i + part);
            const float4 ai = *(const float4*)(own_canonical + HALF + from + 8 * i + part);
            const float a_re[4] = {ar.x, ar.y, ar.z, ar.w}, a_im[4] = {ai.x, ai.y, ai.z, ai.w};
            const float b_re[4] = {re[i].x, re[i].y, re[i].z, re[i].w};
            const float b_im[4] = {im[i].x, im[i].y, im[i].z, im[i].w};
            const int of_row = r.block_of[from / 8 + i];
#pragma unroll
            for (int block = 0; block < BLOCKS; ++block) {
                if (block != of_row) continue;
#pragma unroll
                for (int l = 0; l < 4; ++l) {
                    u[block][l] = fmaf(a_im[l], b_im[l], fmaf(a_re[l], b_re[l], u[block][l]));
                    v[block][l] = fmaf(-a_im[l], b_re[l], fmaf(a_re[l], b_im[l], v[block][l]));
                }
            }
        }
    }
    float best = -__uint_as_float(INFINITY_BITS);
    which = 0;
    for (int m = 0; m < r.n_angles; ++m) {
        float even = 0.0f, odd = 0.0f;
#pragma unroll
        for (int block = 0; block < BLOCKS; ++block) {
            const int at = m * COLUMNS + 8 * block + part;
            even = dot4(make_float4(u[block][0], u[block][1], u[block][2], u[block][3]),
                        *(const float4*)(cosine + at), even);
            odd = dot4(make_float4(v[block][0], v[block][1], v[block][2], v[block][3]), *(const float4*)(sine + at),
                       odd);
        }
        even += __shfl_xor_sync(0xFFFFFFFFu, even, 1);
        odd += __shfl_xor_sync(0xFFFFFFFFu, odd, 1);
        if (even + fabsf(odd) > best) {
            best = even + fabsf(odd);
            which = odd >= 0.0f ? m : -m;
        }
    }
    const float length = r.lengths[candidate];
    float squared = squared_from(own_length, length, best);
    if (WITH_MARGIN) squared = r.factor * squared + r.offset;
    if (WITH_IDENTITY) {
        float plain = 0.0f;
        const float* unturned = r.raw + (long long)candidate * DIM;
#pragma unroll 8
        for (int f = part; f < DIM; f += 8)
            plain = dot4(*(const float4*)(unturned + f), *(const float4*)(own_raw + f), plain);
        plain += __shfl_xor_sync(0xFFFFFFFFu, plain, 1);
        // At a tie the unrotated patch wins: it needs no interpolation.
        const float without = squared_from(own_length, length, plain);
        if (without <= squared) {
            squared = without;
            which = IDENTITY;
        }
    }
    return squared;
}

#endif

#if GRAPH
// Squared distances of every pixel to the pixels of its window that come after it.
extern "C" __global__ void __launch_bounds__(32 * WARPS) half_windows(const Region r) {
    DYNAMIC_SHARED(float4, memory);
    __shared__ float own_lengths[OWN];
    const int side = 2 * r.reach + TILE;
    float* own_canonical = (float*)memory;
    float* own_raw = own_canonical + OWN * DIM;
    float* distances = own_raw + (WITH_RAW ? OWN * DIM : 0);
    float* chunk = distances + (OWN * side * side + 3) / 4 * 4;
    const int y0 = r.top + blockIdx.x * TILE, x0 = blockIdx.y * TILE;
    load_own(r, y0, x0, own_canonical, own_raw, own_lengths);
    __syncthreads();
    const int row = y0 - r.reach, column = x0 - r.reach;
    window_distances(r, r.canonical, own_canonical, own_lengths, row, column, side, false, chunk, distances);
    if (WITH_MARGIN) window_distances(r, r.raw, own_raw, own_lengths, row, column, side, true, chunk, distances);
    const int slots = r.reach + r.reach * (2 * r.reach + 1);
    for (int i = threadIdx.x; i < slots * OWN; i += 32 * WARPS) {
        const int slot = i / OWN, p = i % OWN, y = y0 + p / TILE, x = x0 + p % TILE;
        const int dy = slot < r.reach ? 0 : (slot - r.reach) / (2 * r.reach + 1) + 1;
        const int dx = slot < r.reach ? slot + 1 : (slot - r.reach) % (2 * r.reach + 1) - r.reach;
        if (y >= r.bottom || x >= r.width || y + dy >= r.height || x + dx < 0 || x + dx >= r.width) continue;
        const int at = (y + dy - row) * side + x + dx - column;
        r.weights[((long long)slot * r.height + y) * r.width + x] = r.scale * distances[p * side * side + at];
    }
}
#else
extern "C" __global__ void __launch_bounds__(32 * WARPS, BLOCKS_OF_SM) rid(const Region r) {
    DYNAMIC_SHARED(float4, memory);
    __shared__ float own_lengths[OWN];
    const int side = 2 * r.reach + TILE;
    float* own_canonical = (float*)memory;
    float* own_raw = own_canonical + OWN * DIM; // only if features are also compared in the image's frame
    float* cosine = own_raw + (WITH_RAW ? OWN * DIM : 0);
    float* sine = cosine + r.n_angles * COLUMNS;
    float* distances = sine + r.n_angles * COLUMNS; // (OWN, side * side)
    const int window = (2 * r.reach + 1) * (2 * r.reach + 1);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    // For each warp: the values of one window, the candidates, their distances and angles. Before that, `chunk`.
    const int most = r.n_candidates;
    float* chunk = distances + (OWN * side * side + 3) / 4 * 4;
    float* values = chunk + warp * (window + 3 * most);
    int* candidates = (int*)(values + window);
    float* best = (float*)(candidates + most);
    int* angles = (int*)(best + most);
    int* kept = (int*)values; // the window is no longer needed by then
    const int y0 = r.top + blockIdx.x * TILE, x0 = blockIdx.y * TILE;
    load_own(r, y0, x0, own_canonical, own_raw, own_lengths);
    for (int i = threadIdx.x; i < r.n_angles * COLUMNS; i += 32 * WARPS) {
        cosine[i] = r.cosine[i];
        sine[i] = r.sine[i];
    }
    __syncthreads();
    const int row = y0 - r.reach, column = x0 - r.reach;
    window_distances(r, r.canonical, own_canonical, own_lengths, row, column, side, false, chunk, distances);
    if (WITH_MARGIN) window_distances(r, r.raw, own_raw, own_lengths, row, column, side, true, chunk, distances);
    for (int p = warp; p < OWN; p += WARPS) {
        const int y = y0 + p / TILE, x = x0 + p % TILE;
        if (y >= r.bottom || x >= r.width) continue;
        const int top = max(y - r.reach, 0), bottom = min(y + r.reach + 1, r.height);
        const int left = max(x - r.reach, 0), wide = min(x + r.reach + 1, r.width) - left;
        const int n_values = (bottom - top) * wide;
        const int own = (y - top) * wide + x - left;
        const float* mine = distances + p * side * side + (top - row) * side + left - column;
        int of_row = lane / wide, of_column = lane % wide;
        for (int i = lane; i < n_values; i += 32) {
            values[i] = i == own ? 0.0f : mine[of_row * side + of_column];
            of_row += 32 / wide;
            of_column += 32 % wide;
            if (of_column >= wide) {
                of_column -= wide;
                ++of_row;
            }
        }
        __syncwarp();
#if DIFFUSION
        rank_by_diffusion(r, y, x, top, left, wide, n_values, values, distances + p * side * side);
#endif
        const int n = smallest_of_warp(values, n_values, r.n_candidates, own, candidates);
        const int here = y * r.width + x;
        for (int first = 0; first < n; first += 16) {
            const int c = min(first + lane / 2, n - 1);
            const int candidate = (top + candidates[c] / wide) * r.width + left + candidates[c] % wide;
            int angle;
            const float squared = accurate(r, own_canonical + p * DIM, own_raw + p * DIM, own_lengths[p], candidate,
                                           cosine, sine, angle);
            __syncwarp();
            if (lane % 2 == 0 && first + lane / 2 < n) {
                candidates[c] = candidate;
                best[c] = candidate == here ? 0.0f : squared;
                angles[c] = candidate == here ? IDENTITY : angle;
            }
        }
        __syncwarp();
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
#endif
