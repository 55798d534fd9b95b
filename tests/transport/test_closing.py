"""Leaving an exchange closes its socket at once, whenever and however often it is cancelled.

The provider's side of the socket is the witness. About a millisecond is usual; the ceiling is
two seconds, because the machine of a test may be busy.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Callable

import pytest

from adapters.canonical.faults import Fault
from adapters.transport.http import LINGER
from adapters.transport.peer import KEEP_ALIVE

CEILING = 2.0
HEAD = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"
END = b"0\r\n\r\n"


def taken(transport) -> int:
    peer = transport._peer
    return 0 if peer is None else peer.busy


async def silent(connection):
    await connection.wait_closed()


async def streaming(connection):
    await connection.send(HEAD, b"5\r\nhello\r\n")
    await connection.wait_closed()


async def consume(exchange, seen: asyncio.Event | None = None) -> None:
    with exchange:
        await exchange.start()
        while await exchange.chunk():
            if seen is not None:
                seen.set()


async def until(condition: Callable[[], bool]) -> None:
    """Wait until ``condition`` holds; the ceiling is the test's failure."""
    deadline = asyncio.get_running_loop().time() + CEILING
    while not condition():
        await asyncio.sleep(0.001)
        assert asyncio.get_running_loop().time() < deadline


async def cancelled(task) -> None:
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.fixture(params=["plain", "tls"])
async def provider(request, start_raw_provider, tls):
    async with start_raw_provider(tls if request.param == "tls" else None) as provider:
        yield provider


async def test_cancelled_while_waiting_for_the_headers(provider, connect, cert_file, exchange_of):
    provider.script = silent
    transport = connect(provider.url, ca_file=cert_file)
    task = asyncio.ensure_future(consume(exchange_of(transport)))
    await until(lambda: bool(provider.requests))
    await cancelled(task)
    await asyncio.wait_for(provider.lost.wait(), CEILING)
    assert (transport.active, taken(transport)) == (0, 0)


async def test_cancelled_in_mid_stream(provider, connect, cert_file, exchange_of):
    provider.script = streaming
    transport = connect(provider.url, ca_file=cert_file)
    seen = asyncio.Event()
    task = asyncio.ensure_future(consume(exchange_of(transport), seen))
    await seen.wait()
    await cancelled(task)
    await asyncio.wait_for(provider.lost.wait(), CEILING)
    assert (transport.active, taken(transport)) == (0, 0)


async def test_left_by_an_exception(provider, connect, cert_file, exchange_of):
    provider.script = streaming
    transport = connect(provider.url, ca_file=cert_file)

    async def fail(exchange):
        with exchange:
            await exchange.start()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail(exchange_of(transport))
    await asyncio.wait_for(provider.lost.wait(), CEILING)


async def test_a_provider_that_does_not_read_or_say_goodbye(
    provider, connect, cert_file, exchange_of
):
    """A graceful close would wait for it; what is still to be sent is dropped instead."""

    async def stuck(connection):
        connection.writer.transport.pause_reading()
        await connection.send(HEAD, b"5\r\nhello\r\n")
        await asyncio.sleep(30)

    provider.script = stuck
    transport = connect(provider.url, ca_file=cert_file)
    with exchange_of(transport) as exchange:
        await exchange.start()
        sock = exchange._upstream.get_extra_info("socket")
    await until(lambda: sock.fileno() == -1)


async def test_cancelled_while_the_request_is_being_sent(transport, exchange_of):
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        transport._root = f"http://127.0.0.1:{deaf.getsockname()[1]}"
        task = asyncio.ensure_future(consume(exchange_of(transport, body=b"x" * (32 << 20))))
        client, _ = await asyncio.get_running_loop().run_in_executor(None, deaf.accept)
        with client:
            await asyncio.sleep(0.05)
            await cancelled(task)
            client.settimeout(CEILING)
            with contextlib.suppress(ConnectionResetError):
                while client.recv(1 << 20):
                    pass
    assert (transport.active, taken(transport)) == (0, 0)


async def test_cancelled_through_the_tunnel_of_a_proxy(
    raw_provider, start_raw_provider, tls, connect, cert_file, exchange_of
):
    async def tunnel(connection):
        near = connection
        reader, writer = await asyncio.open_connection("127.0.0.1", provider.port)
        far = type(near)(reader, writer, near.lost)
        await near.send(b"HTTP/1.1 200 Connected\r\n\r\n")
        await asyncio.wait(
            [asyncio.ensure_future(relay(near, far)), asyncio.ensure_future(relay(far, near))]
        )
        near.writer.close()

    async def relay(source, target):
        with contextlib.suppress(ConnectionError):
            while data := await source.reader.read(65536):
                await target.send(data)
        target.writer.close()

    async with start_raw_provider(tls) as provider:
        raw_provider.script = tunnel
        provider.script = streaming
        transport = connect(provider.url, ca_file=cert_file, proxy=raw_provider.url)
        seen = asyncio.Event()
        task = asyncio.ensure_future(consume(exchange_of(transport), seen))
        await asyncio.wait_for(seen.wait(), CEILING)
        await cancelled(task)
        await asyncio.wait_for(provider.lost.wait(), CEILING)
        assert raw_provider.requests[0].startswith(b"CONNECT 127.0.0.1:")
        assert b"POST" not in raw_provider.requests[0]
    assert (transport.active, taken(transport)) == (0, 0)


async def test_cancelled_in_the_tls_handshake(raw_provider, connect, exchange_of):
    transport = connect(raw_provider.url.replace("http:", "https:"))
    task = asyncio.ensure_future(consume(exchange_of(transport)))
    await until(lambda: raw_provider.connections == 1)
    await cancelled(task)
    await until(lambda: raw_provider.open == 0)
    assert (transport.active, taken(transport)) == (0, 0)


async def test_cancelled_in_the_queue_for_the_pool(raw_provider, connect, exchange_of):
    raw_provider.script = silent
    transport = connect(raw_provider.url, pool_size=1)
    first = asyncio.ensure_future(consume(exchange_of(transport)))
    await asyncio.sleep(0.01)
    second = asyncio.ensure_future(consume(exchange_of(transport)))
    await asyncio.sleep(0.01)
    await cancelled(second)
    assert transport.active == 1
    await cancelled(first)
    assert transport.active == 0
    raw_provider.script = lambda connection: connection.send(OK)
    await consume(exchange_of(transport, connect=CEILING))


@pytest.mark.parametrize("when", ["first chunk", "connect", "at once"])
async def test_two_hundred_double_cancellations_leave_the_pool_as_it_was(
    provider, connect, cert_file, exchange_of, when
):
    """Case P04: cancelled twice in quick succession, in mid-stream or while connecting."""
    provider.script = streaming
    transport = connect(provider.url, ca_file=cert_file, pool_size=4)
    for turn in range(200):
        seen = asyncio.Event()
        task = asyncio.ensure_future(consume(exchange_of(transport), seen))
        if when == "first chunk":
            await seen.wait()
        elif when == "connect":
            for _ in range(turn % 20):  # every stage of the set-up in turn
                await asyncio.sleep(0)
        task.cancel()
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert (transport.active, taken(transport)) == (0, 0)
    await until(lambda: provider.open == 0)
    provider.script = lambda connection: connection.send(OK)
    before = provider.connections
    await asyncio.gather(*(consume(exchange_of(transport)) for _ in range(20)))
    assert provider.connections - before <= 4


async def test_a_body_read_to_its_end_gives_its_connection_back(
    provider, connect, cert_file, exchange_of
):
    provider.script = lambda connection: connection.send(OK)
    transport = connect(provider.url, ca_file=cert_file)
    for _ in range(3):
        await consume(exchange_of(transport))
    assert provider.connections == 1


async def test_finish_waits_a_moment_for_the_end_and_nobody_waits_for_finish(
    raw_provider, transport, exchange_of
):
    ended = asyncio.Event()

    async def ends_late(connection):
        await connection.send(HEAD, b"5\r\nhello\r\n")
        await asyncio.sleep(LINGER / 5)
        await connection.send(END)
        ended.set()

    raw_provider.script = ends_late
    loop = asyncio.get_running_loop()
    for _ in range(2):
        ended.clear()
        begin = loop.time()
        with exchange_of(transport) as exchange:
            await exchange.start()
            await exchange.chunk()
            exchange.finish()
        assert not ended.is_set()
        assert transport.active == 1
        await ended.wait()
        await until(lambda: transport.active == 0)
        assert loop.time() - begin < LINGER * 0.9  # at the end, not when the time is over
    assert raw_provider.connections == 1


@pytest.mark.parametrize("after", [b"", b"5\r\nworld\r\n" * 20_000])
async def test_finish_closes_what_does_not_end(raw_provider, transport, exchange_of, after):
    async def goes_on(connection):
        await connection.send(HEAD, b"5\r\nhello\r\n")
        connection.writer.write(after)
        await connection.wait_closed()

    raw_provider.script = goes_on
    with exchange_of(transport) as exchange:
        await exchange.start()
        await exchange.chunk()
        exchange.finish()
    await asyncio.wait_for(raw_provider.lost.wait(), LINGER + CEILING)
    assert (transport.active, taken(transport)) == (0, 0)


async def test_a_connection_that_breaks_while_lingering_is_forgotten(
    raw_provider, transport, exchange_of
):
    async def breaks(connection):
        await connection.send(HEAD, b"5\r\nhello\r\n")
        connection.reset()

    raw_provider.script = breaks
    with exchange_of(transport) as exchange:
        await exchange.start()
        await exchange.chunk()
        exchange.finish()
    await asyncio.sleep(LINGER * 1.5)
    assert transport.active == 0


@pytest.mark.parametrize("method", ["POST", "GET"])
async def test_a_dead_pooled_connection_is_a_fault_and_never_a_second_request(
    raw_provider, transport, exchange_of, method
):
    """aiohttp by itself would send a GET again; only flow may decide that."""

    async def answer_once(connection):
        await connection.send(OK)
        raw_provider.script = die

    async def die(connection):
        connection.reset()

    raw_provider.script = answer_once
    await consume(exchange_of(transport, method=method))
    with pytest.raises(Fault) as caught:
        await consume(exchange_of(transport, method=method))
    assert caught.value.kind == "connect_failed"
    assert caught.value.billed is None  # the provider may have worked on it
    assert len(raw_provider.requests) == 2
    assert raw_provider.connections == 1


async def test_a_connection_that_was_closed_while_idle_is_not_used(
    raw_provider, transport, exchange_of
):
    async def answer_and_close(connection):
        await connection.send(OK)
        connection.writer.close()

    raw_provider.script = answer_and_close
    for _ in range(20):
        await consume(exchange_of(transport))
        await asyncio.sleep(0.005)
    assert len(raw_provider.requests) == 20


LATE = b"HTTP/1.1 408 Late\r\ncontent-length: 3\r\n\r\n"


@pytest.mark.parametrize(
    ("pause", "more", "connections"),
    [
        (0.005, LATE + b"bye", 3),
        (0.005, LATE, 3),
        (0.005, b"bye", 3),
        (0.005, b"\r\n", 1),  # some send an empty line
        (0, LATE + b"bye", 3),
        (0, LATE, 3),
        (0, b"\r\n", 1),
    ],
)
async def test_a_reply_that_nobody_asked_for_is_given_to_nobody(
    raw_provider, transport, exchange_of, more, connections, pause
):
    """Else each call after it would get the answer to the one before."""

    async def answer(connection):
        number = len(raw_provider.requests)
        await connection.send(b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n%d" % number)
        if pause:
            await asyncio.sleep(pause)
        await connection.send(more)

    raw_provider.script = answer
    for number in range(1, 4):
        with exchange_of(transport, stream=False) as exchange:
            await exchange.start()
            assert (exchange.status, await exchange.read(10)) == (200, b"%d" % number)
        await asyncio.sleep(0.02)
    assert raw_provider.connections == connections


async def test_half_a_reply_that_nobody_asked_for_makes_no_other_one(
    raw_provider, transport, exchange_of
):
    async def answer(connection):
        await connection.send(OK)
        await asyncio.sleep(0.005)
        await connection.send(LATE[:10])
        with contextlib.suppress(ConnectionError):
            await asyncio.sleep(0.02)
            await connection.send(LATE[10:], b"bye")

    raw_provider.script = answer
    for _ in range(3):
        with exchange_of(transport, stream=False) as exchange:
            await exchange.start()
            assert (exchange.status, await exchange.read(10)) == (200, b"{}")
        await asyncio.sleep(0.01)


async def test_a_connection_that_nobody_uses_is_closed_after_a_while(
    provider, connect, cert_file, exchange_of, monkeypatch
):
    monkeypatch.setattr("adapters.transport.peer.KEEP_ALIVE", 0.05)
    provider.script = lambda connection: connection.send(OK)
    transport = connect(provider.url, ca_file=cert_file)
    await asyncio.gather(*(consume(exchange_of(transport)) for _ in range(3)))
    assert (provider.open, taken(transport)) == (3, 0)
    await until(lambda: provider.open == 0)
    await until(lambda: not transport.peer().connector._acquired)


async def test_a_connection_that_was_free_for_too_long_is_not_used(
    raw_provider, transport, exchange_of
):
    raw_provider.script = lambda connection: connection.send(OK)
    await consume(exchange_of(transport))
    (handler,) = transport.peer()._idle
    handler.since -= KEEP_ALIVE + 0.01
    await consume(exchange_of(transport))
    assert raw_provider.connections == 2
    await until(lambda: raw_provider.open == 1)


async def test_a_reply_before_the_request_was_read_closes_the_connection(transport, exchange_of):
    checked, over = asyncio.Event(), asyncio.Event()

    async def refuse(reader, writer):
        await reader.read(1000)
        writer.write(b"HTTP/1.1 413 Too Large\r\ncontent-length: 2\r\n\r\n{}")
        await checked.wait()
        writer.transport.abort()
        over.set()

    server = await asyncio.start_server(refuse, "127.0.0.1", 0)
    transport._root = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    with exchange_of(transport, body=b"x" * (32 << 20)) as exchange:
        await exchange.start()
        assert exchange.status == 413
        assert await exchange.read(10) == b"{}"
        sock = exchange._upstream.get_extra_info("socket")
    assert (transport.active, taken(transport)) == (0, 0)
    for _ in range(5):
        await asyncio.sleep(0)
    assert sock.fileno() == -1  # without flushing what is left of the request
    assert not transport.peer()._idle
    checked.set()
    await over.wait()
    await asyncio.sleep(0)
    server.close()


async def test_nothing_is_written_to_a_connection_that_is_gone(transport, exchange_of, caplog):
    """asyncio complains of each piece that is written to what has broken."""

    def hang_up(server: socket.socket) -> None:
        with contextlib.suppress(OSError):  # the test is over
            while True:
                client, _ = server.accept()
                client.recv(1000)
                client.close()  # with a reset, for what it did not read

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=hang_up, args=(server,))
        thread.start()
        transport._root = f"http://127.0.0.1:{server.getsockname()[1]}"
        for _ in range(20):
            with pytest.raises(Fault):
                await consume(exchange_of(transport, body=b"x" * (32 << 20)))
        server.shutdown(socket.SHUT_RDWR)
        thread.join()
    assert caplog.messages == []


async def test_closing_the_transport_ends_calls_and_may_be_repeated(
    provider, connect, cert_file, exchange_of
):
    provider.script = streaming
    transport = connect(provider.url, ca_file=cert_file)
    seen = asyncio.Event()
    task = asyncio.ensure_future(consume(exchange_of(transport), seen))
    await seen.wait()
    with exchange_of(transport) as lingering:
        await lingering.start()
        await lingering.chunk()
        lingering.finish()
        await asyncio.gather(transport.close(), transport.close())
    with pytest.raises(Fault) as caught:
        await task
    assert caught.value.kind == "stream_truncated"
    await until(lambda: provider.open == 0)
    with pytest.raises(RuntimeError, match="closed"):
        await consume(exchange_of(transport))


async def test_closing_the_transport_ends_a_call_that_waits_for_its_headers(
    provider, connect, cert_file, exchange_of
):
    provider.script = silent
    transport = connect(provider.url, ca_file=cert_file)
    task = asyncio.ensure_future(consume(exchange_of(transport)))
    await until(lambda: bool(provider.requests))
    await transport.close()
    with pytest.raises(Fault) as caught:
        await asyncio.wait_for(task, CEILING)
    assert caught.value.kind == "connect_failed"
    await until(lambda: provider.open == 0)


async def test_closing_survives_a_cancellation(raw_provider, connect, exchange_of):
    raw_provider.script = lambda connection: connection.send(OK)
    transport = connect(raw_provider.url)
    await consume(exchange_of(transport))
    task = asyncio.ensure_future(transport.close())
    await asyncio.sleep(0)
    await cancelled(task)
    await transport.close()
    await until(lambda: raw_provider.open == 0)
