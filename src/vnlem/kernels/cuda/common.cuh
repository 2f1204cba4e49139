// Shared by all kernels: sizes of arrays in shared memory, sums over a block in a fixed order, selection.
// This text is prepended to every file of kernels. The order of sums depends only on the number of threads, so
// every run gives the same bytes.

#define INFINITY_BITS 0x7F800000u

typedef unsigned char byte;
typedef unsigned long long wide;

__device__ __forceinline__ int ceil_div(int a, int b) { return (a + b - 1) / b; }

// The index of the pixel that the symmetric extension of n pixels repeats at i.
__device__ __forceinline__ int mirrored(int i, int n) {
    i %= 2 * n;
    if (i < 0) i += 2 * n;
    return i < n ? i : 2 * n - 1 - i;
}

// The sum over all threads of a block, returned to all of them. `scratch`: one number for each warp.
template <typename T>
__device__ T block_sum(T value, T* scratch) {
    for (int step = 16; step > 0; step >>= 1) value += __shfl_xor_sync(0xFFFFFFFFu, value, step);
    const int warps = blockDim.x / 32;
    __syncthreads();
    if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = value;
    __syncthreads();
    T total = scratch[0];
    for (int w = 1; w < warps; ++w) total += scratch[w];
    return total;
}

template <typename T>
__device__ T block_max(T value, T* scratch) {
    for (int step = 16; step > 0; step >>= 1) value = max(value, __shfl_xor_sync(0xFFFFFFFFu, value, step));
    const int warps = blockDim.x / 32;
    __syncthreads();
    if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = value;
    __syncthreads();
    T largest = scratch[0];
    for (int w = 1; w < warps; ++w) largest = max(largest, scratch[w]);
    return largest;
}

// The sum over the lanes of a warp, the same bits in all of them.
__device__ __forceinline__ float warp_sum(float value) {
    for (int step = 16; step > 0; step >>= 1) value += __shfl_xor_sync(0xFFFFFFFFu, value, step);
    return value;
}

// The sum over the threads before this one. `scratch`: one number for each warp.
__device__ __forceinline__ int sum_before(int value, int* scratch) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int upto = value;
    for (int step = 1; step < 32; step <<= 1) {
        const int other = __shfl_up_sync(0xFFFFFFFFu, upto, step);
        if (lane >= step) upto += other;
    }
    __syncthreads();
    if (lane == 31) scratch[warp] = upto;
    __syncthreads();
    int before = upto - value;
    for (int w = 0; w < warp; ++w) before += scratch[w];
    return before;
}

// Scratch of `kth_smallest`.
#define BINS 2048
struct Selection {
    int counts[BINS];
    int warps[32];
    unsigned digit;
    int before;
};

// Bits of the k-th smallest (from 1) of n >= k non-negative numbers.
// Three digits, the highest first: each step is a histogram of the numbers that agree with the digits found.
__device__ __noinline__ unsigned kth_smallest(const float* values, int n, int k, Selection* selection) {
    unsigned found = 0, known = 0;
#pragma unroll 1
    for (int shift = 20; shift >= 0; shift -= 10) {
        const int bins = shift == 20 ? BINS : BINS / 2;
        for (int b = threadIdx.x; b < bins; b += blockDim.x) selection->counts[b] = 0;
        __syncthreads();
        for (int i = threadIdx.x; i < n; i += blockDim.x) {
            const unsigned bits = __float_as_uint(values[i]);
            if ((bits & known) == found) atomicAdd(&selection->counts[(bits >> shift) & (bins - 1)], 1);
        }
        __syncthreads();
        const int each = ceil_div(bins, blockDim.x);
        const int first = threadIdx.x * each, last = min(first + each, bins);
        int mine = 0;
        for (int b = first; b < last; ++b) mine += selection->counts[b];
        const int before = sum_before(mine, selection->warps);
        if (before < k && k <= before + mine) {
            int passed = before, b = first;
            while (passed + selection->counts[b] < k) passed += selection->counts[b++];
            selection->digit = b;
            selection->before = passed;
        }
        __syncthreads();
        found |= selection->digit << shift;
        known |= (unsigned)(bins - 1) << shift;
        k -= selection->before;
        __syncthreads();
    }
    return found;
}

// Write the places of the `count` smallest of n numbers to chosen: `own` first, the others in their order; ties at
// the threshold (the count-th smallest) go to the first ones. `own` must be among the smallest.
__device__ __noinline__ void take_smallest(const float* values, int n, int count, unsigned threshold, int own, int* chosen,
                              int* scratch) {
    const int each = ceil_div(n, blockDim.x) | 1;  // odd: no two threads of a warp on the same bank
    const int first = min((int)threadIdx.x * each, n), last = min(first + each, n);
    int below = 0, tied = 0;
    for (int i = first; i < last; ++i) {
        if (i == own) continue;
        const unsigned bits = __float_as_uint(values[i]);
        below += bits < threshold;
        tied += bits == threshold;
    }
    int below_before = sum_before(below, scratch);
    const int all_below = block_sum(below, scratch);
    const int tied_before = sum_before(tied, scratch);
    const int places = count - 1 - all_below;
    int ties = tied_before;
    for (int i = first; i < last; ++i) {
        if (i == own) continue;
        const unsigned bits = __float_as_uint(values[i]);
        const bool less = bits < threshold, equal = bits == threshold;
        if (less || (equal && ties < places)) chosen[1 + below_before + min(ties, max(places, 0))] = i;
        below_before += less;
        ties += equal;
    }
    if (threadIdx.x == 0) chosen[0] = own;
    __syncthreads();
}

__device__ __forceinline__ int warp_count(int value) {
#if __CUDA_ARCH__ >= 800
    return __reduce_add_sync(0xFFFFFFFFu, value);
#else
    for (int step = 16; step > 0; step >>= 1) value += __shfl_xor_sync(0xFFFFFFFFu, value, step);
    return value;
#endif
}

// How many of n numbers are at most the number with these bits; a warp counts together.
__device__ __forceinline__ int count_up_to(const float* values, int n, unsigned bits) {
    int count = 0;
    for (int i = threadIdx.x % 32; i < n; i += 32) count += __float_as_uint(values[i]) <= bits;
    return warp_count(count);
}

// Bits of the count-th smallest (from 1) of n >= count non-negative numbers, by one warp.
// With EXACT 0 it may be any number that separates the count smallest from all others; `own`, if not negative, is
// the place of a number known to be the smallest.
template <int EXACT>
__device__ unsigned kth_of_warp(const float* values, int n, int count, int own = -1) {
    // Bits of non-negative numbers sort like the numbers.
    unsigned low = INFINITY_BITS, high = 0;
    for (int i = threadIdx.x % 32; i < n; i += 32) {
        const unsigned bits = __float_as_uint(values[i]);
        if (i != own) low = min(low, bits);
        high = max(high, bits);
    }
    for (int step = 16; step > 0; step >>= 1) {
        low = min(low, __shfl_xor_sync(0xFFFFFFFFu, low, step));
        high = max(high, __shfl_xor_sync(0xFFFFFFFFu, high, step));
    }
    while (low < high) {
        const unsigned middle = low + (high - low) / 2;
        const int up_to = count_up_to(values, n, middle);
        if (!EXACT && up_to == count) return middle;
        if (up_to >= count)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

// Write the places of the `wanted` smallest of n numbers to chosen, in their order, by one warp; ties go to the
// first. `own`, if not negative, is the place of a zero, which comes first. Returns how many.
__device__ int smallest_of_warp(const float* values, int n, int wanted, int own, int* chosen) {
    const int lane = threadIdx.x % 32;
    const int count = min(wanted, n);
    const unsigned low = kth_of_warp<0>(values, n, count, own);
    const int below = low == 0 ? 0 : count_up_to(values, n, low - 1);
    int ties = count - below - (own >= 0 && low == 0 ? 1 : 0);
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
