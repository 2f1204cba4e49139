"""Eight float32 numbers as one value in a kernel, for loops that LLVM does not vectorise by itself.

LLVM turns a long loop over contiguous numbers into vector code, but not a sum over eight columns of a table,
or a product whose rows are read once and used for several sums. Such kernels say what they mean:
`load(row, k)` is row[k : k + 8], `+`, `-` and `*` work lane by lane, and `total(v)` adds the lanes. On
machines with shorter vectors LLVM splits the eight; nothing here depends on the processor.
"""

import operator
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.datamodel import models
from numba.extending import intrinsic, lower_builtin, register_model, type_callable

LANES = 8
_FLOAT = ir.FloatType()
_VECTOR = ir.VectorType(_FLOAT, LANES)
_INDICES = ir.VectorType(ir.IntType(32), LANES)
# As jit.py: a product and a sum may become one instruction, sums may be reordered.
_FLAGS = ("reassoc", "contract", "nsz", "arcp")


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


def _is_row(array: Any) -> bool:
    return isinstance(array, types.Array) and array.ndim == 1 and array.layout == "C"


@intrinsic
def load(typingctx, array, k):
    """array[k : k + 8]; no bounds are checked."""
    if not (_is_row(array) and array.dtype == types.float32):
        return None

    def codegen(context, builder, signature, args):
        return builder.load(_address(context, builder, signature, args), align=4)

    return lanes(array, types.intp), codegen


@intrinsic
def store(typingctx, array, k, value):
    """array[k : k + 8] = value; no bounds are checked."""
    if not (_is_row(array) and array.dtype == types.float32):
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
    if not (_is_row(array) and array.dtype == types.float32):
        return None

    def codegen(context, builder, signature, args):
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        return builder.load(builder.gep(data, [args[1]]))

    return types.float32(array, types.intp), codegen


def _lane_by_lane(operators: tuple[Any, ...], name: str) -> None:
    """Give a pair of operators their meaning: the builder's instruction of that name."""

    def both(context):
        return lambda a, b: lanes if a is lanes and b is lanes else None

    def instruction(context, builder, signature, args):
        return getattr(builder, name)(*args, flags=_FLAGS)

    for one in operators:
        type_callable(one)(both)
        lower_builtin(one, lanes, lanes)(instruction)


_lane_by_lane((operator.add, operator.iadd), "fadd")
_lane_by_lane((operator.sub, operator.isub), "fsub")
_lane_by_lane((operator.mul, operator.imul), "fmul")


def _llvm(builder: Any, name: str, returns: Any, args: Any) -> Any:
    """Call one of LLVM's own functions."""
    kind = ir.FunctionType(returns, [arg.type for arg in args])
    function = cgutils.get_or_insert_function(builder.module, kind, name)
    return builder.call(function, args, fastmath=_FLAGS)


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
    return builder.fadd(even, odd, flags=_FLAGS)


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
        return builder.fadd(lower, upper, flags=_FLAGS)

    return lanes(*[lanes] * 8), codegen


@intrinsic
def transpose(typingctx, source, at, step, target, to, target_step):
    """target[to + b target_step + a] = source[at + a step + b] for a, b < 8."""
    if not (_is_row(source) and _is_row(target) and source.dtype == target.dtype == types.float32):
        return None

    def codegen(context, builder, signature, args):
        _, at, step, _, to, target_step = args
        word = at.type

        def row(position, first, stride, a):
            data = context.make_array(signature.args[position])(context, builder, args[position]).data
            index = builder.add(first, builder.mul(ir.Constant(word, a), stride))
            return builder.bitcast(builder.gep(data, [index]), _VECTOR.as_pointer())

        def mix(a, b, order):
            return builder.shuffle_vector(a, b, ir.Constant(_INDICES, order))

        rows = [builder.load(row(0, at, step, a), align=4) for a in range(LANES)]
        # Blocks of one, then of two, then of four change places with those across the diagonal.
        for size in (1, 2, 4):
            low = [k if not k & size else k - size + LANES for k in range(LANES)]
            high = [k + size if not k & size else k + LANES for k in range(LANES)]
            mixed = list(rows)
            for a in range(LANES):
                if not a & size:
                    mixed[a] = mix(rows[a], rows[a + size], low)
                    mixed[a + size] = mix(rows[a], rows[a + size], high)
            rows = mixed
        for b in range(LANES):
            builder.store(rows[b], row(3, to, target_step, b), align=4)
        return context.get_dummy_value()

    word = types.intp
    return types.void(source, word, word, target, word, word), codegen


@intrinsic
def invert_square(typingctx, square):
    """Invert 8 x 8 numbers, row after row, in place, all in registers; no pivoting."""
    if not (_is_row(square) and square.dtype == types.float32):
        return None

    def codegen(context, builder, signature, args):
        whole = ir.IntType(64)
        places = [
            _address(context, builder, signature, (args[0], ir.Constant(whole, LANES * a)))
            for a in range(LANES)
        ]
        rows = [builder.load(place, align=4) for place in places]
        zeros, ones = (ir.Constant(_VECTOR, [value] * LANES) for value in (0.0, 1.0))

        def column(a):
            return ir.Constant(_INDICES, [a] * LANES)

        def with_lane(vector, a, others):
            order = [k + LANES * (k == a) for k in range(LANES)]
            return builder.shuffle_vector(vector, others, ir.Constant(_INDICES, order))

        for a in range(LANES):
            # Column a becomes that of the unit matrix before row a is subtracted.
            factors = [builder.shuffle_vector(row, row, column(a)) for row in rows]
            pivot = builder.fdiv(with_lane(rows[a], a, ones), factors[a])
            for c in range(LANES):
                if c == a:
                    rows[c] = pivot
                    continue
                product = builder.fmul(factors[c], pivot, flags=_FLAGS)
                rows[c] = builder.fsub(with_lane(rows[c], a, zeros), product, flags=_FLAGS)
        for row, place in zip(rows, places, strict=True):
            builder.store(row, place, align=4)
        return context.get_dummy_value()

    return types.void(square), codegen


@intrinsic
def larger(typingctx, a, b):
    """The larger of each two lanes."""

    def codegen(context, builder, signature, args):
        return builder.select(builder.fcmp_ordered(">", *args), *args)

    return lanes(lanes, lanes), codegen


@intrinsic
def largest(typingctx, vector):
    """Largest of the lanes."""

    def codegen(context, builder, signature, args):
        # Halves against each other, three times: LLVM's own reduction looks for NaN at every step.
        best = args[0]
        for step in (4, 2, 1):
            order = [(k + step) % LANES for k in range(LANES)]
            other = builder.shuffle_vector(best, best, ir.Constant(_INDICES, order))
            best = builder.select(builder.fcmp_ordered(">", best, other), best, other)
        return builder.extract_element(best, ir.Constant(ir.IntType(32), 0))

    return types.float32(lanes), codegen


@intrinsic
def magnitude(typingctx, vector):
    """Absolute values."""

    def codegen(context, builder, signature, args):
        return _llvm(builder, "llvm.fabs.v8f32", _VECTOR, [args[0]])

    return lanes(lanes), codegen


@intrinsic
def first_equal(typingctx, vector, number):
    """The first lane that equals a number; 8 where none does."""

    def codegen(context, builder, signature, args):
        many = _spread(builder, args[1])
        equal = builder.fcmp_ordered("==", args[0], many)
        mask = builder.zext(builder.bitcast(equal, ir.IntType(LANES)), ir.IntType(64))
        stop = builder.or_(mask, ir.Constant(ir.IntType(64), 1 << LANES))
        return builder.cttz(stop, ir.Constant(ir.IntType(1), 1))

    return types.int64(lanes, types.float32), codegen


@intrinsic
def lane(typingctx, vector, k):
    """Lane k, below 8."""

    def codegen(context, builder, signature, args):
        return builder.extract_element(args[0], args[1])

    return types.float32(lanes, types.int64), codegen


@intrinsic
def add_pair(typingctx, array, k, first, second, number):
    """array[k] += first * number, array[k + 1] += second * number, as one load and one store."""
    if not (_is_row(array) and array.dtype == types.float32):
        return None

    def codegen(context, builder, signature, args):
        pair = ir.VectorType(_FLOAT, 2)
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        place = builder.bitcast(builder.gep(data, [args[1]]), pair.as_pointer())

        def both(a, b):
            one = builder.insert_element(ir.Constant(pair, ir.Undefined), a, ir.Constant(ir.IntType(32), 0))
            return builder.insert_element(one, b, ir.Constant(ir.IntType(32), 1))

        product = builder.fmul(both(args[2], args[3]), both(args[4], args[4]), flags=_FLAGS)
        builder.store(builder.fadd(builder.load(place, align=4), product, flags=_FLAGS), place, align=4)
        return context.get_dummy_value()

    number_type = types.float32
    return types.void(array, types.intp, number_type, number_type, number_type), codegen
