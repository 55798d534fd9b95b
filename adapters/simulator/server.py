"""The simulator as a server: in a test, in the demo, or on its own until it is stopped."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Literal

from adapters.simulator.http import HttpServer
from adapters.simulator.log import Log
from adapters.simulator.provider import Provider
from adapters.simulator.script import Scripted


class Simulator:
    """A running provider. ``url`` has no ``/v1``: OpenAI's base URL is ``url + "/v1"``."""

    def __init__(self, host: str, keep: int) -> None:
        self._host = host
        self._provider = Provider(keep)
        self._server = HttpServer(self._provider.handle)
        self.url = ""

    @property
    def log(self) -> Log:
        """What the provider saw."""
        return self._provider.log

    @property
    def connections(self) -> int:
        """How many sockets are open."""
        return self._server.connections

    def script(
        self, model: str, answers: Sequence[Scripted], *, by: Literal["call", "turn"] = "call"
    ) -> None:
        """Lay down what ``model`` answers.

        :param by: ``call`` takes the next answer at each call, ``turn`` the one whose number
            is that of the answers already in the conversation, so that a repeated call gets
            the same again. A call beyond the end is a 500 with the code ``script_exhausted``.
        """
        self._provider.scripts.set(model, answers, by)

    def reset(self) -> None:
        """Forget attempts, scripts, counted calls and cached prompts; sockets stay open."""
        self._provider.reset()

    async def start(self, port: int) -> None:
        """Listen.

        :raises OSError: if the address is taken.
        """
        port = await self._server.start(self._host, port)
        host = f"[{self._host}]" if ":" in self._host else self._host
        self.url = f"http://{host}:{port}"

    async def close(self) -> None:
        """Stop listening and close all sockets."""
        await self._server.close()


@asynccontextmanager
async def running(
    host: str = "127.0.0.1", port: int = 0, *, keep: int = 10_000
) -> AsyncIterator[Simulator]:
    """A simulator in this event loop, for as long as the block lasts.

    :param port: 0 takes a free one.
    :param keep: how many attempts the log remembers.
    :raises OSError: if the address is taken.
    """
    simulator = Simulator(host, keep)
    await simulator.start(port)
    try:
        yield simulator
    finally:
        await simulator.close()


async def serve(host: str, port: int) -> None:
    """Serve until cancelled.

    :raises OSError: if the address is taken.
    """
    async with running(host, port, keep=100):
        await asyncio.Event().wait()
