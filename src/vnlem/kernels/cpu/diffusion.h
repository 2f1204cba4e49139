// Distances of the diffusion map over search windows, used instead of patch distances: see vnlem.py.
#pragma once
#include "windows.h"

namespace vnlem {

struct Diffusion {
    Array<const float, 3> embedding;
    Array<const float, 2> trust;
    int64_t blended;

    bool is_used() const { return embedding.shape[2] > 0; }
};

// Squared distances of coordinates, from differences because neighbours' coordinates agree in their leading digits.
inline void diffusion_distances(const Array<const float, 3>& embedding, const Span& span, const Windows& windows,
                                const Array<float, 2>& out) {
    constexpr int kEight = kLanes < 8 ? kLanes : 8;  // coordinates come in eights
    compare_windows<kEight>(
        embedding, span, windows, out, [](auto a, auto b, auto sum) { return sum + (a - b) * (a - b); },
        [](Floats<8> squared, int64_t, int64_t, int64_t) { return squared; });
}

// Merge both distances of a window into one ranking, in by_patches; outside the window both are infinite.
inline void blend(float trust, const float* by_diffusion, int64_t count, int64_t own, float* by_patches) {
    constexpr float kLeast = 1e-30f;
    // Noise raises all patch distances alike: subtract the smallest, not counting the pixel's own.
    float lowest = INFINITY;
    float mean = 0, total = 0, n = 0;
    for (int64_t c = 0; c < count; c++) {
        const float value = by_patches[c];
        if (!(value < INFINITY)) continue;
        mean += by_diffusion[c];
        total += value;
        n += 1;
        if (c != own) lowest = smaller_of(lowest, value);
    }
    const float share = trust * n / larger_of(mean, kLeast);
    const float rest = (1.0f - trust) * n / larger_of(total - n * lowest, kLeast);
    for (int64_t c = 0; c < count; c++)
        by_patches[c] = share * by_diffusion[c] + rest * larger_of(by_patches[c] - lowest, 0.0f);
}

// Put squared diffusion distances in windows.distances, for the pixels of a span. With trust t below one:
// t * diffusion + (1 - t) * what the windows held, each divided by its mean over the pixel's own window;
// windows.unturned is overwritten.
inline void rank_by_diffusion(const Diffusion& diffusion, const Span& span, const Windows& windows) {
    windows.mark(span);
    if (!diffusion.blended) {
        diffusion_distances(diffusion.embedding, span, windows, windows.distances);
        return;
    }
    diffusion_distances(diffusion.embedding, span, windows, windows.unturned);
    const int64_t count = windows.count(span);
    for (int64_t p = 0; p < span.pixels; p++) {
        const float trust = diffusion.trust(span.y, span.x + p);
        const float* const by_diffusion = windows.unturned[p].data;
        float* const by_patches = windows.distances[p].data;
        if (trust < 1)
            blend(trust, by_diffusion, count, windows.own(span, p), by_patches);
        else
            for (int64_t c = 0; c < count; c++) by_patches[c] = by_diffusion[c];
    }
}

}  // namespace vnlem
