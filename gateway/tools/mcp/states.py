"""What may happen to a call and to a session, in words that need no SDK."""

from __future__ import annotations

import asyncio


class NotAccepted(Exception):
    """The call was not begun: it may be made again. The session is of no use any more."""


class Unknown(Exception):
    """The call was sent, and nobody knows whether it was done. The session is of no use any
    more."""


class Forbidden(Exception):
    """The server does not take our credentials; another try would not change that."""


class Signals:
    """What a session tells its owner: that it ended, or that its tools are others now."""

    __slots__ = ("_news", "changed", "ended")

    def __init__(self) -> None:
        self.ended = False
        self.changed = False
        self._news = asyncio.Event()

    def end(self) -> None:
        """The session is of no use any more."""
        self.ended = True
        self._news.set()

    def change(self) -> None:
        """The server has other tools."""
        self.changed = True
        self._news.set()

    async def wait(self, longest: float) -> bool:
        """Wait for either, at most ``longest`` seconds. ``False`` once the session has ended."""
        try:
            async with asyncio.timeout(longest):
                await self._news.wait()
        except TimeoutError:
            return not self.ended
        self._news.clear()
        self.changed = False
        return not self.ended
