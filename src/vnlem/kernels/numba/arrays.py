"""New arrays in kernels, views of arrays, and the larger of two numbers.

NumPy's and Python's functions do the same in a kernel. But Numba compiles each of them as a function of its
own for every type and number of axes, and a slice in ten times as many instructions, since it may be of any
kind: a fifth of the time of a first call. These are a few instructions of the kernel.
A new array begins at a cache line: a vector that lies across two lines costs twice as much.
"""

from typing import Any

from llvmlite import ir
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


class _Array:
    """An array in LLVM's registers. Numba would write it to memory and read it back for every view."""

    def __init__(self, context: Any, builder: Any, kind: Any, value: Any) -> None:
        self._context, self._builder, self._kind, self._value = context, builder, kind, value

    def _place_of(self, kind: Any, name: str) -> int:
        place: int = self._context.data_model_manager[kind].get_field_position(name)
        return place

    def get(self, name: str) -> Any:
        """One of its fields, as Numba names them."""
        return self._builder.extract_value(self._value, self._place_of(self._kind, name))

    def shape(self) -> list[Any]:
        """Lengths of its axes."""
        return list(cgutils.unpack_tuple(self._builder, self.get("shape")))

    def view(self, kind: Any, data: Any, shape: list[Any]) -> Any:
        """Its numbers from `data` on, contiguous, as an array of another kind."""
        builder = self._builder
        itemsize = self.get("itemsize")
        count, steps = shape[-1], [itemsize]
        for length in reversed(shape[:-1]):
            steps.append(builder.mul(itemsize, count))
            count = builder.mul(count, length)
        fields = {
            "meminfo": self.get("meminfo"),
            "parent": self.get("parent"),
            "nitems": count,
            "itemsize": itemsize,
            "data": builder.bitcast(data, self._context.get_data_type(kind.dtype).as_pointer()),
            "shape": cgutils.pack_array(builder, shape),
            "strides": cgutils.pack_array(builder, steps[::-1]),
        }
        view = ir.Constant(self._context.get_value_type(kind), ir.Undefined)
        for name, value in fields.items():
            view = builder.insert_value(view, value, self._place_of(kind, name))
        return impl_ret_borrowed(self._context, builder, kind, view)


def _is_contiguous(array: Any) -> bool:
    return isinstance(array, types.Array) and array.layout == "C"


@intrinsic
def as_row(typingctx, array):
    """array.reshape(-1) of a contiguous array."""
    if not _is_contiguous(array):
        return None

    def codegen(context, builder, signature, args):
        given = _Array(context, builder, array, args[0])
        return given.view(signature.return_type, given.get("data"), [given.get("nitems")])

    return array.copy(ndim=1)(array), codegen


@intrinsic
def as_rows(typingctx, array):
    """array.reshape(-1, array.shape[-1]) of a contiguous array."""
    if not _is_contiguous(array):
        return None

    def codegen(context, builder, signature, args):
        given = _Array(context, builder, array, args[0])
        *others, last = given.shape()
        count = cgutils.intp_t(1)
        for length in others:
            count = builder.mul(count, length)
        return given.view(signature.return_type, given.get("data"), [count, last])

    return array.copy(ndim=2)(array), codegen


@intrinsic
def part(typingctx, array, begin, end):
    """array[begin:end] of a contiguous array, 0 <= begin <= end <= len(array)."""
    if not _is_contiguous(array):
        return None

    def codegen(context, builder, signature, args):
        given = _Array(context, builder, array, args[0])
        _, *others = given.shape()
        first = args[1]
        for length in others:
            first = builder.mul(first, length)
        data = builder.gep(given.get("data"), [first], inbounds=True)
        return given.view(array, data, [builder.sub(args[2], args[1]), *others])

    return array.copy()(array, types.intp, types.intp), codegen


@intrinsic
def view_at(typingctx, array, index):
    """array[index] of a contiguous array for fewer whole numbers than axes, none of them negative."""
    sides = _sides(index)
    if not _is_contiguous(array) or sides is None or len(sides) >= array.ndim:
        return None

    def codegen(context, builder, signature, args):
        given = _Array(context, builder, array, args[0])
        shape = given.shape()
        indices = cgutils.unpack_tuple(builder, args[1]) if isinstance(index, types.BaseTuple) else [args[1]]
        first = cgutils.intp_t(0)
        for axis, length in enumerate(shape):
            if axis > 0:
                first = builder.mul(first, length)
            if axis < len(sides):
                first = builder.add(first, context.cast(builder, indices[axis], sides[axis], types.intp))
        data = builder.gep(given.get("data"), [first], inbounds=True)
        return given.view(signature.return_type, data, shape[len(sides) :])

    return array.copy(ndim=array.ndim - len(sides))(array, index), codegen


@intrinsic
def fill(typingctx, array, value):
    """array[:] = value of a contiguous array."""
    if not _is_contiguous(array):
        return None

    def codegen(context, builder, signature, args):
        given = _Array(context, builder, array, args[0])
        data = given.get("data")
        with cgutils.for_range(builder, given.get("nitems"), intp=cgutils.intp_t) as loop:
            builder.store(args[1], builder.gep(data, [loop.index], inbounds=True))
        return context.get_dummy_value()

    return types.void(array, array.dtype), codegen


def _one_of(comparison: str, meaning: str) -> Any:
    """A function of two numbers: the second where it compares so with the first."""

    def function(typingctx, a, b):
        kind = typingctx.unify_types(a, b)
        if not isinstance(kind, types.Integer | types.Float):
            return None

        def codegen(context, builder, signature, args):
            first, second = args
            compare = builder.icmp_signed if kind in types.signed_domain else builder.icmp_unsigned
            if isinstance(kind, types.Float):
                compare = builder.fcmp_ordered
            return builder.select(compare(comparison, second, first), second, first)

        return kind(kind, kind), codegen

    function.__doc__ = meaning
    return intrinsic(function)


larger_of = _one_of(">", "max(a, b) of two numbers, which Numba compiles as a function of its own.")
smaller_of = _one_of("<", "min(a, b) of two numbers, which Numba compiles as a function of its own.")


@intrinsic
def bits_as(typingctx, array, dtype):
    """array.view(dtype) of a contiguous array, for a kind of number of the same size."""
    if not (_is_contiguous(array) and array.dtype.bitwidth == dtype.dtype.bitwidth):
        return None

    def codegen(context, builder, signature, args):
        given = _Array(context, builder, array, args[0])
        return given.view(signature.return_type, given.get("data"), given.shape())

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
