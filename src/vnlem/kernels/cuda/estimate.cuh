// Shared by the two kernels that estimate pixels from their neighbours. Macros: HALF (lanes of all channels).

#include "../shared/regression.h"

#define DIM (2 * HALF)
#define IDENTITY 32767

struct Estimate {
    const float* raw;       // (height, width, DIM)
    const float* canonical; // likewise
    const float* sharp;     // (height, width), what the patch's own pixels hold beyond its features, squared
    const float* angle;     // (height, width), radians
    const float* pixels;    // (CHANNELS, height, width)
    const int* orders;      // (HALF), angular order of each lane
    const float* cosine;    // (n_angles, HALF), of order * angle
    const float* sine;
    const int* position;    // (pixels, n_neighbors)
    const float* squared;
    const short* which;
    const int* counts;      // (pixels)
    float* out;             // (CHANNELS, rows, width)
    int height, width, top, rows, n_neighbors, n_angles;
    int spare; // a lane of order zero, whose imaginary part is free
    float noise, inverse_bandwidth, gamma, step;
    int own_as_best;
};
