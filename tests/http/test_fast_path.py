"""The fast path gives the bytes of the full one: straight to the door or through the framework's
layers, straight to the socket or in ASGI's messages, the provider's own frames or frames written
anew."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from itertools import product
from typing import Any

import aiohttp
import pytest

from gateway.http.idempotent import Idempotent
from gateway.http.middleware import Front
from gateway.http.routes import CONVERSATIONS, build, doors
from tests.harness import KEY, Harness, served

AUTH = {"authorization": f"Bearer {KEY}", "content-type": "application/json"}
PATHS = [path for _, _, paths in CONVERSATIONS for path in paths]


@pytest.fixture
def ping_seconds() -> float:
    """A machine that stands still for a moment must not make one answer longer than the other."""
    return 15


_OWN = re.compile(rb'((?:id|created|created_at|completed_at)":)("[^"]*"|[\d.]+)|(_|-)[0-9a-f]{12,}')


def settled(body: bytes) -> bytes:
    """``body`` without what differs between any two answers: ids and times."""
    return _OWN.sub(rb"\1", body)


def asked(path: str, model: str, stream: bool) -> dict[str, Any]:
    """A body that the door at ``path`` takes."""
    said = {"content": "hi", "role": "user"}
    words: dict[str, Any] = {"messages": [said]}
    if "responses" in path:
        words = {"input": "hi", "store": False}
    elif path.endswith("/completions") and "chat" not in path:
        words = {"prompt": "hi"}
    limit = {"max_tokens": 50} if "responses" not in path else {}
    return {"model": model, "stream": stream, **words, **limit}


async def post(url: str, body: dict[str, Any]) -> tuple[int, dict[str, str], bytes]:
    async with (
        aiohttp.ClientSession() as http,
        http.post(url, data=json.dumps(body), headers=AUTH) as reply,
    ):
        kept = ("content-type", "cache-control", "x-gateway-attempts", "x-accel-buffering")
        headers = {name: reply.headers.get(name, "") for name in kept}
        return reply.status, headers, settled(await reply.read())


@pytest.mark.parametrize("model", ["m-chat", "nobody"], ids=["answered", "refused"])
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("path", PATHS)
async def test_straight_and_through_all_layers(
    g: Harness, path: str, stream: bool, model: str
) -> None:
    state = g.state
    layered = Front(Idempotent(doors(state), state), state.runtime.clock)
    async with served(layered) as slow:
        body = asked(path, model, stream)
        assert await post(g.url + path, body) == await post(slow + path, body)


async def raw(url: str, path: str, body: dict[str, Any], *headers: str) -> bytes:
    """All bytes of an answer but the sizes of its chunks, which depend on how fast it was made;
    the connection is closed after it."""
    host, _, port = url.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    data = json.dumps(body)
    own = [f"{name}: {value}" for name, value in AUTH.items()]
    lines = [f"POST {path} HTTP/1.1", "host: x", *own, *headers, f"content-length: {len(data)}"]
    lines.append("connection: close")
    writer.write("\r\n".join([*lines, "", data]).encode())
    async with asyncio.timeout(10):
        told = await reader.read()
    writer.close()
    head, _, rest = told.partition(b"\r\n\r\n")
    if b"transfer-encoding: chunked" in head:
        rest = b"".join(_chunks(rest))
    return re.sub(rb"date: [^\r]*", b"date", settled(head + rest))


def _chunks(told: bytes) -> Iterator[bytes]:
    while told:
        size, _, told = told.partition(b"\r\n")
        length = int(size, 16)
        chunk, end, told = told[:length], told[length : length + 2], told[length + 2 :]
        assert end == b"\r\n"
        assert bool(chunk) == bool(told), "the empty chunk is the last one"
        yield chunk


@pytest.mark.parametrize("path", PATHS)
async def test_straight_to_the_socket_and_in_messages(g: Harness, path: str) -> None:
    app = build(g.state)

    async def in_messages(scope: Any, receive: Any, send: Any) -> None:
        del scope["extensions"]
        await app(scope, receive, send)

    page = ["origin: https://page.example"]
    async with served(app) as fast, served(in_messages) as slow:
        for stream, model, headers in product((True, False), ("m-chat", "nobody"), ([], page)):
            body = asked(path, model, stream)
            told = await raw(fast, path, body, *headers)
            assert told == await raw(slow, path, body, *headers)
            assert (b"access-control-allow-origin" in told) == bool(headers)


async def test_calls_that_come_too_early_are_answered_in_their_order(g: Harness) -> None:
    host, _, port = g.url.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    for stream in (True, False, True, False):
        data = json.dumps(asked("/v1/chat/completions", "m-chat", stream))
        own = [f"{name}: {value}" for name, value in AUTH.items()]
        lines = ["POST /v1/chat/completions HTTP/1.1", "host: x", *own]
        writer.write("\r\n".join([*lines, f"content-length: {len(data)}", "", data]).encode())
    for stream in (True, False, True, False):
        async with asyncio.timeout(10):
            head = await reader.readuntil(b"\r\n\r\n")
            assert (b"text/event-stream" in head) == stream
            if stream:
                told = await reader.readuntil(b"\r\n0\r\n\r\n")
                assert b"[DONE]" in told
            else:
                length = int(head.partition(b"content-length: ")[2].partition(b"\r")[0])
                assert json.loads(await reader.readexactly(length))["choices"]
    writer.close()


async def test_frames_of_the_same_dialect_pass_as_they_are(g: Harness) -> None:
    """What the caller gets from the gateway is what it would get from the provider itself."""
    messages = [{"role": "user", "content": "tell me ünïcode “things”"}]
    options = {"stream": True, "stream_options": {"include_usage": True}}
    ours = {"model": "m-chat", "messages": messages, **options}
    theirs = {**ours, "model": "some-model"}
    _, _, relayed = await post(g.url + "/v1/chat/completions", ours)
    _, _, direct = await post(g.simulator.url + "/v1/chat/completions", theirs)
    assert relayed == direct
    assert relayed.count(b"data: ") > 3
