// Block matching: the nearest patches of a window under the symmetries of the square. A block for each
// reference patch. Counterpart of vnlem.kernels.numba.match, with the same ranks and the same rules for ties.
// Macros: P (patch size), CHANNELS, TRANSFORMS (1, 4 or 8), THREADS, WINDOW_IN_SHARED, TURNED_SHEETS.

#define PIXELS (P * P)
// Turned patches this near to the reference are not taken.
#define NEAR 3
// With fewer turned members than one in so many, a group does without.
#define ONE_IN 8
// A thread takes so many candidates, one below the other: they share the loads of pixels and of the reference.
#define SHIFTED_STRIP 8
#define MOVED_STRIP 4

struct Search {
    const float* image;      // (CHANNELS, rows, stride), the sheets one below the other
    const float* energy;     // (rows - P + 1, stride), squared norms of the patches; infinite where there is none
    const float* penalty;    // (height - P + 1, width - P + 1)
    const short* back;       // (TRANSFORMS, PIXELS): pixel of the reference that lies on a pixel of the member
    const int* centres;      // (references, n_sheets - 1, 2): patches in the turned copies, around which to search
    const int* reference_rows;
    const int* reference_columns;
    float* ranks;            // (blocks, floats of `Ranks`) where they do not fit in shared memory, else null
    int* positions;          // (references, n_members): row * stride + column, the reference first
    byte* chosen;            // (references, n_members): index of the transform
    int* turned;             // (1): how many members are turned or reflected is added to it
    int rows, stride, height, width; // of the tall array; of the image, its first sheet
    int n_sheets, radius, n_members, n_turned, n_reference_columns;
    float factor;
};

struct Window {
    int top, left, n_rows, n_columns;
};

// At the border of the image windows move inwards.
__device__ Window place_window(const Search& s, int row, int column) {
    const int rows = s.height - P + 1, columns = s.width - P + 1;
    const int side = 2 * s.radius + 1;
    Window w;
    w.n_rows = min(side, rows);
    w.n_columns = min(side, columns);
    w.top = max(0, min(row - s.radius, rows - w.n_rows));
    w.left = max(0, min(column - s.radius, columns - w.n_columns));
    return w;
}

// The pixels of a window: a copy in shared memory, or the image itself where the copy would not fit.
struct Pixels {
    const float* first;
    int stride, plane;
};

__device__ Pixels load_window(const Search& s, const Window& w, float* copy) {
    const float* source = s.image + w.top * s.stride + w.left;
    const int plane = s.rows * s.stride;
#if WINDOW_IN_SHARED
    // Whole strips are read: rows past the last one repeat it, and what they give is not used.
    const int height = ceil_div(w.n_rows, SHIFTED_STRIP) * SHIFTED_STRIP + P - 1, width = w.n_columns + P - 1;
    const int last = w.n_rows + P - 2;
    __syncthreads();
    for (int i = threadIdx.x; i < CHANNELS * height * width; i += THREADS) {
        const int channel = i / (height * width), at = i % (height * width);
        copy[i] = source[(long long)channel * plane + min(at / width, last) * s.stride + at % width];
    }
    __syncthreads();
    return Pixels{copy, width, height * width};
#else
    return Pixels{source, s.stride, plane};
#endif
}

// Correlations of STRIP candidates, one below the other, with the reference under transforms FIRST..LAST-1.
// at: the first pixel of the first; rows_left: rows of pixels there are from it on; taps: (CHANNELS, PIXELS,
// TRANSFORMS).
template <int STRIP, int FIRST, int LAST>
__device__ __forceinline__ void correlate(const float* at, const Pixels& pixels, const float* taps, int rows_left,
                                          float (&sums)[STRIP][LAST - FIRST]) {
#pragma unroll
    for (int a = 0; a < STRIP; ++a)
#pragma unroll
        for (int g = 0; g < LAST - FIRST; ++g) sums[a][g] = 0.0f;
#pragma unroll 1
    for (int channel = 0; channel < CHANNELS; ++channel) {
#pragma unroll 1
        for (int column = 0; column < P; ++column) {
            float values[STRIP + P - 1];
#pragma unroll
            for (int r = 0; r < STRIP + P - 1; ++r) {
                const int row = WINDOW_IN_SHARED ? r : min(r, rows_left - 1);
                values[r] = at[channel * pixels.plane + row * pixels.stride + column];
            }
#pragma unroll
            for (int row = 0; row < P; ++row) {
                const float* tap = taps + (channel * PIXELS + row * P + column) * TRANSFORMS;
                __align__(16) float factors[TRANSFORMS];
                if (LAST == 1)
                    factors[0] = tap[0];
                else
#pragma unroll
                    for (int g = 0; g < LAST; g += 4) *(float4*)(factors + g) = *(const float4*)(tap + g);
#pragma unroll
                for (int g = FIRST; g < LAST; ++g)
#pragma unroll
                    for (int a = 0; a < STRIP; ++a)
                        sums[a][g - FIRST] = fmaf(values[row + a], factors[g], sums[a][g - FIRST]);
            }
        }
    }
}

// Squared distances of shifted patches.
__device__ void rank_shifted(const Search& s, const Window& w, const Pixels& pixels, const float* taps, float norm,
                             float* shifted) {
    const int strips = ceil_div(w.n_rows, SHIFTED_STRIP) * w.n_columns;
    for (int i = threadIdx.x; i < strips; i += THREADS) {
        const int y = i / w.n_columns * SHIFTED_STRIP, x = i % w.n_columns;
        float sums[SHIFTED_STRIP][1];
        correlate<SHIFTED_STRIP, 0, 1>(pixels.first + y * pixels.stride + x, pixels, taps, w.n_rows + P - 1 - y, sums);
#pragma unroll
        for (int a = 0; a < SHIFTED_STRIP; ++a) {
            if (y + a >= w.n_rows) break;
            const float both = s.energy[(w.top + y + a) * s.stride + w.left + x] + norm;
            shifted[(y + a) * w.n_columns + x] = fmaxf(both - 2.0f * sums[a][0], 0.0f);
        }
    }
}

// Ranks of patches that are turned or reflected, where they are better than what `best` holds.
template <int FIRST>
__device__ void rank_moved(const Search& s, const Window& w, const Pixels& pixels, const float* taps, float norm,
                           float penalty, const float* before, float* best, byte* which) {
    const int strips = ceil_div(w.n_rows, MOVED_STRIP) * w.n_columns;
    for (int i = threadIdx.x; i < strips; i += THREADS) {
        const int y = i / w.n_columns * MOVED_STRIP, x = i % w.n_columns;
        float sums[MOVED_STRIP][TRANSFORMS - FIRST];
        correlate<MOVED_STRIP, FIRST, TRANSFORMS>(pixels.first + y * pixels.stride + x, pixels, taps, w.n_rows + P - 1 - y, sums);
#pragma unroll
        for (int a = 0; a < MOVED_STRIP; ++a) {
            if (y + a >= w.n_rows) break;
            float fit = sums[a][0];
            int winner = FIRST;
#pragma unroll
            for (int g = FIRST + 1; g < TRANSFORMS; ++g)
                if (sums[a][g - FIRST] > fit) {
                    fit = sums[a][g - FIRST];
                    winner = g;
                }
            const int at = (y + a) * w.n_columns + x;
            const float both = s.energy[(w.top + y + a) * s.stride + w.left + x] + norm;
            const float rank = s.factor * fmaxf(both - 2.0f * fit, 0.0f) + penalty;
            const float known = before ? before[at] : __uint_as_float(INFINITY_BITS);
            best[at] = rank < known ? rank : known;
            which[at] = rank < known ? winner : 0;
        }
    }
    __syncthreads();
}

// The reference turned in place shares its noise: no help, and no independent witness.
__device__ void forget_near(const Window& w, int row, int column, float* best) {
    const int side = 2 * NEAR + 1;
    for (int i = threadIdx.x; i < side * side; i += THREADS) {
        const int y = row - w.top - NEAR + i / side, x = column - w.left - NEAR + i % side;
        if (0 <= y && y < w.n_rows && 0 <= x && x < w.n_columns)
            best[y * w.n_columns + x] = __uint_as_float(INFINITY_BITS);
    }
    __syncthreads();
}

// Makes all but the k smallest numbers infinite; ties go to the lower index.
__device__ void keep_best(float* values, int n, int k, Selection* selection) {
    if (k >= n) return;
    const unsigned threshold = kth_smallest(values, n, k, selection);
    const int each = ceil_div(n, THREADS) | 1;
    const int first = min((int)threadIdx.x * each, n), last = min(first + each, n);
    int below = 0, tied = 0;
    for (int i = first; i < last; ++i) {
        below += __float_as_uint(values[i]) < threshold;
        tied += __float_as_uint(values[i]) == threshold;
    }
    const int places = k - block_sum(below, selection->warps);
    int ties = sum_before(tied, selection->warps);
    for (int i = first; i < last; ++i) {
        const unsigned bits = __float_as_uint(values[i]);
        if (bits > threshold || (bits == threshold && ties++ >= places)) values[i] = __uint_as_float(INFINITY_BITS);
    }
    __syncthreads();
}

extern "C" __global__ void __launch_bounds__(THREADS, 768 / THREADS) match(const Search s) {
    // The reference under all transforms, (CHANNELS, PIXELS, TRANSFORMS); ranks, order and window after it.
    DYNAMIC_SHARED(float, taps);
    float* memory = taps + CHANNELS * PIXELS * TRANSFORMS;
    __shared__ Selection selection;
    __shared__ Window windows[8];
    const int reference = blockIdx.x;
    const int row = s.reference_rows[reference / s.n_reference_columns];
    const int column = s.reference_columns[reference % s.n_reference_columns];
    const int side = 2 * s.radius + 1;
    const int per_sheet = min(side, s.height - P + 1) * min(side, s.width - P + 1);
    const int turned_sheet = side * side;
    // shifted, best (with the turned sheets), which, the order, the window.
    const int n_best = per_sheet + (s.n_sheets - 1) * turned_sheet;
    float* shifted = s.ranks ? s.ranks + (long long)reference * (per_sheet + n_best + ceil_div(n_best, 4)) : memory;
    float* best = shifted + per_sheet;
    byte* which = (byte*)(best + n_best);
    int* order = (int*)(s.ranks ? memory : best + n_best + ceil_div(n_best, 4));
    float* copy = (float*)(order + s.n_members);

    for (int i = threadIdx.x; i < CHANNELS * TRANSFORMS * PIXELS; i += THREADS) {
        const int channel = i / (TRANSFORMS * PIXELS), g = i / PIXELS % TRANSFORMS, v = i % PIXELS;
        const int u = s.back[g * PIXELS + v];
        taps[(channel * PIXELS + v) * TRANSFORMS + g] =
            s.image[(long long)channel * s.rows * s.stride + (row + u / P) * s.stride + column + u % P];
    }
    const Window own_window = place_window(s, row, column);
    const Pixels pixels = load_window(s, own_window, copy);
    __syncthreads();
    const float norm = s.energy[row * s.stride + column];
    rank_shifted(s, own_window, pixels, taps, norm, shifted);
    __syncthreads();
    const int own = (row - own_window.top) * own_window.n_columns + column - own_window.left;
    if (threadIdx.x == 0) {
        shifted[own] = 0.0f;
        windows[0] = own_window;
    }
    __syncthreads();
    const unsigned limit = kth_smallest(shifted, per_sheet, s.n_members, &selection);
    int n_moved = 0;
#if TRANSFORMS > 1 || TURNED_SHEETS
    const float penalty = s.penalty[row * (s.width - P + 1) + column];
    // Where enough shifted patches are nearer than the penalty no other can rank among the members.
    if (penalty < __uint_as_float(limit)) {
        rank_moved<1>(s, own_window, pixels, taps, norm, penalty, shifted, best, which);
        int n = per_sheet;
#if TURNED_SHEETS
        for (int sheet = 1; sheet < s.n_sheets; ++sheet) {
            const int* centre = s.centres + ((long long)reference * (s.n_sheets - 1) + sheet - 1) * 2;
            // Turned copies are so large that no window leaves them.
            const Window w = {centre[0] - s.radius, centre[1] - s.radius, side, side};
            if (threadIdx.x == 0) windows[sheet] = w;
            const Pixels there = load_window(s, w, copy);
            rank_moved<0>(s, w, there, taps, norm, penalty, nullptr, best + n, which + n);
            forget_near(w, centre[0], centre[1], best + n);
            n += w.n_rows * w.n_columns;
        }
        keep_best(best + per_sheet, n - per_sheet, s.n_turned, &selection);
#endif
        const unsigned threshold = kth_smallest(best, n, s.n_members, &selection);
        take_smallest(best, n, s.n_members, threshold, own, order, selection.warps);
        int moved = 0;
        for (int j = threadIdx.x; j < s.n_members; j += THREADS)
            moved += order[j] >= per_sheet || which[order[j]] > 0;
        n_moved = block_sum(moved, selection.warps);
    }
#endif
    if (n_moved * ONE_IN < s.n_members) {
        n_moved = 0;
        __syncthreads();
        take_smallest(shifted, per_sheet, s.n_members, limit, own, order, selection.warps);
    }
    for (int j = threadIdx.x; j < s.n_members; j += THREADS) {
        int sheet = 0, at = order[j];
        while (sheet < s.n_sheets - 1 && at >= windows[sheet].n_rows * windows[sheet].n_columns) {
            at -= windows[sheet].n_rows * windows[sheet].n_columns;
            ++sheet;
        }
        const Window& w = windows[sheet];
        const long long to = (long long)reference * s.n_members + j;
        s.positions[to] = (w.top + at / w.n_columns) * s.stride + w.left + at % w.n_columns;
        s.chosen[to] = n_moved > 0 ? which[order[j]] : 0;
    }
    if (threadIdx.x == 0 && n_moved > 0) atomicAdd(s.turned, n_moved);
}
