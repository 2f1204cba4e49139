"""Connections to events of the viewer, which outlives the widget: they end with the widget."""

from collections.abc import Callable
from typing import Any


class Links:
    """Callbacks of events, disconnected together.

    >>> from napari.utils.events import EmitterGroup
    >>> events, heard = EmitterGroup(moved=None), []
    >>> links = Links()
    >>> links.make(events.moved, lambda event: heard.append(event.type))
    >>> _ = events.moved()
    >>> links.cut()
    >>> _ = events.moved()
    >>> heard
    ['moved']
    """

    def __init__(self) -> None:
        self._made: list[tuple[Any, Callable[..., Any]]] = []

    def make(self, event: Any, callback: Callable[..., Any]) -> None:
        """Call `callback` on `event`."""
        event.connect(callback)
        self._made.append((event, callback))

    def cut(self, *_: object) -> None:
        """Disconnect all."""
        while self._made:
            event, callback = self._made.pop()
            event.disconnect(callback)
