"""Squares of numbers held in registers: 8 x 8 of them transposed, 16 x 16 of them inverted."""

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from vnlem.kernels.numba.lengths import LANES
from vnlem.kernels.numba.simd import FLAGS, is_row

_FLOAT = ir.FloatType()
_VECTOR = ir.VectorType(_FLOAT, LANES)
_INDICES = ir.VectorType(ir.IntType(32), LANES)


def _transposed(builder: Any, rows: list[Any]) -> list[Any]:
    """Blocks of one, then of two, then of four change places with those across the diagonal."""

    def mix(a: Any, b: Any, order: list[int]) -> Any:
        return builder.shuffle_vector(a, b, ir.Constant(_INDICES, order))

    for size in (1, 2, 4):
        low = [k if not k & size else k - size + LANES for k in range(LANES)]
        high = [k + size if not k & size else k + LANES for k in range(LANES)]
        mixed = list(rows)
        for a in range(LANES):
            if not a & size:
                mixed[a] = mix(rows[a], rows[a + size], low)
                mixed[a + size] = mix(rows[a], rows[a + size], high)
        rows = mixed
    return rows


def _places_of_rows(
    context: Any, builder: Any, signature: Any, args: Any, position: int, starts: list[Any]
) -> list[Any]:
    """Pointers to eight numbers each, from `starts` on, in the array at a position of the arguments."""
    data = context.make_array(signature.args[position])(context, builder, args[position]).data
    return [builder.bitcast(builder.gep(data, [start]), _VECTOR.as_pointer()) for start in starts]


def _steps(builder: Any, first: Any, step: Any) -> list[Any]:
    return [builder.add(first, builder.mul(ir.Constant(first.type, a), step)) for a in range(LANES)]


@intrinsic
def transpose(typingctx, source, at, step, target, to, target_step):
    """target[to + b target_step + a] = source[at + a step + b] for a, b < 8."""
    if not (is_row(source) and is_row(target) and source.dtype == target.dtype == types.float32):
        return None

    def codegen(context, builder, signature, args):
        _, at, step, _, to, target_step = args
        sources = _places_of_rows(context, builder, signature, args, 0, _steps(builder, at, step))
        targets = _places_of_rows(context, builder, signature, args, 3, _steps(builder, to, target_step))
        rows = _transposed(builder, [builder.load(place, align=4) for place in sources])
        for row, place in zip(rows, targets, strict=True):
            builder.store(row, place, align=4)
        return context.get_dummy_value()

    word = types.intp
    return types.void(source, word, word, target, word, word), codegen


@intrinsic
def transpose_from(typingctx, source, places, j, shift, target, to, target_step):
    """target[to + b target_step + a] = source[places[j + a] + shift + b] for a, b < 8; places: int64."""
    if not (is_row(source) and is_row(target) and source.dtype == target.dtype == types.float32):
        return None
    if not (is_row(places) and places.dtype == types.int64):
        return None

    def codegen(context, builder, signature, args):
        _, _, j, shift, _, to, target_step = args
        table = context.make_array(signature.args[1])(context, builder, args[1]).data
        numbers = [builder.add(j, ir.Constant(j.type, a)) for a in range(LANES)]
        starts = [builder.add(builder.load(builder.gep(table, [number])), shift) for number in numbers]
        sources = _places_of_rows(context, builder, signature, args, 0, starts)
        targets = _places_of_rows(context, builder, signature, args, 4, _steps(builder, to, target_step))
        rows = _transposed(builder, [builder.load(place, align=4) for place in sources])
        for row, place in zip(rows, targets, strict=True):
            builder.store(row, place, align=4)
        return context.get_dummy_value()

    word = types.intp
    return types.void(source, places, word, word, target, word, word), codegen


@intrinsic
def invert_square(typingctx, source, at, step, target):
    """Invert 16 x 16 numbers, all in registers; no pivoting.

    source[at + a step + b], a, b < 16, becomes target[16 a + b].
    """
    if not (is_row(source) and is_row(target) and source.dtype == target.dtype == types.float32):
        return None
    side = 2 * LANES
    vector = ir.VectorType(_FLOAT, side)
    indices = ir.VectorType(ir.IntType(32), side)

    def codegen(context, builder, signature, args):
        def place(position, start):
            data = context.make_array(signature.args[position])(context, builder, args[position]).data
            return builder.bitcast(builder.gep(data, [start]), vector.as_pointer())

        _, at, step, _ = args
        starts = [builder.add(at, builder.mul(ir.Constant(at.type, a), step)) for a in range(side)]
        rows = [builder.load(place(0, start), align=4) for start in starts]
        zeros, ones = (ir.Constant(vector, [value] * side) for value in (0.0, 1.0))

        def column(row, a):
            return builder.shuffle_vector(row, row, ir.Constant(indices, [a] * side))

        def with_lane(row, a, others):
            order = [k + side * (k == a) for k in range(side)]
            return builder.shuffle_vector(row, others, ir.Constant(indices, order))

        for a in range(side):
            # Column a becomes that of the unit matrix before row a is subtracted.
            lane_a = builder.extract_element(rows[a], ir.Constant(ir.IntType(32), a))
            inverse = builder.fdiv(ir.Constant(_FLOAT, 1.0), lane_a)
            one = builder.insert_element(
                ir.Constant(vector, ir.Undefined), inverse, ir.Constant(ir.IntType(32), 0)
            )
            pivot = builder.fmul(with_lane(rows[a], a, ones), column(one, 0), flags=FLAGS)
            for c in range(side):
                if c == a:
                    rows[c] = pivot
                    continue
                product = builder.fmul(column(rows[c], a), pivot, flags=FLAGS)
                rows[c] = builder.fsub(with_lane(rows[c], a, zeros), product, flags=FLAGS)
        for a, row in enumerate(rows):
            builder.store(row, place(3, ir.Constant(at.type, side * a)), align=4)
        return context.get_dummy_value()

    word = types.intp
    return types.void(source, word, word, target), codegen
