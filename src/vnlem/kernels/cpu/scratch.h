// Scratch memory of a kernel: one allocation, released when the kernel returns.
//
//     struct Buffers {
//         Array<float, 2> rows;
//         Buffers(Arena& arena, int64_t n) : rows(arena.zeros<float>(n, 16)) {}
//     };
//     Scratch<Buffers> scratch(n);
//     if (!scratch) return kOutOfMemory;
//     scratch->rows[0] ...
//
// The struct is constructed twice: first to measure, then in the memory that was allocated.
#pragma once
#include <cstdlib>
#include <cstring>
#include <new>

#include "array.h"

namespace vnlem {

class Arena {
public:
    // An array whose elements have no value yet; it begins at a cache line.
    template <class T, class... Length>
    Array<T, int(sizeof...(Length))> empty(Length... length) {
        T* at = reinterpret_cast<T*>(base_ ? base_ + used_ : nullptr);
        auto made = array_at(at, length...);
        used_ += (made.size() * int64_t(sizeof(T)) + kLine - 1) / kLine * kLine + kSpare;
        return made;
    }

    template <class T, class... Length>
    Array<T, int(sizeof...(Length))> zeros(Length... length) {
        auto made = empty<T>(length...);
        if (base_) std::memset(static_cast<void*>(made.data), 0, sizeof(T) * made.size());
        return made;
    }

    // Whether arrays have memory; false while it is measured. Constructors may write to arrays only if it is true.
    bool is_real() const { return base_ != nullptr; }

    bool allocate() {
        block_ = static_cast<char*>(std::malloc(used_ + kLine));
        if (!block_) return false;
        base_ = block_ + (kLine - reinterpret_cast<uintptr_t>(block_) % kLine);
        used_ = 0;
        return true;
    }

    Arena() = default;
    Arena(const Arena&) = delete;
    ~Arena() { std::free(block_); }

private:
    static constexpr int64_t kLine = 64;
    // Arrays whose sizes are powers of two would share the same cache sets.
    static constexpr int64_t kSpare = 64;
    char* block_ = nullptr;
    char* base_ = nullptr;
    int64_t used_ = 0;
};

template <class Buffers>
class Scratch {
public:
    template <class... Args>
    explicit Scratch(const Args&... args) {
        Buffers measured(arena_, args...);
        (void)measured;
        if (arena_.allocate()) buffers_ = new (room_) Buffers(arena_, args...);
    }
    explicit operator bool() const { return buffers_ != nullptr; }
    Buffers* operator->() const { return buffers_; }
    Buffers& operator*() const { return *buffers_; }

private:
    Arena arena_;
    alignas(Buffers) char room_[sizeof(Buffers)];
    Buffers* buffers_ = nullptr;
};

}  // namespace vnlem
