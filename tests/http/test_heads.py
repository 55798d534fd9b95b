"""Whoever has no key yet can fill nothing and hold nothing with the head of a request."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
import uvicorn

from gateway.http.heads import HEAD_SECONDS, MAX_HEAD, BoundedHeads
from gateway.http.server import listening

GET = b"GET / HTTP/1.1\r\nhost: x\r\n"


async def app(scope: Any, receive: Any, send: Any) -> None:
    while scope["path"] != "/early" and (await receive()).get("more_body"):
        pass
    if scope["path"] == "/slow":
        await asyncio.sleep(15)
    size = sum(len(value) for _, value in scope["headers"])
    await send(
        {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"8")]}
    )
    await send({"type": "http.response.body", "body": b"%8d" % size})


@pytest.fixture
async def port(request: pytest.FixtureRequest) -> AsyncIterator[int]:
    """A server with the gateway's protocol; its parameter is how long it waits for the next
    request of a connection."""
    idle = getattr(request, "param", 5)
    with listening("127.0.0.1", 0) as listener:
        config = uvicorn.Config(
            app, http=BoundedHeads, log_config=None, lifespan="off", timeout_keep_alive=idle
        )
        server = uvicorn.Server(config)
        server.capture_signals = contextlib.nullcontext  # type: ignore[method-assign]
        task = asyncio.create_task(server.serve(sockets=[listener]))
        while not server.started:
            await asyncio.sleep(0.005)
        yield listener.getsockname()[1]
        server.should_exit = True
        await task


@pytest.fixture
async def pass_time(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], Awaitable[None]]:
    """``await pass_time(20)``: so many seconds later for all that waits in this event loop."""
    loop = asyncio.get_running_loop()
    time, passed = loop.time, 0.0
    monkeypatch.setattr(loop, "time", lambda: time() + passed)

    async def pass_time(seconds: float) -> None:
        nonlocal passed
        await asyncio.sleep(0.02)  # what was sent is read before
        passed += seconds
        await asyncio.sleep(0.02)

    return pass_time


async def read_all(reader: asyncio.StreamReader) -> bytes:
    async with asyncio.timeout(10):
        return await reader.read()


def error(answer: bytes) -> tuple[int, str]:
    """The status and the code of an error answer, which is the last on its connection."""
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"connection: close" in head
    assert int(head.lower().partition(b"content-length: ")[2].split()[0]) == len(body)
    return int(head.split()[1]), json.loads(body)["error"]["code"]


@pytest.mark.parametrize(
    "piece", [b"x-a: " + b"a" * 8000 + b"\r\n", b"a" * 8000], ids=["many", "one"]
)
async def test_a_head_without_an_end_is_refused(port: int, piece: bytes) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(GET + (b"" if piece.endswith(b"\n") else b"x-b: "))
    sent, told = 0, asyncio.create_task(read_all(reader))
    while sent < 100 * MAX_HEAD and not told.done():
        writer.write(piece)
        await writer.drain()
        await asyncio.sleep(0.005)
        sent += len(piece)
    assert sent < 20 * MAX_HEAD, "it was listened to for much too long"
    assert error(await told) == (413, "head_too_large")
    writer.close()


async def test_a_large_head_in_pieces_is_served_and_the_next_one_too(port: int) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for _ in range(3):
        writer.write(GET)
        for number in range(6):
            writer.write(b"x-%d: " % number + b"a" * 9000 + b"\r\n")
            await writer.drain()
            await asyncio.sleep(0.01)
        writer.write(b"\r\n")
        answer = await reader.readuntil(b"\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 200 ")
        assert int(await reader.readexactly(8)) == 54_001
    writer.close()


async def test_a_large_body_is_no_head(port: int) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for _ in range(2):
        size = 5 * MAX_HEAD
        writer.write(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % size)
        for start in range(0, size, 10_000):
            writer.write(b"b" * min(10_000, size - start))
            await writer.drain()
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 ")
        await reader.readexactly(8)
    writer.close()


@pytest.mark.parametrize("first", [b"", GET + b"\r\n"], ids=["new", "kept"])
async def test_half_a_head_does_not_hold_a_connection(
    port: int, first: bytes, pass_time: Any
) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    if first:
        writer.write(first)
        await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(8)
    writer.write(b"GET / HT")
    await pass_time(HEAD_SECONDS - 1)
    assert not reader.at_eof()
    await pass_time(1)
    assert error(await read_all(reader)) == (400, "head_timeout")
    writer.close()


async def test_a_connection_that_says_nothing_is_closed_without_a_word(
    port: int, pass_time: Any
) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    await pass_time(HEAD_SECONDS - 1)
    assert not reader.at_eof()
    await pass_time(1)
    assert await read_all(reader) == b""
    writer.close()


async def test_requests_that_come_too_early_are_answered_in_their_order(port: int) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    sizes = [40, 10, 30, 20]
    writer.write(b"".join(GET + b"x-a: " + b"a" * size + b"\r\n\r\n" for size in sizes))
    for size in sizes:
        await reader.readuntil(b"\r\n\r\n")
        assert int(await reader.readexactly(8)) == 1 + size
    writer.close()


@pytest.mark.parametrize("port", [30], indirect=True)
async def test_an_idle_connection_is_closed_but_none_that_goes_on(
    port: int, pass_time: Any
) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for _ in range(4):
        writer.write(GET + b"\r\n")
        await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(8)
        await pass_time(20)
    assert not reader.at_eof(), "the wait begins with the latest answer"
    await pass_time(10)
    assert await read_all(reader) == b""
    writer.close()


@pytest.mark.parametrize("port", [30], indirect=True)
@pytest.mark.parametrize(
    ("request_", "more"),
    [
        (GET + b"\r\n", b"\r\n"),
        (b"POST /early HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n", b"b"),
        (b"POST /early HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n", b"body body"),
    ],
    ids=["blank lines", "an answered body that goes on", "an answered body that ends"],
)
async def test_what_begins_no_request_does_not_hold_a_connection(
    port: int, request_: bytes, more: bytes, pass_time: Any
) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request_)
    await reader.readuntil(b"\r\n\r\n")
    await reader.readexactly(8)
    await pass_time(20)
    writer.write(more)
    await pass_time(0)
    assert not reader.at_eof()
    await pass_time(10)
    with contextlib.suppress(ConnectionError):
        assert await read_all(reader) == b""
    writer.close()


@pytest.mark.parametrize("port", [30], indirect=True)
@pytest.mark.parametrize("early", [0, 30], ids=["whole", "half of its head with the one before"])
async def test_a_call_is_not_ended_by_the_wait_for_the_next_one(
    port: int, early: int, pass_time: Any
) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    slow = b"GET /slow HTTP/1.1\r\nhost: x\r\nx-a: a\r\n\r\n"
    writer.write(GET + b"\r\n" + slow[:early])
    await reader.readuntil(b"\r\n\r\n")
    await reader.readexactly(8)
    await pass_time(20)
    writer.write(slow[early:])
    await pass_time(20)
    assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 ")
    assert int(await reader.readexactly(8)) == 2
    writer.close()


async def test_what_is_no_http_is_told_in_the_envelope(port: int) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n")
    assert error(await read_all(reader)) == (400, "invalid_http")
    writer.close()
