// Block matching: the nearest patches of a window under the symmetries of the square. A block for each
// reference patch. Counterpart of kernels/cpu/match.cpp, with the same ranks and the same rules for ties.
// Macros: those of candidates.cuh, COPIES.

#include "candidates.cuh"

// Turned patches this near to the reference are not taken.
#define NEAR 3
#define MOST_SHEETS 16

// At the border of the image windows move inwards.
__device__ Window place_window(const Search& s, int row, int column) {
    return inside(row, column, s.radius, s.height - P + 1, s.width - P + 1);
}

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

extern "C" __global__ void __launch_bounds__(THREADS, 768 / THREADS) match(const Search s) {
    // The reference under all transforms, (LAYERS, PIXELS, TRANSFORMS); ranks, order and window after it.
    DYNAMIC_SHARED(float, taps);
    float* memory = taps + LAYERS * PIXELS * TRANSFORMS;
    __shared__ Selection selection;
    __shared__ Window windows[MOST_SHEETS];
    const int reference = blockIdx.x;
    const int row = s.reference_rows[reference / s.n_reference_columns];
    const int column = s.reference_columns[reference % s.n_reference_columns];
    const int side = 2 * s.radius + 1;
    const int per_sheet = min(side, s.height - P + 1) * min(side, s.width - P + 1);
    const int copied_side = 2 * s.copied_radius + 1;
    // shifted, best (with the copies), which, the order, the window.
    const int n_best = per_sheet + (s.n_windows - 1) * copied_side * copied_side;
    float* shifted = s.ranks ? s.ranks + (long long)reference * (per_sheet + n_best + ceil_div(n_best, 4)) : memory;
    float* best = shifted + per_sheet;
    byte* which = (byte*)(best + n_best);
    int* order = (int*)(s.ranks ? memory : best + n_best + ceil_div(n_best, 4));
    float* copy = (float*)(order + s.n_members);

    load_reference(s, 0, row, column, taps);
    const Window own_window = place_window(s, row, column);
    const Sheet image = {s.image, s.energy, s.stride, s.rows * s.stride};
    const Pixels pixels = load_window(image, own_window, copy);
    __syncthreads();
    const float norm = s.energy[row * s.stride + column];
    rank_shifted(image, own_window, pixels, taps, norm, shifted);
    __syncthreads();
    const int own = (row - own_window.top) * own_window.n_columns + column - own_window.left;
    if (threadIdx.x == 0) {
        shifted[own] = 0.0f;
        windows[0] = own_window;
    }
    __syncthreads();
    Moves moves = {nullptr, s.cell, row - own_window.top, column - own_window.left};
    if (s.cell > 1) {
        moves.allowed = s.moves + (row % s.cell * s.cell + column % s.cell) * s.cell * s.cell;
        for (int i = threadIdx.x; i < per_sheet; i += THREADS)
            if (!(moves.at(i / own_window.n_columns, i % own_window.n_columns) & 1))
                shifted[i] = __uint_as_float(INFINITY_BITS);
        __syncthreads();
    }
    const unsigned limit = kth_smallest(shifted, per_sheet, s.n_members, &selection);
    int n_moved = 0;
#if TRANSFORMS > 1 || COPIES
    const float penalty = s.penalty[row * s.penalty_stride + column];
    // If enough shifted patches are nearer than the penalty, no transformed one can rank among the members.
    if (penalty < __uint_as_float(limit)) {
        const Price price = {s.factor, penalty};
        rank_moved<1>(image, own_window, pixels, taps, norm, price, shifted, best, which, moves);
        int n = per_sheet;
#if COPIES
        for (int sheet = 1; sheet < s.n_windows; ++sheet) {
            const int* centre = s.centres + ((long long)reference * (s.n_windows - 1) + sheet - 1) * 2;
            // Copies are large enough to hold every window.
            const Window w = {centre[0] - s.copied_radius, centre[1] - s.copied_radius, copied_side, copied_side};
            if (threadIdx.x == 0) windows[sheet] = w;
            const Pixels there = load_window(image, w, copy);
            rank_moved<0>(image, w, there, taps, norm, price, nullptr, best + n, which + n);
            forget_near(w, centre[0], centre[1], best + n);
            n += w.n_rows * w.n_columns;
        }
        keep_best(best + per_sheet, n - per_sheet, s.n_copied, &selection);
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
        while (sheet < s.n_windows - 1 && at >= windows[sheet].n_rows * windows[sheet].n_columns) {
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
