// Squares of an image made smaller or larger: along the rows, then down the columns, by a few taps for every target
// pixel. A thread for each pixel, a block along y for each square. Counterpart of kernels/cpu/copies.cpp.

struct Squares {
    const float* image;  // (rows, columns), the given part of the whole image
    const float* less;   // (rows, columns): what is subtracted from it, or null
    const int* squares;  // (squares, 4): centre pixel in the whole image, row and column in `out`
    const int* bases;    // (side): first source pixel of every target pixel, from the centre pixel
    const float* taps;   // (side, n_taps)
    float* half_way;     // (squares, lines, side): rows that are stretched already
    float* out;          // (.., stride), where the squares are put
    byte* outside;       // likewise: pixels that show nothing of the image; or null
    int rows, columns, height, width, origin_y, origin_x; // the part; the whole; where the part begins in it
    int side, n_taps, lines, stride, squared;             // squared: square what comes out
    float floor, gain;                                    // what comes out is at least floor, times gain
    double factor;                                        // target pixels per source pixel
};

extern "C" __global__ void stretch_rows(const Squares s) {
    const int pixel = blockIdx.x * blockDim.x + threadIdx.x;
    if (pixel >= s.lines * s.side) return;
    const int line = pixel / s.side, column = pixel % s.side;
    const int* square = s.squares + 4 * blockIdx.y;
    int y = mirrored(square[0] + s.bases[0] + line, s.height) - s.origin_y;
    y = min(max(y, 0), s.rows - 1);
    float value = 0.0f;
    for (int m = 0; m < s.n_taps; ++m) {
        int x = mirrored(square[1] + s.bases[column] + m, s.width) - s.origin_x;
        x = min(max(x, 0), s.columns - 1);
        const long long at = (long long)y * s.columns + x;
        value = fmaf(s.taps[column * s.n_taps + m], s.less ? s.image[at] - s.less[at] : s.image[at], value);
    }
    s.half_way[(long long)blockIdx.y * s.lines * s.side + pixel] = value;
}

extern "C" __global__ void stretch_columns(const Squares s) {
    const int pixel = blockIdx.x * blockDim.x + threadIdx.x;
    if (pixel >= s.side * s.side) return;
    const int row = pixel / s.side, column = pixel % s.side;
    const int* square = s.squares + 4 * blockIdx.y;
    const float* from = s.half_way + (long long)blockIdx.y * s.lines * s.side;
    float value = 0.0f;
    for (int m = 0; m < s.n_taps; ++m)
        value = fmaf(s.taps[row * s.n_taps + m], from[(s.bases[row] - s.bases[0] + m) * s.side + column], value);
    const long long to = (long long)(square[2] + row) * s.stride + square[3] + column;
    s.out[to] = s.gain * fmaxf(s.squared ? value * value : value, s.floor);
    if (s.outside) {
        const double centre = 0.5 * (s.side - 1);
        const double y = (row - centre) / s.factor + (square[0] - 0.5);
        const double x = (column - centre) / s.factor + (square[1] - 0.5);
        s.outside[to] = !(0.0 <= y && y <= s.height - 1 && 0.0 <= x && x <= s.width - 1);
    }
}
