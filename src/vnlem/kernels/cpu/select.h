// Selection of the smallest of many numbers without sorting them.
//
// Bracketing finds a threshold that separates the wanted numbers from the rest. Each step counts in whole vectors,
// where a quickselect would mispredict a branch at every other element. Numbers are compared as floats: NaN of
// either sign is never counted, so it ranks behind infinity. No value is negative.
#pragma once
#include <cfloat>
#include <cmath>
#include <cstring>

#include "scratch.h"
#include "simd.h"

namespace vnlem {

constexpr int kBlock = 16;  // numbers whose comparisons are gathered at once
constexpr int64_t kFew = 4;  // among at most this many times the wanted numbers, a threshold needs few steps

typedef Array<const float, 1> Values;

// How many of the wanted numbers there are, and the threshold: a good guess for the next pixel.
struct Selected {
    int64_t count;
    float threshold;
};

// For every byte, which of its bits are set, from the lowest on.
struct SetBits {
    int32_t places[256][8] = {};
    constexpr SetBits() {
        for (int byte = 0; byte < 256; byte++)
            for (int bit = 0, n = 0; bit < 8; bit++)
                if (byte >> bit & 1) places[byte][n++] = bit;
    }
};
inline constexpr SetBits kSetBits;

// Bit i says whether test(vector at i) holds, i < kBlock; test gives a comparison of kLanes numbers.
template <class Test>
inline uint32_t bits_where(Test test) {
    Ints<kLanes> weights;
    for (int lane = 0; lane < kLanes; lane++) weights[lane] = 1 << lane;
    Ints<kLanes> bits = {};
    for (int first = 0; first < kBlock; first += kLanes) bits |= test(first) & (weights << first);
    return uint32_t(total<kLanes, int32_t>(bits));
}

inline uint32_t bits_up_to(const float* values, float limit) {
    const Floats<kLanes> limits = spread<kLanes>(limit);
    return bits_where([=](int first) { return load<kLanes>(values + first) <= limits; });
}

// Write first + the place of every set bit to `to`; returns how many. Always writes kBlock numbers, to avoid a
// branch that depends on the bits.
template <class Index>
inline int64_t store_places(uint32_t bits, int64_t first, Index* to) {
    int64_t n = 0;
    for (int part = 0; part < kBlock; part += 8) {
        const uint32_t byte = bits >> part & 255;
        const Ints<8> places = load<8>(kSetBits.places[byte]) + int32_t(first + part);
        store<8, Index>(to + n, __builtin_convertvector(places, Vector<Index, 8>));
        n += __builtin_popcount(byte);
    }
    return n;
}

inline int64_t count_up_to(const Values& values, float limit) {
    constexpr int kAtOnce = 4;
    const Floats<kLanes> limits = spread<kLanes>(limit);
    Ints<kLanes> counts[kAtOnce] = {};
    const auto add = [&](Ints<kLanes>& count, int64_t at) {
        const auto below = load<kLanes>(values.data + at) <= limits;
        if constexpr (kLanes == 16)
            count = below ? count + 1 : count;  // one masked instruction
        else
            count -= below;  // a true lane is -1
    };
    int64_t i = 0;
    for (; i + kAtOnce * kLanes <= values.shape[0]; i += kAtOnce * kLanes)
        for (int a = 0; a < kAtOnce; a++) add(counts[a], i + a * kLanes);
    for (; i + kLanes <= values.shape[0]; i += kLanes) add(counts[0], i);
    int64_t count = total<kLanes, int32_t>((counts[0] + counts[1]) + (counts[2] + counts[3]));
    for (; i < values.shape[0]; i++) count += values.data[i] <= limit;
    return count;
}

// The middle of all floats between two non-negative ones.
inline float halfway(float low, float high) {
    int32_t first, last;
    std::memcpy(&first, &low, sizeof first);
    std::memcpy(&last, &high, sizeof last);
    first += (last - first) / 2;
    float middle;
    std::memcpy(&middle, &first, sizeof middle);
    return middle;
}

inline float mean_of_finite(const Values& values) {
    const Floats<kLanes> none = {};
    Floats<kLanes> sums = none;
    int64_t i = 0;
    for (; i + kLanes <= values.shape[0]; i += kLanes) {
        const Floats<kLanes> value = load<kLanes>(values.data + i);
        sums += value < spread<kLanes>(INFINITY) ? value : none;
    }
    float sum = total<kLanes, float>(sums);
    for (; i < values.shape[0]; i++) sum += values[i] < INFINITY ? values[i] : 0;
    return smaller_of(sum / float(larger_of<int64_t>(values.shape[0], 1)), FLT_MAX);
}

// A threshold, and how many values are at most it: k to `most` of them, or more with ties.
//
// At least k values must be finite. The bracket starts around `guess`, usually the neighbour's answer, or around
// the mean if the guess is not positive. Then interpolation, which mostly hits, alternates with halving, which
// always shrinks the bracket.
inline Selected bracket(const Values& values, int64_t k, int64_t most, float guess) {
    float middle = 0 < guess && guess < INFINITY ? guess : mean_of_finite(values);
    // Fewer than k values are at most `low` (or low is below all), at least k are at most `high`.
    float low = -1, high = FLT_MAX;
    int64_t up_to_low = 0, up_to_high = values.shape[0];
    for (float factor = 1.0625f;; factor *= 4) {
        const int64_t count = count_up_to(values, middle);
        if (k <= count && count <= most) return {count, middle};
        if (count > k) {
            high = middle, up_to_high = count;
            if (low >= 0 || middle == 0) break;
            middle /= factor;
        } else {
            low = middle, up_to_low = count;
            if (high < FLT_MAX || middle >= high) break;
            middle = smaller_of(larger_of(middle * factor, 1e-30f), high);
        }
    }
    low = larger_of(low, 0.0f);
    for (bool interpolate = true;; interpolate = !interpolate) {
        middle = halfway(low, high);
        if (interpolate) {
            const float share = float(k - up_to_low) / float(larger_of<int64_t>(up_to_high - up_to_low, 1));
            const float straight = low + (high - low) * smaller_of(larger_of(share, 0.02f), 0.98f);
            if (low < straight && straight < high) middle = straight;
        }
        if (!(low < middle && middle < high)) break;
        const int64_t count = count_up_to(values, middle);
        if (k <= count && count <= most) return {count, middle};
        if (count > k)
            high = middle, up_to_high = count;
        else
            low = middle, up_to_low = count;
    }
    // No number lies between the ends: the k-th smallest is one of them.
    const int64_t count = count_up_to(values, low);
    return count >= k ? Selected{count, low} : Selected{up_to_high, high};
}

// A threshold with exactly k values at most equal to it; with ties, the k-th smallest itself.
inline float threshold_of(const Values& values, int64_t k, float guess) {
    return bracket(values, k, k, guess).threshold;
}

// The largest value up to the threshold: it does not depend on the guess.
inline float largest_up_to(const Values& values, float threshold) {
    const Floats<kLanes> none = {};
    Floats<kLanes> largest = none;
    int64_t i = 0;
    for (; i + kLanes <= values.shape[0]; i += kLanes) {
        const Floats<kLanes> value = load<kLanes>(values.data + i);
        largest = larger(value <= spread<kLanes>(threshold) ? value : none, largest);
    }
    float found = 0;
    for (int lane = 0; lane < kLanes; lane++) found = larger_of(found, float(largest[lane]));
    for (; i < values.shape[0]; i++) found = larger_of(found, values[i] <= threshold ? values[i] : 0);
    return found;
}

// Indices of the `limit` smallest finite values, in their order.
//
// Ties at the threshold go to the lower index, so the choice is the same everywhere. own: the index of a zero that
// is always taken and comes first in `chosen`, or -1. chosen: one longer than `limit`.
template <class Index>
inline Selected smallest(const Values& values, int64_t limit, int64_t own, float guess,
                         const Array<Index, 1>& chosen) {
    int64_t at = 0;
    if (own >= 0) chosen[at++] = Index(own);
    const int64_t wanted = smaller_of(limit, count_up_to(values, FLT_MAX));
    if (wanted <= at) return {at, guess};
    const Selected found = bracket(values, wanted, wanted, guess);
    const float threshold = found.threshold;
    // Without ties equal values are below the threshold too.
    int64_t ties = found.count == wanted ? values.shape[0] : wanted - at;
    int64_t i = 0;
    if (found.count == wanted) {
        for (; i + kBlock <= values.shape[0] && at + kBlock <= chosen.shape[0]; i += kBlock) {
            uint32_t bits = bits_up_to(values.data + i, threshold);
            if (i <= own && own < i + kBlock) bits &= ~(1u << (own - i));
            at += store_places(bits, i, chosen.data + at);
        }
    } else {
        for (int64_t j = 0; j < values.shape[0]; j++) ties -= (values[j] < threshold) & (j != own);
    }
    for (; i < values.shape[0]; i++) {
        // Always written, then kept or overwritten: no branch to mispredict.
        chosen[at] = Index(i);
        const int64_t tied = (values[i] == threshold) & (ties > 0) & (i != own);
        ties -= tied;
        at += ((values[i] < threshold) & (i != own)) | tied;
    }
    return {at, threshold};
}

// Some of many values, in their order, and where they are; with room for all of them and kBlock more.
struct Few {
    Array<float, 1> values;
    Array<int32_t, 1> places;
};

inline Few make_few(Arena& arena, int64_t count) {
    return {arena.empty<float>(count + kBlock), arena.empty<int32_t>(count + kBlock)};
}

// Take all values that are at most the threshold; returns how many.
inline int64_t take_up_to(const Values& values, float threshold, const Few& few) {
    VNLEM_CHECK(values.shape[0] + kBlock <= few.places.shape[0]);
    int64_t n = 0, i = 0;
    for (; i + kBlock <= values.shape[0]; i += kBlock)
        n += store_places(bits_up_to(values.data + i, threshold), i, few.places.data + n);
    for (; i < values.shape[0]; i++) {
        few.places[n] = int32_t(i);
        n += values[i] <= threshold;
    }
    for (int64_t j = 0; j < n; j++) few.values[j] = values[few.places[j]];
    return n;
}

// Take the k smallest of the values and some more: further steps then work on few numbers.
inline Selected take_smallest(const Values& values, int64_t k, float guess, const Few& few) {
    const float threshold = bracket(values, k, kFew * k, guess).threshold;
    return {take_up_to(values, threshold, few), threshold};
}

// `smallest` of the first n values taken, including `own`; chosen: their indices among all values.
inline int64_t smallest_of_few(const Few& few, int64_t n, int64_t limit, int64_t own, float guess,
                               const Array<int32_t, 1>& chosen) {
    int64_t before = 0;
    for (int64_t i = 0; i < n; i++) before += few.places[i] < own;
    const int64_t count = smallest(Values(few.values.part(0, n)), limit, before, guess, chosen).count;
    for (int64_t j = 0; j < count; j++) chosen[j] = few.places[chosen[j]];
    return count;
}

}  // namespace vnlem
