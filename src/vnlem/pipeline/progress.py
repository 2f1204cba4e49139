"""The progress of long work: a bar in a terminal or a notebook, lines if requested."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import escape

import numpy as np

ProgressCallback = Callable[[int, int], object]  # (done, total)
Progress = bool | ProgressCallback
Report = Callable[[float], None]  # takes the share of the work that is done, 0 to 1
_SECONDS_PER_UPDATE = 0.2  # in a notebook
_SECONDS_PER_LINE = 10.0  # if lines are printed


@contextmanager
def progress_bar(title: str, *, quiet: bool = False, lines: bool = False) -> Iterator[Report]:
    """A bar with the time left; nothing with `quiet`.

    Without a terminal or a notebook, `lines` prints a line to stderr every ten seconds; without it nothing is
    shown.

    >>> with progress_bar("denoising", quiet=True) as report:
    ...     report(0.5)
    """
    if not quiet and in_notebook():
        with _in_a_cell(title) as report:
            yield report
        return
    if quiet or not sys.stderr.isatty():
        yield _lines(title) if lines and not quiet else lambda share: None
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
    """Whether this is a Jupyter notebook: its stderr is shown, though it is not a terminal.

    >>> in_notebook()
    False
    """
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None


@contextmanager
def _in_a_cell(title: str) -> Iterator[Report]:
    """One bar below the cell of a notebook, redrawn as the work goes on."""
    from IPython.display import HTML, display

    begun = shown_at = time.monotonic()
    shown = None

    def draw(words: str, share: float) -> None:
        nonlocal shown
        bar = HTML(f'<progress value="{share:.3f}" max="1"></progress> {escape(title)}: {words}')
        if shown is None:
            shown = display(bar, display_id=True)
        else:
            shown.update(bar)

    def report(share: float) -> None:
        nonlocal shown_at
        instant = time.monotonic()
        if instant - shown_at >= _SECONDS_PER_UPDATE and share > 0:
            shown_at = instant
            draw(f"{100 * share:.0f} %, {(instant - begun) * (1 - share) / share:.0f} s left", share)

    yield report
    if shown is not None:
        draw(f"done in {time.monotonic() - begun:.1f} s", 1.0)


def _lines(title: str) -> Report:
    begun = told = time.monotonic()

    def report(share: float) -> None:
        nonlocal told
        instant = time.monotonic()
        if instant - told >= _SECONDS_PER_LINE and share > 0:
            told = instant
            left = (instant - begun) * (1 - share) / share
            print(f"{title}: {100 * share:.0f} %, {left:.0f} s left", file=sys.stderr, flush=True)

    return report


@contextmanager
def reporting(progress: Progress, title: str) -> Iterator[ProgressCallback | None]:
    """Turn the `progress` argument into a callback: none, a bar on stderr, or the caller's own.

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
