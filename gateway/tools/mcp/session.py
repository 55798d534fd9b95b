"""One session with an MCP server, through the official SDK.

Speaks both eras of the protocol: the handshake of 2025, and 2026-07-28 without sessions. Must not
know how often sessions are made; :mod:`.server` does.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, TextIO

import mcp_types as protocol
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.session import IncomingMessage
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import SubscriptionLost
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import TypeAdapter, ValidationError

from adapters.canonical.parts import Text
from gateway.tools.base import ToolContext, ToolOutcome
from gateway.tools.mcp.catalogue import MOST_TOOLS, Described
from gateway.tools.mcp.results import outcome
from gateway.tools.mcp.settings import Program, Remote
from gateway.tools.mcp.states import Forbidden, NotAccepted, Signals, Unknown
from gateway.tools.mcp.wire import Verdict, client

log = logging.getLogger("gateway.tools")

IDEMPOTENCY_KEY = "llm-gateway/idempotency-key"
"""In ``_meta`` of every call, the same when the call is made again."""
RELISTEN = 5.0
"""Seconds until a lost subscription to changes is made anew."""
MOST_PAGES = 50
MOST_ERROR = 2000
"""Characters of a server's error message that a model is shown."""

_RESULT: TypeAdapter[Any] = TypeAdapter(protocol.CallToolResult | protocol.InputRequiredResult)
_US = protocol.Implementation(name="llm-gateway", version="1")


class Session:
    """An open session. Several tasks may call tools on it at once."""

    __slots__ = ("_client",)

    def __init__(self, opened: Client) -> None:
        self._client = opened

    async def tools(self) -> list[Described]:
        """All tools of the server, page by page.

        :raises NotAccepted, Unknown, Forbidden: as :meth:`call` does.
        """
        found: list[Described] = []
        cursor: str | None = None
        for _ in range(MOST_PAGES):
            with _told_apart():
                page = await self._client.list_tools(cursor=cursor)
            for tool in page.tools:
                words = tool.description or tool.title or ""
                found.append(Described(tool.name, words, tool.input_schema))
            cursor = page.next_cursor
            if cursor is None or len(found) > MOST_TOOLS:
                break
        return found

    async def call(
        self, tool: str, arguments: Mapping[str, Any], context: ToolContext, cap: int
    ) -> ToolOutcome:
        """Call ``tool``. What the server says went wrong is an error result.

        The result's declared schema is not checked: the SDK would do it with a validator that a
        hostile pattern can hang.

        :raises NotAccepted: the call was not begun. :raises Unknown: it may have been done.
        :raises Forbidden: our credentials are not taken.
        """

        async def tell(progress: float, total: float | None, message: str | None) -> None:
            context.progress(message or "", min(1.0, progress / total) if total else None)

        meta: Any = {IDEMPOTENCY_KEY: context.idempotency_key}
        request = protocol.CallToolRequest(
            params=protocol.CallToolRequestParams(name=tool, arguments=dict(arguments), _meta=meta)
        )
        try:
            with _told_apart():
                result = await self._client.session.send_request(
                    request, _RESULT, progress_callback=tell
                )
        except MCPError as error:
            return _failed(f"The tool server answered with an error: {error.message[:MOST_ERROR]}")
        except ValidationError:
            return _failed("The tool server's answer is not one of the protocol.")
        if isinstance(result, protocol.InputRequiredResult):
            return _failed("The tool asks for further input, which can't be given here.")
        return outcome(result, cap)

    async def listen(self, changed: Callable[[], None]) -> None:
        """Follow changes of the tool list for as long as the session lasts, where the server
        offers that by subscription (2026-07-28); earlier ones send notices by themselves."""
        offered = self._client.server_capabilities.tools
        if self._client.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            return
        if offered is None or not offered.list_changed:
            return
        while True:
            try:
                async with self._client.listen(tools_list_changed=True) as subscription:
                    async for _ in subscription:
                        changed()
            except (MCPError, SubscriptionLost, TimeoutError) as error:
                log.debug("mcp: a subscription ended: %s", type(error).__name__)
            await asyncio.sleep(RELISTEN)
            changed()  # something may have been missed meanwhile


@contextlib.contextmanager
def _told_apart() -> Any:
    """Tell the errors that say what became of a request from the server's own."""
    try:
        yield
    except MCPError as error:
        kind = _KINDS.get(error.code)
        if kind is None:
            raise
        raise kind(error.message) from error


_KINDS: Mapping[int, type[Exception]] = {
    Verdict.NOT_SENT: NotAccepted,
    Verdict.SESSION_GONE: NotAccepted,
    Verdict.UNKNOWN: Unknown,
    Verdict.FORBIDDEN: Forbidden,
    protocol.CONNECTION_CLOSED: Unknown,
}


@contextlib.asynccontextmanager
async def connected(
    place: Remote | Program, signals: Signals, patience: float
) -> AsyncIterator[Session]:
    """A session for as long as the block lasts; ``signals`` hear of its end and of new tools.

    :param patience: seconds for connecting and for agreeing on a version.
    :raises NotAccepted: where no session comes about; the text says why, for the log.
    """

    async def heard(message: IncomingMessage) -> None:
        if isinstance(message, protocol.ToolListChangedNotification):
            signals.change()

    async with contextlib.AsyncExitStack() as stack:
        transport = await _transport(place, signals, stack)
        made = Client(transport, message_handler=heard, client_info=_US, cache=None)
        try:
            async with asyncio.timeout(patience):
                session = Session(await stack.enter_async_context(made))
        except (MCPError, ExceptionGroup, OSError, RuntimeError) as error:
            hint = "; show_stderr = true shows what the program says" * _is_quiet(place)
            raise NotAccepted(_reason(error) + hint) from error
        group = await stack.enter_async_context(asyncio.TaskGroup())
        listener = group.create_task(session.listen(signals.change))
        try:
            yield session
        finally:
            listener.cancel()


def _is_quiet(place: Remote | Program) -> bool:
    return isinstance(place, Program) and not place.show_stderr


def _reason(error: BaseException) -> str:
    """What went wrong first, out of the groups that task groups make."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    words = error.message if isinstance(error, MCPError) else str(error)
    return f"{type(error).__name__}: {words[:300]}"


async def _transport(
    place: Remote | Program, signals: Signals, stack: contextlib.AsyncExitStack
) -> AbstractAsyncContextManager[Any]:
    if isinstance(place, Remote):
        http = client(place.guard, place.headers, place.ca_file)
        await stack.enter_async_context(http)
        return streamable_http_client(place.url, http_client=http)
    parameters = StdioServerParameters(
        command=place.command, args=list(place.args), env=dict(place.env), cwd=place.folder
    )
    errors = _real_stderr() if place.show_stderr else None
    if errors is None:
        errors = stack.enter_context(_nowhere())
    return _watched(stdio_client(parameters, errlog=errors), signals)


def _nowhere() -> TextIO:
    return Path(os.devnull).open("w", encoding="utf-8")


def _real_stderr() -> TextIO | None:
    """Standard error, where it is a file that a program can be given."""
    try:
        sys.stderr.fileno()
    except (AttributeError, OSError, ValueError):
        return None
    return sys.stderr


@contextlib.asynccontextmanager
async def _watched(
    inner: AbstractAsyncContextManager[Any], signals: Signals
) -> AsyncIterator[tuple[Any, Any]]:
    """A transport whose end is heard at once: a program that dies says nothing else."""
    async with inner as (read, write):
        yield _Ending(read, signals), write


class _Ending:
    """A stream of messages that tells of its end."""

    def __init__(self, inner: Any, signals: Signals) -> None:
        self._inner = inner
        self._signals = signals

    async def receive(self) -> Any:
        return await self._inner.receive()

    async def aclose(self) -> None:
        await self._inner.aclose()

    def __aiter__(self) -> _Ending:
        return self

    async def __anext__(self) -> Any:
        try:
            return await self._inner.__anext__()
        except StopAsyncIteration:
            self._signals.end()
            raise

    async def __aenter__(self) -> _Ending:
        await self._inner.__aenter__()
        return self

    async def __aexit__(self, *about: Any) -> bool | None:
        ended: bool | None = await self._inner.__aexit__(*about)
        return ended


def _failed(text: str) -> ToolOutcome:
    return ToolOutcome((Text(text),), is_error=True)
