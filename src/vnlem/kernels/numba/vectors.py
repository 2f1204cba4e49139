"""The vector instructions that kernels use: LLVM's, or plain loops in their place (see `jit.PLAIN`)."""

from typing import Any

from vnlem.kernels.numba import lengths
from vnlem.kernels.numba.jit import PLAIN

simd: Any
masks: Any
squares: Any
panel: Any
correlations: Any
if PLAIN:
    from vnlem.kernels.numba import loops, panel_loops

    simd = masks = squares = loops
    panel = correlations = panel_loops
else:
    from vnlem.kernels.numba import correlations, masks, panel, simd, squares

LANES, BLOCK, COLUMNS, HALF, FEW_ROWS = (
    lengths.LANES,
    lengths.BLOCK,
    lengths.COLUMNS,
    lengths.HALF,
    lengths.FEW_ROWS,
)
Left = lengths.Left

load, store, spread, item = simd.load, simd.store, simd.spread, simd.item
plus, minus, times, multiply_add = simd.plus, simd.minus, simd.times, simd.multiply_add
total, totals, lane = simd.total, simd.totals, simd.lane
larger, where_larger = simd.larger, simd.where_larger
magnitude = simd.magnitude
add_pair, add_pairs = simd.add_pair, simd.add_pairs

bits_up_to, bits_near, first_bit = masks.bits_up_to, masks.bits_near, masks.first_bit
store_places = masks.store_places

transpose, transpose_from = squares.transpose, squares.transpose_from
invert_square = squares.invert_square

ROWS: int = panel.ROWS
WIDE: int = panel.WIDE
add_panel, add_wide_panel, add_half_panel = panel.add_panel, panel.add_wide_panel, panel.add_half_panel
set_panel, set_wide_panel, set_half_panel = panel.set_panel, panel.set_wide_panel, panel.set_half_panel
correlation_panel = correlations.correlation_panel
largest_correlation_panel = correlations.largest_correlation_panel
symmetric_correlation_panel = correlations.symmetric_correlation_panel
window_panel, half_window_panel = panel.window_panel, panel.half_window_panel
small_window_panel, half_small_window_panel = panel.small_window_panel, panel.half_small_window_panel
copy_group, copy_small_group = panel.copy_group, panel.copy_small_group
