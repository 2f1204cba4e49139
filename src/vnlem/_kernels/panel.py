"""The dense inner loops of matching, the ridge algebra and the patch graph, written in vector instructions.

A panel is 4 rows by 16 columns (or 8, where 16 do not divide) of a product of matrices, held in registers
while the inner dimension runs. Plain loops reach a third of its speed: the compiler cannot know that the
operands do not overlap.
"""

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

ROWS = 4
COLUMNS = 16
HALF = 8


class _Lanes:
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

    def sums(self):
        """One vector of zeros for every row."""
        slots = [cgutils.alloca_once(self.builder, self.vector) for _ in range(ROWS)]
        for slot in slots:
            self.builder.store(self.zeros, slot)
        return slots

    def add(self, slot, factor, values):
        product = self.multiply_add(self.spread(factor), values, self.builder.load(slot))
        self.builder.store(product, slot)


def _make_add_panel(columns):
    @intrinsic
    def add_panel(
        typing_context,
        out,
        out_at,
        out_step,
        left,
        left_at,
        left_step,
        left_along,
        right,
        right_at,
        offsets,
        sign,
    ):
        """Add a panel of a product to `out`.

        out[out_at + a out_step + x] +=
            sign sum_i left[left_at + a left_step + i left_along] right[right_at + offsets[i] + x]
        for a < 4, x < columns and i < len(offsets). out, left, right: C-contiguous float32 arrays of any
        shape, indexed as flat memory; offsets: one-dimensional intp. Nothing is checked.
        """
        word = types.intp
        signature = types.void(out, word, word, left, word, word, word, right, word, offsets, types.float32)

        def generate(context, builder, sig, args):
            lanes = _Lanes(context, builder, sig, args, columns)
            _, out_at, out_step, _, left_at, left_step, left_along, _, right_at, _, sign_value = args
            out_data, left_data, right_data, offset_data = map(lanes.data_of, (0, 3, 7, 9))
            table = context.make_array(sig.args[9])(context, builder, args[9])
            (depth,) = cgutils.unpack_tuple(builder, table.shape, 1)
            sums = lanes.sums()
            starts = [builder.add(left_at, builder.mul(lanes.whole(a), left_step)) for a in range(ROWS)]
            with cgutils.for_range(builder, depth, intp=lanes.word) as loop:
                offset = builder.load(builder.gep(offset_data, [loop.index]))
                values = lanes.load(right_data, builder.add(right_at, offset))
                along = builder.mul(loop.index, left_along)
                for start, slot in zip(starts, sums, strict=True):
                    factor = builder.load(builder.gep(left_data, [builder.add(start, along)]))
                    lanes.add(slot, factor, values)
            signs = lanes.spread(sign_value)
            for a, slot in enumerate(sums):
                at = lanes.at(out_data, builder.add(out_at, builder.mul(lanes.whole(a), out_step)))
                total = lanes.multiply_add(signs, builder.load(slot), builder.load(at, align=4))
                builder.store(total, at, align=4)
            return context.get_dummy_value()

        return signature, generate

    return add_panel


add_panel = _make_add_panel(COLUMNS)
add_half_panel = _make_add_panel(HALF)


def _make_window_panel(columns):
    @intrinsic
    def window_panel(typing_context, out, out_at, weights, vectors, first, dim, row_step, side):
        """Weighted sums of vectors over the windows of 4 pixels side by side, a panel of each.

        out[out_at + a dim + x] =
            sum_{r, c < side} weights[(r side + c) 4 + a] vectors[first + r row_step + (a + c) dim + x]
        for a < 4 and x < columns, side > 2: every vector is loaded once for all windows that hold it.
        """
        word = types.intp
        signature = types.void(out, word, weights, vectors, word, word, word, word)

        def generate(context, builder, sig, args):
            lanes = _Lanes(context, builder, sig, args, columns)
            _, out_at, _, _, first, dim, row_step, side = args
            out_data, weight_data, vector_data = map(lanes.data_of, (0, 2, 3))
            sums = lanes.sums()
            with cgutils.for_range(builder, side, intp=lanes.word) as row:
                row_weights = builder.mul(builder.mul(row.index, side), lanes.whole(ROWS))
                row_vectors = builder.add(first, builder.mul(row.index, row_step))

                def column(j, pixels):
                    values = lanes.load(vector_data, builder.add(row_vectors, builder.mul(j, dim)))
                    start = builder.add(row_weights, builder.mul(j, lanes.whole(ROWS)))
                    for a in pixels:
                        # Column j of the row is column j - a of pixel a's window.
                        at = builder.add(start, lanes.whole(a - a * ROWS))
                        lanes.add(sums[a], builder.load(builder.gep(weight_data, [at])), values)

                for j in range(ROWS - 1):
                    column(lanes.whole(j), range(j + 1))
                one = lanes.whole(1)
                with cgutils.for_range_slice(builder, lanes.whole(ROWS - 1), side, one, intp=lanes.word) as (
                    j,
                    _,
                ):
                    column(j, range(ROWS))
                for j in range(ROWS - 1):
                    column(builder.add(side, lanes.whole(j)), range(j + 1, ROWS))
            for a, slot in enumerate(sums):
                at = lanes.at(out_data, builder.add(out_at, builder.mul(lanes.whole(a), dim)))
                builder.store(builder.load(slot), at, align=4)
            return context.get_dummy_value()

        return signature, generate

    return window_panel


window_panel = _make_window_panel(COLUMNS)
half_window_panel = _make_window_panel(HALF)
