// Small dense matrices: see small.py.
#include <cmath>

#include "scratch.h"
#include "simd.h"

namespace vnlem {
namespace {

// Most QL steps for one eigenvalue; two are usual.
constexpr int kSteps = 60;
constexpr double kEpsilon = 0x1p-52;
// Squared lengths below this count as zero: two divided by them may be infinite.
constexpr double kSmallest = 1e-290;

double dot(const double* u, const double* v, int64_t n) {
    constexpr int kWide = kLanes / 2;
    Vector<double, kWide> sums = {};
    int64_t k = 0;
    for (; k + kWide <= n; k += kWide) sums += load<kWide>(u + k) * load<kWide>(v + k);
    double sum = total<kWide, double>(sums);
    for (; k < n; k++) sum += u[k] * v[k];
    return sum;
}

void add(double* __restrict u, double factor, const double* __restrict v, int64_t n) {
    for (int64_t k = 0; k < n; k++) u[k] += factor * v[k];
}

void rotate(double* __restrict u, double* __restrict v, double c, double s, int64_t n) {
    for (int64_t k = 0; k < n; k++) {
        const double before = u[k];
        u[k] = c * before - s * v[k];
        v[k] = s * before + c * v[k];
    }
}

struct Symmetric {
    Array<double, 2> reflected;  // the matrix, then the reflections
    Array<double, 2> rows;       // eigenvectors
    Array<double, 1> factors, beside, diagonal;
    Array<int64_t, 1> order;
    Symmetric(Arena& arena, int64_t n)
        : reflected(arena.empty<double>(n, n)),
          rows(arena.zeros<double>(n, n)),
          factors(arena.zeros<double>(n)),
          beside(arena.zeros<double>(n)),
          diagonal(arena.empty<double>(n)),
          order(arena.empty<int64_t>(n)) {}
};

// Householder reflections make the matrix tridiagonal. Reflection k, I - factors[k] v v^T, acts on the rows after
// k; v replaces row k to the right of the diagonal.
void make_tridiagonal(const Symmetric& s) {
    const int64_t n = s.diagonal.shape[0];
    for (int64_t k = 0; k + 1 < n; k++) {
        const int64_t rest = n - k - 1;
        double* const v = &s.reflected(k, k + 1);
        double* const p = &s.diagonal[k + 1];  // as scratch
        const double length = std::sqrt(dot(v, v, rest));
        s.beside[k] = v[0] > 0 ? -length : length;
        v[0] -= s.beside[k];
        const double square = dot(v, v, rest);
        const double factor = s.factors[k] = square > kSmallest ? 2 / square : 0;
        for (int64_t i = 0; i < rest; i++) p[i] = factor * dot(&s.reflected(k + 1 + i, k + 1), v, rest);
        add(p, -0.5 * factor * dot(p, v, rest), v, rest);
        for (int64_t i = 0; i < rest; i++) {
            double* const row = &s.reflected(k + 1 + i, k + 1);
            const double a = v[i], b = p[i];
            for (int64_t j = 0; j < rest; j++) row[j] -= a * p[j] + b * v[j];
        }
    }
    for (int64_t i = 0; i < n; i++) s.diagonal[i] = s.reflected(i, i);
}

// QL steps with implicit shifts until the off-diagonal vanishes; the rows are rotated with it.
void make_diagonal(const Symmetric& s) {
    const Array<double, 1> &diagonal = s.diagonal, &beside = s.beside;
    const int64_t n = diagonal.shape[0];
    for (int64_t first = 0; first < n; first++) {
        for (int step = 0; step < kSteps; step++) {
            int64_t last = first;
            while (last < n - 1 &&
                   !(std::fabs(beside[last]) <= kEpsilon * (std::fabs(diagonal[last]) + std::fabs(diagonal[last + 1]))))
                last++;
            if (last == first) break;
            // Wilkinson's shift: the eigenvalue of the leading 2x2 block that is nearer to its first entry.
            const double half = (diagonal[first + 1] - diagonal[first]) / (2 * beside[first]);
            double g = diagonal[last] - diagonal[first] +
                       beside[first] / (half + std::copysign(std::sqrt(half * half + 1), half));
            double cosine = 1, sine = 1, moved = 0;
            for (int64_t i = last - 1; i >= first; i--) {
                const double f = sine * beside[i], b = cosine * beside[i];
                double r = beside[i + 1] = std::sqrt(f * f + g * g);
                cosine = r > 0 ? g / r : 1;
                sine = r > 0 ? f / r : 0;
                g = diagonal[i + 1] - moved;
                r = (diagonal[i] - g) * sine + 2 * cosine * b;
                moved = sine * r;
                diagonal[i + 1] = g + moved;
                g = cosine * r - b;
                rotate(s.rows[i].data, s.rows[i + 1].data, cosine, sine, n);
            }
            diagonal[first] -= moved;
            beside[first] = g;
            beside[last] = 0;
        }
    }
}

}  // namespace

VNLEM_EXPORT int64_t vnlem_solve_symmetric(const Array<const double, 2>& matrix, const Array<double, 1>& values,
                                           const Array<double, 2>& vectors) {
    const int64_t n = matrix.shape[0];
    Scratch<Symmetric> scratch(n);
    if (!scratch) return kOutOfMemory;
    const Symmetric& s = *scratch;
    for (int64_t i = 0; i < n * n; i++) s.reflected.data[i] = matrix.data[i];
    make_tridiagonal(s);
    for (int64_t i = 0; i < n; i++) s.rows(i, i) = 1;
    make_diagonal(s);
    for (int64_t i = 0; i < n; i++) {
        int64_t at = i;
        for (; at > 0 && s.diagonal[s.order[at - 1]] < s.diagonal[i]; at--) s.order[at] = s.order[at - 1];
        s.order[at] = i;
    }
    for (int64_t j = 0; j < values.shape[0]; j++) {
        // An eigenvector of the tridiagonal matrix becomes one of the matrix itself.
        const Array<double, 1> row = s.rows[s.order[j]];
        for (int64_t k = n - 2; k >= 0; k--) {
            const double* const v = &s.reflected(k, k + 1);
            add(&row[k + 1], -s.factors[k] * dot(v, &row[k + 1], n - k - 1), v, n - k - 1);
        }
        values[j] = s.diagonal[s.order[j]];
        for (int64_t i = 0; i < n; i++) vectors(i, j) = row[i];
    }
    return 0;
}

VNLEM_EXPORT int64_t vnlem_add_product(const Array<const double, 2>& a, const Array<const double, 2>& b,
                                       const Array<double, 2>& out) {
    for (int64_t i = 0; i < a.shape[0]; i++)
        for (int64_t k = 0; k < a.shape[1]; k++) add(out[i].data, a(i, k), b[k].data, b.shape[1]);
    return 0;
}

}  // namespace vnlem
