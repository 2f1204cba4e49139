// Which library this processor can run. Compiled for the oldest processors.
#include "abi.h"
#include "array.h"

VNLEM_EXPORT int32_t vnlem_abi() { return vnlem::kAbi; }

#if defined(__x86_64__)
#include <cpuid.h>

namespace {

constexpr bool has_all(uint32_t found, uint32_t needed) { return (found & needed) == needed; }

// The registers that the system saves when it switches threads.
__attribute__((target("xsave"))) uint64_t saved_registers() { return uint64_t(__builtin_ia32_xgetbv(0)); }
constexpr uint64_t kAvx = 0x6, kAvx512 = 0xE6;

}  // namespace

// 0: none, 1: x86-64-v2, 2: -v3, 3: -v4. Not __builtin_cpu_supports: some compilers lack it.
VNLEM_EXPORT int32_t vnlem_best_isa() {
    uint32_t unused, ecx1 = 0, ebx7 = 0, ecx_extended = 0;
    __get_cpuid(1, &unused, &unused, &ecx1, &unused);
    __get_cpuid_count(7, 0, &unused, &ebx7, &unused, &unused);
    __get_cpuid(0x80000001, &unused, &unused, &ecx_extended, &unused);
    if (!has_all(ecx1, bit_SSE3 | bit_SSSE3 | bit_SSE4_1 | bit_SSE4_2 | bit_POPCNT)) return 0;
    const uint64_t saved = ecx1 & bit_OSXSAVE ? saved_registers() : 0;
    if (!(has_all(ecx1, bit_FMA | bit_MOVBE | bit_AVX | bit_F16C) && has_all(ebx7, bit_BMI | bit_AVX2 | bit_BMI2) &&
          (ecx_extended & bit_LZCNT) && (saved & kAvx) == kAvx))
        return 1;
    if (!(has_all(ebx7, bit_AVX512F | bit_AVX512DQ | bit_AVX512CD | bit_AVX512BW | bit_AVX512VL) &&
          (saved & kAvx512) == kAvx512))
        return 2;
    return 3;
}
#else
VNLEM_EXPORT int32_t vnlem_best_isa() { return 1; }
#endif
