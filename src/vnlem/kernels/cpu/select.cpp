// Selection of the smallest of many numbers: see select.py.
#include "select.h"

namespace vnlem {

VNLEM_EXPORT int64_t vnlem_smallest(const Array<const float, 1>& values, int64_t limit, int64_t own, double guess,
                                    const Array<int32_t, 1>& chosen) {
    return smallest(values, limit, own, float(guess), chosen).count;
}

}  // namespace vnlem
