"""How a kernel is put together: its functions are lowered one by one, then optimised once, as one piece.

Numba by itself optimises every function, writes its machine code and a way to call it from Python, and then
does the work once more for each function that calls it. A kernel's functions are called by that kernel alone,
so here they stay as they were lowered until the kernel is whole. Its first call takes half the time.
"""

from typing import Any

from llvmlite.binding import Linkage
from numba.core import config as numba_config
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.registry import CPUDispatcher

from vnlem.kernels.numba import ahead
from vnlem.kernels.numba.fallback import plain_twin
from vnlem.kernels.numba.shortcuts import QuickFlags, replaced, shortcuts
from vnlem.pipeline.first_call import is_rehearsing

config: Any = numba_config
# LLVM's level of optimisation. With Numba's own, the third, kernels give the same bytes at the same speed and
# take longer to optimise.
EFFORT = 2


class _NoEnvironment:
    """Stands in for the code generator where Numba tells it of a function's Python globals."""

    @staticmethod
    def set_env(name: str, environment: Any) -> None:
        """A part never runs by itself, so it has no use for them."""


class _AsLowered(JITCodeLibrary):
    """Code that stays as it was lowered until its kernel is whole."""

    def _optimize_functions(self, module: Any) -> None:
        """The kernel does it for all its parts."""
        module.data_layout = self._codegen._data_layout


class _Part(_AsLowered):
    """A function that kernels call: its lowered code, without that of the functions it calls."""

    @property
    def codegen(self) -> Any:
        return _NoEnvironment

    def finalize(self) -> None:
        for function in self._final_module.functions:
            if not function.is_declaration and function.linkage == Linkage.external:
                function.linkage = Linkage.linkonce_odr
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """None: there is no machine code to point to."""
        self._ensure_finalized()
        return 0


class _Whole(_AsLowered):
    """A kernel. What it calls belongs to it alone, under names that no other kernel can see.

    Otherwise a function called by its name may be this kernel's copy or another's, optimised in other
    surroundings, and the last bits of a result depend on which kernel was compiled or loaded first.
    """

    def finalize(self) -> None:
        _link(self)
        self._linking_libraries = []
        for function in self._final_module.functions:
            if not function.is_declaration and function.linkage == Linkage.linkonce_odr:
                function.linkage = Linkage.internal
        super().finalize()

    def _optimize_final_module(self) -> None:
        """With less effort than Numba asks of LLVM, where nobody has asked for more."""
        level = config.OPT
        asked = level <= EFFORT or level.is_opt_max
        with replaced(config, "OPT", level if asked else type(level)(EFFORT)):
            self._optimize()

    def _optimize(self) -> None:
        super()._optimize_final_module()


class _AtOnce(_Whole):
    """A kernel that is optimised once.

    Numba has LLVM go over it cheaply before, so that fewer references are counted and loops that call
    elementary functions vectorise. Kernels with neither need no such round.
    """

    def _optimize(self) -> None:
        passes = self._codegen._module_pass_manager()
        if isinstance(passes, tuple):
            manager, builder = passes
            manager.run(self._final_module, builder)
        else:  # before Numba 0.62
            super()._optimize()


def _link(library: Any) -> None:
    """Add what a kernel calls, and what that calls: callers first, or LLVM sees no need."""
    found: dict[Any, None] = {}
    waiting = [library]
    for caller in waiting:
        for called in dict.fromkeys(caller._linking_libraries):
            if called in found:
                continue
            found[called] = None
            if isinstance(called, _Part):
                waiting.append(called)
    for called in found:
        called._ensure_finalized()
        if hasattr(library, "_reload_init"):  # from Numba 0.60 on
            library._reload_init.update(called._reload_init)
        own = called._final_module if isinstance(called, _Part) else called._get_module_for_linking()
        library._final_module.link_in(own, preserve=True)


class PartCompiler(Compiler):
    """Numba's pipeline for functions that kernels call."""

    def __init__(self, typing: Any, target: Any, library: Any, *rest: Any) -> None:
        super().__init__(typing, target, library or _Part(target.codegen(), "part"), *rest)
        self.state.flags = QuickFlags(self.state.flags)


class WholeCompiler(Compiler):
    """Numba's pipeline for kernels."""

    _library: type[_Whole] = _Whole

    def __init__(self, typing: Any, target: Any, library: Any, *rest: Any) -> None:
        if library is None:
            library = self._library(target.codegen(), "kernel")
            library.enable_object_caching()
        super().__init__(typing, target, library, *rest)
        self.state.flags = QuickFlags(self.state.flags)

    def compile_extra(self, func: Any) -> Any:
        """The compiled kernel."""
        with shortcuts():
            return super().compile_extra(func)


class AtOnceCompiler(WholeCompiler):
    """Numba's pipeline for kernels that are optimised once."""

    _library = _AtOnce


class _PartDispatcher(CPUDispatcher):
    """A function without machine code: Python must not call it."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(
            f"{self.py_func.__name__} is a part of kernels and has no code of its own; "
            "call it through vnlem.kernels.numba.jit.from_python"
        )


def guarded(dispatcher: Any) -> Any:
    """A part that says so when Python calls it."""
    if isinstance(dispatcher, CPUDispatcher):  # a plain function where compiling is switched off
        dispatcher.__class__ = _PartDispatcher
    return dispatcher


class _KernelDispatcher(CPUDispatcher):
    """A kernel. Where it cannot be compiled our way its plain twin takes its place."""

    def expect(self) -> None:
        """A call that needs this kernel is about to begin: let others compile where it was never compiled."""
        stored: Any = getattr(self, "_cache", None)
        if not self.overloads and hasattr(stored, "is_empty") and stored.is_empty():
            ahead.find_helpers()

    def note_calls(self) -> None:
        """From now on note calls instead of running."""
        self.__class__ = _NotingDispatcher

    def compile(self, sig: Any) -> Any:
        """Machine code for some types."""
        twin = getattr(self, "_twin", None)
        if twin is None:
            try:
                return super().compile(sig)
            except Exception as error:
                self._twin, code = plain_twin(self.py_func, sig, error)
                return code
        return twin.compile(sig)


class _NotingDispatcher(_KernelDispatcher):
    """A kernel that is to be compiled later."""

    def expect(self) -> None:
        """Nothing: this process is one of those that help."""

    def __call__(self, *args: Any) -> Any:
        return ahead.note(self, args)


def whole(dispatcher: Any) -> Any:
    """A kernel that knows its way out, and notes its calls instead of running where the process rehearses."""
    if isinstance(dispatcher, CPUDispatcher):
        dispatcher.__class__ = _NotingDispatcher if is_rehearsing() else _KernelDispatcher
        ahead.kernels.append(dispatcher)
    return dispatcher
