"""Long work in a thread, with progress, time left and cancel, and errors as one sentence."""

import logging
import threading
import time
from collections.abc import Callable
from typing import Any

from napari.qt.threading import create_worker
from napari.utils.notifications import show_error
from qtpy.QtCore import QObject, Signal

from vnlem.napari.pages import Report
from vnlem.napari.words import in_words_of_the_widget

logger = logging.getLogger(__name__)
TELL_EVERY = 0.05  # seconds: progress signals that arrive faster than Qt handles them would pile up


class Cancelled(Exception):  # noqa: N818 - it is not an error
    """Raised inside the work when the user has cancelled it."""


class Task(QObject):
    """``work(report)`` in its own thread; the signals arrive in the thread that made the task.

    `report` takes the share of the work that is done, and ends the work if the task was cancelled.
    """

    progressed = Signal(float)
    succeeded = Signal(object)
    failed = Signal(str)
    ended = Signal()  # after any of: success, failure, cancel

    def __init__(self, work: Callable[[Report], Any]) -> None:
        super().__init__()
        self._work = work
        self._unwanted = threading.Event()
        self.begun = time.monotonic()
        self._told = 0.0

    def start(self) -> None:
        """Begin."""
        worker = create_worker(self._run, _start_thread=False)
        worker.returned.connect(self._finish)
        worker.start()

    def cancel(self) -> None:
        """Ask the work to end; `ended` follows, `succeeded` does not."""
        self._unwanted.set()

    @property
    def is_cancelled(self) -> bool:
        """Whether the task was cancelled."""
        return self._unwanted.is_set()

    def seconds_left(self, share: float) -> float | None:
        """Time left when `share` of the work is done; None while it is unknown."""
        if share < 0.02:
            return None
        return (time.monotonic() - self.begun) * (1 - share) / share

    def _report(self, share: float) -> None:
        if self._unwanted.is_set():
            raise Cancelled
        now = time.monotonic()
        if now - self._told >= TELL_EVERY:
            self._told = now
            self.progressed.emit(share)

    def _run(self) -> tuple[str, Any]:
        try:
            return "succeeded", self._work(self._report)
        except Cancelled:
            return "cancelled", None
        except Exception as error:
            logger.debug("work failed", exc_info=True)
            return "failed", one_sentence(error)

    def _finish(self, outcome: tuple[str, Any]) -> None:
        state, value = outcome
        if self.is_cancelled:
            pass
        elif state == "succeeded":
            self.succeeded.emit(value)
        elif state == "failed":
            self.failed.emit(value)
        self.ended.emit()


def one_sentence(error: Exception) -> str:
    """The message for the user about an error."""
    if isinstance(error, MemoryError):
        return "there is not enough memory for this layer; crop it, or use vnlem's command line"
    if isinstance(error, FileNotFoundError):
        return f"there is no file {error.filename}"
    words = in_words_of_the_widget(str(error) or type(error).__name__)
    return words if isinstance(error, ValueError | TypeError) else f"{type(error).__name__}: {words}"


def tell(error: Exception | str) -> None:
    """Show an error as a notification of napari."""
    show_error(f"vnlem: {error if isinstance(error, str) else one_sentence(error)}")
