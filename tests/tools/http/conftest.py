"""A real site on loopback, and names that lead there."""

from __future__ import annotations

import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from gateway.tools.base import ToolContext

CERTIFICATE = Path(__file__).parents[2] / "transport" / "tls"
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class Site:
    """A server that remembers what it was asked, and answers as the test says."""

    port: int = 0
    hits: list[dict[str, Any]] = field(default_factory=list)
    answer: Handler | None = None

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        self.hits.append(
            {
                "method": request.method,
                "target": request.raw_path,
                "headers": {name.lower(): value for name, value in request.headers.items()},
                "body": body,
                "json": json.loads(body) if body else None,
            }
        )
        if self.answer is not None:
            return await self.answer(request)
        return web.json_response({"ok": True})

    @property
    def hit(self) -> dict[str, Any]:
        (only,) = self.hits
        return only


async def _serve(context: ssl.SSLContext | None) -> AsyncIterator[Site]:
    site = Site()
    server = web.Server(site.handle, handler_cancellation=True)
    runner = web.ServerRunner(server, shutdown_timeout=2)
    await runner.setup()
    listener = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await listener.start()
    site.port = runner.addresses[0][1]
    try:
        yield site
    finally:
        await runner.cleanup()


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async for served in _serve(None):
        yield served


@pytest.fixture
async def secure_site() -> AsyncIterator[Site]:
    """The same behind TLS, with the certificate of ``localhost``."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE / "cert.pem", CERTIFICATE / "key.pem")
    async for served in _serve(context):
        yield served


@pytest.fixture
def ca_file() -> str:
    return str(CERTIFICATE / "cert.pem")


@pytest.fixture
def context() -> ToolContext:
    return ToolContext("run-1:call-1", "run-1", "call-1", "default", deadline=0.0)


@dataclass
class Names:
    """A resolver of the test's own: each name's answers in turn, the last one for ever."""

    answers: dict[str, list[list[str]]] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)

    async def __call__(self, host: str, port: int) -> list[str]:
        self.calls.append(host)
        answers = self.answers.get(host)
        if answers is None:
            raise OSError("no such name")
        return answers.pop(0) if len(answers) > 1 else answers[0]


@pytest.fixture
def names() -> Names:
    return Names()
