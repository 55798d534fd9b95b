"""Where a dialect meets a socket: one call out, one answer back as events.

:meth:`Adapter.pump` is one ``async with`` and one loop. Nested async generators would leave the
provider's socket open whenever something above them raises; here leaving the block closes it at
once. Must not know who calls, what is allowed, or what happens to a fault.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, MutableMapping

from adapters.canonical.clock import Clock, SystemClock
from adapters.canonical.events import (
    CONTENT,
    Event,
    Failed,
    Finished,
    PartAnnotated,
    PartEnded,
    PartStarted,
    Terminal,
)
from adapters.canonical.faults import Fault
from adapters.canonical.parts import NO_EXTRAS, Media, Opaque, ToolCall
from adapters.canonical.record import record
from adapters.canonical.stage import Sink, Stage
from adapters.dialects.base import Decoder, Dialect
from adapters.transport.http import Exchange, HttpTransport
from adapters.wire.call import Timeouts, WireCall
from adapters.wire.sse import SseParser

MAX_BODY = 64 * 1024 * 1024
"""Bytes of a whole answer; several images come in one. More is a ``protocol_error``."""

MAX_ERROR_BODY = 64 * 1024
ERROR_BODY_SECONDS = 5.0
"""How much of an error's body is read, and for how long: it only explains the status."""

USER_AGENT = "llm-gateway"

_KEPT = ("x-request-id", "request-id", "retry-after", "retry-after-ms", "openai-processing-ms")
_KEPT_PREFIXES = ("x-ratelimit-", "anthropic-ratelimit-")

_UNSENDABLE = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")

_TERMINALS = (Finished, Failed)
_STEPS = frozenset({PartStarted, PartEnded, PartAnnotated})
"""Events that reset `between_events`, beside content itself. A usage report, an unknown event
or an empty delta may be a heartbeat."""


@record(frozen=True, slots=True)
class Pumped:
    """How a call ended. Times are of the monotonic clock, ``None`` where it did not come so far.

    ``terminal`` has not been sent to the sink. ``status`` and ``headers`` (names in lower case;
    request id, ``Retry-After``, rate limits) are the provider's, if it answered. ``sent_at``:
    the whole request was on its way; ``headers_at``: the reply's headers were complete;
    ``first_event_at``: the first content was decoded; ``ended_at``: the terminal was known.
    """

    terminal: Terminal
    status: int | None
    headers: Mapping[str, str]
    sent_at: float | None
    headers_at: float | None
    first_event_at: float | None
    ended_at: float


@record(frozen=True, slots=True)
class Fetched:
    """A whole reply with a status below 300, undecoded. Fields as in :class:`Pumped`."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    sent_at: float | None
    headers_at: float | None
    ended_at: float


class Adapter:
    """One provider: its protocol, its sockets, its key and its extra headers.

    :param headers: sent with every call; they win over the call's own.
    :raises ValueError: for a key or header that HTTP can't carry; the message has only its name.
    """

    def __init__(
        self,
        dialect: Dialect,
        transport: HttpTransport,
        *,
        api_key: str | None = None,
        headers: Mapping[str, str] = NO_EXTRAS,
        clock: Clock | None = None,
    ) -> None:
        self.dialect = dialect
        self.transport = transport
        self._clock: Clock = SystemClock() if clock is None else clock
        auth = {} if api_key is None else dialect.auth(api_key)
        fixed = _lower({"User-Agent": USER_AGENT, "Content-Type": "application/json"})
        own = _sendable({**fixed, **_lower(headers), **_lower(auth)})
        # Compressed events may be held back by whoever compresses them.
        self._stream_headers = {
            "accept": "text/event-stream",
            "accept-encoding": "identity",
            **own,
        }
        self._whole_headers = {"accept": "application/json", **own}

    async def pump(
        self,
        call: WireCall,
        *,
        decoder: Decoder,
        pipe: Stage,
        sink: Sink,
        timeouts: Timeouts,
        marks: MutableMapping[str, float] | None = None,
    ) -> Pumped:
        """Make ``call`` and push its events through ``pipe`` to ``sink``, once for each read.

        Every fault of the provider, raised or decoded, comes back as the ``Failed`` terminal,
        and so does one that ``pipe`` raises. What ``sink`` raises and a cancellation pass
        through; the provider's socket is closed by then. Time in ``sink`` counts for no time-out.

        :param marks: is told ``sent`` (monotonic seconds) if the whole request left, also where
            the call is cancelled and nothing is returned.
        """
        async with self.transport.open(call, self._headers(call), timeouts) as exchange:
            flow = _Flow(exchange, decoder, pipe, sink, self._clock)
            try:
                terminal = await flow.run(self.dialect, call.stream)
            finally:
                if marks is not None and exchange.sent_at is not None:
                    marks["sent"] = exchange.sent_at
            return Pumped(
                terminal=self._explained(terminal, exchange),
                status=exchange.status,
                headers=_kept(exchange.headers),
                sent_at=exchange.sent_at,
                headers_at=exchange.headers_at,
                first_event_at=flow.first_event_at,
                ended_at=flow.ended_at,
            )

    async def fetch(
        self, call: WireCall, timeouts: Timeouts, marks: MutableMapping[str, float] | None = None
    ) -> Fetched:
        """Make ``call`` and give its whole body, for endpoints that are no conversation.

        :param marks: as for :meth:`pump`.
        :raises Fault: whatever went wrong, an error status included.
        """
        async with self.transport.open(call, self._headers(call), timeouts) as exchange:
            try:
                await exchange.start()
                await _check_status(exchange, self.dialect)
                exchange.whole()
                body = await exchange.read(MAX_BODY)
            finally:
                if marks is not None and exchange.sent_at is not None:
                    marks["sent"] = exchange.sent_at
            return Fetched(
                status=exchange.status or 200,
                headers=_kept(exchange.headers),
                body=body,
                sent_at=exchange.sent_at,
                headers_at=exchange.headers_at,
                ended_at=self._clock.monotonic(),
            )

    async def close(self) -> None:
        """Close all sockets of this provider."""
        await self.transport.close()

    def _headers(self, call: WireCall) -> Mapping[str, str]:
        own = self._stream_headers if call.stream else self._whole_headers
        return {**_lower(call.headers), **own} if call.headers else own

    @staticmethod
    def _explained(terminal: Terminal, exchange: Exchange) -> Terminal:
        """A failure also says which of the provider's requests it was."""
        if isinstance(terminal, Failed):
            fault = terminal.fault
            if fault.upstream_status is None:
                fault.upstream_status = exchange.status
            if fault.upstream_request_id is None:
                fault.upstream_request_id = exchange.headers.get(
                    "x-request-id", exchange.headers.get("request-id")
                )
        return terminal


class _Flow:
    """One call under way."""

    __slots__ = (
        "_decoder",
        "_exchange",
        "_now",
        "_pipe",
        "_sink",
        "ended_at",
        "first_event_at",
        "terminal",
    )

    def __init__(
        self, exchange: Exchange, decoder: Decoder, pipe: Stage, sink: Sink, clock: Clock
    ) -> None:
        self._exchange = exchange
        self._decoder = decoder
        self._pipe = pipe
        self._sink = sink
        self._now = clock.monotonic
        self.terminal: Terminal | None = None
        self.first_event_at: float | None = None
        self.ended_at = 0.0

    async def run(self, dialect: Dialect, stream: bool) -> Terminal:
        """The whole call, to its terminal."""
        exchange = self._exchange
        events: list[Event] | None = None
        try:
            await exchange.start()
            await _check_status(exchange, dialect)
            if not _is_stream(exchange.headers.get("content-type"), stream):
                exchange.whole()
                events = self._decode_whole(await exchange.read(MAX_BODY))
        except Fault as fault:
            events = [Failed(fault)]
        if events is not None:
            await self._deliver(events)
        parser = SseParser()
        while self.terminal is None:
            await self._deliver(await self._read(parser))
        return self.terminal

    async def _read(self, parser: SseParser) -> list[Event]:
        """The events of the next bytes; a break or the end of file closes the decoder."""
        try:
            chunk = await self._exchange.chunk()
            if not chunk:
                return self._end(None)
            events: list[Event] = []
            for frame in parser.feed(chunk):
                events += self._decoder.feed(frame)
                if events and type(events[-1]) in _TERMINALS:
                    break  # what follows a terminal is not looked at
            return events
        except Fault as fault:
            return self._end(fault)

    def _end(self, fault: Fault | None) -> list[Event]:
        """What is left when no more bytes come: a proven terminal counts, whatever cut it."""
        events = self._decoder.close()
        last = _terminal_of(events)
        if isinstance(last, Finished) or (last is not None and fault is None):
            return events
        if fault is None:
            fault = Fault("stream_truncated", "The provider's answer ended without its end mark.")
        return [*(events if last is None else events[:-1]), Failed(fault)]

    def _decode_whole(self, body: bytes) -> list[Event]:
        events = self._decoder.body(body)
        if _terminal_of(events) is not None:
            return events
        return [*events, Failed(Fault("protocol_error", "The provider's answer has no end."))]

    async def _deliver(self, events: list[Event]) -> None:
        """Through the pipe to the sink, all but the terminal; a terminal lets go of the socket
        first, so that a slow reader does not hold it."""
        if not events:
            return
        self._note(events)
        try:
            out = self._pipe.feed(events)
        except Fault as fault:
            out = [Failed(fault)]
        terminal = _terminal_of(out) or _terminal_of(events)
        if terminal is not None:
            self.ended_at = self._now()
            self._let_go(terminal)
            out = [event for event in out if type(event) not in _TERMINALS]
        if out:
            self._exchange.pause()
            await self._sink.send(out)
            self._exchange.resume()
        self.terminal = terminal

    def _note(self, events: list[Event]) -> None:
        """Move the time-outs on, if the events say something."""
        for event in events:
            if self.first_event_at is not None:
                if type(event) not in _STEPS and not _is_content(event):
                    continue
            elif _is_content(event):
                self.first_event_at = self._now()
            else:
                continue
            self._exchange.progress()
            return

    def _let_go(self, terminal: Terminal) -> None:
        if type(terminal) is Finished:
            self._exchange.finish()
        else:
            self._exchange.close()


def _terminal_of(events: list[Event]) -> Terminal | None:
    last = events[-1] if events else None
    return last if isinstance(last, _TERMINALS) else None


def _is_content(event: Event) -> bool:
    """Whether the answer itself has begun: text, reasoning, a tool call, a whole block."""
    if isinstance(event, CONTENT):
        return event.text != ""
    return isinstance(event, PartStarted) and isinstance(event.head, ToolCall | Opaque | Media)


async def _check_status(exchange: Exchange, dialect: Dialect) -> None:
    """The status decides before the body is looked at (fault kind K10).

    :raises Fault: for every status but 2xx.
    """
    status = exchange.status or 0
    if status >= 400:
        body = await exchange.excerpt(MAX_ERROR_BODY, ERROR_BODY_SECONDS)
        raise dialect.error(status, exchange.headers, body)
    if 300 <= status < 400:
        raise Fault(
            "upstream_rejected",
            f"The provider answered with a redirect ({status}). Redirects are not followed: set "
            "the provider's `base_url` to the final address.",
            upstream_status=status,
            billed=False,
        )
    if not 200 <= status < 300:
        raise Fault(
            "protocol_error",
            f"The provider answered with status {status}, which is no answer.",
            upstream_status=status,
        )


def _is_stream(content_type: str | None, asked: bool) -> bool:
    """Whether the body is to be read as events: its own type decides, not what was asked for.

    :raises Fault: ``protocol_error`` for a type that no answer has, such as a proxy's HTML page.
    """
    media = (content_type or "").partition(";")[0].strip().lower()
    if not media:
        return asked
    if media == "text/event-stream":
        return True
    if media.endswith(("/json", "+json")):
        return False
    raise Fault(
        "protocol_error",
        "The provider answered with something that is neither JSON nor an event stream. Check "
        "its `base_url`, and any proxy on the way.",
        detail=f"content-type {media[:80]!a}",
    )


def _lower(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def _sendable(headers: dict[str, str]) -> dict[str, str]:
    for name, value in headers.items():
        if _UNSENDABLE.search(name) or _UNSENDABLE.search(value):
            raise ValueError(
                f"header {name!r} has a line break or another control character in its value; "
                "check the key's or header's source for a stray newline"
            )
    return headers


def _kept(headers: Mapping[str, str]) -> dict[str, str]:
    return {
        name: value
        for name, value in headers.items()
        if name in _KEPT or name.startswith(_KEPT_PREFIXES)
    }
