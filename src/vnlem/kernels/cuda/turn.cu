// Squares of an image turned by any angle: three shears, each a shift of rows or columns by a few taps. A thread
// for each pixel, a block along y for each square. Counterpart of kernels/cpu/turn.cpp. Macro: TAPS.

struct Squares {
    const float* image;  // (rows, columns), the given part of the whole image
    const float* less;   // (rows, columns): what is subtracted from it, or null
    const int* squares;  // (squares, 4): top and left in the whole image, row and column in `out`
    const byte* quarter; // (turns): turned by 90 degrees before the shears
    const int* bases;    // (turns, 2, side): whole pixels of the first and the second shear
    const float* taps;   // (turns, 2, side, TAPS): the rest
    const double* waves; // (turns, 2): cosine and sine
    const float* before; // (squares, side, side): the result of the previous shear
    float* after;        // (squares, side, side), or null after the last shear
    float* out;          // (.., stride), where the last shear puts the squares
    byte* outside;       // likewise: pixels that show nothing of the image; or null
    int rows, columns, height, width, origin_y, origin_x; // the part; the whole; where the part begins in it
    int side, n_turns, shear, stride, squared;            // shear: 0, 1, 2; squared: square the result
    float floor;                                          // the result is at least this
};

// inside: whether the whole square lies in the given part.
__device__ __forceinline__ float source(const Squares& s, const int* square, bool quarter, bool inside, int row,
                                        int column) {
    const int i = quarter ? column : row, j = quarter ? s.side - 1 - row : column;
    int y = square[0] + i - s.origin_y, x = square[1] + j - s.origin_x;
    if (!inside) {
        y = min(max(mirrored(square[0] + i, s.height) - s.origin_y, 0), s.rows - 1);
        x = min(max(mirrored(square[1] + j, s.width) - s.origin_x, 0), s.columns - 1);
    }
    const long long at = (long long)y * s.columns + x;
    return s.less ? s.image[at] - s.less[at] : s.image[at];
}

extern "C" __global__ void shear(const Squares s) {
    const int pixel = blockIdx.x * blockDim.x + threadIdx.x;
    if (pixel >= s.side * s.side) return;
    const int row = pixel / s.side, column = pixel % s.side, turn = blockIdx.y % s.n_turns;
    const int* square = s.squares + 4 * blockIdx.y;
    // The second shear moves columns.
    const bool down = s.shear == 1;
    const int line = down ? column : row, along = down ? row : column;
    const int table = (2 * turn + (down ? 1 : 0)) * s.side + line;
    const float* before = s.before + (long long)blockIdx.y * s.side * s.side;
    const bool quarter = s.quarter[turn] != 0;
    const int top = square[0] - s.origin_y, left = square[1] - s.origin_x;
    const bool inside = min(top, left) >= 0 && top + s.side <= s.rows && left + s.side <= s.columns;
    float value = 0.0f;
    for (int m = 0; m < TAPS; ++m) {
        const int from = along + m - TAPS / 2 - s.bases[table];
        if (from < 0 || from >= s.side) continue;
        const float pixel = s.shear == 0 ? source(s, square, quarter, inside, row, from)
                                         : before[down ? from * s.side + column : row * s.side + from];
        value = fmaf(s.taps[table * TAPS + m], pixel, value);
    }
    if (s.shear < 2) {
        s.after[(long long)blockIdx.y * s.side * s.side + pixel] = value;
        return;
    }
    const long long to = (long long)(square[2] + row) * s.stride + square[3] + column;
    s.out[to] = fmaxf(s.squared ? value * value : value, s.floor);
    if (s.outside) {
        const double centre = 0.5 * (s.side - 1), c = s.waves[2 * turn], n = s.waves[2 * turn + 1];
        const double v = c * (row - centre) + n * (column - centre) + centre + square[0];
        const double h = -n * (row - centre) + c * (column - centre) + centre + square[1];
        s.outside[to] = !(0.0 <= v && v <= s.height - 1 && 0.0 <= h && h <= s.width - 1);
    }
}
