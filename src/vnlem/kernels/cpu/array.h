// Arrays as kernels see them: C-contiguous, with their shape. Debug builds check every index.
#pragma once
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#ifdef VNLEM_DEBUG
#define VNLEM_CHECK(condition)                                                    \
    do {                                                                          \
        if (!(condition)) {                                                       \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);  \
            std::abort();                                                         \
        }                                                                         \
    } while (0)
#else
#define VNLEM_CHECK(condition) ((void)0)
#endif

// Functions that Python may call; see declare.py.
#ifdef _WIN32
#define VNLEM_EXPORT extern "C" __declspec(dllexport)
#else
#define VNLEM_EXPORT extern "C" __attribute__((visibility("default")))
#endif

namespace vnlem {

constexpr int64_t kOutOfMemory = -1;

template <class T>
constexpr T larger_of(T a, T b) { return a > b ? a : b; }
template <class T>
constexpr T smaller_of(T a, T b) { return a < b ? a : b; }

template <class T, int N>
struct Array {
    T* data;
    int64_t shape[N];

    // A read-only view of the same elements.
    operator Array<const T, N>() const {
        Array<const T, N> view;
        view.data = data;
        for (int axis = 0; axis < N; axis++) view.shape[axis] = shape[axis];
        return view;
    }

    int64_t size() const {
        int64_t count = 1;
        for (int axis = 0; axis < N; axis++) count *= shape[axis];
        return count;
    }

    // Elements from one index of the first axis to the next.
    int64_t step() const {
        int64_t count = 1;
        for (int axis = 1; axis < N; axis++) count *= shape[axis];
        return count;
    }

    // The element of a 1-d array, the part at index i of the first axis of others.
    decltype(auto) operator[](int64_t i) const {
        VNLEM_CHECK(0 <= i && i < shape[0]);
        if constexpr (N == 1) {
            return (data[i]);
        } else {
            Array<T, N - 1> part;
            part.data = data + i * step();
            for (int axis = 1; axis < N; axis++) part.shape[axis - 1] = shape[axis];
            return part;
        }
    }

    // The element at all indices.
    template <class... Index>
    T& operator()(Index... index) const {
        static_assert(sizeof...(index) == N, "as many indices as dimensions");
        const int64_t at[N] = {int64_t(index)...};
        int64_t offset = 0;
        for (int axis = 0; axis < N; axis++) {
            VNLEM_CHECK(0 <= at[axis] && at[axis] < shape[axis]);
            offset = offset * shape[axis] + at[axis];
        }
        return data[offset];
    }

    // Indices first to last of the first axis.
    Array part(int64_t first, int64_t last) const {
        VNLEM_CHECK(0 <= first && first <= last && last <= shape[0]);
        Array view = *this;
        view.data = data + first * step();
        view.shape[0] = last - first;
        return view;
    }

    // All elements in one row.
    Array<T, 1> flat() const { return Array<T, 1>{data, {size()}}; }

    void fill(T value) const {
        const int64_t count = size();
        for (int64_t i = 0; i < count; i++) data[i] = value;
    }
};

// A rectangle of an image: rows top to bottom, columns left to right.
struct Tile {
    int64_t top, bottom, left, right;
};

template <class T, class... Length>
Array<T, int(sizeof...(Length))> array_at(T* data, Length... length) {
    return {data, {int64_t(length)...}};
}

}  // namespace vnlem
