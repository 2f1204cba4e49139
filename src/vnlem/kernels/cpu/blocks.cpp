// What the blocks of a plane show: see blocks.py.
#include "array.h"
#include "simd.h"

namespace vnlem {
namespace {

constexpr int kSide = 8, kSums = 8, kFound = kSums + 5;
constexpr int kWide = kLanes / 2, kStep = kSide + 1;
using Wide = Vector<double, kWide>;
using Marks = Vector<int64_t, kWide>;

// columns: of the transform, all frequencies at one place after those at another.
void measure(const double* corner, int64_t width, const double* columns, const double* weights, double low,
             double high, double* found) {
    double pixels[kSide * kStep];
    for (int y = 0; y < kSide; y++) {
        for (int x = 0; x < kSide; x++) pixels[y * kStep + x] = corner[y * width + x];
        pixels[y * kStep + kSide] = pixels[y * kStep + kSide - 1];  // the last pixel is its own neighbour
    }
    Marks across = {}, down = {}, lowest = {}, highest = {};
    for (int y = 0; y < kSide; y++) {
        for (int x = 0; x < kSide; x += kWide) {
            const double* const at = pixels + y * kStep + x;
            const Wide row = load<kWide>(at);
            across += row == load<kWide>(at + 1);
            if (y > 0) down += row == load<kWide>(at - kStep);
            lowest += row == spread<kWide>(low);
            highest += row == spread<kWide>(high);
        }
    }
    double mean = 0;
    Wide sums[2][kSums / kWide] = {};  // two of each: additions wait less for each other
    for (int f = 0; f < kSide; f++) {
        double halfway[kSide], energy[kSide];
        for (int x = 0; x < kSide; x += kWide) {
            Wide sum = {};
            for (int y = 0; y < kSide; y++) sum += columns[y * kSide + f] * load<kWide>(pixels + y * kStep + x);
            store<kWide>(halfway + x, sum);
        }
        for (int g = 0; g < kSide; g += kWide) {
            Wide sum = {};
            for (int x = 0; x < kSide; x++) sum += halfway[x] * load<kWide>(columns + x * kSide + g);
            if (f == 0 && g == 0) mean = sum[0] / kSide;
            store<kWide>(energy + g, sum * sum);
        }
        for (int g = 0; g < kSide; g++)
            for (int k = 0; k < kSums / kWide; k++)
                sums[g % 2][k] += energy[g] * load<kWide>(weights + (f * kSide + g) * kSums + k * kWide);
    }
    for (int k = 0; k < kSums / kWide; k++) store<kWide>(found + k * kWide, sums[0][k] + sums[1][k]);
    found[kSums] = mean;
    // Comparisons count as -1 if they are true. One sum holds all four counts, of at most 64.
    const int64_t counts = -total<kWide, int64_t>(across + 256 * (down + 256 * (lowest + 256 * highest)));
    found[kSums + 1] = double((counts & 255) - kSide) / (kSide * (kSide - 1));
    found[kSums + 2] = double(counts >> 8 & 255) / (kSide * (kSide - 1));
    found[kSums + 3] = double(counts >> 16 & 255) / (kSide * kSide);
    found[kSums + 4] = double(counts >> 24) / (kSide * kSide);
}

}  // namespace

VNLEM_EXPORT int64_t vnlem_measure_blocks(const Array<const double, 2>& plane, int64_t step, int64_t first,
                                          const Array<const double, 2>& transform,
                                          const Array<const double, 2>& weights, double low, double high,
                                          const Array<double, 2>& found) {
    VNLEM_CHECK(weights.shape[0] == kSide * kSide && weights.shape[1] == kSums && found.shape[1] == kFound);
    const int64_t width = plane.shape[1], across = (width - kSide) / step + 1;
    double columns[kSide * kSide];
    for (int x = 0; x < kSide; x++)
        for (int f = 0; f < kSide; f++) columns[x * kSide + f] = transform(f, x);
    for (int64_t k = 0; k < found.shape[0]; k++) {
        const int64_t y = (first + k) / across * step, x = (first + k) % across * step;
        VNLEM_CHECK(y + kSide <= plane.shape[0]);
        measure(&plane(y, x), width, columns, weights.data, low, high, found[k].data);
    }
    return 0;
}

}  // namespace vnlem
