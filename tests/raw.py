"""HTTP/1 by hand: exactly the bytes of a test on a socket, and exactly what comes back.

No client library sends what odd and hostile callers do, and most hide what the answer looked like.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

from tests.harness import KEY

SECONDS = 10.0
"""How long a test waits for what must come."""


@dataclass(frozen=True, slots=True)
class Told:
    """One answer; names of headers in lower case, a chunked body put together."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def error(self) -> tuple[int, str | None]:
        """The status and the code of an error in OpenAI's envelope."""
        return self.status, json.loads(self.body)["error"]["code"]


@dataclass(frozen=True, slots=True)
class Wire:
    """A connection to a server."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send(self, *pieces: bytes) -> None:
        """Each piece in a packet of its own."""
        for piece in pieces:
            self.writer.write(piece)
            await self.writer.drain()
            if len(pieces) > 1:
                await asyncio.sleep(0.002)

    async def head(self) -> Told:
        """The next answer without its body."""
        async with asyncio.timeout(SECONDS):
            text = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = text.removesuffix("\r\n\r\n").split("\r\n")
        named = [line.partition(": ") for line in lines]
        assert len({name for name, _, _ in named}) == len(named), "a header came twice"
        version, status, *_ = first.split(" ", 2)
        assert version == "HTTP/1.1"
        return Told(int(status), {name.lower(): value for name, _, value in named}, b"")

    async def answer(self, *, bodiless: bool = False) -> Told:
        """The next answer, up to its end: its length, its last chunk, or the connection's end."""
        told = await self.head()
        if bodiless or told.status < 200 or told.status in (204, 304):
            return told
        async with asyncio.timeout(SECONDS):
            return Told(told.status, told.headers, await self._body(told.headers))

    async def _body(self, headers: Mapping[str, str]) -> bytes:
        if "content-length" in headers:
            assert "transfer-encoding" not in headers
            return await self.reader.readexactly(int(headers["content-length"]))
        if "transfer-encoding" not in headers:
            return await self.reader.read()
        chunks = []
        while size := int(await self.reader.readline(), 16):
            chunks.append(await self.reader.readexactly(size))
            assert await self.reader.readexactly(2) == b"\r\n"
        assert await self.reader.readexactly(2) == b"\r\n"
        return b"".join(chunks)

    async def rest(self) -> bytes:
        """All that still comes until the server hangs up."""
        async with asyncio.timeout(SECONDS):
            return await self.reader.read()


@contextlib.asynccontextmanager
async def dialled(url: str) -> AsyncIterator[Wire]:
    """A connection to the server at ``url``; closed at the end, whatever is left on it."""
    host, _, port = url.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        yield Wire(reader, writer)
    finally:
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


CHAT = "/v1/chat/completions"


def asking(model: str, *, stream: bool = False, text: str = "hi") -> bytes:
    """The JSON of a chat completion."""
    said: dict[str, Any] = {"model": model, "messages": [{"role": "user", "content": text}]}
    return json.dumps({**said, "stream": stream}).encode()


def post(body: bytes, *headers: str, path: str = CHAT, version: str = "1.1") -> bytes:
    """A POST with a caller's key; its length goes first, then ``headers``."""
    lines = [f"POST {path} HTTP/{version}", "Host: x", f"Authorization: Bearer {KEY}"]
    lines += ["Content-Type: application/json", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body
