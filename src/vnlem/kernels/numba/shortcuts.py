"""What Numba leaves out while it compiles a kernel. The code it makes is the same.

Most of a kernel's compilation is Numba's Python code, and much of that is the same question asked again.
"""

import gc
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from numba.core.compiler import Flags
from numba.core.postproc import PostProcessor, VariableLifetime
from numba.core.registry import cpu_target
from numba.core.targetconfig import ConfigStack, TargetConfig
from numba.core.transforms import canonicalize_cfg
from numba.core.types.functions import BaseFunction

_CODE_OF_NAMES = hash(Flags())  # Numba takes it from the names of all options, so it is always the same


class QuickFlags(Flags):
    """Compilation flags, which are part of many keys: compared by the options that are set."""

    def __hash__(self) -> int:
        return _CODE_OF_NAMES

    def __eq__(self, other: object) -> bool:
        same = isinstance(other, TargetConfig) and self._values == other._values
        return same or super().__eq__(other)


@contextmanager
def shortcuts() -> Iterator[None]:
    """All of these, for one kernel. The caller holds Numba's lock for compiling."""
    contexts: tuple[Any, ...] = cpu_target.target_context, cpu_target.typing_context
    contexts[0].refresh()
    with _garbage_stays(), ExitStack() as scope:
        for owner, name, value in (
            (BaseFunction, "get_call_type", _resolved_once(BaseFunction.get_call_type)),
            (PostProcessor, "run", _without_lifetimes(PostProcessor.run)),
            *((context, "load_additional_registries", _without_imports(context)) for context in contexts),
        ):
            scope.enter_context(_replaced(owner, name, value))
        yield


@contextmanager
def _replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
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


def _without_imports(context: Any) -> Any:
    """Numba imports its own modules before every function, and then looks what they have made known to it."""

    def look_again() -> None:
        for registry in list(context._registries):
            context.install_registry(registry)

    return look_again
