// Version of the interface between the library and Python: raise it with every change of a declaration.
#pragma once
#include <cstdint>

namespace vnlem {
constexpr int32_t kAbi = 10;  // as in library.py
}
