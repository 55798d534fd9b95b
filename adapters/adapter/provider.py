"""One provider: one call out, one answer back as events.

:meth:`Adapter.pump` is one ``with`` and one flow. Nested async generators would leave the
provider's socket open whenever something above them raises; here leaving the block closes it at
once. Must not know who calls, what is allowed, or what happens to a fault.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, MutableMapping

from adapters.adapter.flow import MAX_BODY, Flow, Way
from adapters.adapter.reply import is_good, is_stream, refused
from adapters.canonical.clock import Clock, SystemClock
from adapters.canonical.completion import Completion
from adapters.canonical.events import Event, Failed, Terminal
from adapters.canonical.faults import Fault
from adapters.canonical.parts import NO_EXTRAS
from adapters.canonical.record import record
from adapters.dialects.base import Dialect
from adapters.transport.http import Exchange, HttpTransport
from adapters.transport.peer import Shared
from adapters.wire.call import Timeouts, WireCall

USER_AGENT = "llm-gateway"

_UNSENDABLE = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


@record(frozen=True, slots=True)
class Pumped:
    """How a call ended. Times are of the monotonic clock, ``None`` where it did not come so far.

    ``terminal`` has not been sent to the sink. ``status`` and ``headers`` (names in lower case)
    are the provider's, if it answered. ``sent_at``: the whole request was on its way;
    ``headers_at``: the reply's headers were complete; ``first_event_at``: the first content was
    decoded; ``ended_at``: the terminal was known.
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
        self._stream_headers = Shared(
            {"accept": "text/event-stream", "accept-encoding": "identity", **own}
        )
        self._whole_headers = Shared({"accept": "application/json", **own})

    async def pump(
        self,
        call: WireCall,
        way: Way,
        timeouts: Timeouts,
        marks: MutableMapping[str, float] | None = None,
    ) -> Pumped:
        """Make ``call`` and send its answer on its ``way``, once for each read.

        Every fault of the provider, raised or decoded, comes back as the ``Failed`` terminal,
        and so does one that the way's pipe raises. What its sink raises and a cancellation pass
        through; the provider's socket is closed by then. Time in the sink counts for no time-out.

        :param marks: is told ``sent`` (monotonic seconds) if the whole request left, also where
            the call is cancelled and nothing is returned.
        """
        begun: list[Event] | None = None
        with Exchange(self.transport, call, self._headers(call), timeouts, marks) as exchange:
            try:
                await exchange.start()
                if not is_good(exchange.status):
                    raise await refused(exchange, self.dialect)
                if not is_stream(exchange.headers.get("content-type"), call.stream):
                    if call.stream:
                        exchange.whole()
                    body = await exchange.read(MAX_BODY)
                    if way.take is None:
                        begun = way.decoder.body(body)
                    elif isinstance(answer := way.decoder.answer(body), Completion):
                        assert answer.terminal is not None
                        now = self._clock.monotonic()
                        way.take(answer)
                        return _pumped(exchange, answer.terminal, now, now)
                    else:
                        begun = answer
            except Fault as fault:
                begun = [Failed(fault)]
            flow = Flow(exchange, way, self._clock)
            terminal = await flow.run(begun)
            if isinstance(terminal, Failed):
                _explain(terminal.fault, exchange)
            return _pumped(exchange, terminal, flow.first_event_at, flow.ended_at)

    async def fetch(
        self, call: WireCall, timeouts: Timeouts, marks: MutableMapping[str, float] | None = None
    ) -> Fetched:
        """Make ``call`` and give its whole body, for endpoints that are no conversation.

        :param marks: as for :meth:`pump`.
        :raises Fault: whatever went wrong, an error status included.
        """
        with Exchange(self.transport, call, self._headers(call), timeouts, marks) as exchange:
            await exchange.start()
            if not is_good(exchange.status):
                raise await refused(exchange, self.dialect)
            if call.stream:
                exchange.whole()
            body = await exchange.read(MAX_BODY)
            return Fetched(
                status=exchange.status or 200,
                headers=exchange.headers,
                body=body,
                sent_at=exchange.sent_at,
                headers_at=exchange.headers_at,
                ended_at=self._clock.monotonic(),
            )

    @property
    def busy(self) -> bool:
        """Whether a call is under way."""
        return self.transport.active > 0

    async def close(self) -> None:
        """Close all sockets of this provider."""
        await self.transport.close()

    def _headers(self, call: WireCall) -> Mapping[str, str]:
        own = self._stream_headers if call.stream else self._whole_headers
        return {**_lower(call.headers), **own} if call.headers else own


def _pumped(
    exchange: Exchange, terminal: Terminal, begun_at: float | None, ended_at: float
) -> Pumped:
    return Pumped(
        terminal,
        exchange.status,
        exchange.headers,
        exchange.sent_at,
        exchange.headers_at,
        begun_at,
        ended_at,
    )


def _explain(fault: Fault, exchange: Exchange) -> None:
    """A failure also says which of the provider's requests it was."""
    if fault.upstream_status is None:
        fault.upstream_status = exchange.status
    if fault.upstream_request_id is None:
        fault.upstream_request_id = exchange.headers.get(
            "x-request-id", exchange.headers.get("request-id")
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
