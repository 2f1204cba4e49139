// Which library this processor can run. Compiled for the oldest processors.
#include "abi.h"
#include "array.h"

VNLEM_EXPORT int32_t vnlem_abi() { return vnlem::kAbi; }

// 0: none, 1: x86-64-v2, 2: -v3, 3: -v4. The compiler's runtime also asks whether the system saves the registers.
VNLEM_EXPORT int32_t vnlem_best_isa() {
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (!(__builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt"))) return 0;
    if (!(__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2"))) return 1;
    if (!(__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
          __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")))
        return 2;
    return 3;
#else
    return 1;
#endif
}
