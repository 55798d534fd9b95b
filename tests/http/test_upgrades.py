"""Whoever offers to speak another protocol is answered in this one (RFC 9110, section 7.8): Java's
own client offers HTTP/2 with its first request on every plain connection."""

from __future__ import annotations

import asyncio
import logging

import pytest

from tests.harness import Harness
from tests.raw import asking, dialled, post

JAVA = (
    "Connection: Upgrade, HTTP2-Settings",
    "HTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA",
    "Upgrade: h2c",
)
WEBSOCKET = (
    "Connection: keep-alive, Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
)
OFFERS = pytest.mark.parametrize(
    "offer", [JAVA, WEBSOCKET, ("connection: upgrade", "upgrade: carrier-pigeon/1")], ids=str
)


@pytest.fixture(autouse=True)
def told(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """What was logged."""
    caplog.set_level(logging.WARNING)
    return caplog


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@OFFERS
async def test_an_offer_is_declined_and_the_request_answered(
    g: Harness, offer: tuple[str, ...], stream: bool, told: pytest.LogCaptureFixture
) -> None:
    async with dialled(g.url) as wire:
        for headers in (offer, (), offer):
            await wire.send(post(asking("m-chat", stream=stream), *headers))
            answer = await wire.answer()
            assert answer.status == 200, answer.body
            assert ("transfer-encoding" in answer.headers) == stream
            assert b'"role":"assistant"' in answer.body
            assert b"[DONE]" in answer.body or not stream
            assert "connection" not in answer.headers
    assert len(g.simulator.log) == 3
    assert told.records == []


async def test_the_offer_may_be_cut_anywhere(g: Harness) -> None:
    data = post(asking("m-chat"), *JAVA)
    async with dialled(g.url) as wire:
        for cut in range(1, len(data), 7):
            await wire.send(data[:cut], data[cut:])
            assert (await wire.answer()).status == 200, cut
        await wire.send(*(data[n : n + 1] for n in range(len(data))))
        assert (await wire.answer()).status == 200


async def test_a_body_in_chunks_comes_whole(g: Harness) -> None:
    body = asking("m-chat", text="a long story " * 500)
    head, _, _ = post(b"", *JAVA, "Transfer-Encoding: chunked").partition(b"\r\n\r\n")
    head = head.replace(b"Content-Length: 0\r\n", b"")
    parts = b"".join(b"%x\r\n%b\r\n" % (len(p), p) for p in (body[:10], body[10:]))
    async with dialled(g.url) as wire:
        for _ in range(2):
            await wire.send(head + b"\r\n\r\n", parts + b"0\r\n\r\n")
            answer = await wire.answer()
            assert answer.status == 200, answer.body
    (seen, _) = g.simulator.log
    assert seen.body["messages"][0]["content"] == "a long story " * 500


async def test_offers_that_come_too_early_are_answered_in_their_order(g: Harness) -> None:
    async with dialled(g.url) as wire:
        ways = [(True, JAVA), (False, ()), (False, WEBSOCKET), (True, JAVA)]
        await wire.send(b"".join(post(asking("m-chat", stream=s), *o) for s, o in ways))
        for stream, _ in ways:
            answer = await wire.answer()
            assert answer.status == 200
            assert ("transfer-encoding" in answer.headers) == stream


async def test_an_offer_with_the_last_request_of_a_connection(g: Harness) -> None:
    async with dialled(g.url) as wire:
        await wire.send(post(asking("m-chat"), "Connection: Upgrade, close", "Upgrade: h2c"))
        answer = await wire.answer()
        assert (answer.status, answer.headers["connection"]) == (200, "close")
        assert await wire.rest() == b""


async def test_what_has_no_body_may_offer_too(g: Harness) -> None:
    async with dialled(g.url) as wire:
        for path, status in (("/healthz", 200), ("/v1/models", 401), ("/nowhere", 404)):
            lines = [f"GET {path} HTTP/1.1", "Host: x", *WEBSOCKET, "", ""]
            await wire.send("\r\n".join(lines).encode())
            answer = await wire.answer()
            assert answer.status == status
            assert "connection" not in answer.headers


async def test_bad_framing_stays_bad_framing(g: Harness) -> None:
    """The head is read a second time without the offer: what it says of the body must hold."""
    for lines in (["Transfer-Encoding: gzip"], ["Transfer-Encoding: chunked", "Content-Length: 3"]):
        async with dialled(g.url) as wire:
            head = ["POST /v1/responses HTTP/1.1", "Host: x", *JAVA, *lines, "", ""]
            await wire.send("\r\n".join(head).encode() + b"abc")
            answer = await wire.answer()
            assert answer.error() == (400, "invalid_http")
            assert await wire.rest() == b""
    await asyncio.sleep(0.05)
    assert not g.state.live


async def test_a_tunnel_is_refused(g: Harness) -> None:
    async with dialled(g.url) as wire:
        await wire.send(b"CONNECT elsewhere:443 HTTP/1.1\r\nHost: elsewhere:443\r\n\r\n\x16\x03")
        assert (await wire.answer()).error() == (400, "invalid_http")
        assert await wire.rest() == b""
