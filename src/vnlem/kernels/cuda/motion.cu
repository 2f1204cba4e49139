// How blocks move from frame to frame, and the windows that follow them. Counterpart of
// kernels/cpu/motion.cpp and vnlem.neighbours.motion.
// Macros: CELL (pixels between blocks), HALF (half the side of a block), LONGEST (shift), THREADS.

#define SIDE (2 * HALF)
#define AREA (SIDE + 2 * LONGEST)
#define SHIFTS (2 * LONGEST + 1)

struct Smoothing {
    const float* frame; // (height, stride)
    float* out;         // (height, width)
    int height, width, stride;
};

// The mean of three rows.
__device__ __forceinline__ float mean_of_rows(const Smoothing& s, int y, int x) {
    double sum = 0.0;
    for (int row = -1; row <= 1; ++row) sum += s.frame[mirrored(y + row, s.height) * s.stride + x];
    return (float)(sum / 3.0);
}

// Means of 3 x 3 pixels; the frame is mirrored at its border.
extern "C" __global__ void smooth_frame(const Smoothing s) {
    const int x = blockIdx.y * blockDim.x + threadIdx.x, y = blockIdx.x;
    if (x >= s.width) return;
    double sum = 0.0;
    for (int column = -1; column <= 1; ++column) sum += mean_of_rows(s, y, mirrored(x + column, s.width));
    s.out[y * s.width + x] = (float)(sum / 3.0);
}

struct Blocks {
    const float* before; // (height, width)
    const float* after;
    int* onward; // (rows, columns, 2): shift of each block from `before` to `after`
    int* back;   // and the other way
    int height, width;
    float cost; // of a pixel of shift
};

// The shift of least squared difference, a thread block for each block of pixels and each direction. Ties go to
// the first in reading order.
extern "C" __global__ void __launch_bounds__(THREADS) block_motion(const Blocks b) {
    __shared__ float own[SIDE * SIDE];
    __shared__ float area[AREA * AREA];
    __shared__ wide best_of_warp[32];
    const float* here = blockIdx.z ? b.after : b.before;
    const float* there = blockIdx.z ? b.before : b.after;
    const int top = max(0, (int)blockIdx.x * CELL + CELL / 2 - HALF);
    const int bottom = min(b.height, (int)blockIdx.x * CELL + CELL / 2 + HALF);
    const int left = max(0, (int)blockIdx.y * CELL + CELL / 2 - HALF);
    const int right = min(b.width, (int)blockIdx.y * CELL + CELL / 2 + HALF);
    const int rows = bottom - top, columns = right - left;
    for (int i = threadIdx.x; i < rows * columns; i += THREADS)
        own[i] = here[(top + i / columns) * b.width + left + i % columns];
    for (int i = threadIdx.x; i < AREA * AREA; i += THREADS) {
        const int y = top - LONGEST + i / AREA, x = left - LONGEST + i % AREA;
        area[i] = 0 <= y && y < b.height && 0 <= x && x < b.width ? there[y * b.width + x] : 0.0f;
    }
    __syncthreads();
    wide best = ~0ULL;
    for (int shift = threadIdx.x; shift < SHIFTS * SHIFTS; shift += THREADS) {
        const int dy = shift / SHIFTS - LONGEST, dx = shift % SHIFTS - LONGEST;
        if (top + dy < 0 || bottom + dy > b.height || left + dx < 0 || right + dx > b.width) continue;
        float total = b.cost * (float)(abs(dy) + abs(dx));
        for (int y = 0; y < rows; ++y) {
            float part = 0.0f;
            for (int x = 0; x < columns; ++x) {
                const float d = own[y * columns + x] - area[(y + dy + LONGEST) * AREA + x + dx + LONGEST];
                part = fmaf(d, d, part);
            }
            total += part;
        }
        // Bits of non-negative numbers sort like the numbers.
        const wide found = (wide)__float_as_uint(total) << 32 | (unsigned)shift;
        best = min(best, found);
    }
    for (int step = 16; step > 0; step >>= 1) best = min(best, __shfl_xor_sync(0xFFFFFFFFu, best, step));
    if (threadIdx.x % 32 == 0) best_of_warp[threadIdx.x / 32] = best;
    __syncthreads();
    if (threadIdx.x > 0) return;
    for (int w = 1; w < THREADS / 32; ++w) best = min(best, best_of_warp[w]);
    const int shift = (int)(best & 0xFFFFFFFFu);
    int* to = (blockIdx.z ? b.back : b.onward) + 2 * (blockIdx.x * gridDim.y + blockIdx.y);
    to[0] = shift / SHIFTS - LONGEST;
    to[1] = shift % SHIFTS - LONGEST;
}

struct Following {
    const int* onward; // (pairs of planes, cell_rows, cell_columns, 2); null if nothing moves
    const int* back;
    const int* reference_rows;
    const int* reference_columns;
    int* centres; // (references, n_planes, 3): plane, row and column, the references' own plane first
    int n_references, n_reference_columns, plane, n_planes, cell_rows, cell_columns, middle;
};

__device__ __forceinline__ void follow_to(const Following& f, const int* moves, int pair, int& row, int& column) {
    if (!moves) return;
    const int y = min(max((row + f.middle) / CELL, 0), f.cell_rows - 1);
    const int x = min(max((column + f.middle) / CELL, 0), f.cell_columns - 1);
    const int* move = moves + 2 * ((pair * f.cell_rows + y) * f.cell_columns + x);
    row += move[0];
    column += move[1];
}

// The windows of each reference in all planes.
extern "C" __global__ void follow(const Following f) {
    const int reference = blockIdx.x * blockDim.x + threadIdx.x;
    if (reference >= f.n_references) return;
    const int own_row = f.reference_rows[reference / f.n_reference_columns];
    const int own_column = f.reference_columns[reference % f.n_reference_columns];
    int* centres = f.centres + (long long)reference * f.n_planes * 3;
    const auto note = [&](int at, int plane, int row, int column) {
        centres[3 * at] = plane;
        centres[3 * at + 1] = row;
        centres[3 * at + 2] = column;
    };
    note(0, f.plane, own_row, own_column);
    int row = own_row, column = own_column;
    for (int here = f.plane; here < f.n_planes - 1; ++here) {
        follow_to(f, f.onward, here, row, column);
        note(here + 1, here + 1, row, column);
    }
    row = own_row;
    column = own_column;
    for (int here = f.plane; here > 0; --here) {
        follow_to(f, f.back, here - 1, row, column);
        note(here, here - 1, row, column);
    }
}
