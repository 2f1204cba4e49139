// Block matching in several planes of a stack: a window in each, and patches that may span consecutive planes.
// A block for each reference patch. Counterpart of kernels/cpu/match.cpp, with the same ranks and the
// same rules for ties.
// Macros: those of candidates.cuh.

#include "candidates.cuh"

#define MOST_SITES 128

// Strips of candidates of the windows FROM..TO-1: work(site, row, column) for each.
template <int STRIP, typename F>
__device__ __forceinline__ void for_strips(const Window* windows, int from, int to, int radius, F work) {
    const int side = 2 * radius + 1, per_window = ceil_div(side, STRIP) * side;
    for (int i = threadIdx.x; i < (to - from) * per_window; i += THREADS) {
        const int site = from + i / per_window, y = i % per_window / side * STRIP, x = i % side;
        if (y < windows[site].n_rows && x < windows[site].n_columns) work(site, y, x);
    }
}

// What a block keeps, (n_sites, side^2): ranks of shifted patches, ranks of the best transforms, and which these are.
struct Ranks {
    float* shifted;
    float* best;
    byte* which;
};

__device__ void match_one(const Search& s, int reference, float* taps, const Ranks& ranks, int* order, float* copy) {
    __shared__ Selection selection;
    __shared__ Window windows[MOST_SITES];
    __shared__ int planes[MOST_SITES];
    const int side = 2 * s.radius + 1, per_site = side * side, n = s.n_windows * per_site;
    const int size_of_plane = s.rows * s.stride;
    const int copy_size = LAYERS * (ceil_div(side, SHIFTED_STRIP) * SHIFTED_STRIP + P - 1) * (side + P - 1);
    const int row = s.reference_rows[reference / s.n_reference_columns];
    const int column = s.reference_columns[reference % s.n_reference_columns];
    const int* centres = s.centres + (long long)reference * s.n_windows * 3;
    const int plane = centres[0];
    __syncthreads();
    load_reference(s, plane, row, column, taps);
    for (int site = threadIdx.x; site < s.n_windows; site += THREADS) {
        const int there = centres[3 * site];
        planes[site] = there;
        windows[site] = there < 0 ? Window{0, 0, 0, 0}
                                  : inside(centres[3 * site + 1], centres[3 * site + 2], s.radius,
                                           s.sizes[2 * there] - P + 1, s.sizes[2 * there + 1] - P + 1);
    }
    for (int i = threadIdx.x; i < n; i += THREADS) ranks.shifted[i] = __uint_as_float(INFINITY_BITS);
    __syncthreads();
    const float norm = s.energy[plane * size_of_plane + row * s.stride + column];
    const auto sheet_of = [&](int site) {
        const int first = planes[site] * size_of_plane;
        return Sheet{s.image + CHANNELS * first, s.energy + first, s.stride, size_of_plane};
    };
    const auto bring = [&](int from, int to) {
#if WINDOW_IN_SHARED
        __syncthreads();
        for (int site = from; site < to; ++site)
            if (windows[site].n_rows > 0) copy_window(sheet_of(site), windows[site], copy + (site - from) * copy_size);
        __syncthreads();
#endif
    };
    for (int from = 0; from < s.n_windows; from += s.together) {
        const int to = min(from + s.together, s.n_windows);
        bring(from, to);
        for_strips<SHIFTED_STRIP>(windows, from, to, s.radius, [&](int site, int y, int x) {
            const Sheet sheet = sheet_of(site);
            const Pixels pixels = pixels_of(sheet, windows[site], copy + (site - from) * copy_size);
            rank_shifted_strip(sheet, windows[site], pixels, taps, norm, y, x, ranks.shifted + site * per_site);
        });
    }
    const int own = (row - windows[0].top) * windows[0].n_columns + column - windows[0].left;
    __syncthreads();
    if (threadIdx.x == 0) ranks.shifted[own] = 0.0f;
    __syncthreads();
    const unsigned limit = kth_smallest(ranks.shifted, n, s.n_members, &selection);
    int n_moved = 0;
#if TRANSFORMS > 1
    const float penalty = s.penalty ? s.penalty[row * s.penalty_stride + column] : s.even_penalty;
    // If enough shifted patches are nearer than the penalty, no transformed one can rank among the members.
    if (penalty < __uint_as_float(limit)) {
        for (int i = threadIdx.x; i < n; i += THREADS) {
            ranks.best[i] = ranks.shifted[i];
            ranks.which[i] = 0;
        }
        for (int from = 0; from < s.n_windows; from += s.together) {
            const int to = min(from + s.together, s.n_windows);
            if (s.together < s.n_windows) bring(from, to);
            __syncthreads();
            for_strips<MOVED_STRIP>(windows, from, to, s.radius, [&](int site, int y, int x) {
                const Sheet sheet = sheet_of(site);
                const Pixels pixels = pixels_of(sheet, windows[site], copy + (site - from) * copy_size);
                const int first = site * per_site;
                rank_moved_strip<1>(sheet, windows[site], pixels, taps, norm, Price{s.factor, penalty}, y, x,
                                    ranks.shifted + first, ranks.best + first, ranks.which + first);
            });
        }
        __syncthreads();
        const unsigned threshold = kth_smallest(ranks.best, n, s.n_members, &selection);
        take_smallest(ranks.best, n, s.n_members, threshold, own, order, selection.warps);
        int moved = 0;
        for (int j = threadIdx.x; j < s.n_members; j += THREADS) moved += ranks.which[order[j]] > 0;
        n_moved = block_sum(moved, selection.warps);
    }
#endif
    if (n_moved * ONE_IN < s.n_members) {
        n_moved = 0;
        __syncthreads();
        take_smallest(ranks.shifted, n, s.n_members, limit, own, order, selection.warps);
    }
    for (int j = threadIdx.x; j < s.n_members; j += THREADS) {
        const int site = order[j] / per_site, at = order[j] % per_site;
        const Window& w = windows[site];
        const long long to = (long long)reference * s.n_members + j;
        const int there = planes[site] * s.rows + w.top + at / w.n_columns;
        s.positions[to] = there * s.stride + w.left + at % w.n_columns;
        s.chosen[to] = n_moved > 0 ? ranks.which[order[j]] : 0;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 768 / THREADS) plane_match(const Search s) {
    // The reference under all transforms, (LAYERS * PIXELS, TRANSFORMS); order, ranks and windows after it.
    DYNAMIC_SHARED(float, taps);
    const int side = 2 * s.radius + 1, n = s.n_windows * side * side;
    int* order = (int*)(taps + LAYERS * PIXELS * TRANSFORMS);
    float* memory = (float*)(order + s.n_members);
    const long long floats = 2LL * n + ceil_div(n, 4);
    Ranks ranks;
    ranks.shifted = s.ranks ? s.ranks + blockIdx.x * floats : memory;
    ranks.best = ranks.shifted + n;
    ranks.which = (byte*)(ranks.best + n);
    float* copy = s.ranks ? memory : memory + floats;
    for (int reference = blockIdx.x; reference < s.n_references; reference += gridDim.x)
        match_one(s, reference, taps, ranks, order, copy);
}
