// Block matching: the nearest patches of some windows under the symmetries of the square. The windows lie in the
// planes of a stack, and patches may span consecutive planes; an image is one plane, with a window around the
// reference and others in its copies. A block for each reference patch, or for one after another. Counterpart of
// kernels/cpu/match.cpp, with the same ranks and the same rules for ties.
// Macros: those of candidates.cuh, CELLS (whether moves are restricted), COPIES (whether there are copies).

#include "candidates.cuh"

// Turned patches this near to the reference are not taken.
#define NEAR 3
#define MOST_WINDOWS 128

// The reference turned in place shares its noise: it is no independent sample.
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

// Strips of candidates of the windows FROM..TO-1: work(window, row, column) for each.
template <int STRIP, typename F>
__device__ __forceinline__ void for_strips(const Window* windows, int from, int to, int side, F work) {
    const int per_window = ceil_div(side, STRIP) * side;
    for (int i = threadIdx.x; i < (to - from) * per_window; i += THREADS) {
        const int number = from + i / per_window, y = i % per_window / side * STRIP, x = i % side;
        if (y < windows[number].n_rows && x < windows[number].n_columns) work(number, y, x);
    }
}

// What a block keeps: ranks of shifted patches, (n_windows, side^2); ranks of the best transforms, and which these
// are, with those of the copies after the others.
struct Ranks {
    float* shifted;
    float* best;
    byte* which;
};

__device__ void match_one(const Search& s, int reference, float* taps, const Ranks& ranks, int* order, float* copy) {
    __shared__ Selection selection;
    __shared__ Window windows[MOST_WINDOWS];
    __shared__ int planes[MOST_WINDOWS];
    const int side = 2 * s.radius + 1, per_window = side * side, n_own = s.n_windows * per_window;
    const int copied_side = 2 * s.copied_radius + 1, per_copy = copied_side * copied_side;
    const int size_of_plane = s.rows * s.stride;
    const int copy_size = LAYERS * (ceil_div(side, SHIFTED_STRIP) * SHIFTED_STRIP + P - 1) * (side + P - 1);
    const int row = s.reference_rows[reference / s.n_reference_columns];
    const int column = s.reference_columns[reference % s.n_reference_columns];
    const int* centres = s.centres + (long long)reference * s.n_windows * 3;
    const int* copies = s.copies + (long long)reference * s.n_copies * 2;
    const int plane = s.centres ? centres[0] : 0;
    __syncthreads();
    load_reference(s, plane, row, column, taps);
    for (int number = threadIdx.x; number < s.n_windows; number += THREADS) {
        const int there = number ? centres[3 * number] : plane;
        planes[number] = there;
        windows[number] = there < 0 ? Window{0, 0, 0, 0}
                                    : inside(number ? centres[3 * number + 1] : row,
                                             number ? centres[3 * number + 2] : column, s.radius,
                                             s.sizes[2 * there] - P + 1, s.sizes[2 * there + 1] - P + 1);
    }
    for (int i = threadIdx.x; i < n_own; i += THREADS) ranks.shifted[i] = __uint_as_float(INFINITY_BITS);
    __syncthreads();
    const float norm = s.energy[plane * size_of_plane + row * s.stride + column];
    const auto sheet_of = [&](int number) {
        const int first = planes[number] * size_of_plane;
        return Sheet{s.image + CHANNELS * first, s.energy + first, s.stride, size_of_plane};
    };
    const auto bring = [&](int from, int to) {
#if WINDOW_IN_SHARED
        __syncthreads();
        for (int i = from; i < to; ++i)
            if (windows[i].n_rows > 0) copy_window(sheet_of(i), windows[i], copy + (i - from) * copy_size);
        __syncthreads();
#endif
    };
    for (int from = 0; from < s.n_windows; from += s.together) {
        const int to = min(from + s.together, s.n_windows);
        bring(from, to);
        for_strips<SHIFTED_STRIP>(windows, from, to, side, [&](int i, int y, int x) {
            const Sheet sheet = sheet_of(i);
            const Pixels pixels = pixels_of(sheet, windows[i], copy + (i - from) * copy_size);
            rank_shifted_strip(sheet, windows[i], pixels, taps, norm, y, x, ranks.shifted + i * per_window);
        });
    }
    const Window own_window = windows[0];
    const int own = (row - own_window.top) * own_window.n_columns + column - own_window.left;
    __syncthreads();
    if (threadIdx.x == 0) ranks.shifted[own] = 0.0f;
    __syncthreads();
#if CELLS
    const byte* allowed = s.moves + (row % s.cell * s.cell + column % s.cell) * s.cell * s.cell;
    const Moves moves = {allowed, s.cell, row - own_window.top, column - own_window.left};
    for (int i = threadIdx.x; i < own_window.n_rows * own_window.n_columns; i += THREADS)
        if (!(moves.at(i / own_window.n_columns, i % own_window.n_columns) & 1))
            ranks.shifted[i] = __uint_as_float(INFINITY_BITS);
    __syncthreads();
#else
    [[maybe_unused]] const Moves moves = {};
#endif
    const unsigned limit = kth_smallest(ranks.shifted, n_own, s.n_members, &selection);
    int n_moved = 0;
#if TRANSFORMS > 1 || COPIES
    const float penalty = s.penalty ? s.penalty[row * s.penalty_stride + column] : s.even_penalty;
    // If enough shifted patches are nearer than the penalty, no transformed one can rank among the members.
    if (penalty < __uint_as_float(limit)) {
        const Price price = {s.factor, penalty};
        for (int i = threadIdx.x; i < n_own; i += THREADS) {
            ranks.best[i] = ranks.shifted[i];
            ranks.which[i] = 0;
        }
        for (int from = 0; from < s.n_windows; from += s.together) {
            const int to = min(from + s.together, s.n_windows);
            if (s.together < s.n_windows) bring(from, to);
            __syncthreads();
            for_strips<MOVED_STRIP>(windows, from, to, side, [&](int i, int y, int x) {
                const Sheet sheet = sheet_of(i);
                const Pixels pixels = pixels_of(sheet, windows[i], copy + (i - from) * copy_size);
                const int first = i * per_window;
                rank_moved_strip<1>(sheet, windows[i], pixels, taps, norm, price, y, x, ranks.shifted + first,
                                    ranks.best + first, ranks.which + first, moves);
            });
        }
        __syncthreads();
        int n = n_own;
#if COPIES
        for (int i = 0; i < s.n_copies; ++i, n += per_copy) {
            const int *centre = copies + 2 * i, radius = s.copied_radius;
            // Copies are large enough to hold every window.
            const Window w = {centre[0] - radius, centre[1] - radius, copied_side, copied_side};
            const Sheet image = sheet_of(0);
            const Pixels pixels = load_window(image, w, copy);
            for_strips<MOVED_STRIP>(&w, 0, 1, copied_side, [&](int, int y, int x) {
                rank_moved_strip<0>(image, w, pixels, taps, norm, price, y, x, nullptr, ranks.best + n,
                                    ranks.which + n);
            });
            __syncthreads();
            forget_near(w, centre[0], centre[1], ranks.best + n);
        }
        keep_best(ranks.best + n_own, n - n_own, s.n_copied, &selection);
#endif
        const unsigned threshold = kth_smallest(ranks.best, n, s.n_members, &selection);
        take_smallest(ranks.best, n, s.n_members, threshold, own, order, selection.warps);
        int moved = 0;
        for (int j = threadIdx.x; j < s.n_members; j += THREADS)
            moved += order[j] >= n_own || ranks.which[order[j]] > 0;
        n_moved = block_sum(moved, selection.warps);
    }
#endif
    if (n_moved * ONE_IN < s.n_members) {
        n_moved = 0;
        __syncthreads();
        take_smallest(ranks.shifted, n_own, s.n_members, limit, own, order, selection.warps);
    }
    for (int j = threadIdx.x; j < s.n_members; j += THREADS) {
        int y, x;
        if (order[j] < n_own) {
            const int number = order[j] / per_window, at = order[j] % per_window;
            const Window& w = windows[number];
            y = planes[number] * s.rows + w.top + at / w.n_columns;
            x = w.left + at % w.n_columns;
        } else {
            const int number = (order[j] - n_own) / per_copy, at = (order[j] - n_own) % per_copy;
            y = copies[2 * number] - s.copied_radius + at / copied_side;
            x = copies[2 * number + 1] - s.copied_radius + at % copied_side;
        }
        const long long to = (long long)reference * s.n_members + j;
        s.positions[to] = y * s.stride + x;
        s.chosen[to] = n_moved > 0 ? ranks.which[order[j]] : 0;
    }
    if (threadIdx.x == 0 && n_moved > 0) atomicAdd(s.turned, n_moved);
}

extern "C" __global__ void __launch_bounds__(THREADS, 768 / THREADS) match(const Search s) {
    // The reference under all transforms, (LAYERS * PIXELS, TRANSFORMS); order, ranks and windows after it.
    DYNAMIC_SHARED(float, taps);
    const int side = 2 * s.radius + 1, copied_side = 2 * s.copied_radius + 1;
    const int n_own = s.n_windows * side * side, n_best = n_own + s.n_copies * copied_side * copied_side;
    int* order = (int*)(taps + LAYERS * PIXELS * TRANSFORMS);
    float* memory = (float*)(order + s.n_members);
    const long long floats = (long long)n_own + n_best + ceil_div(n_best, 4);
    Ranks ranks;
    ranks.shifted = s.ranks ? s.ranks + blockIdx.x * floats : memory;
    ranks.best = ranks.shifted + n_own;
    ranks.which = (byte*)(ranks.best + n_best);
    float* copy = s.ranks ? memory : memory + floats;
    for (int reference = blockIdx.x; reference < s.n_references; reference += gridDim.x)
        match_one(s, reference, taps, ranks, order, copy);
}
