"""The one dense inner loop of matching and of the ridge algebra, written in vector instructions.

A panel is 4 rows by 16 columns of a product of matrices, held in registers while the inner dimension runs.
Plain loops reach a third of its speed: the compiler cannot know that the operands do not overlap.
"""

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

ROWS = 4
COLUMNS = 16


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
    for a < 4, x < 16 and i < len(offsets). out, left, right: C-contiguous float32 arrays of any shape,
    indexed as flat memory; offsets: one-dimensional intp. Nothing is checked.
    """
    word_type = types.intp
    signature = types.void(
        out,
        word_type,
        word_type,
        left,
        word_type,
        word_type,
        word_type,
        right,
        word_type,
        offsets,
        types.float32,
    )

    def generate(context, builder, sig, args):
        word = context.get_value_type(types.intp)
        vector = ir.VectorType(ir.FloatType(), COLUMNS)
        lanes = ir.Constant(ir.VectorType(ir.IntType(32), COLUMNS), [0] * COLUMNS)
        undefined = ir.Constant(vector, ir.Undefined)
        fused = ("contract",)  # a product and its sum become one instruction

        def data_of(position):
            return context.make_array(sig.args[position])(context, builder, args[position]).data

        def vector_at(data, index):
            return builder.bitcast(builder.gep(data, [index]), vector.as_pointer())

        def spread(value):
            first = builder.insert_element(undefined, value, ir.Constant(word, 0))
            return builder.shuffle_vector(first, undefined, lanes)

        def multiply_add(a, b, c):
            return builder.fadd(builder.fmul(a, b, flags=fused), c, flags=fused)

        _, out_at, out_step, _, left_at, left_step, left_along, _, right_at, _, sign_value = args
        out_data, left_data, right_data, offset_data = data_of(0), data_of(3), data_of(7), data_of(9)
        table = context.make_array(sig.args[9])(context, builder, args[9])
        (depth,) = cgutils.unpack_tuple(builder, table.shape, 1)
        sums = []
        for _ in range(ROWS):
            slot = cgutils.alloca_once(builder, vector)
            builder.store(ir.Constant(vector, [0.0] * COLUMNS), slot)
            sums.append(slot)
        starts = [builder.add(left_at, builder.mul(ir.Constant(word, a), left_step)) for a in range(ROWS)]
        with cgutils.for_range(builder, depth, intp=word) as loop:
            offset = builder.load(builder.gep(offset_data, [loop.index]))
            values = builder.load(vector_at(right_data, builder.add(right_at, offset)), align=4)
            along = builder.mul(loop.index, left_along)
            for start, slot in zip(starts, sums, strict=True):
                factor = builder.load(builder.gep(left_data, [builder.add(start, along)]))
                builder.store(multiply_add(spread(factor), values, builder.load(slot)), slot)
        signs = spread(sign_value)
        for a, slot in enumerate(sums):
            at = vector_at(out_data, builder.add(out_at, builder.mul(ir.Constant(word, a), out_step)))
            builder.store(multiply_add(signs, builder.load(slot), builder.load(at, align=4)), at, align=4)
        return context.get_dummy_value()

    return signature, generate
