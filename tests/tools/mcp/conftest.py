"""Real MCP servers: the SDK's own, over stdio and over HTTP, with a front that counts and fails."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import json
import socket
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from adapters.canonical.parts import Text
from gateway.tools.base import ToolContext, ToolOutcome
from gateway.tools.guard import guard
from gateway.tools.mcp.server import Server
from gateway.tools.mcp.settings import Program, Remote, ServerSettings
from tests.ports import reserved_port

PROGRAM = Path(__file__).parent / "program.py"


def _program() -> Any:
    spec = importlib.util.spec_from_file_location("mcp_test_program", PROGRAM)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where Pydantic looks for it
    spec.loader.exec_module(module)
    return module


@dataclass
class Front:
    """An HTTP MCP server that can be stopped, started anew and told to misbehave.

    ``legacy`` hides the 2026 protocol, so that clients shake hands and get a session.
    ``status`` answers a method with a status in the server's place.
    """

    port: int
    legacy: bool = True
    seen: Counter[str] = field(default_factory=Counter)
    headers: list[dict[str, str]] = field(default_factory=list)
    effects: list[str] = field(default_factory=list)
    status: dict[str, int] = field(default_factory=dict)
    server_options: dict[str, Any] = field(default_factory=dict)
    http_options: dict[str, Any] = field(default_factory=dict)
    _server: uvicorn.Server | None = None
    _task: asyncio.Task[None] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    async def start(self) -> None:
        """Serve, on the same port each time; all sessions are forgotten."""
        made = _program().made(self.effects.append, **self.server_options)
        app = made.streamable_http_app(**self.http_options)
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", self.port))
        config = uvicorn.Config(
            self._around(app), log_config=None, access_log=False, timeout_graceful_shutdown=0
        )
        self._server = uvicorn.Server(config)
        self._server.capture_signals = contextlib.nullcontext  # type: ignore[method-assign]
        self._task = asyncio.create_task(self._server.serve(sockets=[listener]))
        while not self._server.started:
            await asyncio.sleep(0.005)

    async def stop(self) -> None:
        """Stop listening and cut every connection: in this order, or a call that is made again at
        once is taken by a server that is about to end."""
        if self._server is None or self._task is None:
            return
        self._server.should_exit = self._server.force_exit = True
        for listener in self._server.servers:
            listener.close()
        for connection in list(self._server.server_state.connections):
            connection.transport.abort()  # type: ignore[union-attr]
        await self._task
        self._server = self._task = None

    async def restart(self) -> None:
        await self.stop()
        await self.start()

    def _around(self, app: Any) -> Any:
        async def front(scope: Any, receive: Any, send: Any) -> None:
            if scope["type"] != "http":
                await app(scope, receive, send)
                return
            body = b""
            while True:
                message = await receive()
                body += message.get("body", b"")
                if not message.get("more_body"):
                    break
            method = json.loads(body).get("method", "answer") if body else scope["method"]
            self.seen[method] += 1
            self.headers.append({k.decode(): v.decode() for k, v in scope["headers"]})
            status = 404 if self.legacy and method == "server/discover" else self.status.get(method)
            if status is not None:
                await send({"type": "http.response.start", "status": status, "headers": []})
                await send({"type": "http.response.body", "body": b"no"})
                return
            sent = False

            async def again() -> Any:
                nonlocal sent
                if sent:
                    return await receive()
                sent = True
                return {"type": "http.request", "body": body, "more_body": False}

            await app(scope, again, send)

        return front


@pytest.fixture
async def front() -> AsyncIterator[Front]:
    """Not started yet: a test says first which kind it wants."""
    with reserved_port() as port:
        made = Front(port)
        try:
            yield made
        finally:
            await made.stop()


@pytest.fixture
async def owned() -> AsyncIterator[Callable[[ServerSettings], Server]]:
    """Run servers as the gateway would, and close them at the end."""
    made: list[Server] = []
    async with asyncio.TaskGroup() as group:

        def own(settings: ServerSettings) -> Server:
            made.append(Server(settings))
            group.create_task(made[-1].run())
            return made[-1]

        yield own
        for server in made:
            await server.close()


@pytest.fixture
def remote(front: Front) -> Callable[..., ServerSettings]:
    """Settings for the server behind ``front``, which may be reached on loopback."""

    def remote(*, allow: tuple[str, ...] = ("127.0.0.1",), **more: Any) -> ServerSettings:
        headers = {"Authorization": "Bearer mcp-secret"}
        return ServerSettings("srv", Remote(front.url, headers, guard(allow)), **more)

    return remote


@pytest.fixture
def context() -> ToolContext:
    return ToolContext("run-1:call-1", "run-1", "call-1", "default", deadline=0.0)


def text(outcome: ToolOutcome) -> str:
    """All text of an outcome."""
    return "".join(part.text for part in outcome.content if isinstance(part, Text))


@pytest.fixture(name="text")
def text_of() -> Callable[[ToolOutcome], str]:
    return text


@pytest.fixture
def program(tmp_path: Path) -> Callable[..., ServerSettings]:
    """Settings for the program over stdio; its effects go to ``effects`` in the test's folder."""

    def program(**more: Any) -> ServerSettings:
        args = (str(PROGRAM), str(tmp_path / "effects"))
        place = Program(sys.executable, args, {"EXTRA": "given"}, str(tmp_path))
        return ServerSettings("srv", place, **more)

    return program
