"""The commit point (promise 2), as the last stage before the sink.

Until the first content has passed, everything is held, so that an attempt that fails can be
forgotten without a trace. Under ``complete`` everything is held to the end.
"""

from __future__ import annotations

from adapters.canonical.events import CONTENT, Event, Failed, Finished, PartStarted
from adapters.canonical.parts import Media, Opaque, ToolCall

_WHOLE = (ToolCall, Opaque, Media)
_ENDS = frozenset({Finished, Failed})


def is_content(event: Event) -> bool:
    """Whether ``event`` shows the caller something that can't be taken back."""
    if isinstance(event, CONTENT):
        return event.text != ""
    return isinstance(event, PartStarted) and isinstance(event.head, _WHOLE)


class Gate:
    """Holds events until the attempt commits, and to its end if it ``holds_all``."""

    __slots__ = ("_held", "committed", "holds_all")

    def __init__(self, *, hold_all: bool) -> None:
        self.holds_all = hold_all
        self._held: list[Event] = []
        self.committed = False

    def feed(self, events: list[Event]) -> list[Event]:
        """Nothing before the commit, then all that was held, then everything as it comes."""
        if self.committed:
            return events
        self._held.extend(events)
        if self.holds_all or not any(map(is_content, events)):
            # the terminal has to reach the pump even while content is held back
            return events[-1:] if _ends(events) else []
        self.committed = True
        held, self._held = self._held, []
        return held

    def release(self) -> list[Event]:
        """What is still held of an answer that ended well, the terminal left out."""
        held, self._held = self._held, []
        if not held:
            return held
        self.committed = True
        return held[:-1] if _ends(held) else held


def _ends(events: list[Event]) -> bool:
    """Whether the terminal is among ``events``: after it comes nothing."""
    return bool(events) and type(events[-1]) in _ENDS
