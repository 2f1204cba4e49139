// What the blocks of a plane show: see blocks.py.
#include "array.h"
#include "simd.h"

namespace vnlem {
namespace {

constexpr int kSide = 8, kSums = 8, kFound = kSums + 5;
using Row = Vector<double, kSide>;
using Marks = Vector<int64_t, kSide>;

// columns: of the transform, all frequencies at one place.
void measure(const double* corner, int64_t width, const Row* columns, const double* weights, double low, double high,
             double* found) {
    Row pixels[kSide];
    Marks across = {}, down = {}, lowest = {}, highest = {};
    for (int y = 0; y < kSide; y++) {
        const Row row = pixels[y] = load<kSide>(corner + y * width);
        // The last pixel is its own neighbour.
        across += row == __builtin_shufflevector(row, row, 1, 2, 3, 4, 5, 6, 7, 7);
        if (y > 0) down += row == pixels[y - 1];
        lowest += row == spread<kSide>(low);
        highest += row == spread<kSide>(high);
    }
    double mean = 0;
    Row sums[kSide] = {};  // one for each place: additions need not wait for each other
    for (int f = 0; f < kSide; f++) {
        Row halfway = {}, coefficients = {};
        for (int y = 0; y < kSide; y++) halfway += columns[y][f] * pixels[y];
        double each[kSide];
        store<kSide>(each, halfway);
        for (int x = 0; x < kSide; x++) coefficients += each[x] * columns[x];
        if (f == 0) mean = coefficients[0] / kSide;
        store<kSide>(each, coefficients * coefficients);
        for (int x = 0; x < kSide; x++) sums[x] += each[x] * load<kSums>(weights + (f * kSide + x) * kSums);
    }
    for (int x = 1; x < kSide; x++) sums[0] += sums[x];
    store<kSums>(found, sums[0]);
    found[kSums] = mean;
    // Comparisons count as -1 if they are true. One sum holds all four counts, of at most 64.
    const int64_t counts = -total<kSide, int64_t>(across + (down << 8) + (lowest << 16) + (highest << 24));
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
    Row columns[kSide];
    for (int x = 0; x < kSide; x++)
        for (int f = 0; f < kSide; f++) columns[x][f] = transform(f, x);
    for (int64_t k = 0; k < found.shape[0]; k++) {
        const int64_t y = (first + k) / across * step, x = (first + k) % across * step;
        VNLEM_CHECK(y + kSide <= plane.shape[0]);
        measure(&plane(y, x), width, columns, weights.data, low, high, found[k].data);
    }
    return 0;
}

}  // namespace vnlem
