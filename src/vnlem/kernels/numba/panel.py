"""The dense inner loops of the ridge algebra and the patch graph, written in vector instructions.

A panel is some rows by 32, 16 or 8 columns of a product of matrices held in registers while the inner
dimension runs. Plain loops reach a third of its speed: the compiler cannot know that the operands do not
overlap. `correlations` has those of matching.
"""

from llvmlite import binding, ir
from numba import config, types
from numba.core import cgutils
from numba.extending import intrinsic

from vnlem.kernels.numba.lengths import COLUMNS, FEW_ROWS, HALF


def _has(feature):
    """Whether Numba compiles for a processor with a feature: it can be told not to use this one's."""
    if config.CPU_FEATURES is not None:
        return f"+{feature}" in config.CPU_FEATURES.split(",")
    try:
        allowed = config.CPU_NAME != "generic" and config.ENABLE_AVX
        return bool(allowed and binding.get_host_cpu_features().get(feature))
    except RuntimeError:  # LLVM cannot tell on every system
        return False


# A processor needs about eight sums under way to begin two multiply-adds in every cycle. Few rows of 16
# columns are eight vectors where a vector holds 8 numbers, and only four where it holds 16.
LONG_VECTORS = _has("avx512f")
ROWS = 8 if LONG_VECTORS else FEW_ROWS
WIDE = 32 if LONG_VECTORS else COLUMNS  # as many columns as the registers hold


class VectorCode:
    """Code for vectors of some float32 lanes."""

    def __init__(self, context, builder, sig, args, lanes):
        self.context, self.builder, self.sig, self.args = context, builder, sig, args
        self.word = context.get_value_type(types.intp)
        self.vector = ir.VectorType(ir.FloatType(), lanes)
        self.zeros = ir.Constant(self.vector, [0.0] * lanes)
        self.firsts = ir.Constant(ir.VectorType(ir.IntType(32), lanes), [0] * lanes)

    def whole(self, value):
        return ir.Constant(self.word, value)

    def data_of(self, position):
        array = self.context.make_array(self.sig.args[position])
        return array(self.context, self.builder, self.args[position]).data

    def at(self, data, index):
        return self.builder.bitcast(self.builder.gep(data, [index]), self.vector.as_pointer())

    def load(self, data, index):
        return self.builder.load(self.at(data, index), align=4)

    def spread(self, value):
        undefined = ir.Constant(self.vector, ir.Undefined)
        first = self.builder.insert_element(undefined, value, self.whole(0))
        return self.builder.shuffle_vector(first, undefined, self.firsts)

    def multiply_add(self, a, b, c):
        fused = ("contract",)  # a product and its sum become one instruction
        return self.builder.fadd(self.builder.fmul(a, b, flags=fused), c, flags=fused)

    def sums(self, rows):
        """One vector of zeros for every row."""
        slots = [cgutils.alloca_once(self.builder, self.vector) for _ in range(rows)]
        for slot in slots:
            self.builder.store(self.zeros, slot)
        return slots

    def add(self, slot, factor, values):
        product = self.multiply_add(self.spread(factor), values, self.builder.load(slot))
        self.builder.store(product, slot)


def _product(lanes, sig, args):
    """Sums of a panel of a product: one vector for every row. args: those of `set_panel`."""
    context, builder = lanes.context, lanes.builder
    packed, right_at = args[3], args[5]
    left_array, left_at, left_step, left_along = cgutils.unpack_tuple(builder, packed, 4)
    left_data = context.make_array(sig.args[3][0])(context, builder, left_array).data
    right_data, offset_data = map(lanes.data_of, (4, 6))
    table = context.make_array(sig.args[6])(context, builder, args[6])
    (depth,) = cgutils.unpack_tuple(builder, table.shape, 1)
    sums = lanes.sums(ROWS)
    starts = [builder.add(left_at, builder.mul(lanes.whole(a), left_step)) for a in range(ROWS)]
    with cgutils.for_range(builder, depth, intp=lanes.word) as loop:
        offset = builder.load(builder.gep(offset_data, [loop.index]))
        values = lanes.load(right_data, builder.add(right_at, offset))
        along = builder.mul(loop.index, left_along)
        for start, slot in zip(starts, sums, strict=True):
            factor = builder.load(builder.gep(left_data, [builder.add(start, along)]))
            lanes.add(slot, factor, values)
    return [builder.load(slot) for slot in sums]


def panel_rows(lanes, args):
    """Where the rows of a panel lie in `out`; args: as above."""
    builder = lanes.builder
    starts = (builder.add(args[1], builder.mul(lanes.whole(a), args[2])) for a in range(ROWS))
    return [lanes.at(lanes.data_of(0), start) for start in starts]


def _make_set_panel(columns):
    @intrinsic
    def set_panel(typing_context, out, out_at, out_step, left, right, right_at, offsets):
        """A panel of a product; left: `Left`.

        out[out_at + a out_step + x] =
            sum_i left.data[left.at + a left.step + i left.along] right[right_at + offsets[i] + x]
        for a < ROWS, x < columns and i < len(offsets). out, left.data, right: C-contiguous float32 arrays of
        any shape, indexed as flat memory; offsets: one-dimensional intp. Nothing is checked.
        """
        word = types.intp
        signature = types.void(out, word, word, left, right, word, offsets)

        def generate(context, builder, sig, args):
            lanes = VectorCode(context, builder, sig, args, columns)
            sums = _product(lanes, sig, args)
            for total, at in zip(sums, panel_rows(lanes, args), strict=True):
                builder.store(total, at, align=4)
            return context.get_dummy_value()

        return signature, generate

    return set_panel


def _make_add_panel(columns):
    @intrinsic
    def add_panel(typing_context, out, out_at, out_step, left, right, right_at, offsets, sign):
        """As `set_panel`, but `sign` times the panel is added to `out`."""
        word = types.intp
        signature = types.void(out, word, word, left, right, word, offsets, types.float32)

        def generate(context, builder, sig, args):
            lanes = VectorCode(context, builder, sig, args, columns)
            sums = _product(lanes, sig, args)
            signs = lanes.spread(args[7])
            for total, at in zip(sums, panel_rows(lanes, args), strict=True):
                builder.store(lanes.multiply_add(signs, total, builder.load(at, align=4)), at, align=4)
            return context.get_dummy_value()

        return signature, generate

    return add_panel


set_panel, set_wide_panel, set_half_panel = map(_make_set_panel, (COLUMNS, WIDE, HALF))
add_panel, add_wide_panel, add_half_panel = map(_make_add_panel, (COLUMNS, WIDE, HALF))


def _make_window_panel(rows, columns):
    @intrinsic
    def window_panel(typing_context, out, out_at, weights, vectors, first, dim, row_step, side):
        """Weighted sums of vectors over the windows of pixels side by side, a panel of each.

        out[out_at + a dim + x] =
            sum_{r, c < side} weights[(r side + c) rows + a] vectors[first + r row_step + (a + c) dim + x]
        for a < rows and x < columns, side >= rows - 1: every vector is loaded once for all windows that
        hold it.
        """
        word = types.intp
        signature = types.void(out, word, weights, vectors, word, word, word, word)

        def generate(context, builder, sig, args):
            lanes = VectorCode(context, builder, sig, args, columns)
            _, out_at, _, _, first, dim, row_step, side = args
            out_data, weight_data, vector_data = map(lanes.data_of, (0, 2, 3))
            sums = lanes.sums(rows)
            with cgutils.for_range(builder, side, intp=lanes.word) as row:
                row_weights = builder.mul(builder.mul(row.index, side), lanes.whole(rows))
                row_vectors = builder.add(first, builder.mul(row.index, row_step))

                def column(j, pixels):
                    values = lanes.load(vector_data, builder.add(row_vectors, builder.mul(j, dim)))
                    start = builder.add(row_weights, builder.mul(j, lanes.whole(rows)))
                    for a in pixels:
                        # Column j of the row is column j - a of pixel a's window.
                        at = builder.add(start, lanes.whole(a - a * rows))
                        lanes.add(sums[a], builder.load(builder.gep(weight_data, [at])), values)

                for j in range(rows - 1):
                    column(lanes.whole(j), range(j + 1))
                one = lanes.whole(1)
                with cgutils.for_range_slice(builder, lanes.whole(rows - 1), side, one, intp=lanes.word) as (
                    j,
                    _,
                ):
                    column(j, range(rows))
                for j in range(rows - 1):
                    column(builder.add(side, lanes.whole(j)), range(j + 1, rows))
            for a, slot in enumerate(sums):
                at = lanes.at(out_data, builder.add(out_at, builder.mul(lanes.whole(a), dim)))
                builder.store(builder.load(slot), at, align=4)
            return context.get_dummy_value()

        return signature, generate

    return window_panel


window_panel = _make_window_panel(ROWS, COLUMNS)
half_window_panel = _make_window_panel(ROWS, HALF)
small_window_panel = _make_window_panel(FEW_ROWS, COLUMNS)
half_small_window_panel = _make_window_panel(FEW_ROWS, HALF)


def _make_copy(count):
    @intrinsic
    def copy_group(typing_context, out, out_at, source, source_at):
        """out[out_at + a] = source[source_at + a] for a < count, as one vector; otherwise as `set_panel`."""
        signature = types.void(out, types.intp, source, types.intp)

        def generate(context, builder, sig, args):
            lanes = VectorCode(context, builder, sig, args, count)
            values = lanes.load(lanes.data_of(2), args[3])
            builder.store(values, lanes.at(lanes.data_of(0), args[1]), align=4)
            return context.get_dummy_value()

        return signature, generate

    return copy_group


copy_group = _make_copy(ROWS)
copy_small_group = _make_copy(FEW_ROWS)
