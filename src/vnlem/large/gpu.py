"""Blocks on a GPU: which one, and one after another."""

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from vnlem.pipeline.device import choose, current

_lock = threading.Lock()


def find_device(device: str | None, *, elsewhere: bool) -> str:
    """Where blocks are solved: "cpu", "cuda" or "cuda:N"; with `elsewhere` this machine needs no GPU.

    >>> find_device(None, elsewhere=False), find_device("cuda", elsewhere=True)
    ('cpu', 'cuda')
    """
    if elsewhere and re.fullmatch(r"cuda(:\d+)?", str(device)):
        return str(device)
    found = choose(device)
    return found if found == "cpu" or device != "cuda" else "cuda"


def kind_of(device: str) -> str:
    """The kind of a device, whichever of several it is.

    >>> kind_of("cuda:1"), kind_of("cpu")
    ('cuda', 'cpu')
    """
    return device.partition(":")[0]


@contextmanager
def one_at_a_time(device: str) -> Iterator[None]:
    """Inside, solvers run on a device; a GPU holds one block of this process at a time.

    >>> with one_at_a_time("cpu"):
    ...     pass
    """
    if device == "cpu":
        yield
        return
    with _lock, current(choose(device)):
        yield
