"""The progress bar of long work: on stderr, only where a person can see it."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

ProgressCallback = Callable[[int, int], object]  # (done, total)
Progress = bool | ProgressCallback
Report = Callable[[float], None]  # takes the share of the work that is done, 0 to 1


@contextmanager
def progress_bar(title: str, *, quiet: bool = False) -> Iterator[Report]:
    """A bar with the time left; with `quiet` or without a terminal nothing is shown.

    Examples
    --------
    >>> with progress_bar("denoising", quiet=True) as report:
    ...     report(0.5)
    """
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
