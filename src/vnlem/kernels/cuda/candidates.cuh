// The candidates of a search window: their pixels, and how they rank against a reference patch. A patch has one
// layer for each channel of an image, or for each plane of a stack that it spans.
// Macros: P (patch size), CHANNELS, LAYERS (planes that a patch spans times CHANNELS), TRANSFORMS (1, 4, 8 or 16),
// THREADS, WINDOW_IN_SHARED.

#define PIXELS (P * P)
// Candidates of a thread, one below another: they share the loads of pixels and of the reference.
#define SHIFTED_STRIP 8
#define MOVED_STRIP (TRANSFORMS > 8 ? 2 : 4)
// A group uses turned members only if they are at least one in this many.
#define ONE_IN 8

struct Search {
    const float* image;      // (planes, CHANNELS, rows, stride); one plane for an image, with its copies below it
    const float* energy;     // (planes, rows, stride), squared norms of the patches at their corners; infinite if none
    const float* penalty;    // of the references' plane, with penalty_stride; null: even_penalty
    const short* back; // (TRANSFORMS, LAYERS * PIXELS): pixel of the reference that lies on a pixel of the member
    const int* sizes;        // (planes, 2): rows and columns of each plane that hold pixels
    // Where to search: (references, n_windows, 3), plane, row and column, the reference first, plane -1 for none. Null
    // for an image, which has one window.
    const int* centres;
    const int* copies;       // (references, n_copies, 2): row and column in the copies of an image
    const int* reference_rows;
    const int* reference_columns;
    const byte* moves;       // (cell^2, cell^2): bits of transforms, by the reference's place in a cell and the shift
    float* ranks;            // for each block, if they do not fit in shared memory, else null
    int* positions;          // (references, n_members): index into one channel of the image, the reference first
    byte* chosen;            // (references, n_members): index of the transform
    int* turned;             // (1): the number of turned or reflected members is added to it
    int rows, stride;
    int n_references, n_reference_columns, n_windows, n_copies, radius, copied_radius, n_members, n_copied;
    int together;            // windows that the copy in shared memory holds
    int cell;                // of pixels of several colours; 1 if every move is allowed
    int penalty_stride;
    float factor, even_penalty;
};

// The reference under all transforms, (LAYERS * PIXELS, TRANSFORMS).
__device__ __forceinline__ void load_reference(const Search& s, int plane, int row, int column, float* taps) {
    const float* first = s.image + ((long long)plane * CHANNELS * s.rows + row) * s.stride + column;
    for (int i = threadIdx.x; i < LAYERS * TRANSFORMS * PIXELS; i += THREADS) {
        const int g = i / (LAYERS * PIXELS), v = i % (LAYERS * PIXELS);
        const int u = s.back[i], layer = u / PIXELS, pixel = u % PIXELS;
        taps[v * TRANSFORMS + g] = first[((long long)layer * s.rows + pixel / P) * s.stride + pixel % P];
    }
}

// The array that windows lie in.
struct Sheet {
    const float* image;  // of the first layer
    const float* energy; // squared norms of the patches at their corners
    int stride, layer;   // from one row, and from one layer of the image, to the next
};

struct Window {
    int top, left, n_rows, n_columns;
};

// A window around a patch among `rows` x `columns` patches; at the border windows move inwards.
__device__ __forceinline__ Window inside(int row, int column, int radius, int rows, int columns) {
    const int side = 2 * radius + 1;
    Window w;
    w.n_rows = min(side, rows);
    w.n_columns = min(side, columns);
    w.top = max(0, min(row - radius, rows - w.n_rows));
    w.left = max(0, min(column - radius, columns - w.n_columns));
    return w;
}

// A patch that is turned or reflected ranks with factor * squared distance + penalty.
struct Price {
    float factor, penalty;
};

// Which transforms candidates may have, if the pixels of an image have several colours.
struct Moves {
    const byte* allowed; // (cell * cell), by the shift from the reference; null for all
    int cell, row, column; // of the reference, in the window

    // Bits of the transforms at a place of the window.
    __device__ __forceinline__ unsigned at(int y, int x) const {
        if (!allowed) return ~0u;
        const int down = (y - row) % cell, across = (x - column) % cell;
        return allowed[(down < 0 ? down + cell : down) * cell + (across < 0 ? across + cell : across)];
    }
};

// The pixels of a window: a copy in shared memory, or the image itself if the copy does not fit.
struct Pixels {
    const float* first;
    int stride, layer;
};

// Whole strips are read: rows past the last one repeat it, and their results are not used.
__device__ __forceinline__ int rows_of_copy(const Window& w) {
    return ceil_div(w.n_rows, SHIFTED_STRIP) * SHIFTED_STRIP + P - 1;
}

__device__ __forceinline__ void copy_window(const Sheet& s, const Window& w, float* copy) {
    const float* source = s.image + w.top * s.stride + w.left;
    const int height = rows_of_copy(w), width = w.n_columns + P - 1, last = w.n_rows + P - 2;
    for (int i = threadIdx.x; i < LAYERS * height * width; i += THREADS) {
        const int layer = i / (height * width), at = i % (height * width);
        copy[i] = source[layer * s.layer + min(at / width, last) * s.stride + at % width];
    }
}

__device__ __forceinline__ Pixels pixels_of(const Sheet& s, const Window& w, const float* copy) {
#if WINDOW_IN_SHARED
    const int height = rows_of_copy(w), width = w.n_columns + P - 1;
    return Pixels{copy, width, height * width};
#else
    return Pixels{s.image + w.top * s.stride + w.left, s.stride, s.layer};
#endif
}

__device__ Pixels load_window(const Sheet& s, const Window& w, float* copy) {
#if WINDOW_IN_SHARED
    __syncthreads();
    copy_window(s, w, copy);
    __syncthreads();
#endif
    return pixels_of(s, w, copy);
}

// Correlations of STRIP candidates, one below another, with the reference under transforms FIRST..LAST-1.
// at: the first pixel of the first; rows_left: rows of pixels from there on; taps: (LAYERS, PIXELS, TRANSFORMS).
template <int STRIP, int FIRST, int LAST>
__device__ __forceinline__ void correlate(const float* at, const Pixels& pixels, const float* taps, int rows_left,
                                          float (&sums)[STRIP][LAST - FIRST]) {
#pragma unroll
    for (int a = 0; a < STRIP; ++a)
#pragma unroll
        for (int g = 0; g < LAST - FIRST; ++g) sums[a][g] = 0.0f;
#pragma unroll 1
    for (int layer = 0; layer < LAYERS; ++layer) {
#pragma unroll 1
        for (int column = 0; column < P; ++column) {
            float values[STRIP + P - 1];
#pragma unroll
            for (int r = 0; r < STRIP + P - 1; ++r) {
                const int row = WINDOW_IN_SHARED ? r : min(r, rows_left - 1);
                values[r] = at[layer * pixels.layer + row * pixels.stride + column];
            }
#pragma unroll
            for (int row = 0; row < P; ++row) {
                const float* tap = taps + (layer * PIXELS + row * P + column) * TRANSFORMS;
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

// Squared distances of the shifted patches of a strip that begins at row y and column x of the window.
__device__ __forceinline__ void rank_shifted_strip(const Sheet& s, const Window& w, const Pixels& pixels,
                                                   const float* taps, float norm, int y, int x, float* shifted) {
    float sums[SHIFTED_STRIP][1];
    correlate<SHIFTED_STRIP, 0, 1>(pixels.first + y * pixels.stride + x, pixels, taps, w.n_rows + P - 1 - y, sums);
#pragma unroll
    for (int a = 0; a < SHIFTED_STRIP; ++a) {
        if (y + a >= w.n_rows) break;
        const float both = s.energy[(w.top + y + a) * s.stride + w.left + x] + norm;
        shifted[(y + a) * w.n_columns + x] = fmaxf(both - 2.0f * sums[a][0], 0.0f);
    }
}

// Ranks of a strip's patches that are turned or reflected, if they are better than what `before` holds.
template <int FIRST>
__device__ __forceinline__ void rank_moved_strip(const Sheet& s, const Window& w, const Pixels& pixels,
                                                 const float* taps, float norm, const Price& price, int y, int x,
                                                 const float* before, float* best, byte* which,
                                                 const Moves& moves = Moves{}) {
    float sums[MOVED_STRIP][TRANSFORMS - FIRST];
    correlate<MOVED_STRIP, FIRST, TRANSFORMS>(pixels.first + y * pixels.stride + x, pixels, taps,
                                              w.n_rows + P - 1 - y, sums);
#pragma unroll
    for (int a = 0; a < MOVED_STRIP; ++a) {
        if (y + a >= w.n_rows) break;
        const unsigned allowed = moves.at(y + a, x);
        float fit = -__uint_as_float(INFINITY_BITS);
        int winner = FIRST;
#pragma unroll
        for (int g = FIRST; g < TRANSFORMS; ++g)
            if (sums[a][g - FIRST] > fit && (allowed >> g & 1)) {
                fit = sums[a][g - FIRST];
                winner = g;
            }
        const int at = (y + a) * w.n_columns + x;
        const float both = s.energy[(w.top + y + a) * s.stride + w.left + x] + norm;
        const float rank = price.factor * fmaxf(both - 2.0f * fit, 0.0f) + price.penalty;
        const float known = before ? before[at] : __uint_as_float(INFINITY_BITS);
        best[at] = rank < known ? rank : known;
        which[at] = rank < known ? winner : 0;
    }
}
