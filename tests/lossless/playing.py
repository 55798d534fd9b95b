"""Recordings and golden cases, and a provider that plays them to the byte."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.harness import Answer, Harness

HERE = Path(__file__).parent
SHARED = Path(os.environ.get("GATEWAY_SHARED", HERE.parents[1].parent / "shared")).resolve()
WIRE = Path(os.environ.get("GATEWAY_WIRE", SHARED / "wire")).resolve()

APIS = {"chat": "openai-chat", "responses": "openai-responses", "messages": "anthropic-messages"}
PATHS = {
    "openai-chat": "/v1/chat/completions",
    "openai-responses": "/v1/responses",
    "anthropic-messages": "/v1/messages",
}
ALIASES = {"openai-chat": "chat", "openai-responses": "responses", "anthropic-messages": "messages"}

CONFIG = """
[store]
url = "sqlite:///gateway.db"
keep_responses = false

[providers.chat]
dialect = "openai-chat"
base_url = "{raw}/v1"
[providers.responses]
dialect = "openai-responses"
base_url = "{raw}/v1"
[providers.messages]
dialect = "anthropic-messages"
base_url = "{raw}"

[models.chat]
retries = 0
breaker = { streak = 1000, minimum = 1000 }
targets = [{ provider = "chat", model = "m" }]
[models.responses]
retries = 0
breaker = { streak = 1000, minimum = 1000 }
targets = [{ provider = "responses", model = "m" }]
[models.messages]
retries = 0
breaker = { streak = 1000, minimum = 1000 }
targets = [{ provider = "messages", model = "m" }]
"""


@dataclass(frozen=True)
class Case:
    """What a caller sent and what a provider answered, in one dialect."""

    name: str
    dialect: str
    request: dict[str, Any] | None
    answer: bytes
    stream: bool
    content_type: str


def golden() -> Iterator[Case]:
    """The project's own cases, which carry the same points."""
    for folder in sorted((HERE.parent / "golden").glob("*/*")):
        dialect = folder.parent.name.replace("_", "-")
        for kind, content_type in (
            ("sse", "text/event-stream"),
            ("json", "application/json"),
        ):
            answer = folder / f"wire.{kind}"
            if answer.exists():
                yield Case(
                    folder.name, dialect, None, answer.read_bytes(), kind == "sse", content_type
                )


def recorded() -> Iterator[Case]:
    """The shared recordings of providers' successful answers."""
    for path in sorted(WIRE.glob("corpus/*/meta.json")):
        meta = json.loads(path.read_text())
        if meta["api"] not in APIS or meta["status"] != 200:
            continue
        kind = "sse" if meta["stream"] else "json"
        answer = path.parent / f"response.{kind}"
        if not answer.exists():
            continue
        content_type = "text/event-stream" if meta["stream"] else "application/json"
        request = json.loads((path.parent / "request.json").read_text())
        yield Case(
            path.parent.name,
            APIS[meta["api"]],
            request,
            answer.read_bytes(),
            meta["stream"],
            content_type,
        )


@dataclass
class Player:
    """A provider that answers every request with the same bytes, and closes."""

    case: Case | None = None
    sent: dict[str, Any] | None = None
    url: str = ""

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        length = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0])
        self.sent = json.loads(await reader.readexactly(length))
        assert self.case is not None
        writer.write(
            f"HTTP/1.1 200 OK\r\ncontent-type: {self.case.content_type}\r\n"
            f"content-length: {len(self.case.answer)}\r\nconnection: close\r\n\r\n".encode()
        )
        writer.write(self.case.answer)
        with contextlib.suppress(ConnectionError):
            await writer.drain()
        writer.close()

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[Player]:
        """The provider on a free port."""
        async with await asyncio.start_server(self._serve, "127.0.0.1", 0) as server:
            self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            yield self


@dataclass
class Wire:
    """A gateway, and the provider behind it that plays recordings."""

    gateway: Harness
    player: Player

    async def play(self, case: Case, body: dict[str, Any]) -> tuple[dict[str, Any] | None, Answer]:
        """What the provider was sent, and what the caller got."""
        self.player.case, self.player.sent = case, None
        asked = {**body, "model": ALIASES[case.dialect], "stream": case.stream}
        answer = await self.gateway.post(PATHS[case.dialect], asked)
        return self.player.sent, answer
