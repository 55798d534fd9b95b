"""A reply's bytes come to whoever takes them without waking the task that waits."""

from __future__ import annotations

import asyncio
import gzip
import random
from collections.abc import Callable
from typing import Any
from unittest import mock

import aiohttp
import pytest

from adapters.canonical.faults import Fault
from adapters.transport.handler import Handler
from adapters.transport.pour import Pour, Reader

HEAD = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
END = b"0\r\n\r\n"


class Taker:
    """Takes pieces, ``most`` of them at a time. ``tasks`` are those that ran it."""

    def __init__(self, most: int = 1000) -> None:
        self.pieces: list[bytes] = []
        self.tasks: set[Any] = set()
        self._most = most

    def __call__(self, data: bytes) -> bool:
        self.pieces.append(data)
        self.tasks.add(asyncio.current_task())
        return len(self.pieces) % self._most != 0


async def slowly(connection: Any) -> None:
    await connection.send(HEAD)
    for word in (b"one", b"two", b"three"):
        await connection.send(b"%x\r\n%b\r\n" % (len(word), word))
        await asyncio.sleep(0.02)
    await connection.send(END)


async def test_no_task_is_woken_for_a_chunk(
    transport: Any, raw_provider: Any, exchange_of: Callable[..., Any]
) -> None:
    raw_provider.script = slowly
    take = Taker()
    with exchange_of(transport) as exchange:
        await exchange.start()
        assert await exchange.pour(take) is False
    assert take.pieces == [b"one", b"two", b"three"]
    assert None in take.tasks, "taken where the bytes arrive"


async def test_one_read_of_the_socket_is_one_piece(
    transport: Any, raw_provider: Any, exchange_of: Callable[..., Any]
) -> None:
    async def at_once(connection: Any) -> None:
        await connection.send(HEAD)
        await asyncio.sleep(0.02)
        await connection.send(b"1\r\na\r\n" * 50)
        await asyncio.sleep(0.02)
        await connection.send(END)

    raw_provider.script = at_once
    take = Taker()
    with exchange_of(transport) as exchange:
        await exchange.start()
        await exchange.pour(take)
    assert take.pieces == [b"a" * 50]


async def test_a_slow_taker_stops_the_provider_and_goes_on_where_it_was(
    transport: Any, raw_provider: Any, exchange_of: Callable[..., Any]
) -> None:
    """More than the reader's bounds, in bytes and in chunks: nothing is lost or told twice."""
    words = [b"%d," % number for number in range(100_000)]

    async def everything(connection: Any) -> None:
        await connection.send(HEAD)
        for start in range(0, len(words), 1000):
            await connection.send(*(b"%x\r\n%b\r\n" % (len(w), w) for w in words[start:][:1000]))
        await connection.send(END)

    raw_provider.script = everything
    take = Taker(most=3)
    with exchange_of(transport) as exchange:
        await exchange.start()
        await asyncio.sleep(0.1)
        while await exchange.pour(take):
            await asyncio.sleep(0.002)
    assert b"".join(take.pieces) == b"".join(words)


async def test_who_wants_no_more_is_given_no_more(
    transport: Any, raw_provider: Any, exchange_of: Callable[..., Any]
) -> None:
    raw_provider.script = slowly
    take = Taker(most=1)
    with exchange_of(transport) as exchange:
        await exchange.start()
        assert await exchange.pour(take) is True
        await asyncio.sleep(0.03)
        assert take.pieces == [b"one"]
        while await exchange.pour(take):
            pass
    assert b"".join(take.pieces) == b"onetwothree"


async def test_what_came_before_a_break_is_taken(
    transport: Any, raw_provider: Any, exchange_of: Callable[..., Any]
) -> None:
    async def broken(connection: Any) -> None:
        await connection.send(HEAD, b"5\r\nhello\r\n", b"5\r\nwo")
        connection.writer.close()

    raw_provider.script = broken
    take = Taker()
    with exchange_of(transport) as exchange:
        await exchange.start()
        with pytest.raises(Fault, match="cut off"):
            await exchange.pour(take)
    assert b"".join(take.pieces).startswith(b"hello")


async def test_a_reply_without_a_body_ends_at_once(
    transport: Any, raw_provider: Any, exchange_of: Callable[..., Any]
) -> None:
    async def empty(connection: Any) -> None:
        await connection.send(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")

    raw_provider.script = empty
    with exchange_of(transport) as exchange:
        await exchange.start()
        assert await exchange.pour(Taker()) is False


async def test_the_installed_client_has_what_is_relied_on(
    transport: Any, raw_provider: Any, exchange_of: Callable[..., Any]
) -> None:
    """Private names of aiohttp: its connections are ours, and its reader wakes whoever waits."""

    async def silent(connection: Any) -> None:
        await connection.send(HEAD)
        await connection.wait_closed()

    raw_provider.script = silent
    take = Taker()
    with exchange_of(transport) as exchange:
        await exchange.start()
        content = exchange._content
        assert type(content._protocol) is Handler
        assert type(content) is Reader
        pour = asyncio.ensure_future(exchange.pour(take))
        await asyncio.sleep(0)
        assert type(content._protocol.after.__self__) is Pour
        pour.cancel()
        with pytest.raises(asyncio.CancelledError):
            await pour
        assert content._protocol.after is None
        content.feed_data(b"late")
        await asyncio.sleep(0.01)
        assert take.pieces == []


async def test_a_request_that_could_not_be_sent_leaves_a_reply_that_came_first(
    transport, exchange_of
):
    """Some providers answer and hang up before they have read all; what they said counts."""

    async def answer_first(reader, writer):
        await reader.read(1000)
        writer.write(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nhello")
        await answered.wait()
        writer.transport.abort()
        over.set()

    answered, over = asyncio.Event(), asyncio.Event()
    server = await asyncio.start_server(answer_first, "127.0.0.1", 0)
    transport._root = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    got = bytearray()
    with exchange_of(transport, body=b"x" * (32 << 20)) as exchange:
        await exchange.start()
        exchange._upload.cancel()
        broken = aiohttp.ClientConnectionResetError("the write failed first")
        with mock.patch("adapters.transport.http.taken", side_effect=broken):
            await exchange._send_rest(exchange._handler, exchange._upstream)
        answered.set()
        assert not await exchange.pour(lambda data: not got.extend(data))
    assert bytes(got) == b"hello"
    await over.wait()
    await asyncio.sleep(0)
    server.close()


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("identity", b"hello" * 60_000),
        ("gzip", random.Random(1).randbytes(300_000)),
        ("gzip", b"hello" * 600_000),
    ],
)
async def test_a_slow_reader_gets_all_of_an_answer_whose_connection_was_closed_behind_it(
    start_raw_provider, tls, connect, cert_file, exchange_of, encoding, body
):
    """Over TLS the goodbye may come with the last bytes, while the reader has enough for now."""

    async def script(connection):
        data = body if encoding == "identity" else gzip.compress(body, 1)
        pieces = (data[at : at + 100] for at in range(0, len(data), 100))
        coded = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)
        await connection.send(HEAD.replace(b"\r\n\r\n", coding) + coded + END)
        connection.writer.close()

    coding = f"\r\ncontent-encoding: {encoding}\r\n\r\n".encode()
    got = bytearray()
    async with start_raw_provider(tls) as provider:
        provider.script = script
        transport = connect(provider.url, ca_file=cert_file)
        with exchange_of(transport) as exchange:
            await exchange.start()
            while await exchange.pour(lambda data: bool(got.extend(data))):
                await asyncio.sleep(0.02)
    assert bytes(got) == body
