"""Sixteen numbers compared at once, the answer as bits: for loops that look for the few that matter.

LLVM does not vectorise a loop that leaves early or writes only some of its results. On machines with shorter
vectors it splits the sixteen; nothing here depends on the processor.
"""

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from vnlem.kernels.numba.lengths import BLOCK
from vnlem.kernels.numba.simd import FLAGS, is_row

_VECTOR = ir.VectorType(ir.FloatType(), BLOCK)


def _load(context, builder, kind, array, k):
    data = context.make_array(kind)(context, builder, array).data
    place = builder.bitcast(builder.gep(data, [k]), _VECTOR.as_pointer())
    return builder.load(place, align=4)


def _spread(builder, number):
    first = ir.Constant(ir.IntType(32), 0)
    one = builder.insert_element(ir.Constant(_VECTOR, ir.Undefined), number, first)
    order = ir.Constant(ir.VectorType(ir.IntType(32), BLOCK), [0] * BLOCK)
    return builder.shuffle_vector(one, one, order)


def _as_bits(builder, comparison):
    return builder.zext(builder.bitcast(comparison, ir.IntType(BLOCK)), ir.IntType(64))


@intrinsic
def bits_up_to(typingctx, array, k, limit):
    """Bit i is set where array[k + i] is at most the limit, i < 16; no bounds are checked."""
    if not (is_row(array) and array.dtype == types.float32):
        return None

    def codegen(context, builder, signature, args):
        values = _load(context, builder, signature.args[0], args[0], args[1])
        return _as_bits(builder, builder.fcmp_ordered("<=", values, _spread(builder, args[2])))

    return types.int64(array, types.intp, types.float32), codegen


@intrinsic
def bits_near(typingctx, a, b, k, own_a, own_b, limit):
    """Bit i is set where (a[k + i] - own_a)^2 + (b[k + i] - own_b)^2 is below the limit, i < 16."""
    if not (is_row(a) and is_row(b) and a.dtype == b.dtype == types.float32):
        return None

    def codegen(context, builder, signature, args):
        squares = []
        for position, own in ((0, args[3]), (1, args[4])):
            values = _load(context, builder, signature.args[position], args[position], args[2])
            difference = builder.fsub(values, _spread(builder, own), flags=FLAGS)
            squares.append(builder.fmul(difference, difference, flags=FLAGS))
        distance = builder.fadd(*squares, flags=FLAGS)
        return _as_bits(builder, builder.fcmp_ordered("<", distance, _spread(builder, args[5])))

    number = types.float32
    return types.int64(a, b, types.intp, number, number, number), codegen


@intrinsic
def first_bit(typingctx, bits):
    """The number of the lowest bit that is set; there is one."""

    def codegen(context, builder, signature, args):
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.int64), codegen


@intrinsic
def store_places(typingctx, array, k, first, places):
    """array[k + i] = first + (places >> 4 i & 15) for i < 8; array: whole numbers. No bounds are checked."""
    if not (is_row(array) and isinstance(array.dtype, types.Integer)):
        return None

    def codegen(context, builder, signature, args):
        item = context.get_data_type(signature.args[0].dtype)
        wide = ir.VectorType(ir.IntType(64), 8)

        def spread(number):
            one = builder.insert_element(
                ir.Constant(wide, ir.Undefined), number, ir.Constant(ir.IntType(32), 0)
            )
            return builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(ir.IntType(32), 8), [0] * 8))

        shifted = builder.lshr(spread(args[3]), ir.Constant(wide, [4 * i for i in range(8)]))
        numbers = builder.add(spread(args[2]), builder.and_(shifted, ir.Constant(wide, [15] * 8)))
        vector = ir.VectorType(item, 8)
        if item != ir.IntType(64):
            numbers = builder.trunc(numbers, vector)
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        place = builder.bitcast(builder.gep(data, [args[1]]), vector.as_pointer())
        builder.store(numbers, place, align=signature.args[0].dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(array, types.intp, types.int64, types.int64), codegen
