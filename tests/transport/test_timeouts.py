"""The four time-outs on real sockets: what each covers, and what does not reset it."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time

import pytest

from adapters.canonical.faults import Fault

HEAD = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
LIMIT = 0.15


async def silent(connection):
    await connection.wait_closed()


async def drip(connection, head: bytes, piece: bytes) -> None:
    """A provider that always sends something and never anything new."""
    await connection.send(head)
    with contextlib.suppress(ConnectionError):
        while not connection.reader.at_eof():
            await connection.send(piece)
            await asyncio.sleep(0.01)


async def consume(exchange, moves: float = 0) -> float:
    """Read to the end; the first ``moves`` chunks are progress. Returns the last one's time."""
    moved = 0.0
    with exchange:
        await exchange.start()
        try:
            while await exchange.chunk():
                if moves > 0:
                    exchange.progress()
                    moved = time.monotonic()
                moves -= 1
        except Fault as fault:
            fault.data = {"moved": moved}
            raise
    return moved


async def outcome(exchange, moves: float = 0) -> Fault:
    begin = time.monotonic()
    with pytest.raises(Fault) as caught:
        await consume(exchange, moves)
    assert LIMIT * 0.9 <= time.monotonic() - begin < 4, "the limits beside it are 5 s and more"
    assert caught.value.kind == "upstream_timeout"
    return caught.value


async def test_connect_covers_the_tls_handshake(raw_provider, connect, exchange_of):
    transport = connect(raw_provider.url.replace("http:", "https:"))
    fault = await outcome(exchange_of(transport, connect=LIMIT))
    assert (fault.phase, fault.billed) == ("connect", False)


async def test_connect_covers_the_proxy(raw_provider, connect, exchange_of):
    raw_provider.script = silent
    transport = connect("https://provider.invalid", proxy=raw_provider.url)
    fault = await outcome(exchange_of(transport, connect=LIMIT))
    assert (fault.phase, fault.billed) == ("connect", False)


async def test_connect_covers_the_wait_for_the_pool(raw_provider, connect, exchange_of):
    raw_provider.script = silent
    transport = connect(raw_provider.url, pool_size=1)
    other = connect(raw_provider.url, pool_size=1)
    with exchange_of(transport) as first:
        task = asyncio.ensure_future(first.start())
        await asyncio.sleep(0.01)
        assert transport.active == 1
        fault = await outcome(exchange_of(transport, connect=LIMIT))
        assert (fault.phase, fault.code, fault.billed) == ("connect", "connection_pool_full", False)
        assert transport.active == 1
        assert raw_provider.connections == 1
        # Another provider's pool is not touched by that.
        fault = await outcome(exchange_of(other, connect=5, first_event=LIMIT))
        assert fault.phase == "first_event"
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_after_the_wait_for_the_pool_it_is_the_connection_that_is_slow(
    raw_provider, connect, exchange_of
):
    transport = connect(raw_provider.url.replace("http:", "https:"), pool_size=1)
    with exchange_of(transport) as first:
        task = asyncio.ensure_future(first.start())  # never gets through its handshake
        await asyncio.sleep(0.01)
        asyncio.get_running_loop().call_later(LIMIT / 3, task.cancel)
        waiting = asyncio.ensure_future(outcome(exchange_of(transport, connect=1)))
        with pytest.raises(asyncio.CancelledError):
            await task
    fault = await waiting
    assert (fault.phase, fault.code) == ("connect", "upstream_timeout")


async def test_connect_does_not_cover_the_answer(raw_provider, transport, exchange_of):
    raw_provider.script = silent
    fault = await outcome(exchange_of(transport, connect=0.05, first_event=LIMIT))
    assert fault.phase == "first_event"


async def test_first_event_covers_a_request_that_is_not_taken(connect, exchange_of):
    with socket.create_server(("127.0.0.1", 0)) as deaf:  # accepts by the kernel, reads never
        transport = connect(f"http://127.0.0.1:{deaf.getsockname()[1]}")
        fault = await outcome(exchange_of(transport, body=b"x" * (32 << 20), first_event=LIMIT))
    assert (fault.phase, fault.billed) == ("first_event", False)


async def test_for_a_whole_body_only_total_covers_a_request_that_is_not_taken(connect, exchange_of):
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        transport = connect(f"http://127.0.0.1:{deaf.getsockname()[1]}")
        exchange = exchange_of(
            transport, stream=False, body=b"x" * (32 << 20), first_event=0.03, total=LIMIT
        )
        fault = await outcome(exchange)
    assert (fault.phase, fault.billed) == ("total", False)


SLOW = {
    "a header that never ends": (b"HTTP/1.1 200 OK\r\na: ", b"b"),
    "headers that never end": (b"HTTP/1.1 200 OK\r\n", b"a: b\r\n"),
    "informational replies": (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "a body without content": (HEAD, b"8\r\n: ping\n\n\r\n"),
}


@pytest.mark.parametrize(("head", "piece"), SLOW.values(), ids=SLOW)
async def test_first_event_is_not_reset_by(raw_provider, transport, exchange_of, head, piece):
    raw_provider.script = lambda connection: drip(connection, head, piece)
    fault = await outcome(exchange_of(transport, first_event=LIMIT))
    assert (fault.phase, fault.billed) == ("first_event", None)


@pytest.mark.parametrize(("head", "piece"), SLOW.values(), ids=SLOW)
async def test_for_a_whole_body_only_total_applies(
    raw_provider, transport, exchange_of, head, piece
):
    raw_provider.script = lambda connection: drip(connection, head, piece)
    fault = await outcome(
        exchange_of(transport, stream=False, first_event=0.03, between_events=0.03, total=LIMIT)
    )
    assert fault.phase == "total"


async def test_between_events_runs_from_the_last_progress(raw_provider, transport, exchange_of):
    raw_provider.script = lambda connection: drip(connection, HEAD, b"1\r\nx\r\n")
    begin = time.monotonic()
    exchange = exchange_of(transport, first_event=0.05, between_events=LIMIT)
    fault = await outcome(exchange, moves=20)
    assert fault.phase == "between_events"
    assert fault.data["moved"] - begin >= LIMIT
    assert time.monotonic() - fault.data["moved"] >= LIMIT * 0.9


async def test_a_reply_that_comes_before_the_request_was_read_keeps_its_own_limits(
    connect, exchange_of
):
    async def answer_first(reader, writer):
        writer.write(HEAD + b"1\r\nx\r\n")
        await moved.wait()
        while await reader.read(1 << 20):
            pass
        writer.transport.abort()
        over.set()

    moved, over = asyncio.Event(), asyncio.Event()
    server = await asyncio.start_server(answer_first, "127.0.0.1", 0)
    transport = connect(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    asyncio.get_running_loop().call_later(LIMIT / 3, moved.set)
    exchange = exchange_of(transport, body=b"x" * (32 << 20), between_events=1)
    fault = await outcome(exchange, moves=1)
    assert exchange.sent_at is not None
    assert fault.phase == "between_events"
    await over.wait()
    await asyncio.sleep(0)
    server.close()


async def test_for_a_whole_body_that_comes_before_the_request_was_read_only_total_applies(
    connect, exchange_of
):
    async def answer_first(reader, writer):
        writer.write(HEAD + b"1\r\nx\r\n")
        await over.wait()
        writer.transport.abort()

    over = asyncio.Event()
    server = await asyncio.start_server(answer_first, "127.0.0.1", 0)
    transport = connect(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    exchange = exchange_of(
        transport, stream=False, body=b"x" * (32 << 20), first_event=LIMIT / 3, total=LIMIT
    )
    fault = await outcome(exchange)
    assert (fault.phase, fault.billed) == ("total", None)  # it had begun to work
    over.set()
    await asyncio.sleep(0)
    server.close()


async def test_total_ends_an_answer_that_always_moves(raw_provider, transport, exchange_of):
    raw_provider.script = lambda connection: drip(connection, HEAD, b"1\r\nx\r\n")
    fault = await outcome(exchange_of(transport, total=LIMIT), moves=float("inf"))
    assert fault.phase == "total"


async def test_a_slow_reader_of_ours_is_not_the_providers_fault(
    raw_provider, transport, exchange_of
):
    async def script(connection):
        await connection.send(HEAD, b"1\r\nx\r\n")
        await asyncio.sleep(0.02)
        await connection.send(b"1\r\ny\r\n0\r\n\r\n")

    raw_provider.script = script
    with exchange_of(transport, between_events=0.4, total=0.8) as exchange:
        await exchange.start()
        assert await exchange.chunk() == b"x"
        exchange.progress()
        exchange.pause()
        await asyncio.sleep(1)
        exchange.resume()
        assert await exchange.chunk() == b"y"
        assert await exchange.chunk() == b""
