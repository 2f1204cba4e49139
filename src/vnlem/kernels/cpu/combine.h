// Ridge combination of a group of aligned patches.
#pragma once
#include "members.h"
#include "scratch.h"

namespace vnlem {

// How the groups of a pass are combined: see ridge.py.
struct RidgeRule {
    int64_t without_pilot;
    double extra_load, boost, colour_boost, tau;
};

// Working memory of a group of k patches; size: k, rounded up to blocks of sixteen.
struct Group {
    int64_t k;
    Array<int64_t, 1> members;       // (k): corners in the images
    Array<int64_t, 1> corners;       // (k): the same in the accumulators, negative where one is not put back
    Array<float, 1> noise;           // (size): noise energies; one beyond the members
    Array<float, 1> weights;         // (k): in the image, from the noise gains
    Array<float, 2> estimate;        // (size, length): the change of every member
    Array<float, 1> load, shrink, sums, gain, mean;
    Array<const float*, 2> rows;     // see `locate`
    Array<float, 2> upright, columns, changes, theta;
    Array<float, 3> pivots;
    Array<double, 2> precise;        // (k + 1, k)

    Group(Arena& arena, int64_t k, const Patch& patch);
};

// Estimate every member of a group: its change goes to group.estimate, its weight to group.weights. chosen (k): how
// each is turned; changed: how much of the noise energy the working patches have lost. Returns the share of the
// change that goes into the next working image.
float combine(const float* pilot, const float* working, const Patch& patch, const Array<const uint8_t, 1>& chosen,
              float changed, const RidgeRule& rule, const Group& group);

}  // namespace vnlem
