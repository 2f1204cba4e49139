"""Declare a C++ kernel to Python: a function without a body, whose annotations are its C signature.

    @kernel
    def add_up(values: Float2, scale: float, sums: Written[Float1]) -> int:
        "Docstring."

declares `int64_t vnlem_add_up(const Array<const float, 2>&, double, const Array<float, 1>&)`. An argument is
an array, a number, or a NamedTuple of these, which is a struct of the same name and fields in C++. Arrays are
checked before the call: a wrong one gives an error message instead of a crash. A struct that many calls take
is checked once by `packed`. `TABLE` holds all declarations; a test compares it with the C++ sources.
"""

import ctypes
import functools
import struct
from collections.abc import Callable
from typing import Annotated, Any, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from vnlem.kernels.cpu.library import load

OUT_OF_MEMORY = -1
WRITTEN = "written"
# Kernels are called thousands of times: looking these up each time would take as long as the calls.
_buffer_of, _address_of = ctypes.c_char.from_buffer, ctypes.addressof

T = TypeVar("T")
Function = TypeVar("Function", bound=Callable[..., Any])


class ArrayType(NamedTuple):
    """A C-contiguous array: element type and number of dimensions."""

    dtype: np.dtype[Any]
    ndim: int


def _of(dtype: type, ndim: int) -> ArrayType:
    return ArrayType(np.dtype(dtype), ndim)


# An array that the kernel writes to.
Written = Annotated[T, WRITTEN]

Float1 = Annotated[NDArray[np.float32], _of(np.float32, 1)]
Float2 = Annotated[NDArray[np.float32], _of(np.float32, 2)]
Float3 = Annotated[NDArray[np.float32], _of(np.float32, 3)]
Float4 = Annotated[NDArray[np.float32], _of(np.float32, 4)]
Float5 = Annotated[NDArray[np.float32], _of(np.float32, 5)]
Double1 = Annotated[NDArray[np.float64], _of(np.float64, 1)]
Double2 = Annotated[NDArray[np.float64], _of(np.float64, 2)]
Double3 = Annotated[NDArray[np.float64], _of(np.float64, 3)]
Int1 = Annotated[NDArray[np.int32], _of(np.int32, 1)]
Int2 = Annotated[NDArray[np.int32], _of(np.int32, 2)]
Long1 = Annotated[NDArray[np.int64], _of(np.int64, 1)]
Long2 = Annotated[NDArray[np.int64], _of(np.int64, 2)]
Long3 = Annotated[NDArray[np.int64], _of(np.int64, 3)]
Long4 = Annotated[NDArray[np.int64], _of(np.int64, 4)]
Byte2 = Annotated[NDArray[np.uint8], _of(np.uint8, 2)]


class Field(NamedTuple):
    """An argument of a kernel or a field of a struct; kind: an ArrayType, int, float, bool or a struct."""

    name: str
    kind: Any
    written: bool
    inner: "list[Field] | None" = None  # of a struct
    nested: bool = False  # whether some of these are structs
    only_numbers: bool = False  # whether all of these are numbers

    @property
    def code(self) -> str:
        """Its memory layout, in the letters of `struct`: every word has eight bytes."""
        if isinstance(self.kind, ArrayType):
            return "q" * (1 + self.kind.ndim)
        if is_struct(self.kind):
            return "".join(field.code for field in fields_of(self.kind))
        return "d" if self.kind is float else "q"

    @property
    def by_reference(self) -> bool:
        """Whether C++ gets the address of its words."""
        return isinstance(self.kind, ArrayType) or is_struct(self.kind)


def is_struct(kind: Any) -> bool:
    """Whether a type is a NamedTuple, which kernels see as a struct."""
    return isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_fields")


@functools.cache
def fields_of(kind: type) -> list[Field]:
    """The fields of a struct."""
    hints = get_type_hints(kind, include_extras=True)
    return [_field(name, hints[name]) for name in kind._fields]  # type: ignore[attr-defined]


def _field(name: str, hint: Any) -> Field:
    plain, *notes = get_args(hint) if get_origin(hint) is Annotated else [hint]
    kind = next((note for note in notes if isinstance(note, ArrayType)), plain)
    if not (kind in (int, float, bool) or is_struct(kind) or isinstance(kind, ArrayType)):
        raise TypeError(f"a kernel cannot take {name}: {hint}; use the types of kernels/cpu/declare.py")
    if not is_struct(kind):
        return Field(name, kind, WRITTEN in notes)
    inner = fields_of(kind)
    nested, only_numbers = any(field.inner for field in inner), not any(field.by_reference for field in inner)
    return Field(name, kind, WRITTEN in notes, inner, nested, only_numbers)


class Leaf(NamedTuple):
    """A number or an array among the arguments of a kernel, including those inside structs."""

    name: str  # with the names of the structs around it
    kind: Any
    written: bool
    dtype: Any  # of an array; None for a number
    ndim: int


def _leaves(fields: list[Field], within: str = "") -> list[Leaf]:
    """All numbers and arrays of some fields, in their order."""
    found: list[Leaf] = []
    for field in fields:
        name = within + field.name
        if is_struct(field.kind):
            found += _leaves(fields_of(field.kind), f"{name}.")
        elif isinstance(field.kind, ArrayType):
            found.append(Leaf(name, field.kind, field.written, field.kind.dtype, field.kind.ndim))
        else:
            found.append(Leaf(name, field.kind, False, None, 0))
    return found


def _flatten(fields: list[Field], values: Any, found: list[Any], within: str = "") -> None:
    """Append the values of all leaves to a list."""
    for (name, kind, _, inner, nested, _), value in zip(fields, values, strict=True):
        if inner is None:
            found.append(value)
            continue
        if not isinstance(value, tuple) or len(value) != len(inner):
            raise TypeError(f"{within}{name} must be a {kind.__name__}, got {_got(value)}")
        if nested:
            _flatten(inner, value, found, f"{within}{name}.")
        else:
            found += value


def _words(leaves: list[Leaf], values: list[Any]) -> list[Any]:
    """The words that C++ sees, or an error that says what is wrong."""
    words: list[Any] = []
    for leaf, value in zip(leaves, values, strict=True):
        name, kind, _, dtype, ndim = leaf
        if dtype is None:
            try:
                words.append(value if type(value) is kind else kind(value))
            except (TypeError, ValueError):
                raise TypeError(f"{name} must be a {kind.__name__}, got {_got(value)}") from None
            continue
        # A buffer is the quickest way to an address. Arrays that are not contiguous, read-only or empty have
        # none.
        try:
            address = _address_of(_buffer_of(value))
            shape = value.shape
            if len(shape) != ndim or (value.dtype is not dtype and value.dtype != dtype):
                raise TypeError
        except (TypeError, ValueError, AttributeError):
            _check(leaf, value)
            address, shape = value.ctypes.data, value.shape
        words.append(address)
        words += shape
    return words


def _check(leaf: Leaf, value: Any) -> None:
    """Raise an error for an array that a kernel cannot take."""
    fits = isinstance(value, np.ndarray) and value.dtype == leaf.dtype and value.ndim == leaf.ndim
    if not (fits and value.flags.c_contiguous and (value.flags.writeable or not leaf.written)):
        raise TypeError(f"{leaf.name} must be {_wanted(leaf)}, got {_got(value)}")


def _wanted(leaf: Leaf) -> str:
    access = "writable, " if leaf.written else ""
    return f"a {access}C-contiguous array of {leaf.dtype} with {leaf.ndim} dimensions"


def _got(value: Any) -> str:
    if not isinstance(value, np.ndarray):
        return type(value).__name__
    order = "C-contiguous" if value.flags.c_contiguous else "not C-contiguous"
    access = "" if value.flags.writeable else ", read-only"
    return f"an array of {value.dtype} with {value.ndim} dimensions, {order}{access}"


@functools.cache
def _packing(kind: Any) -> tuple[Any, list[Field], list[Leaf]]:
    """A subclass of a struct whose instances have room for their words, its fields and their leaves."""
    fields = fields_of(kind)
    return type(kind.__name__, (kind,), {}), fields, _leaves(fields, f"{kind.__name__}.")


def packed(value: T) -> T:
    """A struct that is checked now instead of in each of many calls: its arrays must keep their memory."""
    given: Any = type(value)
    kind, fields, leaves = _packing(given)
    values: list[Any] = []
    _flatten(fields, value, values)
    made: T = kind._make(value)
    made.in_words = _words(leaves, values)  # type: ignore[attr-defined]
    return made


class Declaration(NamedTuple):
    """A kernel in the table."""

    symbol: str
    fields: list[Field]


TABLE: dict[str, Declaration] = {}


def kernel(function: Function) -> Function:
    """The C++ kernel that a function without a body declares. It runs without Python's lock."""
    return _bound(function, ctypes.CDLL)


def brief_kernel(function: Function) -> Function:
    """A kernel that takes some microseconds: it keeps Python's lock, as getting it back would take longer."""
    return _bound(function, ctypes.PyDLL)


def _bound(function: Function, loader: type[ctypes.CDLL]) -> Function:
    symbol = f"vnlem_{function.__name__}"
    hints = get_type_hints(function, include_extras=True)
    fields = [_field(name, hint) for name, hint in hints.items() if name != "return"]
    parts = [(field, _leaves([field])) for field in fields]
    TABLE[symbol] = Declaration(symbol, fields)
    layout = struct.Struct("".join(field.code for field in fields))
    room = ctypes.c_char * max(layout.size, 1)
    starts = [sum(len(before.code) for before in fields[:i]) for i in range(len(fields))]
    places = [(start, field.by_reference) for start, field in zip(starts, fields, strict=True)]

    @functools.cache
    def entry() -> Any:
        found = getattr(load(loader is ctypes.PyDLL), symbol)
        found.restype = ctypes.c_int64
        found.argtypes = [
            ctypes.c_void_p if f.by_reference else ctypes.c_double if f.kind is float else ctypes.c_int64
            for f in fields
        ]
        return found

    def words_of(args: tuple[Any, ...], checks_numbers: bool) -> list[Any]:
        words: list[Any] = []
        for value, (field, leaves) in zip(args, parts, strict=True):
            if field.inner is None:
                words += _words(leaves, [value])
            elif isinstance(value, field.kind) and hasattr(value, "in_words"):
                words += value.in_words
            elif field.only_numbers and isinstance(value, field.kind) and not checks_numbers:
                words += value
            else:
                values: list[Any] = []
                _flatten([field], [value], values)
                words += _words(leaves, values)
        return words

    @functools.wraps(function)
    def call(*args: Any) -> Any:
        if len(args) != len(fields):
            raise TypeError(f"{function.__name__} takes {len(fields)} arguments, got {len(args)}")
        words, buffer = words_of(args, False), room()
        try:
            layout.pack_into(buffer, 0, *words)
        except struct.error:  # a number of another type: convert it, or say which
            words = words_of(args, True)
            layout.pack_into(buffer, 0, *words)
        begin = ctypes.addressof(buffer)
        result = entry()(*[begin + 8 * start if refers else words[start] for start, refers in places])
        if result == OUT_OF_MEMORY:
            raise MemoryError(f"not enough memory for the scratch arrays of {function.__name__}")
        return result

    return call  # type: ignore[return-value]
