"""One MCP server: the owner of its session, and the calls that go through it.

One task makes the session, keeps it and makes the next one; callers only wait for it, so that ten
runs that find it gone cause one new session (case G09). After failures in a row the pauses between
attempts grow, and callers are told at once that the server is away: the attempts that go on behind
are the breaker's probes. Must not import the SDK but through :func:`_protocol`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping
from importlib import import_module
from random import random as system_random
from typing import Any

from adapters.canonical.parts import Text
from gateway.tools.base import Tool, ToolContext, ToolOutcome, ToolSpec
from gateway.tools.mcp.catalogue import Catalogue
from gateway.tools.mcp.line import Line
from gateway.tools.mcp.settings import ServerSettings
from gateway.tools.mcp.states import Forbidden, NotAccepted, Unknown

log = logging.getLogger("gateway.tools")

CONNECT = 20.0
"""Seconds for connecting, agreeing on a version and listing the tools."""
REFRESH = 300.0
"""Seconds after which the tools are listed again, though nobody said that they changed."""
OPEN_AFTER = 3
"""Failures in a row after which calls are not kept waiting."""
FIRST_PAUSE = 0.5
LONGEST_PAUSE = 60.0
CLOSE = 10.0
"""Seconds that a session gets to end in order."""

AWAY = "The tool server can't be reached now. Nothing was done."
UNKNOWN = "The tool server did not answer in full. Whether the call had an effect is not known."
FORBIDDEN = "The tool server does not accept this gateway's credentials. Nothing was done."
GONE = "The tool server no longer offers this tool."


class Away(Exception):
    """There is no session, and none is to be expected soon."""


def _protocol() -> Any:
    """The module that speaks the protocol; importing the SDK takes half a second."""
    return import_module("gateway.tools.mcp.session")


class Server:
    """A server with its tools. ``run`` is its owner task; ``close`` ends it.

    :param random: spreads the pauses of many gateways.
    """

    __slots__ = (
        "_catalogue", "_closing", "_failures", "_line", "_lines", "_news", "_random", "_task",
        "_tools", "_tried", "settings",
    )  # fmt: skip

    def __init__(
        self, settings: ServerSettings, random: Callable[[], float] = system_random
    ) -> None:
        self.settings = settings
        self._random = random
        self._catalogue = Catalogue(settings)
        self._tools: dict[str, McpTool] = {}
        self._line: Line | None = None
        self._lines: set[Line] = set()
        self._failures = 0
        self._tried = False
        self._closing = False
        self._news = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def prefix(self) -> str:
        """What its tools' names begin with."""
        return self.settings.prefix

    @property
    def is_up(self) -> bool:
        """Whether there is a session."""
        return self._line is not None

    def tools(self) -> Mapping[str, Tool]:
        """Its tools as they were listed last, also while it is away."""
        return self._tools

    def spec(self, name: str) -> ToolSpec | None:
        """What a tool is now; ``None`` once the server offers it no more."""
        found = self._catalogue.specs.get(name)
        return None if found is None else found[1]

    async def ready(self) -> None:
        """Wait until the tools are known, or connecting has failed."""
        while not self._tried and not self._closing:
            await self._news.wait()

    # the owner

    async def run(self) -> None:
        """Keep a session until closed. The one task that makes sessions."""
        self._task = asyncio.current_task()
        try:
            protocol = await asyncio.to_thread(_protocol)
            async with asyncio.TaskGroup() as group:
                while not self._closing:
                    line = Line()
                    group.create_task(self._keep(protocol, line))
                    await line.spent.wait()
                    await self._pause()
        finally:
            self._closing = True
            self._tell()

    async def _keep(self, protocol: Any, line: Line) -> None:
        """Make a session and keep it until it is spent and its last call is answered."""
        name = self.settings.name
        self._lines.add(line)
        try:
            place = self.settings.place
            async with protocol.connected(place, line.signals, CONNECT) as session:
                await self._list(session)
                self._use(line, session)
                while await line.signals.wait(REFRESH):
                    await self._list(session)
                    self._failures = 0
                self._spend(line)
                await line.drained(self.settings.timeout)
        except Exception as error:  # the SDK and its transports raise what they like
            log.warning("mcp %s: %s", name, _words(error))
            log.debug("mcp %s: the session ended", name, exc_info=True)
        finally:
            self._lines.discard(line)
            self._spend(line)

    async def _list(self, session: Any) -> None:
        async with asyncio.timeout(CONNECT):
            self._catalogue.learn(await session.tools())
        self._tools = {
            name: self._tools.get(name) or McpTool(self, name, spec)
            for name, (_, spec) in self._catalogue.specs.items()
        }

    def _use(self, line: Line, session: Any) -> None:
        line.session = session
        if not line.spent.is_set():
            log.info("mcp %s: connected, %d tools", self.settings.name, len(self._tools))
            self._line = line
        self._tried = True
        self._tell()

    def _spend(self, line: Line) -> None:
        """Give ``line`` up, whoever finds out first; later ones change nothing."""
        if not line.spend():
            return
        self._failures += 1
        self._tried = True
        if self._line is line:
            self._line = None
        self._tell()

    async def _pause(self) -> None:
        """The first attempt after a session follows at once, further ones wait ever longer."""
        if self._failures < 2:
            return
        longest = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** min(self._failures - 2, 10))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(longest * (0.5 + self._random() / 2)):
                while not self._closing:
                    await self._news.wait()

    def _tell(self) -> None:
        """Wake whoever waits for a change of state."""
        waiting, self._news = self._news, asyncio.Event()
        waiting.set()

    async def close(self, grace: float = 0.0) -> None:
        """End the owner and its session, after at most ``grace`` seconds for calls under way."""
        if grace:
            await asyncio.gather(*(line.drained(grace) for line in self._lines))
        self._closing = True
        for line in self._lines:
            line.cut()
        self._line = None
        self._tell()
        if self._task is not None and self._task is not asyncio.current_task():
            _, late = await asyncio.wait([self._task], timeout=CLOSE)
            for task in late:
                task.cancel()
                await asyncio.wait([task], timeout=CLOSE)

    # callers

    async def call(
        self, name: str, arguments: Mapping[str, Any], context: ToolContext
    ) -> ToolOutcome:
        """Call a tool: once, and once more on a new session if the first did not accept it, or if
        the tool may be called twice."""
        found = self._catalogue.specs.get(name)
        if found is None:
            return _failed(GONE)
        remote, spec = found
        line: Line | None = None
        outcome = _failed(AWAY, retryable=True)
        for _ in range(2):
            try:
                line = await self._usable(line)
                with line.call() as session:
                    done: ToolOutcome = await session.call(
                        remote, arguments, context, spec.output_cap
                    )
            except Away:
                return outcome
            except Forbidden:
                return _failed(FORBIDDEN)
            except NotAccepted as error:
                self._give_up(line, error)
            except Unknown as error:
                self._give_up(line, error)
                outcome = _failed(UNKNOWN)
                if not spec.repeatable:
                    return outcome
            else:
                self._failures = 0
                return done
        return outcome

    async def _usable(self, spent: Line | None) -> Line:
        """A line that is not the ``spent`` one.

        :raises Away: where none is to be expected soon.
        """
        while True:
            if self._line is not None and self._line is not spent:
                return self._line
            if self._closing or self._failures >= OPEN_AFTER:
                raise Away
            await self._news.wait()

    def _give_up(self, line: Line | None, error: Exception) -> None:
        if line is not None and not line.spent.is_set():
            log.warning("mcp %s: the session is given up: %s", self.settings.name, _words(error))
            self._spend(line)


class McpTool:
    """A server's tool, as it is now."""

    __slots__ = ("_last", "_name", "_server")

    def __init__(self, server: Server, name: str, spec: ToolSpec) -> None:
        self._server = server
        self._name = name
        self._last = spec

    @property
    def spec(self) -> ToolSpec:
        """What the server says now, or said last."""
        self._last = self._server.spec(self._name) or self._last
        return self._last

    async def call(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolOutcome:
        """Call it on the server."""
        return await self._server.call(self._name, arguments, context)


def _failed(text: str, *, retryable: bool = False) -> ToolOutcome:
    return ToolOutcome((Text(text),), is_error=True, retryable=retryable)


def _words(error: BaseException) -> str:
    """What went wrong, without what a server may have said of a caller's content."""
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(_words(inner) for inner in error.exceptions[:3])
    if isinstance(error, NotAccepted | Unknown | Forbidden | OSError):
        return f"{type(error).__name__}: {error}"[:300]
    return type(error).__name__
