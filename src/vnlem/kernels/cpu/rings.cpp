// Ring features of a region: sample, transform, turn into the given frame. See rings.py.
#include <cmath>

#include "scratch.h"
#include "squares.h"

namespace vnlem {

struct Sampling {
    Array<const int64_t, 3> where;
    Array<const float, 2> weights;
    Array<const int64_t, 1> starts;
    Array<const float, 3> real, imag;
    double centre;
    Array<const int64_t, 2> lane_of;
    int64_t centre_lane;
};

namespace {

// Pixels of a row processed together: few enough that a ring's samples stay in the first-level cache. All loops run
// along them in whole vectors; what lies past the last pixel is not used.
constexpr int64_t kPixels = 64;
constexpr int kVectors = 2, kStep = kVectors * kLanes;  // pixels whose sums stay in registers
constexpr int kTogether = 4;                            // orders that are summed up together
constexpr int64_t kRead = 16;                           // pixels whose samples are made at once
typedef Floats<kLanes> Lanes;

struct Buffers {
    Array<float, 2> samples;   // (samples of a ring, kPixels)
    Array<float, 3> folded;    // (4, samples of a quarter, kPixels)
    Array<float, 3> table;     // (2 frames, dim, kPixels)
    Array<float, 2> cos, sin;  // (orders, kPixels), of order * angle
    Array<double, 2> steps;    // (4, kPixels), see make_turns

    Buffers(Arena& arena, int64_t most, int64_t dim, int64_t n_orders)
        : samples(arena.zeros<float>(most, kPixels)),
          folded(arena.zeros<float>(4, most / 4 + 1, kPixels)),
          table(arena.zeros<float>(2, dim, kPixels)),
          cos(arena.zeros<float>(n_orders, kPixels)),
          sin(arena.zeros<float>(n_orders, kPixels)),
          steps(arena.zeros<double>(4, kPixels)) {}
};

// Bilinear samples at one offset, for pixels from (y, left) on. Past the end of a row begins the next: the planes
// (k, k, rows, columns) reach farther down than any sample. Not inlined, to keep all addresses in registers.
__attribute__((noinline)) void sample(const Array<const float, 4>& planes, int64_t y, int64_t left, const Array<const int64_t, 2>& where,
            const Array<const float, 1>& weights, int64_t span, float* out) {
    const float* rows[4];
    Lanes weight[4];
    for (int n = 0; n < 4; n++) {
        rows[n] = &planes(where(n, 0), where(n, 1), y + where(n, 2), left + where(n, 3));
        weight[n] = spread<kLanes>(weights[n]);
    }
    for (int64_t x = 0; x < span; x += kLanes) {
        const Lanes first = weight[0] * load<kLanes>(rows[0] + x) + weight[1] * load<kLanes>(rows[1] + x);
        const Lanes second = weight[2] * load<kLanes>(rows[2] + x) + weight[3] * load<kLanes>(rows[3] + x);
        store<kLanes>(out + x, first + second);
    }
}

// Samples of a ring folded onto a quarter of it, for even and odd orders: cosine (0, 1), sine (2, 3).
//
// cos and sin of order * angle are equal up to sign at angle, -angle, pi - angle and pi + angle, so sums over the
// ring are sums over a quarter of sums and differences of four samples, and a quarter of the work.
void fold(const Array<float, 2>& samples, int64_t count, int64_t span, const Array<float, 3>& folded) {
    const int64_t half = count / 2, quarter = count / 4;
    const auto put = [&](int64_t s, int64_t x, Lanes sum, Lanes far_sum, Lanes difference, Lanes far_difference) {
        float* const to = &folded(0, s, x);
        const int64_t part = folded.step();
        store<kLanes>(to, sum + far_sum);
        store<kLanes>(to + part, sum - far_sum);
        store<kLanes>(to + 2 * part, difference - far_difference);
        store<kLanes>(to + 3 * part, difference + far_difference);
    };
    for (int64_t s = 1; s < quarter; s++) {
        const float *const here = samples[s].data, *const mirrored = samples[count - s].data;
        const float *const across = samples[half - s].data, *const opposite = samples[half + s].data;
        for (int64_t x = 0; x < span; x += kLanes) {
            const Lanes a = load<kLanes>(here + x), b = load<kLanes>(mirrored + x);
            const Lanes c = load<kLanes>(across + x), d = load<kLanes>(opposite + x);
            put(s, x, a + b, c + d, a - b, c - d);
        }
    }
    // Samples that are their own mirror images must not count twice.
    for (int64_t x = 0; x < span; x += kLanes) {
        const Lanes a = load<kLanes>(&samples(quarter, x)), b = load<kLanes>(&samples(count - quarter, x));
        put(0, x, load<kLanes>(&samples(0, x)), load<kLanes>(&samples(half, x)), Lanes{}, Lanes{});
        put(quarter, x, a + b, Lanes{}, a - b, Lanes{});
    }
}

// to[i] = sum over s < count of factors[i][s] * rows[s]; the sums of kStep pixels stay in registers.
void combine(const Array<float, 2>& rows, int64_t count, const float* const* factors, int64_t span, float* const* to) {
    for (int64_t x = 0; x < span; x += kStep) {
        Lanes sums[kTogether][kVectors] = {};
        for (int64_t s = 0; s < count; s++) {
            Lanes row[kVectors];
            for (int v = 0; v < kVectors; v++) row[v] = load<kLanes>(rows.data + s * kPixels + x + v * kLanes);
            for (int i = 0; i < kTogether; i++)
                for (int v = 0; v < kVectors; v++) sums[i][v] += factors[i][s] * row[v];
        }
        for (int i = 0; i < kTogether; i++)
            for (int v = 0; v < kVectors; v++) store<kLanes>(to[i] + x + v * kLanes, sums[i][v]);
    }
}

// The real or imaginary coefficients, from order `begin` on, of a ring whose coefficient k goes to row lanes[k] of
// the table. Orders of one parity are sums of the same rows; the last one may be computed twice.
void transform(const Array<float, 3>& folded, int64_t count, const Array<const float, 2>& factors, int64_t begin,
               const Array<const int64_t, 1>& lanes, int64_t span, const Array<float, 2>& table) {
    for (int64_t first = begin; first < smaller_of(begin + 2, lanes.shape[0]); first++) {
        const int64_t last = lanes.shape[0] - 1 - (lanes.shape[0] - 1 - first) % 2;
        for (int64_t k = first; k <= last; k += 2 * kTogether) {
            const float* factor[kTogether];
            float* to[kTogether];
            for (int i = 0; i < kTogether; i++) {
                const int64_t order = smaller_of(k + 2 * i, last);
                factor[i] = factors[order].data;
                to[i] = table[lanes[order]].data;
            }
            combine(folded[first % 2], count, factor, span, to);
        }
    }
}

// Turning patches by minus an angle multiplies by exp(i k angle).
void turn(const float* re, const float* im, const float* cos, const float* sin, int64_t span, float* out_re,
          float* out_im) {
    for (int64_t x = 0; x < span; x += kLanes) {
        const Lanes a = load<kLanes>(re + x), b = load<kLanes>(im + x);
        const Lanes c = load<kLanes>(cos + x), s = load<kLanes>(sin + x);
        store<kLanes>(out_re + x, a * c - b * s);
        store<kLanes>(out_im + x, a * s + b * c);
    }
}

// cos, sin (orders, kPixels) of order * angle, by the addition theorem in float64.
void make_turns(const float* angles, int64_t count, const Buffers& scratch) {
    double *const step_cos = scratch.steps[0].data, *const step_sin = scratch.steps[1].data;
    double *const c = scratch.steps[2].data, *const s = scratch.steps[3].data;
    for (int64_t x = 0; x < count; x++) {
        step_cos[x] = std::cos(double(angles[x]));
        step_sin[x] = std::sin(double(angles[x]));
    }
    scratch.steps[2].fill(1);
    scratch.steps[3].fill(0);
    for (int64_t k = 0; k < scratch.cos.shape[0]; k++) {
        float *const cos_k = scratch.cos[k].data, *const sin_k = scratch.sin[k].data;
        for (int64_t x = 0; x < kPixels; x++) {
            const double before = c[x];
            cos_k[x] = float(before);
            sin_k[x] = float(s[x]);
            c[x] = before * step_cos[x] - s[x] * step_sin[x];
            s[x] = s[x] * step_cos[x] + before * step_sin[x];
        }
    }
}

// Vectors of `count` pixels, one after another, from a table (dim, kPixels).
void turn_over(const Array<float, 2>& table, int64_t count, float* out) {
    const int64_t dim = table.shape[0];
    const int64_t whole = count / 8 * 8;
    transpose(table.data, kPixels, dim, whole, out, dim);
    for (int64_t x = whole; x < count; x++)
        for (int64_t f = 0; f < dim; f++) out[x * dim + f] = table(f, x);
}

// The coefficients of all rings of one channel, in both frames, to rows first_lane ... and half + first_lane ... of
// the table.
void transform_channel(const Array<const float, 4>& planes, int64_t y, int64_t left, int64_t count,
                       const Sampling& sampling, int64_t first_lane, const Buffers& scratch) {
    const int64_t half = scratch.table.shape[1] / 2, span = (count + kStep - 1) / kStep * kStep;
    const Array<float, 2> re = scratch.table[0].part(first_lane, half), turned_re = scratch.table[1].part(first_lane, half);
    const Array<float, 2> im = scratch.table[0].part(half + first_lane, 2 * half);
    const Array<float, 2> turned_im = scratch.table[1].part(half + first_lane, 2 * half);
    const float* const middle = &planes(0, 0, y, left);
    for (int64_t x = 0; x < count; x++)
        re(sampling.centre_lane, x) = turned_re(sampling.centre_lane, x) = float(sampling.centre) * middle[x];
    for (int64_t ring = 0; ring + 1 < sampling.starts.shape[0]; ring++) {
        const int64_t first = sampling.starts[ring], n = sampling.starts[ring + 1] - first, quarter = n / 4 + 1;
        for (int64_t s = 0; s < n; s++)
            sample(planes, y, left, sampling.where[first + s], sampling.weights[first + s],
                   (count + kRead - 1) / kRead * kRead, scratch.samples[s].data);
        fold(scratch.samples, n, span, scratch.folded);
        int64_t n_orders = 0;
        while (n_orders < sampling.lane_of.shape[1] && sampling.lane_of(ring, n_orders) >= 0) n_orders++;
        const Array<const int64_t, 1> lanes = sampling.lane_of[ring].part(0, n_orders);
        transform(scratch.folded.part(0, 2), quarter, sampling.real[ring], 0, lanes, span, re);
        transform(scratch.folded.part(2, 4), quarter, sampling.imag[ring], 1, lanes, span, im);
        for (int64_t k = 0; k < n_orders; k++) {
            const int64_t at = lanes[k];
            turn(re[at].data, im[at].data, scratch.cos[k].data, scratch.sin[k].data, span, turned_re[at].data,
                 turned_im[at].data);
        }
    }
}

}  // namespace

VNLEM_EXPORT int64_t vnlem_ring_features(const Array<const float, 5>& planes, const Array<const float, 2>& angles,
                                         int64_t halo, const Sampling& sampling, const Array<float, 3>& raw,
                                         const Array<float, 3>& canonical) {
    const int64_t height = angles.shape[0], width = angles.shape[1], dim = canonical.shape[2];
    const int64_t lanes = dim / 2 / planes.shape[0];
    int64_t most = 0;
    for (int64_t ring = 0; ring + 1 < sampling.starts.shape[0]; ring++)
        most = larger_of(most, sampling.starts[ring + 1] - sampling.starts[ring]);
    Scratch<Buffers> scratch(most, dim, sampling.lane_of.shape[1]);
    if (!scratch) return kOutOfMemory;
    for (int64_t y = 0; y < height; y++) {
        for (int64_t left = 0; left < width; left += kPixels) {
            const int64_t count = smaller_of(kPixels, width - left);
            make_turns(&angles(y, left), count, *scratch);
            for (int64_t channel = 0; channel < planes.shape[0]; channel++)
                transform_channel(planes[channel], y + halo, left + halo, count, sampling, channel * lanes, *scratch);
            if (raw.shape[0] > 0) turn_over(scratch->table[0], count, &raw(y, left, 0));
            turn_over(scratch->table[1], count, &canonical(y, left, 0));
        }
    }
    return 0;
}

}  // namespace vnlem
