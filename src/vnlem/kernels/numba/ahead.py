"""Kernels compiled side by side at the first call, in processes of their own.

Numba compiles one function at a time in a process. So where the kernels of a call are not stored, other
processes are started: copies of this one where it can be copied (`forked.py`), otherwise new ones, which have
to import everything first. They make the same call on a small image, with kernels that do nothing but note
what they are called with, and compile the noted ones, the largest first, while this process goes on from the
first to the last. Whoever begins a kernel claims it. Where this process needs a kernel that another has begun
it compiles those that nobody has begun, then waits.
"""

import hashlib
import importlib
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
import time
import weakref
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from vnlem.kernels.numba.forked import Fork, can_fork
from vnlem.kernels.numba.shortcuts import refresh_contexts
from vnlem.pipeline.first_call import RECORD, Call, call_under_way, rehearse

COMPILERS = "VNLEM_COMPILERS"  # how many processes compile at a first call, this one included
_MOST = 3  # processes: a call has two or three large kernels
_LOOK_AGAIN = 0.01  # seconds
_NOTED = "noted"  # the file with the kernels of a call, the largest first

_noted: dict[tuple[str, str], tuple[Any, tuple[Any, ...]]] = {}
kernels: list[Any] = []  # all kernels of this process


def note(dispatcher: Any, args: tuple[Any, ...]) -> int:
    """What a kernel does while calls are recorded: nothing, with no error to tell of."""
    types = tuple(map(dispatcher.typeof_pyval, args))
    _noted.setdefault((dispatcher.__name__, str(types)), (dispatcher, types))
    return 0


def name_of(function: Any, types: Any) -> str:
    """The same in every process."""
    code = hashlib.blake2b(str(types).encode(), digest_size=8).hexdigest()
    return f"{function.__module__}.{function.__qualname__}.{code}"


def _claim(folder: Path, name: str) -> bool:
    """Whether nobody has begun it."""
    try:
        os.close(os.open(folder / name, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


def _is_done(folder: Path, name: str) -> bool:
    return (folder / f"{name}.done").exists()


def _end(processes: list["Fork | subprocess.Popen[bytes]"]) -> None:
    """No helper outlives the process it helps."""
    for process in processes:
        if process.poll() is None:
            process.kill()
            process.wait()


def _start(folder: Path, call: Call) -> subprocess.Popen[bytes]:
    """A new process that helps."""
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        RECORD: "1",
        COMPILERS: "1",
    }
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", f"import {__name__} as a; a.help({str(folder)!r})"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment,
    )
    assert process.stdin is not None
    with suppress(OSError), process.stdin as pipe:  # it may have ended already
        pipe.write(pickle.dumps(call))
    return process


class Helpers:
    """The other processes, while they compile for one call."""

    def __init__(self, call: Call, count: int) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="vnlem-"))
        weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)
        self._call = weakref.ref(call)
        self._processes: list[Fork | subprocess.Popen[bytes]] = []
        weakref.finalize(self, _end, self._processes)
        small = call.made_small()
        copies = can_fork()
        if copies:
            refresh_contexts()  # or every copy does it
        for _ in range(count):
            if copies:
                with suppress(OSError, RuntimeError):  # too little memory, or Python allows no copy here
                    self._processes.append(Fork(partial(_help_as_copy, self.folder, small)))
                    continue
            self._processes.append(_start(self.folder, small))

    def are_for(self, call: Call | None) -> bool:
        """Whether they were started for this call."""
        return call is not None and self._call() is call

    def are_at_work(self) -> bool:
        """Whether any process is left."""
        return any([process.poll() is None for process in self._processes])

    def has_compiled(self, name: str) -> bool:
        """Wait for a kernel that another process has begun; False where this one has to compile it."""
        if _claim(self.folder, name):
            return False
        while not _is_done(self.folder, name):
            if not self.are_at_work():
                return _is_done(self.folder, name)
            if not self._compile_another():
                time.sleep(_LOOK_AGAIN)
        return True

    def _compile_another(self) -> bool:
        """Compile the largest kernel that nobody has begun; whether there was one."""
        with suppress(OSError, EOFError):  # there is no list yet
            for module, name, types in pickle.loads((self.folder / _NOTED).read_bytes()):
                dispatcher = getattr(importlib.import_module(module), name)
                if not (self.folder / name_of(dispatcher.py_func, types)).exists():
                    dispatcher.compile(types)
                    return True
        return False


_helpers: Helpers | None = None


def find_helpers() -> Helpers | None:
    """Those of the call under way, started where there are none; None where this process compiles alone."""
    global _helpers
    call = call_under_way()
    if _helpers is None or not (_helpers.are_at_work() or _helpers.are_for(call)):
        _helpers = None
        count = _how_many()
        if call is not None and count:
            with suppress(OSError):  # no folder, no process: this one can do without
                _helpers = Helpers(call, count)
    return _helpers


def _how_many() -> int:
    """Processes beside this one."""
    if getattr(sys, "frozen", False) or not Path(sys.executable or "").name.lower().startswith("python"):
        return 0  # some other program, which would start itself
    given = os.environ.get(COMPILERS, "")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(int(given) if given.isdigit() else min(cores, _MOST), 1) - 1


def _size(function: Any, seen: set[Any]) -> int:
    """How much is to be compiled: bytes of a function's code and of what it calls, each counted once."""
    seen.add(function)
    size = len(function.__code__.co_code)
    for name in function.__code__.co_names:
        part = getattr(function.__globals__.get(name), "py_func", None)
        if part is not None and part not in seen:
            size += _size(part, seen)
    return size


def help(folder: str) -> None:
    """What a new process does: learn the call on its standard input, then compile its kernels."""
    _help(Path(folder), pickle.load(sys.stdin.buffer))


def _help_as_copy(folder: Path, call: Call) -> None:
    """What a copy of this process does."""
    global _helpers
    _helpers = None  # they help the process that was copied
    os.environ[COMPILERS] = "1"
    rehearse()
    for kernel in kernels:
        kernel.note_calls()
    _help(folder, call)


def _help(claims: Path, call: Call) -> None:
    with suppress(Exception):  # what was noted before is worth compiling
        call.make()
    # Of kernels of one size the last comes first: the process that is helped begins with the first.
    noted = sorted(reversed(_noted.values()), key=lambda entry: -_size(entry[0].py_func, set()))
    with suppress(OSError):  # the call has ended
        unfinished = claims / f"{os.getpid()}.new"
        functions = [(dispatcher.py_func, types) for dispatcher, types in noted]
        unfinished.write_bytes(pickle.dumps([(f.__module__, f.__name__, types) for f, types in functions]))
        unfinished.replace(claims / _NOTED)
    for dispatcher, types in noted:
        key = name_of(dispatcher.py_func, types)
        if not claims.exists():
            return  # the call has ended
        if _claim(claims, key):
            dispatcher.compile(types)
            (claims / f"{key}.done").touch()
