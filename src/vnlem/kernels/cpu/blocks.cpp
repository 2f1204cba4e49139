// What the blocks of a plane show: see blocks.py.
#include "array.h"
#include "simd.h"

namespace vnlem {
namespace {

constexpr int kSide = 8;
using Row = Vector<double, kSide>;
using Marks = Vector<int64_t, kSide>;

double count_of(Marks marks) { return -double(total<kSide, int64_t>(marks)); }

// columns: of the transform, all frequencies at one place.
void measure(const double* corner, int64_t width, const Row* columns, const Array<const double, 2>& weights,
             double low, double high, double* found) {
    Row pixels[kSide], energy[kSide];
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
    for (int f = 0; f < kSide; f++) {
        Row halfway = {}, coefficients = {};
        for (int y = 0; y < kSide; y++) halfway += columns[y][f] * pixels[y];
        for (int x = 0; x < kSide; x++) coefficients += halfway[x] * columns[x];
        if (f == 0) mean = coefficients[0] / kSide;
        energy[f] = coefficients * coefficients;
    }
    for (int64_t k = 0; k < weights.shape[0]; k++) {
        Row sum = {};
        for (int f = 0; f < kSide; f++) sum += load<kSide>(&weights(k, f * kSide)) * energy[f];
        *found++ = total<kSide, double>(sum);
    }
    *found++ = mean;
    *found++ = (count_of(across) - kSide) / (kSide * (kSide - 1));
    *found++ = count_of(down) / (kSide * (kSide - 1));
    *found++ = count_of(lowest) / (kSide * kSide);
    *found++ = count_of(highest) / (kSide * kSide);
}

}  // namespace

VNLEM_EXPORT int64_t vnlem_measure_blocks(const Array<const double, 2>& plane, int64_t step, int64_t first,
                                          const Array<const double, 2>& transform,
                                          const Array<const double, 2>& weights, double low, double high,
                                          const Array<double, 2>& found) {
    VNLEM_CHECK(weights.shape[1] == kSide * kSide && found.shape[1] == weights.shape[0] + 5);
    const int64_t width = plane.shape[1], across = (width - kSide) / step + 1;
    Row columns[kSide];
    for (int x = 0; x < kSide; x++)
        for (int f = 0; f < kSide; f++) columns[x][f] = transform(f, x);
    for (int64_t k = 0; k < found.shape[0]; k++) {
        const int64_t y = (first + k) / across * step, x = (first + k) % across * step;
        VNLEM_CHECK(y + kSide <= plane.shape[0]);
        measure(&plane(y, x), width, columns, weights, low, high, found[k].data);
    }
    return 0;
}

}  // namespace vnlem
