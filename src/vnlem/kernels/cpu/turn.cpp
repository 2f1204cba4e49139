// Turned copies of a square of an image: see turn.py.
#include "scratch.h"
#include "sheets.h"

namespace vnlem {

struct Turn {
    int64_t quarter;
    Array<const int64_t, 2> bases;
    Array<const float, 3> taps;
    double cosine, sine;
};

struct TurnPlace {
    int64_t top, left, height, width, origin_y, origin_x, first;
};

namespace {

typedef Array<const float, 2> Image;
typedef Array<float, 2> Square;

// Positions of the whole image from `begin` on, mirrored at its borders, in an array of `length` that begins at
// `origin`.
void set_mirrored(int64_t begin, int64_t count, int64_t origin, int64_t length, const Array<int64_t, 1>& out) {
    for (int64_t i = 0; i < out.shape[0]; i++) {
        int64_t position = (begin + i) % (2 * count);
        if (position < 0) position += 2 * count;
        if (position >= count) position = 2 * count - 1 - position;
        out[i] = smaller_of(larger_of<int64_t>(position - origin, 0), length - 1);
    }
}

// Fill the tall arrays from a row on. copy(value): the turned square of the image with pixels value(y, x).
template <class Copy>
void fill(const Images& images, const Array<const float, 1>& weights, float floor, int64_t first, const Tall& tall,
          Copy copy) {
    for (int64_t c = 0; c < images.noisy.shape[0]; c++) {
        const Image noisy = images.noisy[c], working = images.working[c], pilot = images.pilot[c];
        const Image variance = images.variance[c];
        // Write become(number) for every number of a copy.
        const auto write = [&](const Square& square, const Square& out, auto become) {
            for (int64_t y = 0; y < square.shape[0]; y++)
                for (int64_t x = 0; x < square.shape[1]; x++) out(first + y, x) = become(square(y, x));
        };
        const Square piloted = copy([&](int64_t y, int64_t x) { return pilot(y, x); });
        write(piloted, tall.pilot[c], [](float number) { return number; });
        write(piloted, tall.compared[c], [&](float number) { return weights[c] * number; });
        const Square changed = copy([&](int64_t y, int64_t x) { return noisy(y, x) - working(y, x); });
        write(changed, tall.change[c], [](float number) { return number * number; });
        const Square worked = copy([&](int64_t y, int64_t x) { return working(y, x); });
        write(worked, tall.working[c], [](float number) { return number; });
        if (variance.shape[1] > 1) {
            const Square varied = copy([&](int64_t y, int64_t x) { return variance(y, x); });
            write(varied, tall.variance[c], [&](float number) { return larger_of(number, floor); });
        } else {
            write(worked, tall.variance[c], [&](float) { return variance(0, 0); });
        }
    }
}

// out[y, x] = source[y] at x - shift of the row; zero outside.
void shear(const Square& source, const Array<const int64_t, 1>& bases, const Image& taps, const Square& out) {
    const int64_t side = source.shape[0], n_taps = taps.shape[1];
    for (int64_t y = 0; y < side; y++) {
        out[y].fill(0);
        for (int64_t m = 0; m < n_taps; m++) {
            const int64_t offset = m - n_taps / 2 - bases[y];
            const int64_t begin = larger_of<int64_t>(0, -offset), end = smaller_of(side, side - offset);
            const float factor = taps(y, m);
            const float* const line = &source(y, 0);
            float* const to = &out(y, 0);
            for (int64_t x = begin; x < end; x++) to[x] += factor * line[x + offset];
        }
    }
}

void transpose(const Square& source, const Square& out) {
    for (int64_t y = 0; y < source.shape[0]; y++)
        for (int64_t x = 0; x < source.shape[1]; x++) out(x, y) = source(y, x);
}

struct TurnScratch {
    Array<int64_t, 1> rows, columns;
    Square a, b, c;
    TurnScratch(Arena& arena, int64_t side)
        : rows(arena.empty<int64_t>(side)),
          columns(arena.empty<int64_t>(side)),
          a(arena.empty<float>(side, side)),
          b(arena.empty<float>(side, side)),
          c(arena.empty<float>(side, side)) {}
};

}  // namespace

VNLEM_EXPORT int64_t vnlem_turn_into(const Images& images, const Array<const float, 1>& weights, double floor,
                                     const Turn& turn, const TurnPlace& place, const Tall& tall) {
    const int64_t side = turn.bases.shape[1];
    Scratch<TurnScratch> scratch(side);
    if (!scratch) return kOutOfMemory;
    const Square a = scratch->a, b = scratch->b, c = scratch->c;
    set_mirrored(place.top, place.height, place.origin_y, images.noisy.shape[1], scratch->rows);
    set_mirrored(place.left, place.width, place.origin_x, images.noisy.shape[2], scratch->columns);
    fill(images, weights, float(floor), place.first, tall, [&](auto value) {
        for (int64_t i = 0; i < side; i++) {
            for (int64_t j = 0; j < side; j++) {
                const float number = value(scratch->rows[i], scratch->columns[j]);
                (turn.quarter ? a(side - 1 - j, i) : a(i, j)) = number;
            }
        }
        shear(a, turn.bases[0], turn.taps[0], b);
        transpose(b, c);
        shear(c, turn.bases[1], turn.taps[1], b);
        transpose(b, c);
        shear(c, turn.bases[0], turn.taps[0], a);
        return a;
    });
    const double centre = double(side - 1) / 2;
    for (int64_t i = 0; i < side; i++) {
        for (int64_t j = 0; j < side; j++) {
            const double y = double(i) - centre, x = double(j) - centre;
            const double v = turn.cosine * y + turn.sine * x + centre + double(place.top);
            const double h = -turn.sine * y + turn.cosine * x + centre + double(place.left);
            const bool shown = 0 <= v && v <= double(place.height - 1) && 0 <= h && h <= double(place.width - 1);
            tall.outside(place.first + i, j) = !shown;
        }
    }
    return 0;
}

}  // namespace vnlem
