"""New arrays in kernels, and other views of arrays.

NumPy's functions do the same in a kernel. But Numba compiles each of them as a function of its own for every
type and number of axes, a tenth of the time of a first call; these are a few instructions of the kernel.
A new array begins at a cache line: a vector that lies across two lines costs twice as much.
"""

from typing import Any

from numba import types
from numba.core import cgutils
from numba.core.imputils import impl_ret_borrowed, impl_ret_new_ref
from numba.extending import intrinsic
from numba.np.arrayobj import populate_array

LINE = 64  # bytes


def _sides(shape: Any) -> list[Any] | None:
    """Types of the lengths of an array's axes; None where they are no whole numbers."""
    sides: list[Any] = list(getattr(shape, "types", [shape]))
    return sides if sides and all(isinstance(side, types.Integer) for side in sides) else None


def _allocated(shape: Any, dtype: Any, are_zero: bool) -> Any:
    """Signature and code of a new array."""
    sides = _sides(shape)
    if sides is None or not isinstance(dtype, types.NumberClass):
        return None
    kind = types.Array(dtype.dtype, len(sides), "C")

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        given = cgutils.unpack_tuple(builder, args[0]) if isinstance(shape, types.BaseTuple) else [args[0]]
        lengths = [
            context.cast(builder, value, side, types.intp) for value, side in zip(given, sides, strict=True)
        ]
        itemsize = cgutils.intp_t(context.get_abi_sizeof(context.get_data_type(kind.dtype)))
        steps = [itemsize]  # from the last axis to the first, then the size of all
        for length in reversed(lengths):
            steps.append(builder.mul(steps[-1], length))
        size = steps.pop()
        owner = context.nrt.meminfo_alloc_aligned(builder, size, LINE)
        data = context.nrt.meminfo_data(builder, owner)
        if are_zero:
            cgutils.memset(builder, data, size, 0)
        array = context.make_array(kind)(context, builder)
        pointer = builder.bitcast(data, context.get_data_type(kind.dtype).as_pointer())
        populate_array(array, pointer, lengths, steps[::-1], itemsize, owner)
        return impl_ret_new_ref(context, builder, kind, array._getvalue())

    return kind(shape, dtype), codegen


@intrinsic
def empty(typingctx, shape, dtype):
    """np.empty(shape, dtype) for a kind of number such as np.float32."""
    return _allocated(shape, dtype, are_zero=False)


@intrinsic
def zeros(typingctx, shape, dtype):
    """np.zeros(shape, dtype) for a kind of number such as np.float32."""
    return _allocated(shape, dtype, are_zero=True)


def _view(context: Any, builder: Any, given: Any, kind: Any, shape: list[Any]) -> Any:
    """The numbers of an array as a contiguous array of another kind."""
    steps = [given.itemsize]
    for length in reversed(shape[1:]):
        steps.append(builder.mul(steps[-1], length))
    data = builder.bitcast(given.data, context.get_data_type(kind.dtype).as_pointer())
    view = context.make_array(kind)(context, builder)
    populate_array(view, data, shape, steps[::-1], given.itemsize, given.meminfo, given.parent)
    return impl_ret_borrowed(context, builder, kind, view._getvalue())


def _is_contiguous(array: Any) -> bool:
    return isinstance(array, types.Array) and array.layout == "C"


@intrinsic
def as_row(typingctx, array):
    """array.reshape(-1) of a contiguous array."""
    if not _is_contiguous(array):
        return None

    def codegen(context, builder, signature, args):
        given = context.make_array(array)(context, builder, args[0])
        return _view(context, builder, given, signature.return_type, [given.nitems])

    return array.copy(ndim=1)(array), codegen


@intrinsic
def as_rows(typingctx, array):
    """array.reshape(-1, array.shape[-1]) of a contiguous array."""
    if not _is_contiguous(array):
        return None

    def codegen(context, builder, signature, args):
        given = context.make_array(array)(context, builder, args[0])
        *others, last = cgutils.unpack_tuple(builder, given.shape)
        count = cgutils.intp_t(1)
        for length in others:
            count = builder.mul(count, length)
        return _view(context, builder, given, signature.return_type, [count, last])

    return array.copy(ndim=2)(array), codegen


@intrinsic
def bits_as(typingctx, array, dtype):
    """array.view(dtype) of a contiguous array, for a kind of number of the same size."""
    if not (_is_contiguous(array) and array.dtype.bitwidth == dtype.dtype.bitwidth):
        return None

    def codegen(context, builder, signature, args):
        given = context.make_array(array)(context, builder, args[0])
        shape = cgutils.unpack_tuple(builder, given.shape)
        return _view(context, builder, given, signature.return_type, shape)

    return array.copy(dtype=dtype.dtype)(array, dtype), codegen


@intrinsic
def bits_of(typingctx, number):
    """The bits of a float32 number as an int32."""

    def codegen(context, builder, signature, args):
        return builder.bitcast(args[0], context.get_data_type(types.int32))

    return types.int32(types.float32), codegen


@intrinsic
def from_bits(typingctx, bits):
    """The float32 number with the bits of an int32."""

    def codegen(context, builder, signature, args):
        return builder.bitcast(args[0], context.get_data_type(types.float32))

    return types.float32(types.int32), codegen
