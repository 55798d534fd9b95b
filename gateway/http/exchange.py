"""One HTTP request and its one answer, on bare ASGI.

Owns the watch for a caller that hangs up. The gateway's own server tells of it; behind any other,
and where a request's caller is not the connection's, a task waits for it, started only for
requests that live longer than a moment, because most are over before a caller could leave.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, TypeVar

from adapters.canonical.faults import Fault
from adapters.canonical.parts import Dialect
from gateway.http.begun import Begun, begun
from gateway.http.body import Receive, plain, read_body
from gateway.http.known import App, decoded
from gateway.http.line import line_of, lines, pairs
from gateway.northbound.errors import envelope

Scope = MutableMapping[str, Any]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
T = TypeVar("T")

FAILED = "failed"
"""Set in the request's ``state`` where a failure was told under a status that looks well."""

WATCH_AFTER = 0.02
"""Seconds before the watcher starts: shorter requests go without one."""

STALLED = 120.0
"""Seconds for which a caller may take nothing of what waits for it; then it counts as gone."""


class Exchange:
    """A request: its headers (lower-case names), its id, and how to answer it. The ``head`` of an
    answer are :func:`gateway.http.line.lines`."""

    started = False
    gone = False
    status = 0
    _sending: Begun | None = None
    _stop: Fault | None = None
    _timer: asyncio.TimerHandle | None = None
    _watcher: asyncio.Task[None] | None = None

    def __init__(self, scope: Scope, receive: Receive, send: Send, dialect: Dialect) -> None:
        self.scope = scope
        self.id: str = scope["state"]["request_id"]
        self.dialect = dialect
        self._line = line = line_of(scope)
        self._known = known = None if line is None else line.known
        self.headers = decoded(scope["headers"]) if known is None else known.headers
        self._receive = receive
        self._send = send
        self._task = asyncio.current_task()

    @property
    def receive(self) -> Receive:
        """The body's source, before :meth:`watch`."""
        return self._receive

    async def read(self, limit: int) -> bytes:
        """The caller's body, as :func:`gateway.http.body.read_body` gives it."""
        body = self.whole(limit)
        return await read_body(self._receive, self.headers, limit) if body is None else body

    def whole(self, limit: int) -> bytes | None:
        """The caller's body as :meth:`read` gives it, if all of it is there; once."""
        body = None if self._line is None else self._line.whole_body()
        return None if body is None else plain(body, self.headers, limit)

    def found(self, make: Callable[[Mapping[str, str]], T]) -> T:
        """What ``make`` makes of the headers, which a head that came before need not be asked."""
        found: T = make(self.headers) if self._known is None else self._known.found[make]
        return found

    def know(self, door: App) -> None:
        """Lead to ``door`` what comes with the same head again: by then nobody reads credentials,
        but for what was :meth:`found` of them. Not the calls of a page, though: whether it may
        read the answer is asked each time."""
        known, line = self._known, self._line
        if known is None or known.door is not None or line is None or "origin" in self.headers:
            return
        line.keep(known, door)

    def forget(self) -> None:
        """Let go of the request's headers: nobody asks again, and a stream may be open for long."""
        self.headers = {}
        self.scope["headers"] = []
        self._known = None
        if self._line is not None:
            self._line.known = None

    # the watch

    def watch(self) -> None:
        """From here on, a caller that hangs up or takes nothing any more cancels the task. The
        body must be read."""
        if self._line is not None:
            self._line.watch(self._left)
        else:
            self._timer = asyncio.get_running_loop().call_later(WATCH_AFTER, self._start_watch)

    def _start_watch(self) -> None:
        self._timer = None
        self._watcher = asyncio.get_running_loop().create_task(self._watch())

    async def _watch(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._left()

    def _left(self) -> None:
        self.gone = True
        if self._task is not None:
            self._task.cancel()

    def unwatch(self) -> None:
        """End the watch; the request is answered."""
        if self._line is not None:
            self._line.watch(None)
            return
        if self._timer is not None:
            self._timer.cancel()
        if self._watcher is not None:
            self._watcher.cancel()

    def stop(self, fault: Fault) -> None:
        """End the request with ``fault``: the server is going down."""
        self._stop = fault
        if self._task is not None:
            self._task.cancel()

    def stopped(self) -> Fault | None:
        """Called where a cancellation was caught: the fault to end with if the server stops,
        ``None`` if the caller has left.

        :raises asyncio.CancelledError: if it came from elsewhere.
        """
        if self._stop is None and not self.gone:
            raise asyncio.CancelledError
        if self._task is not None:
            self._task.uncancel()
        return None if self.gone else self._stop

    # the answer

    async def start(self, status: int, head: bytes) -> None:
        """Send status and headers of an answer whose length is not known."""
        self.started = True
        self.status = status
        if self._line is None or not self._line.start(status, head):
            await self._start(status, head)

    async def _start(self, status: int, head: bytes) -> None:
        headers = pairs(head)
        await self._send({"type": "http.response.start", "status": status, "headers": headers})

    async def write(self, data: bytes, *, more: bool) -> None:
        """Send body bytes; waits while the caller reads slowly."""
        if not self.put(data, more=more):
            await self.caught_up()

    def put(self, data: bytes, *, more: bool = True) -> bool:
        """Send body bytes without waiting; ``False`` if the caller reads slowly, and
        :meth:`caught_up` has to be awaited."""
        if self._line is not None and self._line.put(data, more=more):
            return True
        message = {"type": "http.response.body", "body": data, "more_body": more}
        self._sending = begun(self._send(message))
        return self._sending is None

    async def caught_up(self) -> None:
        """Wait until what was :meth:`put` is taken, as long as a caller may take."""
        sending, self._sending = self._sending, None
        if sending is None:
            return
        stalled = asyncio.get_running_loop().call_later(STALLED, self._left)
        try:
            await sending
        finally:
            stalled.cancel()

    async def answer(self, status: int, data: bytes, head: bytes = b"") -> None:
        """One whole JSON answer."""
        self.started = True
        self.status = status
        head = b"content-type: application/json\r\ncontent-length: %d\r\n%b" % (len(data), head)
        if self._line is None or not self._line.answer(status, head, data):
            await self._start(status, head)
            await self.write(data, more=False)

    def failed(self) -> None:
        """The answer under way ends in a failure, told in-band."""
        self.scope["state"][FAILED] = True

    async def fail(self, fault: Fault, head: bytes = b"") -> None:
        """One error answer in the caller's dialect; what is in ``head`` wins over the fault's
        own headers."""
        reply = envelope(fault, self.dialect, self.id)
        taken = {b"content-type", *(name for name, _ in pairs(head))}
        own = [
            (name.encode(), value.encode("latin-1", "replace"))
            for name, value in reply.headers.items()
            if name.encode() not in taken
        ]
        await self.answer(reply.status, reply.body, lines(own) + head)
