// Vectors of the compiler's vector extensions. Arithmetic works lane by lane: a * b + c is one instruction.
#pragma once
#include <cstdint>

// For functions whose call would cost more than their work, or spill the caller's vectors to memory.
#define VNLEM_INLINE inline __attribute__((always_inline))

namespace vnlem {

// Numbers in a register of the processor.
#if defined(__AVX512F__)
constexpr int kLanes = 16;
#elif defined(__AVX__)
constexpr int kLanes = 8;
#else
constexpr int kLanes = 4;
#endif
// Vector registers.
#if defined(__AVX512F__) || defined(__aarch64__)
constexpr int kRegisters = 32;
#else
constexpr int kRegisters = 16;
#endif

template <class T, int N>
struct VectorOf {
    typedef T type __attribute__((vector_size(N * sizeof(T))));
    // The same anywhere in memory.
    typedef T unaligned __attribute__((vector_size(N * sizeof(T)), aligned(alignof(T)), may_alias));
};
template <class T, int N>
using Vector = typename VectorOf<T, N>::type;
template <int N>
using Floats = Vector<float, N>;
template <int N>
using Ints = Vector<int32_t, N>;

template <int N, class T>
inline Vector<T, N> load(const T* from) {
    return *reinterpret_cast<const typename VectorOf<T, N>::unaligned*>(from);
}

template <int N, class T>
inline void store(T* to, Vector<T, N> value) {
    *reinterpret_cast<typename VectorOf<T, N>::unaligned*>(to) = value;
}

template <int N, class T>
inline Vector<T, N> spread(T value) {
    return value - Vector<T, N>{};  // which is value, also for -0
}

// body(0), body(1) ... unrolled: an array of vectors that they use stays in registers. Debug builds use a loop,
// which compiles faster.
template <int Count, class Body>
VNLEM_INLINE void unrolled(const Body& body) {
#ifdef VNLEM_DEBUG
    for (int i = 0; i < Count; i++) body(i);
#else
    if constexpr (Count > 1) unrolled<Count - 1>(body);
    body(Count - 1);
#endif
}

// 0, 1, 2 ...
template <int N>
VNLEM_INLINE Ints<N> numbered() {
    Ints<N> numbers = {};
    unrolled<N>([&](int x) { numbers[x] = x; });
    return numbers;
}

// The sum of all lanes: halves are added until one lane is left, in the same order on every processor.
template <int N, class T>
inline T total(Vector<T, N> v) {
    if constexpr (N == 1) {
        return v[0];
    } else {
        Vector<T, N / 2> halves[2];
        __builtin_memcpy(halves, &v, sizeof v);
        return total<N / 2, T>(halves[0] + halves[1]);
    }
}

// a if it is larger (smaller), else b; b if a is NaN.
template <class V>
inline V larger(V a, V b) { return a > b ? a : b; }
template <class V>
inline V smaller(V a, V b) { return a < b ? a : b; }

// Whether a comparison is true in any lane.
template <class V>
inline bool any(V comparison) {
    constexpr int kParts = sizeof(V) / 16;
    Vector<int64_t, 2> parts[kParts];
    __builtin_memcpy(parts, &comparison, sizeof comparison);
    for (int part = 1; part < kParts; part++) parts[0] |= parts[part];
    return (parts[0][0] | parts[0][1]) != 0;
}

}  // namespace vnlem
