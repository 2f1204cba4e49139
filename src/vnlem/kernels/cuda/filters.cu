// Correlation of planes with a few taps along one axis, in double precision; planes are mirrored at their borders.
// Every pixel is summed in the same order, wherever it lies in the array.

struct Lines {
    const double* planes; // (count, height, width)
    const double* taps;   // (2 half + 1)
    double* out;          // (count, height, width)
    int height, width, half, along; // along: 0 down the columns, 1 along the rows
};

extern "C" __global__ void correlate_lines(const Lines l) {
    const int x = blockIdx.y * blockDim.x + threadIdx.x, y = blockIdx.x;
    if (x >= l.width) return;
    const double* plane = l.planes + (long long)blockIdx.z * l.height * l.width;
    double sum = 0.0;
    for (int i = -l.half; i <= l.half; ++i) {
        const int row = l.along ? y : mirrored(y + i, l.height), column = l.along ? mirrored(x + i, l.width) : x;
        sum += l.taps[l.half + i] * plane[(long long)row * l.width + column];
    }
    l.out[((long long)blockIdx.z * l.height + y) * l.width + x] = sum;
}
