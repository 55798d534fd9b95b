"""Hears what other processes notify on a channel, on a connection of its own.

A notice is only a hint that there is something to read. While nothing can be heard, ``listening``
says so, and whoever waits for notices has to look by himself.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from gateway.store.postgres.driver import ERRORS, Connection

log = logging.getLogger("gateway.store")

LOOK_EVERY = 10.0
"""Seconds after which a silent connection is tried: a network can lose one without a word."""
PAUSE = 1.0
"""Seconds between two tries to connect."""


class Ear:
    """One channel. Owned by whoever awaits :meth:`listen`."""

    def __init__(self, connect: Callable[[], Awaitable[Connection]], channel: str) -> None:
        self._connect = connect
        self._channel = channel
        self.listening = False

    async def listen(self, heard: Callable[[str], None]) -> None:
        """Pass notices on until cancelled; an empty one whenever some may have been missed."""
        while True:
            try:
                await self._listen(heard)
            except ERRORS as error:
                log.warning("store: notices are not heard (%s)", type(error).__name__)
            finally:
                self.listening = False
            await asyncio.sleep(PAUSE)

    async def _listen(self, heard: Callable[[str], None]) -> None:
        """Until the connection is lost."""
        conn, lost = await self._connect(), asyncio.Event()
        try:
            conn.add_termination_listener(lambda _: lost.set())
            await conn.add_listener(self._channel, lambda _conn, _pid, _channel, text: heard(text))
            self.listening = True
            heard("")
            while not lost.is_set():
                try:
                    await asyncio.wait_for(lost.wait(), LOOK_EVERY)
                except TimeoutError:
                    await conn.execute("SELECT 1")
        finally:
            conn.terminate()
