// Block matching in several planes: see plane_match.py.
#include "candidates.h"

namespace vnlem {

struct Planes {
    Array<const float, 4> image;
    Array<const float, 3> energy;
    Array<const float, 4> invariants;
    int64_t transforms, patch_size, depth, radius;
    double factor;
};

namespace {

struct Buffers {
    Array<SearchWindow, 1> windows;
    Ranks ranks;

    Buffers(Arena& arena, const PatchShape& shape, const MatchRule& rule, int64_t members)
        : windows(arena.empty<SearchWindow>(rule.n_full)), ranks(arena, shape, rule, rule.n_full, members) {}
};

// The window around a centre (plane, row, column), moved inwards at the border; empty for a negative plane.
SearchWindow window_around(const Planes& planes, const Array<const int64_t, 2>& sizes,
                     const Array<const int64_t, 1>& centre) {
    const int64_t plane = centre[0], side = 2 * planes.radius + 1;
    if (plane < 0) return {};
    const int64_t all_rows = sizes(plane, 0) - planes.patch_size + 1;
    const int64_t all_columns = sizes(plane, 1) - planes.patch_size + 1;
    const int64_t rows = smaller_of(side, all_rows), columns = smaller_of(side, all_columns);
    const int64_t top = larger_of<int64_t>(0, smaller_of(centre[1] - planes.radius, all_rows - rows));
    const int64_t left = larger_of<int64_t>(0, smaller_of(centre[2] - planes.radius, all_columns - columns));
    const int64_t height = planes.image.shape[2], stride = planes.image.shape[3];
    VNLEM_CHECK(plane + planes.depth <= planes.image.shape[0]);
    VNLEM_CHECK(left + rounded_up(columns, kWide) + planes.patch_size - 1 <= stride);
    return {&planes.image(plane, 0, top, left), &planes.energy(plane, top, left), &planes.invariants(0, plane, top, left),
            &planes.invariants(1, plane, top, left), rows, columns, (plane * height + top) * stride + left, false};
}

}  // namespace

VNLEM_EXPORT int64_t vnlem_match_planes_tile(const Planes& planes, const Array<const int64_t, 2>& sizes,
                                             const Array<const int64_t, 2>& references,
                                             const Array<const int64_t, 3>& centres,
                                             const Array<const float, 1>& penalties, const Array<int32_t, 2>& positions,
                                             const Array<uint8_t, 2>& chosen) {
    const int64_t n_sites = centres.shape[1], channels = planes.image.shape[1], stride = planes.image.shape[3];
    const PatchShape shape = {planes.patch_size, planes.depth * channels, stride, planes.image.shape[2] * stride,
                              channels};
    const MatchRule rule(planes.radius, planes.transforms, n_sites, 0, planes.factor);
    Scratch<Buffers> scratch(shape, rule, positions.shape[1]);
    if (!scratch) return kOutOfMemory;
    const Buffers& buffers = *scratch;
    Matcher matcher(shape, rule, buffers.ranks);
    for (int64_t r = 0; r < references.shape[0]; r++) {
        const int64_t plane = references(r, 0), top = references(r, 1), left = references(r, 2);
        for (int64_t site = 0; site < n_sites; site++)
            buffers.windows[site] = window_around(planes, sizes, centres[r][site]);
        const int64_t away = (plane * planes.image.shape[2] + top) * stride + left - buffers.windows[0].first;
        matcher.match({&planes.image(plane, 0, top, left), planes.energy(plane, top, left),
                       planes.invariants(0, plane, top, left), planes.invariants(1, plane, top, left),
                       planes.transforms > 1 ? penalties[r] : INFINITY,
                       away / stride * buffers.ranks.lanes + away % stride},
                      buffers.windows);
        matcher.write(buffers.windows, positions[r], chosen[r]);
    }
    return 0;
}

}  // namespace vnlem
