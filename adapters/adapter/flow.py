"""The way of an answer: bytes to events, through the pipe, to the sink.

All of it happens where the bytes arrive; the task that made the call is woken only for an end, an
error, or a sink that has to be waited for. Text of which decoder, pipe and sink wanted to know
nothing goes on as it came. Must not know who calls, nor what happens to a fault.
"""

from __future__ import annotations

from collections.abc import Callable

from adapters.canonical.clock import Clock
from adapters.canonical.completion import Completion
from adapters.canonical.events import (
    CONTENT,
    Event,
    Failed,
    Finished,
    PartAnnotated,
    PartEnded,
    PartStarted,
    Terminal,
    TextRun,
)
from adapters.canonical.faults import Fault
from adapters.canonical.parts import Media, Opaque, ToolCall
from adapters.canonical.record import record
from adapters.canonical.stage import Sink, Stage, prompt_sink
from adapters.dialects.base import Decoder
from adapters.transport.http import Exchange
from adapters.wire.plain import text_in
from adapters.wire.sse import SseParser

MAX_BODY = 64 * 1024 * 1024
"""Bytes of a whole answer, or of a stream while nothing of it is passed on; several images come
in one. More is a ``protocol_error``."""

LOOKS = 12
"""How often one read of the socket is looked at for text that needs no decoding: enough to find
out at the stream's opening how such text is written, and to step over a few other frames."""

_TERMINALS = (Finished, Failed)
_WHOLE = (ToolCall, Opaque, Media)
_STEPS = frozenset({PartStarted, PartEnded, PartAnnotated, TextRun})
"""Events that reset `between_events`, beside content itself. A usage report, an unknown event
or an empty delta may be a heartbeat."""


@record(frozen=True, slots=True)
class Way:
    """What an answer goes through. ``take`` stands for pipe and sink where these want to know
    nothing of an ordinary whole answer but the answer: it is given that in one step."""

    decoder: Decoder
    pipe: Stage
    sink: Sink
    take: Callable[[Completion], None] | None = None


class Flow:
    """An answer on its way, event by event."""

    __slots__ = (
        "_broken",
        "_decoder",
        "_exchange",
        "_kept",
        "_last",
        "_late",
        "_now",
        "_parser",
        "_passed",
        "_pipe",
        "_prompt",
        "_sink",
        "ended_at",
        "first_event_at",
        "terminal",
    )

    _parser: SseParser
    """Made where the answer is a stream."""

    def __init__(self, exchange: Exchange, way: Way, clock: Clock) -> None:
        self._exchange = exchange
        self._decoder = way.decoder
        self._pipe = way.pipe
        self._sink = sink = way.sink
        self._prompt = prompt_sink(sink)
        self._now = clock.monotonic
        self._late: list[Event] | None = None
        """Events that the sink has to be awaited with; empty if it was offered them already."""
        self._last: TextRun | None = None
        """What came last, if it was text that went through byte for byte."""
        self._passed = 0
        """Bytes of text passed on like it, of which the pipe does not know yet."""
        self._kept = 0
        """Bytes that were read since something was passed on."""
        self._broken: Exception | None = None
        """What pipe or sink raised, for the task that waits."""
        self.terminal: Terminal | None = None
        self.first_event_at: float | None = None
        self.ended_at = 0.0

    async def run(self, begun: list[Event] | None) -> Terminal:
        """All of it, to its terminal.

        :param begun: the whole answer; ``None`` if it is a stream.
        """
        exchange = self._exchange
        if begun is None:
            self._parser = SseParser()
        else:
            self._deliver(_ended(begun))
        try:
            if self._late is not None:
                await self._catch_up()
            while self.terminal is None:
                try:
                    if not await exchange.pour(self._take):
                        self._deliver(self._end(None))
                except Fault as fault:
                    self._deliver(self._end(fault))
                if self._late is not None or self._broken is not None:
                    await self._catch_up()
        finally:
            self._tell_passed()
        return self.terminal

    async def _catch_up(self) -> None:
        """Wait for a slow sink. Time in it counts for no time-out."""
        if self._broken is not None:
            raise self._broken
        late, self._late = self._late, None
        if late is None:
            return
        self._exchange.pause()
        if late:
            await self._sink.send(late)
        elif self._prompt is not None:
            await self._prompt.catch_up()
        self._exchange.resume()

    def _take(self, chunk: bytes) -> bool:
        """Decode the next bytes and pass them on; ``False`` if the task has to see to it."""
        try:
            if self._last is None or not self._pass_on(chunk, self._last):
                self._kept += len(chunk)
                self._deliver(self._decode(chunk))
                if self._kept > MAX_BODY and self.terminal is None:
                    self._deliver(self._end(_too_much()))
        except Exception as error:  # noqa: BLE001 - the task raises it
            self._broken = error
            return False
        return self.terminal is None and self._late is None

    def _pass_on(self, chunk: bytes, last: TextRun) -> bool:
        """Pass on text as that which was passed on before it, of which decoder, pipe and sink
        wanted to know nothing; the pipe is told of it in sum."""
        size = text_in(chunk, last.pattern)
        if size == 0 or self._prompt is None:
            return False
        self._passed += size
        self._exchange.progress()
        if not self._prompt.pass_on(chunk):
            self._late = []
        return True

    def _tell_passed(self) -> None:
        last, self._last = self._last, None
        if last is not None and self._passed:
            run = TextRun(last.index, b"", self._passed, last.pattern)
            self._passed = 0
            self._pipe.feed([run])

    def _decode(self, chunk: bytes) -> list[Event]:
        """The events of the next bytes; a broken frame closes the decoder."""
        events: list[Event] = []
        try:
            if self._decoder.skims:
                chunk = self._skim(chunk, events)
            if chunk:
                self._frames(chunk, events)
        except Fault as fault:
            return [*events, *self._end(fault)]
        return events

    def _skim(self, chunk: bytes, events: list[Event]) -> bytes:
        """Add what needs no decoding to ``events``, with the single frames around it; what is
        left may be anything."""
        at, size = 0, len(chunk)
        for _ in range(LOOKS):
            run = self._decoder.skim(chunk, at) if self._parser.between else None
            if run is not None:
                events.append(run)
                at += len(run.data)
                if at == size:
                    return b""
            end = chunk.find(b"\n\n", at) + 2
            if end < 2:
                break
            self._frames(chunk[at:end], events)
            at = end
        return chunk[at:]

    def _frames(self, chunk: bytes, events: list[Event]) -> None:
        for frame in self._parser.feed(chunk):
            if events and type(events[-1]) in _TERMINALS:
                return  # what follows a terminal is not looked at
            events += self._decoder.feed(frame)

    def _end(self, fault: Fault | None) -> list[Event]:
        """What is left when no more bytes come: a proven terminal counts, whatever cut it."""
        events = self._decoder.close()
        last = _terminal_of(events)
        if isinstance(last, Finished) or (last is not None and fault is None):
            return events
        if fault is None:
            fault = Fault("stream_truncated", "The provider's answer ended without its end mark.")
        return [*(events if last is None else events[:-1]), Failed(fault)]

    def _deliver(self, events: list[Event]) -> None:
        """Through the pipe to the sink, all but the terminal; a terminal lets go of the socket
        first, so that a slow reader does not hold it."""
        if self._last is not None:
            self._tell_passed()
        if not events:
            return
        self._note(events)
        try:
            out = self._pipe.feed(events)
        except Fault as fault:
            out = [Failed(fault)]
        if type(events[-1]) in _TERMINALS or (out and type(out[-1]) in _TERMINALS):
            self._let_go(_terminal_of(out) or _terminal_of(events))
            out = [event for event in out if type(event) not in _TERMINALS]
        if not out:
            return
        self._kept = 0
        if self._prompt is None:
            self._late = out
        elif not self._prompt.offer(out):
            self._late = []
        elif type(events[0]) is TextRun and len(events) == 1 and self._parser.between:
            self._last = events[0] if self._prompt.passed() else None

    def _note(self, events: list[Event]) -> None:
        """Move the time-outs on, if the events say something."""
        begun = self.first_event_at is not None
        for event in events:
            if isinstance(event, CONTENT):
                moved = event.text != ""
            else:
                moved = type(event) in _STEPS and (begun or _is_whole(event))
            if moved:
                if not begun:
                    self.first_event_at = self._now()
                self._exchange.progress()
                return

    def _let_go(self, terminal: Terminal | None) -> None:
        self.terminal = terminal
        self.ended_at = self._now()
        if type(terminal) is Finished:
            self._exchange.finish()
        else:
            self._exchange.close()


def _terminal_of(events: list[Event]) -> Terminal | None:
    last = events[-1] if events else None
    return last if isinstance(last, _TERMINALS) else None


def _ended(events: list[Event]) -> list[Event]:
    """A whole answer, which has to have an end."""
    if _terminal_of(events) is not None:
        return events
    return [*events, Failed(Fault("protocol_error", "The provider's answer has no end."))]


def _too_much() -> Fault:
    return Fault("protocol_error", f"The provider's answer has more than {MAX_BODY} bytes.")


def _is_whole(event: Event) -> bool:
    """Whether the answer begins with ``event``, which is no text: a tool call, a whole block."""
    return isinstance(event, PartStarted) and isinstance(event.head, _WHOLE)
