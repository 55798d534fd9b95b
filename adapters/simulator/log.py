"""What the provider saw: every attempt, with its times and how it ended."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any

from adapters.canonical.record import record


@record(slots=True, eq=False)
class Line:
    """One client's connection, shared by the attempts that it carried."""

    number: int
    closed: float | None = None


@record(slots=True, eq=False)
class Attempt:
    """One request, written on while it is served. Times are ``time.monotonic()`` seconds.

    ``status`` is what went out; ``None`` if no head was sent. ``refused`` is the strict
    judge's message, if it refused the request. ``frames`` counts what was sent of the body.
    ``finished`` is when the answer was complete, ``disconnected`` when the client left before
    that; both stay ``None`` where the simulator itself broke the answer off. ``ended`` is set
    when the answer is over, however it went.
    """

    number: int
    method: str
    path: str
    headers: Mapping[str, str]
    raw: bytes
    body: Any
    model: str | None
    line: Line
    at: float = field(default_factory=time.monotonic)
    status: int | None = None
    refused: str | None = None
    frames: int = 0
    first_frame: float | None = None
    finished: float | None = None
    disconnected: float | None = None
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def connection(self) -> int:
        """The number of the connection."""
        return self.line.number

    @property
    def closed(self) -> float | None:
        """When the socket that carried this attempt closed, in the answer or after it."""
        return self.line.closed

    @property
    def socket_closed(self) -> bool:
        """Whether the socket that carried this attempt is closed."""
        return self.closed is not None

    def sent(self) -> None:
        """Count a frame that left."""
        if self.first_frame is None:
            self.first_frame = time.monotonic()
        self.frames += 1

    def end(self, *, client_left: bool) -> None:
        """The answer is over."""
        if client_left and self.finished is None:
            self.disconnected = time.monotonic()
        self.ended.set()


MAX_BYTES = 32 * 1024 * 1024
"""Of request bodies, in one log."""


class Log:
    """The attempts in order; ``total`` counts them all. The oldest are forgotten beyond
    ``keep``, and beyond :data:`MAX_BYTES` of bodies; the last one never is."""

    def __init__(self, keep: int = 10_000) -> None:
        self._keep = keep
        self._attempts: deque[Attempt] = deque()
        self._bytes = 0
        self._arrival = asyncio.Event()
        self.total = 0

    def __len__(self) -> int:
        return len(self._attempts)

    def __iter__(self) -> Iterator[Attempt]:
        return iter(tuple(self._attempts))

    def __getitem__(self, index: int) -> Attempt:
        return self._attempts[index]

    def of(self, model: str) -> list[Attempt]:
        """The attempts on one model, oldest first."""
        return [attempt for attempt in self._attempts if attempt.model == model]

    def add(self, attempt: Attempt) -> None:
        """Take a new attempt and wake those who wait for it."""
        self.total += 1
        self._attempts.append(attempt)
        self._bytes += len(attempt.raw)
        while len(self._attempts) > max(self._keep, 1) or (
            self._bytes > MAX_BYTES and len(self._attempts) > 1
        ):
            self._bytes -= len(self._attempts.popleft().raw)
        arrival, self._arrival = self._arrival, asyncio.Event()
        arrival.set()

    def clear(self) -> None:
        """Forget all attempts; ``total`` and the numbers go on."""
        self._attempts.clear()
        self._bytes = 0

    async def wait_for(
        self, count: int, *, model: str | None = None, seconds: float = 5.0
    ) -> Attempt:
        """The ``count``-th attempt (on ``model``), once it has come.

        :raises TimeoutError: if it has not come within ``seconds``.
        """
        async with asyncio.timeout(seconds):
            while True:
                seen = list(self) if model is None else self.of(model)
                if len(seen) >= count:
                    return seen[count - 1]
                await self._arrival.wait()
