// Unrolled loops: the compiler knows their counts.
#pragma once
#include <utility>

namespace vnlem {

// body(0), body(1), ... with constant numbers.
template <class Body, int... kNumber>
inline __attribute__((always_inline)) void unroll([[maybe_unused]] Body body, std::integer_sequence<int, kNumber...>) {
    (body(std::integral_constant<int, kNumber>()), ...);
}
template <int kCount, class Body>
inline __attribute__((always_inline)) void unroll(Body body) {
    unroll(body, std::make_integer_sequence<int, kCount>());
}

}  // namespace vnlem
