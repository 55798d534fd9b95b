"""Callers that read or write slowly, or not at all: they hold nothing for ever."""

from __future__ import annotations

import asyncio
import json
import socket
from typing import Any
from urllib.parse import urlsplit

import pytest

from gateway.http import body as bodies
from gateway.http import exchange as exchanges
from tests.harness import KEY, Harness


async def deaf(g: Harness, model: str, **headers: str) -> socket.socket:
    """A caller that asks, and then reads nothing."""
    address = urlsplit(g.url)
    body = json.dumps(
        {"model": model, "messages": [{"role": "user", "content": "hi"}], "stream": True}
    ).encode()
    told = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    head = (
        f"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {KEY}\r\n"
        f"{told}content-length: {len(body)}\r\n\r\n"
    )
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    sock.setblocking(False)
    await asyncio.get_running_loop().sock_connect(sock, (address.hostname, address.port))
    await asyncio.get_running_loop().sock_sendall(sock, head.encode() + body)
    return sock


@pytest.mark.parametrize("headers", [{}, {"idempotency-key": "k"}], ids=["plain", "under a key"])
async def test_a_caller_that_reads_nothing_counts_as_gone(
    g: Harness,
    books: Any,
    eventually: Any,
    monkeypatch: pytest.MonkeyPatch,
    headers: dict[str, str],
) -> None:
    """The provider's socket and the concurrency slot come back."""
    monkeypatch.setattr(exchanges, "STALLED", 0.4)
    sock = await deaf(g, "endless", **headers)
    seen = await g.simulator.log.wait_for(1)
    await eventually(lambda: seen.disconnected is not None, 10)
    await eventually(lambda: not g.state.live)
    sock.close()
    books.balanced(g)
    (row,) = books.rows("SELECT status, fault FROM requests")
    assert row == {"status": "partial", "fault": "cancelled"}


async def test_a_caller_that_reads_slowly_gets_everything(
    g: Harness, eventually: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exchanges, "STALLED", 0.8)
    sock = await deaf(g, "large")
    loop, got = asyncio.get_running_loop(), b""
    while not got.endswith(b"0\r\n\r\n"):
        got += await loop.sock_recv(sock, 400_000)
        await asyncio.sleep(0.002)
    assert b"[DONE]" in got
    sock.close()
    await eventually(lambda: not g.state.live)


async def test_a_body_that_never_comes(g: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "SECONDS", 0.3)
    address = urlsplit(g.url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    head = (
        "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\n"
        f"authorization: Bearer {KEY}\r\ncontent-length: 5000\r\n\r\n"
    )
    writer.write(head.encode() + b'{"model": ')
    status = await asyncio.wait_for(reader.readline(), 5)
    assert b" 400 " in status
    assert b"seconds" in await asyncio.wait_for(reader.read(2000), 5)
    writer.close()
