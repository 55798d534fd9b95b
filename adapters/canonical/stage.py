"""What stands between a decoder and a sink.

Stages are synchronous: a stage that would have to wait (a re-ask) gives a verdict instead, on
which ``gateway.flow.attempt`` acts. The sink alone may wait, for a slow reader.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Protocol, cast, runtime_checkable

from adapters.canonical.completion import Completion
from adapters.canonical.events import Event


class Stage(Protocol):
    """A pure step on the stream: events in, events out."""

    def feed(self, events: list[Event]) -> list[Event]:
        """Pass on, change or hold back ``events``; the terminal comes through here too."""
        ...


class Sink(Protocol):
    """Where events end: a socket, a collector, a run's ledger."""

    async def send(self, events: list[Event]) -> None:
        """Take events, the terminal never among them; waits while the reader is slow."""
        ...


@runtime_checkable
class WholeSink(Sink, Protocol):
    """A sink that collects the answer. It takes one that comes whole in one step, too."""

    def take(self, answer: Completion) -> None:
        """Take all of the answer, its terminal included."""
        ...


@runtime_checkable
class PromptSink(Sink, Protocol):
    """A sink that need not be awaited while its reader keeps up. It takes
    :class:`~adapters.canonical.events.TextRun`, too."""

    def offer(self, events: list[Event]) -> bool:
        """Take events as :meth:`Sink.send` does; ``False`` if :meth:`catch_up` has to be
        awaited before more may come."""
        ...

    def passed(self) -> bool:
        """Whether what was offered last was a ``TextRun``, and went on byte for byte."""
        ...

    def pass_on(self, data: bytes) -> bool:
        """As :meth:`offer`, for more of what :meth:`passed`."""
        ...

    async def catch_up(self) -> None:
        """Wait until the reader has taken what was offered."""
        ...


def whole_sink(sink: Sink) -> WholeSink | None:
    """``sink``, if it is a :class:`WholeSink`."""
    return cast(WholeSink, sink) if _is(WholeSink, type(sink)) else None


def prompt_sink(sink: Sink) -> PromptSink | None:
    """``sink``, if it is a :class:`PromptSink`."""
    return cast(PromptSink, sink) if _is(PromptSink, type(sink)) else None


@cache
def _is(protocol: type, kind: type) -> bool:
    """Asked of each class once: Python 3.11 takes 20 µs to hold an object against a protocol, a
    thirtieth of a call's CPU."""
    return issubclass(kind, protocol)


class Pipe:
    """Stages in a row; as a whole, a stage."""

    __slots__ = ("_stages",)

    def __init__(self, stages: Sequence[Stage]) -> None:
        self._stages = tuple(stages)

    def feed(self, events: list[Event]) -> list[Event]:
        """Pass ``events`` through every stage in order."""
        for stage in self._stages:
            events = stage.feed(events)
        return events
