"""What a user sees when something goes wrong: one line on stderr and an exit status."""

import logging
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

import typer

BAD_INPUT = 2
INTERRUPTED = 130  # 128 + SIGINT, as shells count it
TERMINATED = 143  # 128 + SIGTERM
BROKEN_PIPE = 141
_DEBUG = "VNLEM_DEBUG"  # set it to see tracebacks


def exit_status(run: Callable[[], Any]) -> int:
    """Run a command; errors and warnings become lines on stderr, the outcome an exit status.

    >>> exit_status(lambda: None)
    0
    """
    # Readers log remarks about a file; what matters reaches the user as an error.
    for reader in ("tifffile", "nibabel.global", "liffile", "nd2"):
        logging.getLogger(reader).setLevel(logging.CRITICAL)
    with warnings.catch_warnings(), _clean_end():
        warnings.simplefilter("ignore")  # for developers
        warnings.simplefilter("default", UserWarning)
        warnings.simplefilter("default", RuntimeWarning)
        warnings.showwarning = _show_warning
        try:
            status = run()
            sys.stdout.flush()
            if status == INTERRUPTED:  # newer versions of typer catch Ctrl-C themselves
                raise KeyboardInterrupt
            return status if isinstance(status, int) else 0
        except _Terminated:
            _say("terminated")
            return TERMINATED
        except (KeyboardInterrupt, typer.Abort):
            _say("interrupted")
            return INTERRUPTED
        except BrokenPipeError:
            # The reader of the output has closed it; the interpreter must not flush to it again.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return BROKEN_PIPE
        except Exception as error:
            if os.environ.get(_DEBUG) or not _is_bad_input(error):
                raise
            _say(f"error: {one_line(error)}")
            return BAD_INPUT


class _Terminated(BaseException):
    """The process was asked to end (SIGTERM)."""


@contextmanager
def _clean_end() -> Iterator[None]:
    """Let SIGTERM unwind the stack like Ctrl-C: no temporary file is left behind."""

    def end(*_: object) -> None:
        raise _Terminated

    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread receives signals
        return
    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _is_bad_input(error: Exception) -> bool:
    # format_message marks the usage errors of the argument parser, which typer does not export.
    return isinstance(error, ValueError | TypeError | OSError | MemoryError) or hasattr(
        error, "format_message"
    )


def one_line(error: Exception) -> str:
    """What went wrong, in one line.

    >>> one_line(ValueError("it is\\n damaged"))
    'it is damaged'
    """
    if hasattr(error, "format_message"):
        text = error.format_message()
        context = getattr(error, "ctx", None)
        if context is not None:
            text = f"{text} (see {context.command_path} --help)"
    elif isinstance(error, MemoryError):
        text = f"out of memory: {error}" if str(error) else "out of memory"
    elif isinstance(error, OSError) and error.strerror and error.filename:
        text = f"{error.strerror}: {error.filename}"
    elif isinstance(error, OSError) and error.strerror:
        text = error.strerror
    else:
        text = str(error) or type(error).__name__
    return " ".join(text.split())


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    _say(f"warning: {' '.join(str(message).split())}")


def _say(text: str) -> None:
    print(f"vnlem: {text}", file=sys.stderr)
