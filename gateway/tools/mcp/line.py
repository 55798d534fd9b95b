"""One session from its making to its end, and the calls that are under way on it. Must not know
the SDK."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from typing import Any

from gateway.tools.mcp.states import Signals


class Line:
    """A session once it is made, and whether it is still of use.

    A line that is spent gets no further calls, but those that are under way keep it open until
    they have their answers: one call that finds the session gone says nothing of the others.
    """

    __slots__ = ("_calls", "_idle", "session", "signals", "spent")

    def __init__(self) -> None:
        self.session: Any = None
        self.signals = Signals()
        self.spent = asyncio.Event()
        self._calls = 0
        self._idle = asyncio.Event()
        self._idle.set()

    @contextlib.contextmanager
    def call(self) -> Iterator[Any]:
        """Use the session for one call."""
        self._calls += 1
        self._idle.clear()
        try:
            yield self.session
        finally:
            self._calls -= 1
            if self._calls == 0:
                self._idle.set()

    def spend(self) -> bool:
        """No more calls from now on. ``False`` if that was so before."""
        if self.spent.is_set():
            return False
        self.spent.set()
        self.signals.end()
        return True

    async def drained(self, longest: float) -> None:
        """Wait until no call is under way, at most ``longest`` seconds."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(longest):
                await self._idle.wait()

    def cut(self) -> None:
        """Wait for no call any more."""
        self.spend()
        self._idle.set()
