"""What Numba leaves out while it compiles a kernel. The code it makes is the same.

Most of a kernel's compilation is Numba's Python code, and much of that is the same question asked again.
"""

import gc
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from numba.core import event
from numba.core.compiler import Flags
from numba.core.ir import Inst, Var
from numba.core.postproc import PostProcessor, VariableLifetime
from numba.core.registry import cpu_target
from numba.core.targetconfig import ConfigStack, TargetConfig
from numba.core.transforms import canonicalize_cfg
from numba.core.types.functions import BaseFunction
from numba.np import linalg

_CODE_OF_NAMES = hash(Flags())  # Numba takes it from the names of all options, so it is always the same


class QuickFlags(Flags):
    """Compilation flags, which are part of many keys: compared by the options that are set."""

    def __hash__(self) -> int:
        return _CODE_OF_NAMES

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TargetConfig):
            return NotImplemented
        mine, others = self._values, other._values
        return mine == others or all(
            getattr(self, name) == getattr(other, name) for name in mine.keys() | others.keys()
        )


def refresh_contexts() -> None:
    """Let Numba import what it compiles with.

    It imports SciPy's linear algebra only to know that it is there, a quarter of a second in every process.
    It is there, since the package depends on SciPy, and Numba looks again where it compiles linear algebra.
    """
    part = "numba.np.arraymath"
    check = getattr(linalg, "ensure_blas", None)
    if part in sys.modules or check is None:
        cpu_target.target_context.refresh()
        return
    with replaced(linalg, "ensure_blas", lambda: None):
        cpu_target.target_context.refresh()
    if part in sys.modules:
        vars(sys.modules[part])["ensure_blas"] = check


@contextmanager
def shortcuts() -> Iterator[None]:
    """All of these, for one kernel. The caller holds Numba's lock for compiling."""
    contexts: tuple[Any, ...] = cpu_target.target_context, cpu_target.typing_context
    refresh_contexts()
    with _garbage_stays(), ExitStack() as scope:
        for owner, name, value in (
            (BaseFunction, "get_call_type", _resolved_once(BaseFunction.get_call_type)),
            (PostProcessor, "run", _without_lifetimes(PostProcessor.run)),
            (Inst, "_rec_list_vars", _variables),
            (contexts[0], "get_abi_sizeof", _measured_once(contexts[0].get_abi_sizeof)),
            (event, "start_event", _but_of_locks(event.start_event)),
            (event, "end_event", _but_of_locks(event.end_event)),
            *((context, "refresh", _when_there_is_more(context)) for context in contexts),
        ):
            scope.enter_context(replaced(owner, name, value))
        yield


@contextmanager
def replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    """Another value of an attribute, for a while."""
    own = name in vars(owner)
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        if own:
            setattr(owner, name, before)
        else:
            delattr(owner, name)


@contextmanager
def _garbage_stays() -> Iterator[None]:
    """Numba makes millions of objects and keeps them: looking for garbage is a tenth of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _resolved_once(resolve: Any) -> Any:
    """`array[i]` with the same types has the same meaning everywhere in a kernel.

    Numba asks each of dozens of candidates at every place. An answer consists of a signature and of the key
    under which its implementation is found, which Numba keeps in the function type.
    """
    known: dict[Any, tuple[Any, Any]] = {}

    def get_call_type(self: Any, context: Any, args: Any, kws: Any) -> Any:
        question = self, context, tuple(args), tuple(kws.items()), ConfigStack.top_or_none()
        answer = known.get(question)
        if answer is not None:
            signature, self._impl_keys[signature.args] = answer
            return signature
        signature = resolve(self, context, args, kws)
        if signature is not None:
            known[question] = signature, self._impl_keys[signature.args]
        return signature

    return get_call_type


def _without_lifetimes(thoroughly: Any) -> Any:
    """After most of its steps Numba works out where each variable lives, for object mode and generators.

    Kernels are neither, and where a step asks for lifetimes they are worked out then.
    """

    def run(self: Any, emit_dels: bool = False, extend_lifetimes: bool = False) -> None:
        code = self.func_ir
        if code.is_generator:
            thoroughly(self, emit_dels, extend_lifetimes)
            return
        code.blocks = canonicalize_cfg(code.blocks)
        code.variable_lifetime = VariableLifetime(code.blocks)
        code.generator_info = None
        if emit_dels:
            self._insert_var_dels(extend_lifetimes=extend_lifetimes)

    return run


_VARIABLE, _INSTRUCTION, _SEQUENCE, _TABLE, _OTHER = range(5)
_kinds: dict[type[Any], int] = {}


def _kind_of(value: Any) -> int:
    for kind, types in ((_VARIABLE, Var), (_INSTRUCTION, Inst), (_SEQUENCE, (list, tuple)), (_TABLE, dict)):
        if isinstance(value, types):
            return kind
    return _OTHER


def _variables(self: Any, value: Any) -> list[Any]:
    """The variables in whatever an instruction consists of.

    Numba asks for them a dozen times per instruction, and each time of every part what it is an instance of.
    """
    found: list[Any] = []
    for part in value.values() if isinstance(value, dict) else value if type(value) is list else (value,):
        kind = _kinds.get(type(part))
        if kind is None:
            kind = _kinds[type(part)] = _kind_of(part)
        if kind == _VARIABLE:
            found.append(part)
        elif kind == _INSTRUCTION:
            found += part.list_vars()
        elif kind == _SEQUENCE:
            found += _variables(self, list(part))
        elif kind == _TABLE:
            found += _variables(self, part)
    return found


def _measured_once(measure: Any) -> Any:
    """The size of a type. Numba has LLVM parse a small program for it, for every variable of a function."""
    known: dict[int, tuple[Any, int]] = {}

    def get_abi_sizeof(type: Any) -> int:
        if id(type) not in known:
            known[id(type)] = type, measure(type)  # with the type, so that no other gets its number
        return known[id(type)][1]

    return get_abi_sizeof


def _but_of_locks(tell: Any) -> Any:
    """Numba tells its listeners of every call of LLVM, thousands of them, for one of its statistics."""

    def tell_others(kind: str, *args: Any, **kwargs: Any) -> None:
        if kind != "numba:llvm_lock":
            tell(kind, *args, **kwargs)

    return tell_others


def _when_there_is_more(context: Any) -> Any:
    """Before every function Numba imports its own modules and looks what they have made known to it."""
    refresh = context.refresh
    known = 0
    lists: list[Any] = []

    def only_then() -> None:
        nonlocal known
        if not lists or sum(map(len, lists)) != known:
            refresh()
            lists[:] = [
                part
                for of in list(context._registries)
                for part in vars(of).values()
                if isinstance(part, list)
            ]
            known = sum(map(len, lists))

    return only_then
