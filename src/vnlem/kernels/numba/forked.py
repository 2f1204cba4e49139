"""A helper process that is a copy of this one, so that it has imported everything.

A copy has one thread, the one that made it, and whatever another thread had locked stays locked in it. So a
process is copied only where no other thread runs Python code. Threads of libraries do no harm: OpenBLAS ends
its own before a process is copied, and the C library unlocks what it shares with them, which is all that the
copy needs: memory, files and the loader. It runs Python, Numba and LLVM, touches nothing it shares with
this process, and ends without cleaning up after it.
"""

import gc
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn


def can_fork() -> bool:
    """Whether this process can be copied without harm."""
    return (
        sys.platform == "linux"
        and threading.current_thread() is threading.main_thread()
        and len(sys._current_frames()) == 1
    )


class Fork:
    """A copy of this process that does some work and ends. Methods as those of subprocess.Popen."""

    def __init__(self, work: Callable[[], object]) -> None:
        self.returncode: int | None = None
        with warnings.catch_warnings():
            # Python warns where a process has threads, also where they are a library's.
            warnings.simplefilter("ignore", DeprecationWarning)
            self._process = os.fork()
        if self._process == 0:
            _work_alone(work)

    def poll(self) -> int | None:
        """None while it works."""
        return self._wait(os.WNOHANG)

    def wait(self) -> int | None:
        """Wait for its end."""
        return self._wait(0)

    def kill(self) -> None:
        """End it."""
        if self.poll() is None:
            os.kill(self._process, signal.SIGKILL)

    def _wait(self, how: int) -> int | None:
        if self.returncode is None:
            try:
                process, status = os.waitpid(self._process, how)
            except ChildProcessError:  # somebody else has waited for it
                self.returncode = 0
            else:
                if process:
                    self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode


def _work_alone(work: Callable[[], object]) -> NoReturn:
    """What the copy does. Whatever happens, it never returns into the program it was copied from."""
    status = 1
    try:
        # No object of the program is taken apart here: that could delete a file the program still uses.
        gc.disable()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        signal.set_wakeup_fd(-1)
        _leave_files()
        warnings.simplefilter("ignore")
        work()
        status = 0
    finally:
        os._exit(status)


def _leave_files() -> None:
    """Close what the program has open, so that whoever reads from it sees its end, and write to nothing."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nowhere, standard)
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2:
            with suppress(OSError):  # the list itself
                os.close(int(name))
    sys.stdout = sys.stderr = os.fdopen(1, "w", closefd=False)
