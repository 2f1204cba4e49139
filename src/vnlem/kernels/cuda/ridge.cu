// Ridge combination of a group of aligned patches, and its aggregation. A block for each group and channel.
// Counterpart of kernels/cpu/combine.cpp and ridge.cpp. A thread holds a tile of 4 x 4 numbers of the group's
// matrix, so the inverse needs shared memory only for the row of the pivot.
// What is put back is summed in 64-bit integers: their sum does not depend on the order.
// Macros: P (patch size), DEPTH (planes of a stack that a patch spans, one below another), K (members of a
// group), THREADS (at least SIDE^2, whole warps).

#define PIXELS (DEPTH * P * P)
#define SIDE ((K + 3) / 4)         // tiles along the matrix
#define SIZE (4 * SIDE)            // its padded size
#define LINE (SIZE + 4)            // floats of a row in shared memory: rows begin on different banks
#define LENGTH ((PIXELS + 3) / 4 * 4) // floats of a patch in shared memory
#define CHANGE_TILES (LENGTH / 4 * SIDE)
// Blocks that share a multiprocessor, as far as registers allow; gaming cards take at most 16.
#if __CUDA_ARCH__ == 800 || __CUDA_ARCH__ >= 900
#define MOST_BLOCKS 32
#else
#define MOST_BLOCKS 16
#endif
#define BLOCKS (THREADS > 512 ? 1 : 1024 / THREADS > MOST_BLOCKS ? MOST_BLOCKS : 1024 / THREADS)
#define ROUNDS ((CHANGE_TILES + THREADS - 1) / THREADS)
// Members from copies count as noisier: their noise is partly that of members that are put back.
#define COPIED_NOISE 4.0f
// A group whose load is smaller than this, relative to the trace of its Gram matrix, is solved in double precision.
#define LEAST_LOAD 3e-5f
// The smallest load that double precision resolves, relative to the trace.
#define LEAST_DOUBLE_LOAD 1e-12

struct Groups {
    const float* pilot;     // (channels, rows, stride)
    const float* working;   // likewise
    const float* residual;  // (channels, rows - P + 1, stride): patch sums of (noisy - working)^2
    const float* noise;     // likewise, of the noise variance; null if all patches have `even_noise`
    const short* onto; // (transforms, PIXELS): pixel of the member that lies on a pixel of the reference
    const short* back; // (transforms, PIXELS): pixel of the reference that lies on a pixel of the member
    const int* positions;   // (groups, K)
    const byte* chosen;     // (groups, K)
    const float* taps;      // (P): the weight of a pixel is that of its row times that of its column
    long long* sums;        // (channels, height, width, 2): weight * change, faded weight * change
    long long* weights;     // (channels, height, width), at the patches' top left corners
    int rows, stride, height, width;
    int plane_rows;    // from one plane to the next
    int without_pilot; // Stein's estimate, with extra_load times the noise energy as a stabilising load
    float extra_load, boost, colour_boost, tau, even_noise; // colour_boost: factor on boost of later channels
    float unit, weight_unit; // factors of sums and of weights before rounding
    float most;              // no single term is larger, or the sum could overflow
};

// Where a pixel of a patch lies from the patch's corner.
__device__ __forceinline__ int offset_of(int v, int plane_rows, int stride) {
    return (v / (P * P) * plane_rows + v % (P * P) / P) * stride + v % P;
}

struct Member {
    int position[SIZE];
    int transform[SIZE];
    float load[SIZE], shrink[SIZE], noise[SIZE], gain[SIZE];
};

template <typename T>
struct Work {
    __align__(16) T line[2 * SIZE]; // the row of the pivot and that of the next
    T ones[SIZE], gain[SIZE], diagonal[SIZE];
    T warps[32];
};

// Sums over the columns of a matrix held in tiles: each thread adds four numbers for its columns.
// scratch: (SIDE, SIZE). Written: out (SIZE).
template <typename T>
__device__ void column_sums(const T (&mine)[4], int tile_row, int tile_column, T* scratch, T* out) {
    __syncthreads();
    if (tile_row < SIDE)
#pragma unroll
        for (int b = 0; b < 4; ++b) scratch[tile_row * SIZE + 4 * tile_column + b] = mine[b];
    __syncthreads();
    for (int j = threadIdx.x; j < SIZE; j += THREADS) {
        T sum = 0;
        for (int i = 0; i < SIDE; ++i) sum += scratch[i * SIZE + j];
        out[j] = sum;
    }
    __syncthreads();
}

__device__ __forceinline__ float multiply_add(float a, float b, float c) { return fmaf(a, b, c); }
__device__ __forceinline__ double multiply_add(double a, double b, double c) { return fma(a, b, c); }

// Inverts a symmetric positive definite matrix held in tiles. The sweep operator: the pivot B becomes -1/B, the
// rest R of its row becomes R/B, and R^T R/B is subtracted from the rest; after all pivots minus the inverse is left.
template <typename T>
__device__ __forceinline__ void invert(T (&tile)[4][4], int tile_row, int tile_column, T* line) {
    int turn = 0;
    for (int block = 0; block < SIDE; ++block) {
#pragma unroll
        for (int q = 0; q < 4; ++q) {
            T* row = line + turn * SIZE;
            turn ^= 1;
            if (tile_row == block)
#pragma unroll
                for (int b = 0; b < 4; ++b) row[4 * tile_column + b] = tile[q][b];
            __syncthreads();
            if (tile_row < SIDE) {
                const T inverse = T(1) / row[4 * block + q];
                T left[4], right[4];
#pragma unroll
                for (int a = 0; a < 4; ++a) {
                    left[a] = row[4 * tile_row + a];
                    right[a] = row[4 * tile_column + a] * inverse;
                }
                // With these values the general rule also gives the pivot's row and column.
                if (tile_column == block) {
                    right[q] = -inverse;
#pragma unroll
                    for (int a = 0; a < 4; ++a) tile[a][q] = 0;
                }
                if (tile_row == block) {
                    left[q] = -1;
#pragma unroll
                    for (int b = 0; b < 4; ++b) tile[q][b] = 0;
                }
#pragma unroll
                for (int a = 0; a < 4; ++a)
#pragma unroll
                    for (int b = 0; b < 4; ++b) tile[a][b] = multiply_add(-left[a], right[b], tile[a][b]);
            }
        }
    }
#pragma unroll
    for (int a = 0; a < 4; ++a)
#pragma unroll
        for (int b = 0; b < 4; ++b) tile[a][b] = -tile[a][b];
}

// The Gram matrix of the columns of `matrix` (PIXELS, LINE), in tiles.
template <typename T>
__device__ __forceinline__ void gram(const float* matrix, int tile_row, int tile_column, T (&tile)[4][4]) {
#pragma unroll
    for (int a = 0; a < 4; ++a)
#pragma unroll
        for (int b = 0; b < 4; ++b) tile[a][b] = 0;
    if (tile_row >= SIDE) return;
    for (int u = 0; u < PIXELS; ++u) {
        const float4 left = *(const float4*)(matrix + u * LINE + 4 * tile_row);
        const float4 right = *(const float4*)(matrix + u * LINE + 4 * tile_column);
        const T a[4] = {left.x, left.y, left.z, left.w}, b[4] = {right.x, right.y, right.z, right.w};
#pragma unroll
        for (int y = 0; y < 4; ++y)
#pragma unroll
            for (int x = 0; x < 4; ++x) tile[y][x] = multiply_add(a[y], b[x], tile[y][x]);
    }
}

template <typename T>
__device__ __forceinline__ T trace_of(const T (&tile)[4][4], int tile_row, int tile_column, T* scratch) {
    T mine = 0;
    if (tile_row == tile_column)
#pragma unroll
        for (int a = 0; a < 4; ++a) mine += tile[a][a];
    return block_sum(mine, scratch);
}

// The change Theta - I = -P diag(shrink) of a group from its Gram matrix, P = (G + diag(load))^-1 made to
// annihilate constants: each column of Theta sums to one. Written: the change into `matrix` (SIZE, LINE) and
// members.gain[j] = sum_i Theta_ij^2 noise_i / noise_j.
template <typename T>
__device__ __forceinline__ void combine(T (&tile)[4][4], T trace, T least_load, int tile_row, int tile_column,
                                        float* matrix, Member& members, Work<T>& work) {
    // P annihilates constants, so adding a constant to all entries does not change the result. It keeps the inverse
    // small in their direction, where the Gram matrix of a centred group is zero.
    const T shift = trace / T(K * K);
#pragma unroll
    for (int a = 0; a < 4; ++a)
#pragma unroll
        for (int b = 0; b < 4; ++b) {
            const int i = 4 * tile_row + a, j = 4 * tile_column + b;
            if (i < K && j < K) tile[a][b] += shift;
            if (i == j && i < SIZE) tile[a][b] += i < K ? max(T(members.load[i]), least_load) : T(1);
        }
    invert(tile, tile_row, tile_column, work.line);
    T sums[4] = {};
#pragma unroll
    for (int a = 0; a < 4; ++a)
#pragma unroll
        for (int b = 0; b < 4; ++b) sums[b] += 4 * tile_row + a < K ? tile[a][b] : T(0);
    column_sums(sums, tile_row, tile_column, (T*)matrix, work.ones);
    T part = 0;
    for (int j = threadIdx.x; j < K; j += THREADS) part += work.ones[j];
    const T total = block_sum(part, work.warps);
    T gains[4] = {};
    if (tile_row < SIDE)
#pragma unroll
        for (int a = 0; a < 4; ++a) {
            const int i = 4 * tile_row + a;
            const T share = work.ones[i] / total, noise = members.noise[i];
#pragma unroll
            for (int b = 0; b < 4; ++b) {
                const int j = 4 * tile_column + b;
                T value = 0;
                if (i < K && j < K) value = (share * work.ones[j] - tile[a][b]) * T(members.shrink[j]);
                tile[a][b] = value;
                gains[b] += noise * value * value;
                if (i == j) work.diagonal[i] = value;
            }
        }
    column_sums(gains, tile_row, tile_column, (T*)matrix, work.gain);
    if (tile_row < SIDE)
#pragma unroll
        for (int a = 0; a < 4; ++a)
            *(float4*)(matrix + (4 * tile_row + a) * LINE + 4 * tile_column) =
                make_float4((float)tile[a][0], (float)tile[a][1], (float)tile[a][2], (float)tile[a][3]);
    for (int j = threadIdx.x; j < K; j += THREADS)
        members.gain[j] = (float)(work.gain[j] / T(members.noise[j]) + T(2) * work.diagonal[j] + T(1));
    __syncthreads();
}

// The same in double precision, for groups whose loads single precision cannot resolve. Noise too weak for double
// precision to resolve still means less change: the load is raised, shrink is not.
__device__ __noinline__ void combine_delicately(float* matrix, Member& members) {
    __shared__ Work<double> work;
    const int tile_row = threadIdx.x / SIDE, tile_column = threadIdx.x % SIDE;
    double tile[4][4];
    gram(matrix, tile_row, tile_column, tile);
    const double trace = trace_of(tile, tile_row, tile_column, work.warps);
    combine(tile, trace, LEAST_DOUBLE_LOAD * trace, tile_row, tile_column, matrix, members, work);
}

// Subtracts the mean over the group, four threads per pixel. `step`: from one member to the next; `along`: from one
// pixel to the next.
__device__ void centre(float* columns, int step, int along) {
    for (int i = threadIdx.x; i < 4 * ceil_div(PIXELS, 8) * 8; i += THREADS) {
        const int u = i / 4, q = i % 4;
        float sum = 0.0f;
        if (u < PIXELS)
            for (int j = q; j < K; j += 4) sum += columns[u * along + j * step];
        sum += __shfl_xor_sync(0xFFFFFFFFu, sum, 1);
        sum += __shfl_xor_sync(0xFFFFFFFFu, sum, 2);
        const float mean = sum / (float)K;
        if (u < PIXELS)
            for (int j = q; j < K; j += 4) columns[u * along + j * step] -= mean;
    }
}

__device__ __forceinline__ void put_back(long long* to, float value, float most) {
    atomicAdd((wide*)to, (wide)__float2ll_rn(fminf(fmaxf(value, -most), most)));
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) ridge(const Groups g) {
    DYNAMIC_SHARED(float4, memory);
    __shared__ Member members;
    __shared__ Work<float> work;
    const int group = blockIdx.x, channel = blockIdx.y, thread = threadIdx.x;
    const int tile_row = thread / SIDE, tile_column = thread % SIDE;
    // The pilot's patches as columns, later the combination; the working patches as rows, later their change.
    float* matrix = (float*)memory;
    float* patches = matrix + (PIXELS > SIZE ? PIXELS : SIZE) * LINE;
    const long long plane = (long long)channel * g.rows * g.stride;
    const long long map = (long long)channel * (g.rows - P + 1) * g.stride;
    const int n_own = g.height * g.stride;

    float change = 0.0f, energy = 0.0f;
    for (int j = thread; j < SIZE; j += THREADS) {
        const int at = j < K ? g.positions[(long long)group * K + j] : 0;
        float noise = 1.0f;
        if (j < K) {
            noise = g.noise ? g.noise[map + at] : g.even_noise;
            change += g.residual[map + at];
            energy += noise;
            if (at >= n_own) noise *= COPIED_NOISE;
        }
        members.position[j] = at;
        members.transform[j] = j < K ? g.chosen[(long long)group * K + j] : 0;
        members.noise[j] = noise;
    }
    change = block_sum(change, work.warps);
    energy = block_sum(energy, work.warps);
    // The share of the noise left in this group's working patches.
    const float left_over = fmaxf(1.0f - sqrtf(change / energy), fmaxf(1.02f * g.tau, 0.02f));
    const float blend = fminf(g.tau / left_over, 1.0f);
    for (int i = thread; i < SIZE * LENGTH; i += THREADS) {
        const int j = i / LENGTH, u = i % LENGTH;
        float from_pilot = 0.0f, from_working = 0.0f;
        if (j < K && u < PIXELS) {
            const int v = g.onto[members.transform[j] * PIXELS + u];
            const long long at = plane + members.position[j] + offset_of(v, g.plane_rows, g.stride);
            from_pilot = g.pilot[at];
            from_working = g.working[at];
        }
        if (u < PIXELS) matrix[u * LINE + j] = from_pilot;
        patches[i] = from_working;
    }
    for (int j = thread; j < K; j += THREADS) {
        const float noise = members.noise[j];
        if (g.without_pilot) {
            members.load[j] = g.extra_load * noise;
            members.shrink[j] = noise + members.load[j];
        } else {
            members.load[j] = (channel > 0 ? g.boost * g.colour_boost : g.boost) * left_over * left_over * noise;
            members.shrink[j] = members.load[j];
        }
    }
    __syncthreads();
    centre(matrix, 1, LINE);
    centre(patches, LENGTH, 1);
    __syncthreads();
    float tile[4][4];
    gram(matrix, tile_row, tile_column, tile);
    const float trace = trace_of(tile, tile_row, tile_column, work.warps);
    float least = __uint_as_float(INFINITY_BITS);
    for (int j = thread; j < K; j += THREADS) least = fminf(least, members.load[j]);
    least = -block_max(-least, work.warps);
    if (least < LEAST_LOAD * trace)
        combine_delicately(matrix, members);
    else
        combine(tile, trace, 0.0f, tile_row, tile_column, matrix, members, work);
    for (int j = thread; j < K; j += THREADS) {
        const float gain = fmaxf(members.gain[j], 1.0f / K);
        members.gain[j] = 1.0f / (gain * sqrtf(gain));
    }
    __syncthreads();
    // Four pixels and four members per thread.
    float changes[ROUNDS][4][4] = {};
#pragma unroll
    for (int round = 0; round < ROUNDS; ++round) {
        const int n = round * THREADS + thread;
        if (n >= CHANGE_TILES) continue;
        const float* row = patches + n / SIDE * 4;
        const float* column = matrix + n % SIDE * 4;
        for (int i = 0; i < K; ++i) {
            const float4 left = *(const float4*)(row + i * LENGTH);
            const float4 right = *(const float4*)(column + i * LINE);
            const float a[4] = {left.x, left.y, left.z, left.w}, b[4] = {right.x, right.y, right.z, right.w};
#pragma unroll
            for (int y = 0; y < 4; ++y)
#pragma unroll
                for (int x = 0; x < 4; ++x) changes[round][y][x] = fmaf(a[y], b[x], changes[round][y][x]);
        }
    }
    __syncthreads();
#pragma unroll
    for (int round = 0; round < ROUNDS; ++round) {
        const int n = round * THREADS + thread;
        if (n >= CHANGE_TILES) continue;
#pragma unroll
        for (int x = 0; x < 4; ++x)
            *(float4*)(patches + (n % SIDE * 4 + x) * LENGTH + n / SIDE * 4) = make_float4(
                changes[round][0][x], changes[round][1][x], changes[round][2][x], changes[round][3][x]);
    }
    __syncthreads();
    // Put every member back in its own place and orientation: neighbouring threads write neighbouring memory.
    const long long image = (long long)channel * g.height * g.width;
    for (int i = thread; i < 2 * K * PIXELS; i += THREADS) {
        const int j = i / (2 * PIXELS), v = i / 2 % PIXELS, faded = i % 2;
        const int at = members.position[j];
        if (at >= n_own) continue;
        const float value = patches[j * LENGTH + g.back[members.transform[j] * PIXELS + v]];
        const float within = g.taps[v % (P * P) / P] * g.taps[v % P];
        const float weight = members.gain[j] * within * (faded ? 1.0f - blend : 1.0f);
        const long long to =
            image + (long long)(at / g.stride) * g.width + at % g.stride + offset_of(v, g.plane_rows, g.width);
        put_back(g.sums + 2 * to + faded, weight * value * g.unit, g.most);
    }
    // A weight at the corner of a patch counts in every plane that the patch spans.
    for (int i = thread; i < DEPTH * K; i += THREADS) {
        const int j = i / DEPTH, at = members.position[j];
        if (at >= n_own) continue;
        const long long to = image + (long long)(at / g.stride + i % DEPTH * g.plane_rows) * g.width + at % g.stride;
        put_back(g.weights + to, members.gain[j] * g.weight_unit, g.most);
    }
}
