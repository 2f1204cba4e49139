// Planes at half and twice their size, means over windows, and the join of two scales, in double precision.
// Counterparts of vnlem.estimate.scales with identical bits: every product and every sum is rounded separately, in
// the same order. Planes are mirrored at their borders.

struct Rows {
    const double* planes; // (count, rows, columns); if `across` is 1, read columns for rows
    const double* taps;
    const int* steps;     // of the doubled rows
    double* out;          // (count, out_rows, out_columns)
    int rows, columns, out_rows, out_columns;
    int n_taps;           // also: rows that a mean is taken over
    int across;
};

struct Line {
    const double* first;
    int count, stride; // pixels of the line, and their distance in memory
    int at;            // the pixel to compute
    __device__ double operator[](int i) const { return first[(long long)mirrored(i, count) * stride]; }
};

// Whether this thread computes a pixel; if so, where it goes and the line it comes from.
__device__ __forceinline__ bool begin(const Rows& r, Line& line, double*& out) {
    const int x = blockIdx.y * blockDim.x + threadIdx.x, y = blockIdx.x;
    if (x >= r.out_columns) return false;
    const double* plane = r.planes + (long long)blockIdx.z * r.rows * r.columns;
    if (r.across)
        line = {plane + (long long)y * r.columns, r.columns, 1, x};
    else
        line = {plane + x, r.rows, r.columns, y};
    out = r.out + ((long long)blockIdx.z * r.out_rows + y) * r.out_columns + x;
    return true;
}

extern "C" __global__ void halve_rows(const Rows r) {
    Line line;
    double* out;
    if (!begin(r, line, out)) return;
    double sum = 0.0;
    for (int k = 0; k < r.n_taps; ++k) {
        const double pair = __dadd_rn(line[2 * line.at - k], line[2 * line.at + 1 + k]);
        sum = __dadd_rn(sum, __dmul_rn(r.taps[k], pair));
    }
    *out = sum;
}

// taps, steps: (2, n_taps), of even rows and of odd ones.
extern "C" __global__ void double_rows(const Rows r) {
    Line line;
    double* out;
    if (!begin(r, line, out)) return;
    const int parity = line.at % 2;
    double sum = 0.0;
    for (int k = parity * r.n_taps; k < (parity + 1) * r.n_taps; ++k)
        sum = __dadd_rn(sum, __dmul_rn(r.taps[k], line[line.at / 2 + r.steps[k]]));
    *out = sum;
}

extern "C" __global__ void mean_of_rows(const Rows r) {
    Line line;
    double* out;
    if (!begin(r, line, out)) return;
    const int first = line.at - r.n_taps / 2;
    double sum = line[first];
    for (int k = 1; k < r.n_taps; ++k) sum = __dadd_rn(sum, line[first + k]);
    *out = __ddiv_rn(sum, (double)r.n_taps);
}

struct Pixels {
    const double* fine;   // (count), all of them
    const double* low;    // what the coarser scale can show of it
    const double* change; // what the coarser scale would change
    double* energy;
    const double* means;  // of the energy
    const double* noise;  // standard deviation of each pixel; null: `level` for all
    double* out;
    double level, detail, left_over;
    long long count;
};

// Energy of the change, and of the detail that the coarser scale cannot show.
extern "C" __global__ void join_energy(const Pixels p) {
    const long long at = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= p.count) return;
    const double detail = __dsub_rn(p.fine[at], p.low[at]);
    const double change = p.change[at];
    p.energy[at] = __dadd_rn(__dmul_rn(change, change), __dmul_rn(p.detail, __dmul_rn(detail, detail)));
}

extern "C" __global__ void join_pixels(const Pixels p) {
    const long long at = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= p.count) return;
    const double noise = p.noise ? p.noise[at] : p.level;
    const double doubt = __dmul_rn(p.left_over, __dmul_rn(noise, noise));
    const double share = __ddiv_rn(__dmul_rn(p.change[at], doubt), __dadd_rn(__dadd_rn(p.means[at], doubt), 1e-300));
    p.out[at] = __dadd_rn(p.fine[at], share);
}
