"""The progress bar of long work: on stderr, only where a person can see it."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

ProgressCallback = Callable[[int, int], object]  # (done, total)
Progress = bool | ProgressCallback
Report = Callable[[float], None]  # takes the share of the work that is done, 0 to 1
_SECONDS_PER_LINE = 0.2  # between two updates in a notebook


@contextmanager
def progress_bar(title: str, *, quiet: bool = False) -> Iterator[Report]:
    """A bar with the time left; with `quiet`, or with neither a terminal nor a notebook, nothing is shown.

    Examples
    --------
    >>> with progress_bar("denoising", quiet=True) as report:
    ...     report(0.5)
    """
    if not quiet and in_notebook():
        with _line(title) as report:
            yield report
        return
    if quiet or not sys.stderr.isatty():
        yield lambda share: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(compact=True),
        TextColumn("left"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=1.0)
        yield lambda share: bar.update(task, completed=share)


def in_notebook() -> bool:
    """Whether this is a Jupyter notebook, where stderr is no terminal and yet somebody reads it.

    Examples
    --------
    >>> in_notebook()
    False
    """
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None


@contextmanager
def _line(title: str) -> Iterator[Report]:
    """One line that is written over again, which every notebook can show without further packages."""
    begun = shown_at = time.monotonic()

    def report(share: float) -> None:
        nonlocal shown_at
        instant = time.monotonic()
        if instant - shown_at < _SECONDS_PER_LINE or share <= 0:
            return
        shown_at = instant
        left = (instant - begun) * (1 - share) / share
        print(f"\r{title}: {100 * share:3.0f} %, {left:.0f} s left ", end="", file=sys.stderr, flush=True)

    yield report
    if shown_at > begun:
        seconds = time.monotonic() - begun
        print(f"\r{title}: done in {seconds:.1f} s      ", file=sys.stderr, flush=True)


@contextmanager
def reporting(progress: Progress, title: str) -> Iterator[ProgressCallback | None]:
    """Turn the `progress` argument into a callback: none, a bar on stderr, or the caller's own.

    Examples
    --------
    >>> with reporting(False, "nlm") as report:
    ...     report is None
    True
    """
    if callable(progress):
        yield progress
    elif not isinstance(progress, bool | np.bool_):
        raise TypeError(f"progress must be False, True or a callable(done, total), got {progress!r}")
    elif not progress:
        yield None
    else:
        with progress_bar(title) as report:
            yield lambda done, total: report(done / total)
