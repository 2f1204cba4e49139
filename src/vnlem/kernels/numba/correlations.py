"""The inner loops of matching in vector instructions: correlations with one patch or with several."""

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from vnlem.kernels.numba.lengths import COLUMNS, HALF
from vnlem.kernels.numba.panel import LONG_VECTORS, ROWS, VectorCode, panel_rows


def _slide_down(lanes, taps, values, side, sums):
    """Add the products with one column of a patch to `sums`, one vector for each row of a panel.

    taps(y): the number in row y of the column, a vector; values(y): the image there, y < side + ROWS - 1.
    A row of the image is loaded once for all rows of the panel that it meets: ROWS of them are held in
    registers, and each step down replaces the uppermost. Where vectors are short there are too few registers.
    """
    builder = lanes.builder
    if not LONG_VECTORS:
        with cgutils.for_range(builder, side, intp=lanes.word) as loop:
            factors = taps(loop.index)
            for a, slot in enumerate(sums):
                value = values(builder.add(loop.index, lanes.whole(a)))
                builder.store(lanes.multiply_add(factors, value, builder.load(slot)), slot)
        return
    held = [cgutils.alloca_once(builder, lanes.vector) for _ in range(ROWS)]
    row = cgutils.alloca_once_value(builder, lanes.whole(0))
    for a, slot in enumerate(held):
        builder.store(values(lanes.whole(a)), slot)
    steps = [builder.append_basic_block("step") for _ in range(ROWS)]
    done = builder.append_basic_block("done")
    builder.branch(steps[0])
    for step, block in enumerate(steps):
        builder.position_at_end(block)
        y = builder.load(row)
        factors = taps(y)
        for a, slot in enumerate(sums):
            value = builder.load(held[(step + a) % ROWS])
            builder.store(lanes.multiply_add(factors, value, builder.load(slot)), slot)
        following = builder.add(y, lanes.whole(1))
        builder.store(following, row)
        more = builder.append_basic_block("more")
        builder.cbranch(builder.icmp_signed("<", following, side), more, done)
        builder.position_at_end(more)
        builder.store(values(builder.add(y, lanes.whole(ROWS))), held[step])
        builder.branch(steps[(step + 1) % ROWS])
    builder.position_at_end(done)


@intrinsic
def correlation_panel(typing_context, out, out_at, out_step, taps, image, image_at, image_step, patch):
    """Correlation of an image with one patch, a panel of the result.

    patch: its planes, its side, and the step to the next plane of the image.
    out[out_at + a out_step + x] =
        sum taps[(plane side + v) side + u] image[image_at + plane step + (a + v) image_step + u + x]
    over all planes and u, v < side, for a < ROWS and x < 16; otherwise as `set_panel`.
    """
    word = types.intp
    signature = types.void(out, word, word, taps, image, word, word, types.UniTuple(word, 3))

    def generate(context, builder, sig, args):
        lanes = VectorCode(context, builder, sig, args, COLUMNS)
        _, _, _, _, _, image_at, image_step, patch = args
        planes, side, plane_step = cgutils.unpack_tuple(builder, patch, 3)
        tap_data, image_data = map(lanes.data_of, (3, 4))
        sums = lanes.sums(ROWS)
        with cgutils.for_range(builder, planes, intp=lanes.word) as plane:
            taps_at = builder.mul(plane.index, builder.mul(side, side))
            plane_at = builder.add(image_at, builder.mul(plane.index, plane_step))
            with cgutils.for_range(builder, side, intp=lanes.word) as column:
                first_tap = builder.add(taps_at, column.index)
                first_value = builder.add(plane_at, column.index)

                def taps_of(y):
                    at = builder.add(first_tap, builder.mul(y, side))
                    return lanes.spread(builder.load(builder.gep(tap_data, [at])))

                def values_of(y):
                    return lanes.load(image_data, builder.add(first_value, builder.mul(y, image_step)))

                _slide_down(lanes, taps_of, values_of, side, sums)
        for slot, at in zip(sums, panel_rows(lanes, args), strict=True):
            builder.store(builder.load(slot), at, align=4)
        return context.get_dummy_value()

    return signature, generate


def _renew(lanes, at, candidates):
    """Renew best[at + x] and which[at + x] by candidates: pairs of a number and a vector of correlations.

    best and which are the first two arguments of the function; of equal correlations the first one counts.
    """
    builder = lanes.builder
    whole = ir.VectorType(ir.IntType(32), lanes.vector.count)
    best_data, which_data = lanes.data_of(0), lanes.data_of(1)
    mark_at = builder.bitcast(builder.gep(which_data, [at]), whole.as_pointer())
    largest, mark = lanes.load(best_data, at), builder.load(mark_at, align=4)
    for number, value in candidates:
        better = builder.fcmp_ordered(">", value, largest)
        largest = builder.select(better, value, largest)
        small = builder.trunc(number, ir.IntType(32))
        undefined = ir.Constant(whole, ir.Undefined)
        one = builder.insert_element(undefined, small, lanes.whole(0))
        mark = builder.select(better, builder.shuffle_vector(one, undefined, lanes.firsts), mark)
    builder.store(largest, lanes.at(best_data, at), align=4)
    builder.store(mark, mark_at, align=4)


def _if_it_competes(lanes, competes, value):
    """A vector of correlations, or of minus infinity."""
    return lanes.builder.select(competes, value, ir.Constant(lanes.vector, [-np.inf] * lanes.vector.count))


@intrinsic
def largest_correlation_panel(typing_context, best, which, at, taps, numbers, image, image_at, offsets):
    """Correlation of 16 places in an image with ROWS patches at once: which of them fits best.

    taps (patches, n) holds all patches. numbers: first, least, end; patches first, first + 1, ... are
    compared, of which those from `least` up to `end` compete.
    best[at + x], the largest correlation so far, and which[at + x] (int32), its patch, are renewed, x < 16.
    """
    word = types.intp
    signature = types.void(best, which, word, taps, types.UniTuple(word, 3), image, word, offsets)

    def generate(context, builder, sig, args):
        lanes = VectorCode(context, builder, sig, args, COLUMNS)
        _, _, at, _, numbers, _, image_at, _ = args
        first, least, end = cgutils.unpack_tuple(builder, numbers, 3)
        tap_data, image_data, offset_data = map(lanes.data_of, (3, 5, 7))
        table = context.make_array(sig.args[7])(context, builder, args[7])
        (depth,) = cgutils.unpack_tuple(builder, table.shape, 1)
        patches = [builder.add(first, lanes.whole(a)) for a in range(ROWS)]
        starts = [builder.mul(number, depth) for number in patches]
        sums = lanes.sums(ROWS)
        with cgutils.for_range(builder, depth, intp=lanes.word) as loop:
            offset = builder.load(builder.gep(offset_data, [loop.index]))
            values = lanes.load(image_data, builder.add(image_at, offset))
            for start, slot in zip(starts, sums, strict=True):
                factor = builder.load(builder.gep(tap_data, [builder.add(start, loop.index)]))
                lanes.add(slot, factor, values)
        candidates = []
        for number, slot in zip(patches, sums, strict=True):
            competes = builder.and_(
                builder.icmp_signed(">=", number, least), builder.icmp_signed("<", number, end)
            )
            candidates.append((number, _if_it_competes(lanes, competes, builder.load(slot))))
        _renew(lanes, at, candidates)
        return context.get_dummy_value()

    return signature, generate


def _add_orbits(lanes, side, values, sums, table, entry):
    """Add the products with all orbits of one plane to `sums`, row by row, as `symmetries.parts_of` has them.

    values(y, x): the image on a pixel of the patch; table: the parts of the reference; entry: a slot with
    the place of the next ones.
    """
    builder = lanes.builder

    def add(numbers):
        """numbers: parts of the image by their place among the four."""
        start = builder.load(entry)
        for base in (0, 4):
            for part, value in numbers.items():
                at = builder.add(start, lanes.whole(base + part))
                lanes.add(sums[base + part], builder.load(builder.gep(table, [at])), value)
        builder.store(builder.add(start, lanes.whole(8)), entry)

    def both(a, b):
        return builder.fadd(a, b), builder.fsub(a, b)

    half, last = builder.lshr(side, lanes.whole(1)), builder.sub(side, lanes.whole(1))
    is_odd = builder.trunc(side, ir.IntType(1))
    with cgutils.for_range(builder, half, intp=lanes.word) as row:
        y, below = row.index, builder.sub(last, row.index)
        with cgutils.for_range(builder, half, intp=lanes.word) as column:
            x, beside = column.index, builder.sub(last, column.index)
            even_above, odd_above = both(values(y, x), values(y, beside))
            even_below, odd_below = both(values(below, x), values(below, beside))
            even = both(even_above, even_below)
            odd = both(odd_above, odd_below)
            add({0: even[0], 1: even[1], 2: odd[0], 3: odd[1]})
        with builder.if_then(is_odd):
            even, odd = both(values(y, half), values(below, half))
            add({0: even, 1: odd})
    with builder.if_then(is_odd):
        with cgutils.for_range(builder, half, intp=lanes.word) as column:
            x, beside = column.index, builder.sub(last, column.index)
            even, odd = both(values(half, x), values(half, beside))
            add({0: even, 2: odd})
        add({0: values(half, half)})


@intrinsic
def symmetric_correlation_panel(typing_context, best, which, at, parts, numbers, image, image_at, patch):
    """As `largest_correlation_panel` for one patch under the eight symmetries of the square.

    parts: from `symmetries.parts_of`, one-dimensional; numbers: first, least; patch: its planes, its side,
    and the steps to the next row and plane of the image. The image is split as the patch is: a part
    that is even or odd under a reflection keeps its product but for the sign, so that two patches' products,
    a quarter of them all, are enough for eight.
    """
    word = types.intp
    pair, four = types.UniTuple(word, 2), types.UniTuple(word, 4)
    signature = types.void(best, which, word, parts, pair, image, word, four)
    width = COLUMNS if LONG_VECTORS else HALF

    def generate(context, builder, sig, args):
        lanes = VectorCode(context, builder, sig, args, width)
        _, _, at, _, numbers, _, image_at, patch = args
        first, least = cgutils.unpack_tuple(builder, numbers, 2)
        planes, side, row_step, plane_step = cgutils.unpack_tuple(builder, patch, 4)
        table, image_data = map(lanes.data_of, (3, 5))
        for shift in range(0, COLUMNS, width):
            sums = lanes.sums(8)
            entry = cgutils.alloca_once_value(builder, lanes.whole(0))
            with cgutils.for_range(builder, planes, intp=lanes.word) as plane:
                corner = builder.add(image_at, builder.mul(plane.index, plane_step))
                corner = builder.add(corner, lanes.whole(shift))

                def values(y, x, corner=corner):
                    at = builder.add(corner, builder.add(builder.mul(y, row_step), x))
                    return lanes.load(image_data, at)

                _add_orbits(lanes, side, values, sums, table, entry)
            fits = {}
            for base, order in ((0, (0, 4, 6, 2)), (4, (1, 7, 5, 3))):
                even, odd, beside, across = (builder.load(sums[base + part]) for part in range(4))
                as_is, upside_down = builder.fadd(even, odd), builder.fsub(even, odd)
                more, less = builder.fadd(beside, across), builder.fsub(beside, across)
                fits[order[0]], fits[order[1]] = builder.fadd(as_is, more), builder.fsub(as_is, more)
                fits[order[2]] = builder.fadd(upside_down, less)
                fits[order[3]] = builder.fsub(upside_down, less)
            competes = builder.icmp_signed(">=", first, least)
            fits[0] = _if_it_competes(lanes, competes, fits[0])
            candidates = [(builder.add(first, lanes.whole(g)), fits[g]) for g in range(8)]
            _renew(lanes, builder.add(at, lanes.whole(shift)), candidates)
        return context.get_dummy_value()

    return signature, generate
