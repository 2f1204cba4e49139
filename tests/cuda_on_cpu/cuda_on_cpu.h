// Enough of CUDA C++ to run the kernels on a CPU: threads of a block are coroutines that take turns; barriers and
// warp operations wait for the others. Blocks run one after another.
#include <setjmp.h>
#include <ucontext.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <tuple>
#include <utility>
#include <vector>

#define __global__
#define __device__
#define __host__
#define __shared__ static
#define __constant__ static
#define __forceinline__ inline
#define __noinline__
#define __restrict__
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#define DYNAMIC_SHARED(type, name) type* name = (type*)emulated::dynamic_shared

using std::max;
using std::min;

struct Index3 {
    int x, y, z;
};
struct alignas(16) float4 {
    float x, y, z, w;
};
struct alignas(16) int4 {
    int x, y, z, w;
};
struct alignas(8) float2 {
    float x, y;
};
struct alignas(16) longlong2 {
    long long x, y;
};
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline float2 make_float2(float x, float y) { return {x, y}; }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dsub_rn(double a, double b) { return a - b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __ddiv_rn(double a, double b) { return a / b; }

static Index3 threadIdx, blockIdx, blockDim, gridDim;

namespace emulated {

constexpr size_t STACK = 256 * 1024;

struct Coroutine {
    ucontext_t context;
    jmp_buf place;
    char* stack;
    Index3 index;
    bool begun, ended;
};

static char* dynamic_shared;
static std::vector<Coroutine> threads;
static int current, alive;
static jmp_buf scheduler;
static ucontext_t entry;
static void (*body)(void*);
static void* body_argument;

inline void yield() {
    if (!_setjmp(threads[current].place)) _longjmp(scheduler, 1);
}

// A coroutine serves one block after another, because creating one takes system calls.
inline void start() {
    for (;;) {
        body(body_argument);
        threads[current].ended = true;
        --alive;
        yield();
    }
}

struct Barrier {
    int arrived = 0, round = 0;
    void wait(int expected) {
        const int mine = round;
        if (++arrived >= expected) {
            arrived = 0;
            ++round;
            return;
        }
        while (round == mine) {
            yield();
            // Threads that have ended are not waited for.
            if (round == mine && expected > 32 && arrived >= alive) {
                arrived = 0;
                ++round;
            }
        }
    }
};

struct Warp {
    Barrier barrier;
    uint64_t values[2][32];
    int turn[32];
};

static Barrier block_barrier;
static std::vector<Warp> warps;

template <typename T>
const uint64_t* exchange(unsigned mask, T value) {
    const int lane = current % 32;
    Warp& warp = warps[current / 32];
    const int turn = warp.turn[lane];
    warp.turn[lane] ^= 1;
    uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof(T));
    warp.values[turn][lane] = bits;
    warp.barrier.wait(__builtin_popcount(mask));
    return warp.values[turn];
}

template <typename T>
T from_lane(const uint64_t* values, int lane) {
    T value;
    std::memcpy(&value, values + lane, sizeof(T));
    return value;
}

inline void run_block(int n_threads) {
    threads.resize(n_threads);
    warps.assign((n_threads + 31) / 32, Warp{});
    block_barrier = Barrier{};
    alive = n_threads;
    for (int t = 0; t < n_threads; ++t) {
        Coroutine& thread = threads[t];
        if (!thread.stack) thread.stack = (char*)std::malloc(STACK);
        thread.ended = false;
        thread.index = {t, 0, 0};
    }
    while (alive > 0)
        for (int t = 0; t < n_threads; ++t) {
            Coroutine& thread = threads[t];
            if (thread.ended) continue;
            current = t;
            threadIdx = thread.index;
            if (!_setjmp(scheduler)) {
                if (thread.begun) _longjmp(thread.place, 1);
                thread.begun = true;
                getcontext(&thread.context);
                thread.context.uc_stack.ss_sp = thread.stack;
                thread.context.uc_stack.ss_size = STACK;
                thread.context.uc_link = nullptr;
                makecontext(&thread.context, start, 0);
                setcontext(&thread.context);
            }
        }
}

template <typename... A, size_t... I>
void call(void (*kernel)(A...), void** arguments, std::index_sequence<I...>) {
    kernel(*(std::remove_const_t<std::remove_reference_t<A>>*)arguments[I]...);
}

template <typename... A>
void launch(void (*kernel)(A...), const int* grid, int n_threads, int shared, void** arguments) {
    struct Call {
        void (*kernel)(A...);
        void** arguments;
    } call_of{kernel, arguments};
    body = [](void* given) {
        Call* c = (Call*)given;
        call(c->kernel, c->arguments, std::index_sequence_for<A...>{});
    };
    body_argument = &call_of;
    // Guard bytes on both sides show stray writes; nothing is zero before it is written.
    const size_t guard = 4096;
    char* memory = (char*)std::aligned_alloc(64, (shared + 2 * guard + 63) / 64 * 64);
    dynamic_shared = memory + guard;
    gridDim = {grid[0], grid[1], grid[2]};
    blockDim = {n_threads, 1, 1};
    for (int z = 0; z < grid[2]; ++z)
        for (int y = 0; y < grid[1]; ++y)
            for (int x = 0; x < grid[0]; ++x) {
                std::memset(memory, 0xFF, shared + 2 * guard);
                blockIdx = {x, y, z};
                run_block(n_threads);
                for (size_t i = 0; i < guard; ++i)
                    if ((unsigned char)memory[i] != 0xFF || (unsigned char)memory[guard + shared + i] != 0xFF) {
                        std::fprintf(stderr, "a kernel wrote outside its shared memory\n");
                        std::abort();
                    }
            }
    std::free(memory);
}

}  // namespace emulated

inline void __syncthreads() {
    const Index3 index = threadIdx;
    emulated::block_barrier.wait(emulated::alive);
    threadIdx = index;
}
inline void __syncwarp(unsigned mask = 0xFFFFFFFFu) { emulated::exchange(mask, 0); }
template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int lanes) {
    return emulated::from_lane<T>(emulated::exchange(mask, value), (emulated::current % 32) ^ lanes);
}
template <typename T>
T __shfl_up_sync(unsigned mask, T value, int by) {
    const uint64_t* values = emulated::exchange(mask, value);
    const int lane = emulated::current % 32;
    return emulated::from_lane<T>(values, lane >= by ? lane - by : lane);
}
template <typename T>
T __shfl_sync(unsigned mask, T value, int lane) {
    return emulated::from_lane<T>(emulated::exchange(mask, value), lane);
}
inline unsigned __ballot_sync(unsigned mask, int flag) {
    const uint64_t* values = emulated::exchange(mask, flag);
    unsigned bits = 0;
    for (int lane = 0; lane < 32; ++lane)
        if (mask >> lane & 1 && emulated::from_lane<int>(values, lane)) bits |= 1u << lane;
    return bits;
}
inline int __popc(unsigned bits) { return __builtin_popcount(bits); }
inline int __ffs(unsigned bits) { return __builtin_ffs(bits); }

template <typename T>
T atomicAdd(T* to, T value) {
    const T before = *to;
    *to += value;
    return before;
}

template <typename T>
T atomicMax(T* to, T value) {
    const T before = *to;
    *to = max(before, value);
    return before;
}

inline unsigned __float_as_uint(float value) {
    unsigned bits;
    std::memcpy(&bits, &value, 4);
    return bits;
}
inline float __uint_as_float(unsigned bits) {
    float value;
    std::memcpy(&value, &bits, 4);
    return value;
}
inline long long __float2ll_rn(float value) { return std::llrintf(value); }
inline float __expf(float x) { return std::exp(x); }
inline float exp2f_(float x) { return std::exp2(x); }
inline float __powf(float x, float y) { return std::pow(x, y); }
inline float __fdividef(float a, float b) { return a / b; }
inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
template <typename T>
T __ldg(const T* p) { return *p; }
