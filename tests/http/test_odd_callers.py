"""Callers that send too much, too early, or what is no HTTP, over bare sockets: an answer under
way comes whole, and what can't be read is told in its turn."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from gateway.http import heads
from gateway.http.coalescing import EARLY
from gateway.http.heads import MAX_HEAD
from tests.harness import KEY, Harness, served
from tests.raw import CHAT, asking, dialled, post

NOTHING = (b"content-length", b"0")
HEALTH = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
CHUNKED = "Transfer-Encoding: chunked"
MEGABYTE = 1024 * 1024


def chunked(*headers: str, key: str | None = KEY) -> bytes:
    """The head of a POST whose body comes in chunks."""
    own = [] if key is None else [f"Authorization: Bearer {key}"]
    return "\r\n".join(
        [f"POST {CHAT} HTTP/1.1", "Host: x", CHUNKED, *own, *headers, "", ""]
    ).encode()


def chunk(data: bytes, extension: bytes = b"") -> bytes:
    return b"%x%b\r\n%b\r\n" % (len(data), extension, data)


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """What callers do wrong is no error of ours."""
    yield
    assert [r for r in caplog.get_records("call") if r.levelno >= logging.ERROR] == []


# what comes behind a request


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("after", [0.0, 0.1], ids=["at once", "while it is answered"])
async def test_what_can_t_be_read_waits_for_the_answer_before_it(
    g: Harness, stream: bool, after: float
) -> None:
    """A client may count its body short by a line's end: its call is answered all the same."""
    async with dialled(g.url) as wire:
        await wire.send(post(asking("held" if not stream else "m-chat", stream=stream)))
        await asyncio.sleep(after)
        await wire.send(b"\x00\xff no request\r\n\r\n")
        answer = await wire.answer()
        assert answer.status == 200
        assert b"[DONE]" in answer.body or json.loads(answer.body)["choices"]
        assert (await wire.answer()).error() == (400, "invalid_http")
        assert await wire.rest() == b""


async def test_several_calls_and_then_no_http(g: Harness) -> None:
    async with dialled(g.url) as wire:
        calls = [post(asking("held", stream=stream)) for stream in (True, False, True)]
        await wire.send(b"".join(calls) + b"\x00")
        for _ in calls:
            assert (await wire.answer()).status == 200
        assert (await wire.answer()).error() == (400, "invalid_http")
        assert await wire.rest() == b""
    assert len(g.simulator.log) == 3


async def test_no_more_requests_wait_than_are_bounded(g: Harness) -> None:
    """What reads no answers, and has no key, fills nothing."""
    async with dialled(g.url) as wire:
        await wire.send(post(asking("held")) + HEALTH * (EARLY + 20))
        assert (await wire.answer()).status == 200
        for _ in range(EARLY):
            assert (await wire.answer()).status == 200
        assert (await wire.answer()).error() == (400, "invalid_http")
        assert await wire.rest() == b""


async def test_half_a_head_does_not_end_the_stream_before_it(
    g: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heads, "HEAD_SECONDS", 0.2)
    async with dialled(g.url) as wire:
        await wire.send(post(asking("held", stream=True)) + b"GET / HT")
        assert b"[DONE]" in (await wire.answer()).body
        assert (await wire.answer()).error() == (400, "head_timeout")
        assert await wire.rest() == b""


async def test_a_head_too_large_does_not_end_the_stream_before_it(g: Harness) -> None:
    async with dialled(g.url) as wire:
        await wire.send(post(asking("held", stream=True)) + b"GET / HTTP/1.1\r\n")
        await asyncio.sleep(0.05)
        await wire.send(*[b"x: " + b"a" * 9000 + b"\r\n"] * 9)
        assert b"[DONE]" in (await wire.answer()).body
        assert (await wire.answer()).error() == (413, "head_too_large")
        assert await wire.rest() == b""


async def test_a_large_body_before_a_head_in_pieces_is_no_head(g: Harness) -> None:
    """A head that ends in the same packet in which the next one begins."""
    first = post(asking("m-chat", text="a" * 3 * MAX_HEAD))
    async with dialled(g.url) as wire:
        await wire.send(first[:20])
        await asyncio.sleep(0.05)
        await wire.send(first[20:] + HEALTH[:20])
        assert (await wire.answer()).status == 200
        await wire.send(HEALTH[20:])
        assert (await wire.answer()).status == 200


@pytest.mark.parametrize("behind", [b"\x00", HEALTH], ids=["no HTTP", "another request"])
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
async def test_a_caller_that_leaves_with_more_to_say(
    g: Harness, stream: bool, behind: bytes
) -> None:
    async with dialled(g.url) as wire:
        await wire.send(post(asking("silent", stream=stream)) + behind)
        seen = await g.simulator.log.wait_for(1)
    async with asyncio.timeout(2):
        while seen.disconnected is None or g.state.live:
            await asyncio.sleep(0.01)


async def test_a_probe_may_want_no_body(g: Harness) -> None:
    async with dialled(g.url) as wire:
        for path in ("/healthz", "/readyz", "/"):
            await wire.send(f"HEAD {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            assert (await wire.answer(bodiless=True)).status == 200


# bodies in chunks


async def test_extensions_are_ignored_and_trailers_are_no_headers(g: Harness) -> None:
    body = asking("m-chat")
    trailers = b"Authorization: Bearer nobody\r\nIdempotency-Key: k\r\nX-Gateway-Strict: 1\r\n"
    async with dialled(g.url) as wire:
        for _ in range(2):
            pieces = chunk(body[:9], b';a="b;c";d') + chunk(body[9:], b";e")
            await wire.send(chunked() + pieces + b"0;f\r\n" + trailers + b"\r\n")
            answer = await wire.answer()
            assert answer.status == 200, answer.body
            assert "idempotent-replayed" not in answer.headers
    assert len(g.simulator.log) == 2


@pytest.mark.parametrize("key", [KEY, None], ids=["known", "stranger"])
@pytest.mark.parametrize(
    "piece", [b"x: " + b"a" * 8000 + b"\r\n", b"a" * 8000], ids=["many", "one"]
)
async def test_trailers_without_an_end_are_not_listened_to(
    g: Harness, key: str | None, piece: bytes
) -> None:
    async with dialled(g.url) as wire:
        start = b"" if piece.endswith(b"\n") else b"x: "
        await wire.send(chunked(key=key) + chunk(asking("m-chat")) + b"0\r\n" + start)
        if key is None:
            assert (await wire.answer()).status == 401
        sent = 0
        with_end = asyncio.ensure_future(wire.rest())
        while sent < 20 * MAX_HEAD and not with_end.done():
            try:
                await wire.send(piece)
            except ConnectionError:
                break
            await asyncio.sleep(0.002)
            sent += len(piece)
        assert sent < 10 * MAX_HEAD, "it was listened to for much too long"
        told = await with_end
        assert (b" 413 " in told and b"trailers_too_large" in told) == (key is not None)
    assert len(g.simulator.log) == 0


async def test_a_body_in_many_small_chunks(g: Harness) -> None:
    body = asking("m-chat", text="a" * 3 * MAX_HEAD)
    pieces = [
        b"".join(chunk(body[n : n + 10]) for n in range(m, min(m + 5000, len(body)), 10))
        for m in range(0, len(body), 5000)
    ]
    async with dialled(g.url) as wire:
        await wire.send(chunked(), *pieces, b"0\r\n\r\n")
        assert (await wire.answer()).status == 200
        await wire.send(
            chunked(),
            b"%x\r\n" % len(body),
            *(body[n : n + 9000] for n in range(0, len(body), 9000)),
            b"\r\n0\r\n\r\n",
        )
        assert (await wire.answer()).status == 200


@pytest.mark.parametrize("bad", [b"zz\r\n", b"-1\r\na", b"f" * 17 + b"\r\n", b"3\r\nabcd\r\n"])
async def test_a_broken_chunk_is_told_and_ends_the_connection(g: Harness, bad: bytes) -> None:
    async with dialled(g.url) as wire:
        await wire.send(chunked(), chunk(b'{"model"'), bad)
        assert (await wire.answer()).error() == (400, "invalid_http")
        assert await wire.rest() == b""
    assert not g.state.live


async def test_a_broken_chunk_of_a_request_that_came_too_early(g: Harness) -> None:
    async with dialled(g.url) as wire:
        await wire.send(post(asking("held")) + chunked() + b"zz\r\n" + HEALTH)
        assert (await wire.answer()).status == 200
        assert (await wire.answer()).error() == (400, "invalid_http")
        assert await wire.rest() == b""
    assert len(g.simulator.log) == 1


async def test_a_broken_chunk_behind_the_answer_ends_the_connection_without_a_word(
    g: Harness,
) -> None:
    async with dialled(g.url) as wire:
        await wire.send(chunked(key=None))
        assert (await wire.answer()).status == 401
        await wire.send(b"zz\r\n")
        assert await wire.rest() == b""


# bodies that nobody asked for


def expecting(
    body: bytes, *headers: str, key: str = KEY, version: str = "1.1"
) -> tuple[bytes, bytes]:
    """A POST that waits to be told to go on: its head, its body."""
    whole = post(body, "Expect: 100-continue", *headers, version=version)
    return whole[: -len(body)].replace(KEY.encode(), key.encode()), body


async def test_a_body_is_asked_for_and_the_connection_goes_on(g: Harness) -> None:
    head, body = expecting(asking("m-chat"))
    async with dialled(g.url) as wire:
        for _ in range(2):
            await wire.send(head)
            assert (await wire.answer()).status == 100
            await wire.send(body)
            answer = await wire.answer()
            assert (answer.status, answer.headers.get("connection")) == (200, None)


@pytest.mark.parametrize("sends", [True, False], ids=["sends it all the same", "sends none"])
async def test_a_body_that_is_refused_unasked_ends_the_connection(g: Harness, sends: bool) -> None:
    """Nobody knows whether it still comes: the next request would be read as that body."""
    for head, body, told in (
        (*expecting(asking("m-chat"), key="nobody"), (401, "invalid_api_key")),
        (*expecting(b"a" * 2 * MEGABYTE), (413, "request_too_large")),
    ):
        async with dialled(g.url) as wire:
            await wire.send(head)
            answer = await wire.answer()
            assert (answer.error(), answer.headers["connection"]) == (told, "close")
            await wire.send(body if sends else HEALTH)
            assert await wire.rest() == b""


async def test_a_path_of_the_framework_that_refuses_a_body_unasked(g: Harness) -> None:
    async with dialled(g.url) as wire:
        await wire.send(
            b"POST /nowhere HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n"
        )
        answer = await wire.answer()
        assert (answer.status, answer.headers["connection"]) == (404, "close")
        await wire.send(HEALTH)
        assert await wire.rest() == b""


async def test_http_1_0_can_t_be_asked_to_go_on(g: Harness) -> None:
    head, body = expecting(asking("m-chat"), version="1.0")
    async with dialled(g.url) as wire:
        await wire.send(head, body)
        assert (await wire.answer()).status == 200


@pytest.mark.parametrize("way", ["1.0", "close", "head"])
async def test_an_answer_outlives_what_its_caller_still_sends(g: Harness, way: str) -> None:
    """To close on bytes that nobody read resets the connection, and takes the answer with it."""
    body = b"a" * 12 * MEGABYTE
    request: dict[str, Callable[[], bytes]] = {
        "1.0": lambda: post(body, version="1.0"),
        "close": lambda: post(body, "Connection: close"),
        "head": lambda: HEALTH[:-2] + b"x: " + body,
    }
    async with dialled(g.url) as wire:
        sending = asyncio.ensure_future(wire.send(request[way]()))
        await asyncio.sleep(0.3)  # it was answered long ago
        answer = await wire.answer()
        assert answer.status == 413
        assert await wire.rest() == b""
        await _settled(sending)


async def test_a_caller_that_still_sends_does_not_hold_up_the_end() -> None:
    """The server waits for all connections, and for each no longer than for an answer to arrive."""

    async def early(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 413, "headers": [NOTHING]})
        await send({"type": "http.response.body", "body": b""})

    async with contextlib.AsyncExitStack() as stack:
        async with served(early) as url:
            kept = await stack.enter_async_context(dialled(url))
            heard = await stack.enter_async_context(dialled(url))
            for wire, headers in ((kept, []), (heard, ["Connection: close"])):
                await wire.send(post(b"a" * 9000, *headers)[:-1])
                assert (await wire.answer()).status == 413
            began = time.monotonic()
        assert time.monotonic() - began < 1.9, "two seconds are all that this server has"
        assert await kept.rest() == b""


async def _settled(sending: Awaitable[None]) -> None:
    try:
        async with asyncio.timeout(5):
            await sending
    except ConnectionError:
        pass
