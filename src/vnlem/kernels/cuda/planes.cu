// Sums over patches that span planes of a stack. Counterpart of vnlem.neighbours.patches: in double precision,
// columns first, then planes.

struct Patches {
    const float* image;  // the plane that patches begin in, with all its channels; the others follow
    const float* less;   // what is subtracted from it, or null
    float* squares;      // (height, stride): sums of squares
    float* about_mean;   // likewise, without that of the mean; or null
    int height, width, plane_rows, stride, size, depth, channels; // height, width: of the plane's pixels
};

// Squared norms of all patches that begin in a plane.
extern "C" __global__ void plane_squares(const Patches p) {
    const int x = blockIdx.y * blockDim.x + threadIdx.x, y = blockIdx.x;
    if (x > p.width - p.size || y > p.height - p.size) return;
    double all_squares = 0.0, about_mean = 0.0;
    for (int channel = 0; channel < p.channels; ++channel) {
        double squares = 0.0, total = 0.0;
        for (int plane = 0; plane < p.depth; ++plane) {
            const long long rows = ((long long)plane * p.channels + channel) * p.plane_rows;
            const long long first = (rows + y) * p.stride + x;
            double plane_squares = 0.0, plane_total = 0.0;
            for (int column = 0; column < p.size; ++column) {
                double column_squares = 0.0, column_total = 0.0;
                for (int row = 0; row < p.size; ++row) {
                    const long long at = first + row * p.stride + column;
                    const double v = p.less ? (double)p.image[at] - (double)p.less[at] : (double)p.image[at];
                    column_squares += v * v;
                    column_total += v;
                }
                plane_squares += column_squares;
                plane_total += column_total;
            }
            squares += plane_squares;
            total += plane_total;
        }
        const double rest = squares - total * total / (p.depth * p.size * p.size);
        all_squares += squares;
        about_mean += rest > 0.0 ? rest : 0.0;
    }
    const long long to = (long long)y * p.stride + x;
    p.squares[to] = (float)all_squares;
    if (p.about_mean) p.about_mean[to] = (float)about_mean;
}
