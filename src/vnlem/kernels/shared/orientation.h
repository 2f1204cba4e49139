// Shared by orientations on the CPU and on a CUDA device.
#ifndef VNLEM_SHARED_ORIENTATION_H
#define VNLEM_SHARED_ORIENTATION_H

[[maybe_unused]] constexpr int kBins = 36;  // of a turn; a multiple of four keeps quarter turns exact
[[maybe_unused]] constexpr double kPi = 3.14159265358979323846;

#endif
