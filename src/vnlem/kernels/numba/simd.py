"""Eight float32 numbers as one value in a kernel, for loops that LLVM does not vectorise by itself.

LLVM turns a long loop over contiguous numbers into vector code, but not a sum over eight columns of a table,
or a product whose rows are read once and used for several sums. Such kernels say what they mean:
`load(row, k)` is row[k : k + 8], `plus`, `minus` and `times` work lane by lane, `total(v)` adds the lanes. On
machines with shorter vectors LLVM splits the eight; nothing here depends on the processor.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, register_model

from vnlem.kernels.numba.lengths import LANES

_FLOAT = ir.FloatType()
_VECTOR = ir.VectorType(_FLOAT, LANES)
_INDICES = ir.VectorType(ir.IntType(32), LANES)
# As jit.py: a product and a sum may become one instruction, sums may be reordered.
FLAGS = ("reassoc", "contract", "nsz", "arcp")


class Lanes(types.Type):
    """Numba's name for the type."""

    def __init__(self) -> None:
        super().__init__(name="float32x8")


lanes = Lanes()


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, fe_type: Any) -> None:
        super().__init__(manager, fe_type, _VECTOR)


def _address(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """Pointer to array[k] as one of eight numbers. The array is one-dimensional and contiguous."""
    array = context.make_array(signature.args[0])(context, builder, args[0])
    item = builder.gep(array.data, [args[1]])
    return builder.bitcast(item, _VECTOR.as_pointer())


def is_row(array: Any) -> bool:
    return isinstance(array, types.Array) and array.ndim == 1 and array.layout == "C"


@intrinsic
def load(typingctx, array, k):
    """array[k : k + 8]; no bounds are checked."""
    if not (is_row(array) and array.dtype == types.float32):
        return None

    def codegen(context, builder, signature, args):
        return builder.load(_address(context, builder, signature, args), align=4)

    return lanes(array, types.intp), codegen


@intrinsic
def store(typingctx, array, k, value):
    """array[k : k + 8] = value; no bounds are checked."""
    if not (is_row(array) and array.dtype == types.float32):
        return None

    def codegen(context, builder, signature, args):
        builder.store(args[2], _address(context, builder, signature, args), align=4)
        return context.get_dummy_value()

    return types.void(array, types.intp, lanes), codegen


def _spread(builder: Any, number: Any) -> Any:
    first = ir.Constant(ir.IntType(32), 0)
    one = builder.insert_element(ir.Constant(_VECTOR, ir.Undefined), number, first)
    return builder.shuffle_vector(one, one, ir.Constant(_INDICES, [0] * LANES))


@intrinsic
def spread(typingctx, number):
    """Eight times the same number."""

    def codegen(context, builder, signature, args):
        return _spread(builder, args[0])

    return lanes(types.float32), codegen


@intrinsic
def item(typingctx, array, k):
    """array[k], which is not negative: indexing would also allow for counting from the end."""
    if not (is_row(array) and array.dtype == types.float32):
        return None

    def codegen(context, builder, signature, args):
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        return builder.load(builder.gep(data, [args[1]]))

    return types.float32(array, types.intp), codegen


def _lane_by_lane(name: str, meaning: str) -> Any:
    """A function of two vectors: the builder's instruction of that name."""

    def function(typingctx, a, b):
        if not (a is lanes and b is lanes):
            return None

        def codegen(context, builder, signature, args):
            return getattr(builder, name)(*args, flags=FLAGS)

        return lanes(lanes, lanes), codegen

    function.__doc__ = meaning
    return intrinsic(function)


plus = _lane_by_lane("fadd", "a + b, lane by lane.")
minus = _lane_by_lane("fsub", "a - b, lane by lane.")
times = _lane_by_lane("fmul", "a b, lane by lane.")


@intrinsic
def multiply_add(typingctx, a, b, c):
    """a b + c, lane by lane."""
    if not (a is lanes and b is lanes and c is lanes):
        return None

    def codegen(context, builder, signature, args):
        return builder.fadd(args[2], builder.fmul(*args[:2], flags=FLAGS), flags=FLAGS)

    return lanes(lanes, lanes, lanes), codegen


def _llvm(builder: Any, name: str, returns: Any, args: Any) -> Any:
    """Call one of LLVM's own functions."""
    kind = ir.FunctionType(returns, [arg.type for arg in args])
    function = cgutils.get_or_insert_function(builder.module, kind, name)
    return builder.call(function, args, fastmath=FLAGS)


@intrinsic
def total(typingctx, vector):
    """Sum of the lanes."""

    def codegen(context, builder, signature, args):
        return _llvm(builder, "llvm.vector.reduce.fadd.v8f32", _FLOAT, [ir.Constant(_FLOAT, -0.0), args[0]])

    return types.float32(lanes), codegen


def _add_neighbours(builder: Any, a: Any, b: Any) -> Any:
    """Sums of neighbouring lanes, of a and b in turn within each half."""
    even, odd = (
        builder.shuffle_vector(a, b, ir.Constant(_INDICES, [k + first for k in (0, 2, 8, 10, 4, 6, 12, 14)]))
        for first in (0, 1)
    )
    return builder.fadd(even, odd, flags=FLAGS)


@intrinsic
def totals(typingctx, a, b, c, d, e, f, g, h):
    """Sums of the lanes of eight vectors, as one vector: cheaper than eight times `total`."""

    def codegen(context, builder, signature, args):
        pairs = [_add_neighbours(builder, *args[k : k + 2]) for k in range(0, 8, 2)]
        first, last = (_add_neighbours(builder, *pairs[k : k + 2]) for k in (0, 2))
        lower, upper = (
            builder.shuffle_vector(
                first, last, ir.Constant(_INDICES, [k + shift for k in (0, 1, 2, 3, 8, 9, 10, 11)])
            )
            for shift in (0, 4)
        )
        return builder.fadd(lower, upper, flags=FLAGS)

    return lanes(*[lanes] * 8), codegen


@intrinsic
def lane(typingctx, vector, k):
    """Eight times the number of lane k."""

    def codegen(context, builder, signature, args):
        return _spread(builder, builder.extract_element(*args))

    return lanes(lanes, types.intp), codegen


@intrinsic
def larger(typingctx, a, b):
    """The larger of each two lanes."""

    def codegen(context, builder, signature, args):
        return builder.select(builder.fcmp_ordered(">", *args), *args)

    return lanes(lanes, lanes), codegen


@intrinsic
def where_larger(typingctx, a, b, x, y):
    """x in lanes where a is larger than b, y in the others."""

    def codegen(context, builder, signature, args):
        return builder.select(builder.fcmp_ordered(">", *args[:2]), *args[2:])

    return lanes(lanes, lanes, lanes, lanes), codegen


@intrinsic
def magnitude(typingctx, vector):
    """Absolute values."""

    def codegen(context, builder, signature, args):
        return _llvm(builder, "llvm.fabs.v8f32", _VECTOR, [args[0]])

    return lanes(lanes), codegen


@intrinsic
def add_pair(typingctx, array, k, first, second, number):
    """array[k] += first * number, array[k + 1] += second * number, as one load and one store."""
    if not (is_row(array) and array.dtype == types.float32):
        return None

    def codegen(context, builder, signature, args):
        pair = ir.VectorType(_FLOAT, 2)
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        place = builder.bitcast(builder.gep(data, [args[1]]), pair.as_pointer())

        def both(a, b):
            one = builder.insert_element(ir.Constant(pair, ir.Undefined), a, ir.Constant(ir.IntType(32), 0))
            return builder.insert_element(one, b, ir.Constant(ir.IntType(32), 1))

        product = builder.fmul(both(args[2], args[3]), both(args[4], args[4]), flags=FLAGS)
        builder.store(builder.fadd(builder.load(place, align=4), product, flags=FLAGS), place, align=4)
        return context.get_dummy_value()

    number_type = types.float32
    return types.void(array, types.intp, number_type, number_type, number_type), codegen


@intrinsic
def add_pairs(typingctx, array, k, first, second, numbers, j):
    """array[k + 2 i] += first * numbers[j + i], array[k + 2 i + 1] += second * numbers[j + i] for i < 8."""
    for row in (array, numbers):
        if not (is_row(row) and row.dtype == types.float32):
            return None

    def codegen(context, builder, signature, args):
        wide = ir.VectorType(_FLOAT, 2 * LANES)

        def mixed(a, b, order):
            return builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(ir.IntType(32), 2 * LANES), order))

        source = context.make_array(signature.args[4])(context, builder, args[4]).data
        place = builder.bitcast(builder.gep(source, [args[5]]), _VECTOR.as_pointer())
        values = builder.load(place, align=4)
        twice = mixed(values, values, [i // 2 for i in range(2 * LANES)])
        pair = mixed(
            _spread(builder, args[2]), _spread(builder, args[3]), [LANES * (i % 2) for i in range(2 * LANES)]
        )
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        target = builder.bitcast(builder.gep(data, [args[1]]), wide.as_pointer())
        product = builder.fmul(pair, twice, flags=FLAGS)
        builder.store(builder.fadd(builder.load(target, align=4), product, flags=FLAGS), target, align=4)
        return context.get_dummy_value()

    word, number = types.intp, types.float32
    return types.void(array, word, number, number, numbers, word), codegen
