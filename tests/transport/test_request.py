"""What goes out: one request a call, no cookie, no redirect, nothing from the environment."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import gzip
import socket
import zlib

import pytest

from adapters.canonical.faults import Fault
from adapters.transport.http import HttpTransport
from adapters.transport.peer import Shared, make_socket

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"


def replies(*heads: bytes):
    """A script that gives these replies in turn, the last one for ever."""
    left = list(heads)

    async def script(connection):
        await connection.send(left.pop(0) if len(left) > 1 else left[0])

    return script


async def whole(exchange, limit: int = 1 << 20) -> bytes:
    with exchange:
        await exchange.start()
        return await exchange.read(limit)


def header(request: bytes, name: str) -> list[str]:
    lines = request.partition(b"\r\n\r\n")[0].decode().split("\r\n")[1:]
    pairs = (line.partition(": ")[::2] for line in lines)
    return [value for key, value in pairs if key.lower() == name]


async def test_status_headers_and_body_come_back(raw_provider, transport, exchange_of):
    raw_provider.script = replies(
        b"HTTP/1.1 418 Teapot\r\nX-Request-ID: r1\r\ncontent-length: 5\r\n\r\nshort"
    )
    with exchange_of(transport) as exchange:
        assert (exchange.status, exchange.sent_at, exchange.headers_at) == (None, None, None)
        await exchange.start()
        assert exchange.status == 418
        assert exchange.headers["x-request-id"] == "r1"
        assert exchange.sent_at <= exchange.headers_at
        assert await exchange.read(5) == b"short"
        assert await exchange.chunk() == b""


async def test_a_replys_headers_are_text_whatever_their_bytes(raw_provider, transport, exchange_of):
    """A name that can't be written as UTF-8 is one that no ledger and no log can keep."""
    head = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nx-request-id: a\xff\xfeb\r\n"
    raw_provider.script = replies(head + "x-city: Köln\r\n\r\n".encode())
    with exchange_of(transport) as exchange:
        await exchange.start()
        assert exchange.headers["x-request-id"] == "a\ufffd\ufffdb"
        assert exchange.headers["x-city"] == "Köln"


async def test_headers_that_come_twice_count_as_they_came_last(
    raw_provider, transport, exchange_of
):
    """Read one by one or all together, and whoever wrote their names."""
    head = b"HTTP/1.1 200 OK\r\nX-One: a\r\nContent-Length: 0\r\nx-one: b\r\nX-TWO: c\r\n\r\n"
    raw_provider.script = replies(head)
    with exchange_of(transport) as exchange:
        assert exchange.headers == {}
        await exchange.start()
        headers = exchange.headers
        assert headers == {"x-one": "b", "content-length": "0", "x-two": "c"}
        assert {name: headers.get(name) for name in headers} == dict(headers)
        assert (headers.get("x-three"), headers.get("x-three", "none")) == (None, "none")
        assert ("x-two" in headers, "x-three" in headers, len(headers)) == (True, False, 3)


async def test_headers_are_exactly_ours(raw_provider, transport, exchange_of):
    raw_provider.script = replies(OK)
    await whole(
        exchange_of(transport, headers={"user-agent": "us", "content-type": "application/json"})
    )
    (request,) = raw_provider.requests
    assert request.startswith(b"POST /go HTTP/1.1\r\n")
    assert header(request, "user-agent") == ["us"]
    assert header(request, "content-type") == ["application/json"]
    assert header(request, "content-length") == ["2"]
    assert header(request, "transfer-encoding") == []
    assert request.endswith(b"\r\n\r\n{}")


@pytest.mark.parametrize("proxied", [False, True])
async def test_headers_that_are_shared_are_written_as_any_others(
    raw_provider, connect, exchange_of, proxied
):
    """What is kept of them is of this method, path and these headers alone."""
    raw_provider.script = replies(OK)
    proxy = raw_provider.url.replace("://", "://me:pass@") if proxied else None
    transport = connect(raw_provider.url + "/v1?a=b", proxy=proxy)
    first, second = ({"user-agent": "us", "x-kind": kind} for kind in ("first", "second"))
    for headers in (first, second):
        for method in ("POST", "GET"):
            for size in (0, 7, 3000):
                asked = {"method": method, "body": b"x" * size}
                for given in (headers, Shared(headers)):
                    await whole(exchange_of(transport, headers=given, **asked))
                plain, shared = raw_provider.requests
                assert plain == shared
                raw_provider.requests.clear()
    kept = Shared(first)
    for _ in range(2):
        await whole(exchange_of(transport, headers=kept))
        await whole(exchange_of(transport, headers=Shared(second)))
    kinds = [header(request, "x-kind") for request in raw_provider.requests]
    assert kinds == [["first"], ["second"]] * 2


@pytest.mark.parametrize(
    ("base", "path"),
    [
        ("/v1", "/v1/go"),
        ("/v1/", "/v1/go"),
        ("", "/go"),
        ("/openai?api-version=2", "/openai/go?api-version=2"),
    ],
)
async def test_the_path_is_appended_to_the_base_url(raw_provider, connect, exchange_of, base, path):
    raw_provider.script = replies(OK)
    await whole(exchange_of(connect(raw_provider.url + base)))
    assert raw_provider.requests[0].split(b" ")[1] == path.encode()


@pytest.mark.parametrize("size", [0, 1, 1 << 16, 3 << 20])
async def test_a_body_of_any_size_arrives_whole(raw_provider, transport, exchange_of, size):
    raw_provider.script = replies(OK)
    body = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
    await whole(exchange_of(transport, body=body))
    assert raw_provider.requests[0].partition(b"\r\n\r\n")[2] == body


async def test_no_request_counts_as_sent_before_it_is(connect, exchange_of, monkeypatch):
    """A provider that reads slowly, on a way that takes little at once."""

    def narrow(address):
        sock = make_socket(address)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        return sock

    async def reading_late(reader, writer):
        await go.wait()
        head = await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(int(header(head, "content-length")[0]))
        writer.write(OK)
        writer.close()
        await writer.wait_closed()
        over.set()

    monkeypatch.setattr("adapters.transport.peer.make_socket", narrow)
    go, over = asyncio.Event(), asyncio.Event()
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    listener.bind(("127.0.0.1", 0))
    async with await asyncio.start_server(reading_late, sock=listener, limit=4096):
        transport = connect(f"http://127.0.0.1:{listener.getsockname()[1]}")
        with exchange_of(transport, body=b"x" * 200_000) as exchange:
            starting = asyncio.create_task(exchange.start())
            await asyncio.sleep(0.1)
            early = exchange.sent_at
            go.set()
            await starting
            assert early is None
            assert exchange.sent_at <= exchange.headers_at
            assert await exchange.read(2) == b"{}"
        await over.wait()


async def test_redirects_are_answers_not_orders(raw_provider, transport, exchange_of):
    raw_provider.script = replies(
        b"HTTP/1.1 307 Go\r\nlocation: /elsewhere\r\ncontent-length: 0\r\n\r\n"
    )
    with exchange_of(transport) as exchange:
        await exchange.start()
        assert exchange.status == 307
    assert len(raw_provider.requests) == 1


async def test_no_cookie_is_kept(raw_provider, connect, exchange_of):
    # By name, because no jar keeps the cookies of an address.
    transport = connect(raw_provider.url.replace("127.0.0.1", "localhost"))
    raw_provider.script = replies(
        b"HTTP/1.1 200 OK\r\nset-cookie: a=b\r\ncontent-length: 2\r\n\r\n{}"
    )
    for _ in range(2):
        await whole(exchange_of(transport))
    assert header(raw_provider.requests[1], "cookie") == []


async def test_the_environment_sets_no_proxy_and_no_credentials(
    raw_provider, transport, exchange_of, monkeypatch, tmp_path
):
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login me password secret\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    raw_provider.script = replies(OK)
    await whole(exchange_of(transport))
    assert header(raw_provider.requests[0], "authorization") == []


async def test_a_proxy_gets_the_absolute_url_and_its_own_credentials(
    raw_provider, connect, exchange_of
):
    raw_provider.script = replies(OK)
    proxy = raw_provider.url.replace("://", "://me:pass@")
    for _ in range(2):  # a fresh connection and a pooled one
        transport = connect("http://provider.invalid/v1", proxy=proxy)
        await whole(exchange_of(transport))
        await whole(exchange_of(transport))
    for request in raw_provider.requests:
        assert request.startswith(b"POST http://provider.invalid/v1/go HTTP/1.1\r\n")
        (token,) = header(request, "proxy-authorization")
        assert base64.b64decode(token.removeprefix("Basic ")) == b"me:pass"
        assert header(request, "authorization") == []


@pytest.mark.parametrize(
    ("written", "sent"),
    [("m%C3%A9:p%20%C3%A9@", "mé:p é"), ("me@", "me:"), (":pass@", ":pass"), ("", None)],
)
@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_a_proxys_credentials_are_the_same_with_and_without_a_tunnel(
    raw_provider, connect, exchange_of, scheme, written, sent
):
    raw_provider.script = replies(b"HTTP/1.1 407 Who?\r\ncontent-length: 0\r\n\r\n")
    proxy = raw_provider.url.replace("://", f"://{written}")
    with contextlib.suppress(Fault):
        await whole(exchange_of(connect(f"{scheme}://provider.invalid", proxy=proxy)))
    given = header(raw_provider.requests[0], "proxy-authorization")
    told = [base64.b64decode(one.removeprefix("Basic ")).decode("latin1") for one in given]
    assert told == ([] if sent is None else [sent])


async def test_tls_through_a_proxy_that_refuses(raw_provider, connect, exchange_of):
    raw_provider.script = replies(b"HTTP/1.1 407 Who?\r\ncontent-length: 0\r\n\r\n")
    transport = connect("https://provider.invalid/v1", proxy=raw_provider.url)
    with pytest.raises(Fault) as caught:
        await whole(exchange_of(transport))
    assert caught.value.kind == "connect_failed"
    assert caught.value.billed is False
    assert "`proxy`" in caught.value.message
    assert "407" in (caught.value.detail or "")
    assert raw_provider.requests[0].startswith(b"CONNECT provider.invalid:443 ")


async def test_a_private_authority_is_trusted_by_ca_file_alone(
    start_raw_provider, tls, cert_file, connect, exchange_of
):
    async with start_raw_provider(tls) as provider:
        provider.script = replies(OK)
        with pytest.raises(Fault) as caught:
            await whole(exchange_of(connect(provider.url)))
        assert caught.value.kind == "connect_failed"
        assert caught.value.billed is False
        assert "`ca_file`" in caught.value.message
        assert not provider.requests
        assert await whole(exchange_of(connect(provider.url, ca_file=cert_file))) == b"{}"


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"base_url": "provider"}, "base_url"),
        ({"base_url": "ftp://provider"}, "base_url"),
        ({"base_url": "http://"}, "base_url"),
        ({"base_url": "http:///v1"}, "base_url"),
        ({"base_url": "http://p:x/v1"}, "base_url"),
        ({"base_url": "http://[::1/v1"}, "base_url"),
        ({"base_url": "http://me:pass@p"}, "base_url must hold no user"),
        ({"base_url": "http://api..example.com"}, "base_url"),
        ({"base_url": f"http://{'a' * 64}.example.com"}, "base_url"),
        ({"base_url": "http://127.1:8000"}, "base_url"),
        ({"base_url": "http://2130706433"}, "base_url"),
        ({"base_url": "http://0x7f.1"}, "base_url"),
        ({"base_url": "http://p", "proxy": "http://proxy..example.com"}, "proxy"),
        ({"base_url": "http://p", "proxy": "socks5://p"}, "proxy"),
        ({"base_url": "http://p", "ca_file": __file__}, "ca_file"),
        ({"base_url": "http://p", "ca_file": "/nowhere.pem"}, "ca_file"),
    ],
)
def test_settings_that_can_not_work_are_refused_by_name(settings, named):
    with pytest.raises(ValueError, match=named):
        HttpTransport(**settings)


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "[::1]",
        "[fe80::1%25eth0.5]",
        "localhost",
        "a_b",
        "host.",
        "bücher.example",
        "10.example",
        "0xa.de",
    ],
)
def test_names_and_addresses_that_can_work(host):
    HttpTransport(f"http://{host}:8000/v1")


async def test_a_compressed_body_is_unpacked(raw_provider, transport, exchange_of):
    for encoding, packed in (
        ("gzip", gzip.compress(b"hello")),
        ("deflate", zlib.compress(b"hello")),
    ):
        head = f"HTTP/1.1 200 OK\r\ncontent-encoding: {encoding}\r\ncontent-length: {len(packed)}"
        raw_provider.script = replies(head.encode() + b"\r\n\r\n" + packed)
        assert await whole(exchange_of(transport)) == b"hello"


@pytest.mark.parametrize("size", [100_000, 200_000, 300_000, 400_000, 700_000])
async def test_what_is_unpacked_in_steps_is_whole(raw_provider, transport, exchange_of, size):
    """All of it came in one read of the socket; more than a step of it is unpacked on demand."""
    body = bytes(range(256)) * (size // 256)
    packed = gzip.compress(body)
    head = b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: %d\r\n\r\n" % len(packed)
    raw_provider.script = replies(head + packed)
    assert await whole(exchange_of(transport)) == body


async def test_a_bomb_is_bounded_by_the_limit(raw_provider, transport, exchange_of):
    packed = gzip.compress(b"\0" * (64 << 20))
    head = b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: %d\r\n\r\n" % len(packed)
    raw_provider.script = replies(head + packed)
    with pytest.raises(Fault) as caught:
        await whole(exchange_of(transport))
    assert caught.value.kind == "protocol_error"
    assert "1048576 bytes" in caught.value.message
    with exchange_of(transport) as exchange:
        await exchange.start()
        largest = 0
        while chunk := await exchange.chunk():
            largest = max(largest, len(chunk))
        assert largest <= 1 << 20  # never unpacked far ahead of the reader


async def test_an_excerpt_is_short_in_bytes_and_in_time(raw_provider, transport, exchange_of):
    async def script(connection):
        await connection.send(b"HTTP/1.1 500 No\r\ncontent-length: 1000\r\n\r\n", b"x" * 100)
        await connection.wait_closed()

    raw_provider.script = script
    for limit, seconds, size in ((10, 5.0, 10), (1000, 0.05, 100)):
        with exchange_of(transport) as exchange:
            await exchange.start()
            assert await exchange.excerpt(limit, seconds) == b"x" * size


def test_silent_connections_are_kept_alive_by_probes():
    with make_socket((socket.AF_INET, socket.SOCK_STREAM, 0, "", ("127.0.0.1", 1))) as sock:
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) != 0
