"""Declarations of kernels against the C++ sources, and the errors for wrong arguments and wrong libraries."""

import ctypes
import importlib
import re
import struct
from pathlib import Path

import numpy as np
import pytest

import vnlem.kernels.cpu
from vnlem.kernels.cpu import declare, library, tall
from vnlem.kernels.cpu.declare import ArrayType, Float2, Written, fields_of, is_struct, kernel, packed
from vnlem.kernels.cpu.motion import BlockSearch, block_motion

FOLDER = Path(vnlem.kernels.cpu.__file__).parent
TYPES = {
    "float": np.float32,
    "double": np.float64,
    "int32_t": np.int32,
    "int64_t": np.int64,
    "uint8_t": np.uint8,
}
ARRAY = r"Array<(const )?(\w+), (\d)>"

for path in FOLDER.glob("[!_]*.py"):
    importlib.import_module(f"vnlem.kernels.cpu.{path.stem}")
TABLE = dict(declare.TABLE)


def sources():
    text = "\n".join(path.read_text() for path in sorted([*FOLDER.glob("*.cpp"), *FOLDER.glob("*.h")]))
    return re.sub(r"//[^\n]*", "", text)


SOURCES = sources()


def described(kind, written=False):
    """A type of declare.py as C++ spells it."""
    if isinstance(kind, ArrayType):
        name = next(name for name, dtype in TYPES.items() if np.dtype(dtype) == kind.dtype)
        return f"Array<{'' if written else 'const '}{name}, {kind.ndim}>"
    if is_struct(kind):
        return kind.__name__
    return "double" if kind is float else "int64_t"


def parameters(text):
    """The types of the parameters of a C++ function; arrays and structs must be const references."""
    found = []
    for parameter in re.split(r",(?![^<]*>)", " ".join(text.split())):
        parameter = parameter.strip()
        scalar = re.fullmatch(r"(int64_t|double) \w+", parameter)
        reference = re.fullmatch(rf"const ({ARRAY}|\w+)& \w+", parameter)
        assert scalar or reference, f"no type of a kernel: {parameter}"
        found.append((scalar or reference)[1])
    return found


def exported():
    pattern = r"VNLEM_EXPORT int64_t (vnlem_\w+)\((.*?)\) \{"
    return {name: text for name, text in re.findall(pattern, SOURCES, flags=re.S) if text.strip()}


def structs_in(fields):
    for field in fields:
        if is_struct(field.kind):
            yield field.kind
            yield from structs_in(fields_of(field.kind))


STRUCTS = sorted(
    {kind for found in TABLE.values() for kind in structs_in(found.fields)}, key=lambda kind: kind.__name__
)


def members(name):
    """Types and names of a C++ struct's members, in their order. Functions and constants are none."""
    body = re.search(rf"\nstruct {name} \{{\n(.*?)\n\}};", SOURCES, flags=re.S)
    assert body, f"no struct {name} in the C++ sources"
    found = []
    for line in re.findall(rf"^    ({ARRAY}|\w+) ([\w, ]+);", body[1], flags=re.M):
        found += [(line[0], member.strip()) for member in line[-1].split(",")]
    return found


def test_every_exported_function_is_declared_and_the_other_way_round():
    assert sorted(exported()) == sorted(TABLE)


@pytest.mark.parametrize("name", sorted(TABLE))
def test_a_kernel_has_the_arguments_of_its_declaration(name):
    declared = [described(field.kind, field.written) for field in TABLE[name].fields]
    assert parameters(exported()[name]) == declared


@pytest.mark.parametrize("kind", STRUCTS, ids=lambda kind: kind.__name__)
def test_a_struct_has_the_fields_of_its_declaration(kind):
    declared = [(described(field.kind, field.written), field.name) for field in fields_of(kind)]
    assert members(kind.__name__) == declared


SEARCH = BlockSearch(8, 2, 0.0)


def frame(**changes):
    """Arguments of block_motion, one of them changed."""
    arguments = {
        "here": np.zeros((16, 16), np.float32),
        "there": np.zeros((16, 16), np.float32),
        "search": SEARCH,
        "moves": np.zeros((2, 2, 2), np.int64),
    }
    return list((arguments | changes).values())


def read_only():
    moves = np.zeros((2, 2, 2), np.int64)
    moves.flags.writeable = False
    return moves


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"here": np.zeros((16, 16))}, "here must be .* float32 with 2 dimensions, got .* float64"),
        ({"here": np.zeros(16, np.float32)}, "here must be .* with 2 dimensions, got .* with 1 dimensions"),
        ({"there": np.zeros((16, 32), np.float32)[:, ::2]}, "there must be .*, got .* not C-contiguous"),
        ({"there": [[0.0]]}, "there must be .*, got list"),
        ({"moves": read_only()}, "moves must be a writable, .* got .* read-only"),
        ({"search": (8, 4)}, "search must be a BlockSearch, got tuple"),
        ({"search": 8}, "search must be a BlockSearch, got int"),
        ({"search": SEARCH._replace(cell="wide")}, r"search\.cell must be a int, got str"),
        ({"search": SEARCH._replace(cost=None)}, r"search\.cost must be a float, got NoneType"),
    ],
)
def test_a_wrong_argument_is_told_in_one_sentence(changes, told):
    with pytest.raises(TypeError, match=told) as error:
        block_motion(*frame(**changes))
    assert "\n" not in str(error.value)


def test_a_wrong_number_of_arguments_is_told():
    with pytest.raises(TypeError, match="block_motion takes 4 arguments, got 3"):
        block_motion(*frame()[:3])


def test_a_struct_may_be_checked_once_for_many_calls():
    here, there = np.random.default_rng(0).random((2, 16, 16), np.float32)
    found = [np.zeros((2, 2, 2), np.int64) for _ in range(2)]
    for search, moves in zip((SEARCH, packed(SEARCH)), found, strict=True):
        block_motion(here, there, search, moves)
    np.testing.assert_array_equal(*found)
    assert packed(SEARCH) == SEARCH
    with pytest.raises(TypeError, match=r"BlockSearch\.cell must be a int, got str"):
        packed(SEARCH._replace(cell="wide"))
    with pytest.raises(TypeError, match=r"search\.cell must be a int, got str"):
        block_motion(*frame(search=packed(SEARCH)._replace(cell="wide")))


def test_a_type_that_no_kernel_takes_is_refused_when_it_is_declared():
    def takes_text(name: str) -> None: ...

    with pytest.raises(TypeError, match="cannot take name"):
        kernel(takes_text)


def test_a_failed_allocation_is_a_memory_error(monkeypatch):
    class Failing:
        @staticmethod
        def vnlem_always_too_large(*args):
            return declare.OUT_OF_MEMORY

    def always_too_large(values: Written[Float2]) -> None: ...

    monkeypatch.setattr(declare, "TABLE", {})
    monkeypatch.setattr(declare, "load", lambda loader: Failing)
    with pytest.raises(MemoryError, match="scratch arrays of always_too_large"):
        kernel(always_too_large)(np.zeros((2, 2), np.float32))


def test_a_kernel_that_gets_no_memory_says_so():
    none = np.empty((0, 0), np.float32)
    wide = np.empty((0, 2**50), np.float32)  # takes no memory, a row of it more than there is
    with pytest.raises(MemoryError, match="scratch arrays of combine"):
        tall.combine(tall.Blocks(none, none, none), none, np.empty(0, np.float32), 0, 0, wide)


@pytest.fixture
def afresh():
    """Nothing is known about the library, before and after."""
    library.instruction_set.cache_clear()
    yield
    library.instruction_set.cache_clear()


def test_an_unknown_instruction_set_is_refused_by_name(monkeypatch, afresh):
    monkeypatch.setenv(library.VARIABLE, "sse9")
    with pytest.raises(ImportError, match=r"VNLEM_ISA must be one of .*, got 'sse9'"):
        library.instruction_set()


@pytest.mark.skipif(library.instruction_sets() != library.X86, reason="needs more than one instruction set")
def test_what_the_processor_cannot_run_is_refused(monkeypatch, afresh):
    class Old:
        vnlem_best_isa = staticmethod(lambda: 1)

    monkeypatch.setattr(library, "_open", lambda name, loader: Old)
    monkeypatch.setenv(library.VARIABLE, "x86-64-v4")
    with pytest.raises(
        ImportError, match="cannot run on this processor, which has x86-64-v2; unset VNLEM_ISA"
    ):
        library.instruction_set()
    Old.vnlem_best_isa = staticmethod(lambda: 0)
    with pytest.raises(
        ImportError, match=r"needs a processor with x86-64-v2 \(SSE4.2\), which this one lacks"
    ):
        library.instruction_set()


@pytest.mark.parametrize("name", library.X86 if library.instruction_sets() == library.X86 else library.ARM)
def test_a_missing_library_is_named(monkeypatch, tmp_path, name):
    monkeypatch.setattr(library, "FOLDER", tmp_path)
    with pytest.raises(
        ImportError, match=f"the compiled kernels vnlem-{name}.* are missing in .*pip install"
    ):
        library._open(name, ctypes.CDLL)
    library.path_of(name).write_bytes(b"no library")
    with pytest.raises(ImportError, match=f"the compiled kernels vnlem-{name}.* cannot be loaded: "):
        library._open(name, ctypes.CDLL)


def test_a_library_of_another_version_is_refused(monkeypatch):
    monkeypatch.setattr(library, "ABI", library.ABI + 1)
    with pytest.raises(ImportError, match=r"are of another version .*pip install"):
        library._open(library.instruction_sets()[-1], ctypes.CDLL)


def test_the_interface_has_one_number_in_both_languages():
    assert f"= {library.ABI};" in (FOLDER / "abi.h").read_text()


def test_a_python_of_32_bits_is_refused(monkeypatch):
    monkeypatch.setattr(library.struct, "calcsize", lambda code: 4)
    with pytest.raises(ImportError, match="needs a 64-bit Python"):
        library.instruction_sets()


@pytest.mark.parametrize("machine", ["riscv64", "i686", ""])
def test_an_unknown_processor_is_refused(monkeypatch, machine):
    monkeypatch.setattr(library.platform, "machine", lambda: machine)
    with pytest.raises(ImportError, match="runs on x86-64 and aarch64"):
        library.instruction_sets()


def test_every_word_of_an_argument_has_eight_bytes():
    assert {struct.calcsize(code) for code in "qd"} == {8}
