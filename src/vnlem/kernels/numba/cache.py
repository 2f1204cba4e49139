"""Where compiled kernels are kept between runs, and when they are taken from there.

Numba renews a stored kernel when the kernel's own file changes, not when a function it calls does, and it
gives up where no folder can be written to. Kernels are stored here under a fingerprint of all kernel sources,
so that code of other sources is never found, in whichever of Numba's folders it lies.
"""

import hashlib
import os
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import FunctionCache, IndexDataCacheFile

from vnlem.kernels.numba.ahead import find_helpers, name_of
from vnlem.kernels.numba.shortcuts import refresh_contexts
from vnlem.pipeline.warn import warn

QUIET = "VNLEM_QUIET"  # set it to hide the line about compiling
_SOURCES = Path(__file__).parent


def _hash_of_sources() -> str:
    found = hashlib.blake2b(digest_size=6)
    for source in sorted(_SOURCES.glob("*.py")):
        found.update(source.read_bytes())
    return found.hexdigest()


SOURCES_HASH = _hash_of_sources()
# Numba's own key has its version and the processor, not the switches that change the code it makes.
_config: Any = numba.config
_SWITCHES = f"b{int(bool(_config.BOUNDSCHECK))}o{_config.OPT}"
FINGERPRINT = f"{SOURCES_HASH}{_SWITCHES}"


class KernelCache(FunctionCache):
    """The stored machine code of one kernel. Whatever is wrong with it, compiling anew is the cure."""

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        self._function = function
        name = f"{self._impl.filename_base}.{FINGERPRINT}"
        self._cache_file = IndexDataCacheFile(self._cache_path, name, FINGERPRINT)

    def is_empty(self) -> bool:
        """Whether nothing is stored, for whatever types."""
        return not os.path.exists(self._cache_file._index_path)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The stored code for these argument types, if need be after it was made elsewhere, or None."""
        found = self._load(sig, target_context)
        if found is None:
            _notice.begin()
            helpers = find_helpers()
            if helpers is not None and helpers.has_compiled(name_of(self._function, sig)):
                found = self._load(sig, target_context)
                if found is not None:
                    _notice.end()
        return found

    def _load(self, sig: Any, target_context: Any) -> Any:
        refresh_contexts()
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # a damaged file may raise anything
            with suppress(OSError):
                self.flush()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Store compiled code; a full disk only costs the next run a compilation."""
        _notice.end()
        try:
            super().save_overload(sig, data)
        except OSError:
            return
        _drop_other_sources(Path(self._cache_path))


def store(dispatcher: Any) -> None:
    """Let a compiled function keep its machine code, where any folder can be written to."""
    if _config.DISABLE_JIT:
        return
    try:
        dispatcher._cache = KernelCache(dispatcher.py_func)
    except RuntimeError:  # Numba found no folder
        _warn_once()


_tidied: set[Path] = set()


def _drop_other_sources(folder: Path) -> None:
    """Delete what other sources have left in a folder of ours, once per process."""
    if folder in _tidied:
        return
    _tidied.add(folder)
    for file in folder.glob("*.nb[ic]"):
        if SOURCES_HASH not in file.name:
            with suppress(OSError):
                file.unlink(missing_ok=True)


_warned = False


def _warn_once() -> None:
    global _warned
    if not _warned:
        _warned = True
        warn(
            "compiled kernels cannot be stored, because no folder can be written to: every process compiles "
            "them anew; set NUMBA_CACHE_DIR to a folder that can be written to",
            RuntimeWarning,
        )


class _Notice:
    """One line on stderr when compiling takes long."""

    PATIENCE = 1.0  # seconds of compiling before the line appears

    def __init__(self) -> None:
        self._spent = 0.0
        self._since: float | None = None
        self._timer: threading.Timer | None = None
        self._said = False

    def begin(self) -> None:
        if self._said or self._since is not None:
            return
        self._since = time.monotonic()
        self._timer = threading.Timer(max(0.0, self.PATIENCE - self._spent), self._say)
        self._timer.daemon = True
        self._timer.start()

    def end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._since is not None:
            self._spent += time.monotonic() - self._since
            self._since = None

    def _say(self) -> None:
        self._said = True
        if not os.environ.get(QUIET):
            how_often = "in every process" if _warned else "once"
            print(
                f"vnlem: compiling kernels for this machine, {how_often}: some seconds "
                "('vnlem warm-up' does it ahead)",
                file=sys.stderr,
                flush=True,
            )


_notice = _Notice()
