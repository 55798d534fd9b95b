"""Every way in which bytes do not come, and the fault that says so."""

from __future__ import annotations

import asyncio
import socket

import aiohttp
import pytest

from adapters.canonical.faults import Fault
from adapters.transport.errors import before_reply

HEAD = b"HTTP/1.1 200 OK\r\n"
CHUNKED = HEAD + b"transfer-encoding: chunked\r\n\r\n"


async def whole(exchange) -> bytes:
    with exchange:
        await exchange.start()
        return await exchange.read(1000)


REPLIES = {
    "closed before a reply": (b"", "close", "connect_failed"),
    "reset before a reply": (b"", "reset", "connect_failed"),
    "closed inside the headers": (HEAD + b"foo: b", "close", "protocol_error"),
    "no HTTP": (b"hello world\r\n\r\n", "hold", "protocol_error"),
    "TLS on the plain port": (b"\x16\x03\x01\x00\xff\xff", "hold", "protocol_error"),
    "an endless header": (HEAD + b"foo: " + b"b" * 200_000, "hold", "protocol_error"),
    "endless headers": (HEAD + b"a: b\r\n" * 5000, "hold", "protocol_error"),
    "an endless status line": (b"HTTP/1.1 200 " + b"b" * 200_000, "hold", "protocol_error"),
    "a bad content length": (HEAD + b"content-length: x\r\n\r\n", "hold", "protocol_error"),
    "a bad chunk": (CHUNKED + b"ZZ\r\nxx", "hold", "protocol_error"),
    "cut inside a chunk": (CHUNKED + b"5\r\nhel", "close", "stream_truncated"),
    "cut between chunks": (CHUNKED + b"5\r\nhello\r\n", "close", "stream_truncated"),
    "reset between chunks": (CHUNKED + b"5\r\nhello\r\n", "reset", "stream_truncated"),
    "cut short of its length": (
        HEAD + b"content-length: 10\r\n\r\nhello",
        "close",
        "stream_truncated",
    ),
    "compressed garbage": (
        HEAD + b"content-encoding: gzip\r\ncontent-length: 5\r\n\r\nhello",
        "hold",
        "protocol_error",
    ),
    "an encoding that nobody asked for": (
        HEAD + b"content-encoding: br\r\ncontent-length: 5\r\n\r\nhello",
        "hold",
        "protocol_error",
    ),
}


@pytest.mark.parametrize(("data", "end", "kind"), REPLIES.values(), ids=REPLIES)
async def test_a_broken_reply(raw_provider, transport, exchange_of, data, end, kind):
    async def script(connection):
        await connection.send(data)
        await asyncio.sleep(0.02)
        if end == "reset":
            connection.reset()
        elif end == "close":
            connection.writer.close()
        else:
            await connection.wait_closed()

    raw_provider.script = script
    with pytest.raises(Fault) as caught:
        await whole(exchange_of(transport))
    fault = caught.value
    assert fault.kind == kind
    assert fault.billed is None
    told = fault.message + (fault.detail or "")
    for secret in (str(raw_provider.port), "127.0.0.1", "/go", "hel", "bbb"):
        assert secret not in told


async def test_what_came_before_a_break_is_still_given(raw_provider, transport, exchange_of):
    async def script(connection):
        await connection.send(CHUNKED, b"5\r\nhello\r\n", b"5\r\nworld\r\n")
        connection.reset()

    raw_provider.script = script
    with exchange_of(transport) as exchange:
        await exchange.start()
        await asyncio.sleep(0.05)  # data and break are both there before the first read
        assert await exchange.chunk() == b"helloworld"
        with pytest.raises(Fault):
            await exchange.chunk()


async def test_a_port_that_nobody_listens_on(connect, exchange_of):
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        transport = connect(f"http://127.0.0.1:{sock.getsockname()[1]}")
        with pytest.raises(Fault) as caught:
            await whole(exchange_of(transport))
    assert caught.value.kind == "connect_failed"
    assert caught.value.billed is False
    assert "Errno" in (caught.value.detail or "")


async def test_a_host_that_does_not_exist(connect, exchange_of, monkeypatch):
    async def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    transport = connect("http://provider.invalid")
    monkeypatch.setattr(transport.peer().connector._resolver, "resolve", unknown)
    with pytest.raises(Fault) as caught:
        await whole(exchange_of(transport))
    assert caught.value.kind == "connect_failed"
    assert caught.value.billed is False
    assert "`base_url`" in caught.value.message


async def test_a_server_that_speaks_no_tls(connect, exchange_of):
    async def answer_plainly(reader, writer):
        await reader.read(100)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(answer_plainly, "127.0.0.1", 0)
    transport = connect(f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    with pytest.raises(Fault) as caught:
        await whole(exchange_of(transport))
    server.close()
    assert caught.value.kind == "connect_failed"
    assert caught.value.billed is False
    assert "TLS" in caught.value.message


async def test_an_unfinished_request_is_not_billed(raw_provider, transport, exchange_of):
    """The provider can't have worked on a request that it did not get whole."""

    async def read_a_little(reader, writer):
        await reader.read(1000)
        writer.transport.abort()

    server = await asyncio.start_server(read_a_little, "127.0.0.1", 0)
    transport._root = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    with pytest.raises(Fault) as caught:
        await whole(exchange_of(transport, body=b"x" * (32 << 20)))
    assert caught.value.kind == "connect_failed"
    assert caught.value.billed is False
    server.close()


def test_whatever_aiohttp_invents_next_is_still_a_fault():
    fault = before_reply(aiohttp.ClientError("secret"), sent=True)
    assert fault.kind == "connect_failed"
    assert "secret" not in f"{fault.message}{fault.detail}"


@pytest.mark.parametrize("stream", [True, False])
async def test_a_framing_that_breaks_in_mid_body_is_not_waited_out(
    raw_provider, transport, exchange_of, stream
):
    async def script(connection):
        await connection.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n")
        await asyncio.sleep(0.05)
        await connection.send(b"3\r\ndef\r\nno size\r\n")
        await connection.wait_closed()

    raw_provider.script = script
    got = bytearray()
    with exchange_of(transport, stream=stream) as exchange:
        await exchange.start()
        with pytest.raises(Fault) as caught:
            await asyncio.wait_for(exchange.pour(lambda data: not got.extend(data)), 2)
    assert (caught.value.kind, bytes(got)) == ("protocol_error", b"abcdef")
    await asyncio.wait_for(raw_provider.lost.wait(), 2)
