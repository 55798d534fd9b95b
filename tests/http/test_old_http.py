"""HTTP/1.0, which nginx speaks to its upstreams unless told otherwise: it knows no chunks, so what
has no length ends with its connection (RFC 9112, sections 6.1 and 6.3)."""

from __future__ import annotations

import asyncio

import pytest

from tests.harness import KEY, Harness
from tests.raw import CHAT, asking, dialled, post

NGINX = ("Connection: close",)
BENCH = ("Connection: Keep-Alive",)


@pytest.mark.parametrize("headers", [(), NGINX, BENCH], ids=str)
@pytest.mark.parametrize("extra", [(), ("Idempotency-Key: k",)], ids=str)
async def test_a_stream_ends_with_its_connection(
    g: Harness, headers: tuple[str, ...], extra: tuple[str, ...]
) -> None:
    async with dialled(g.url) as wire:
        await wire.send(post(asking("m-chat", stream=True), *headers, *extra, version="1.0"))
        answer = await wire.answer()
    assert answer.status == 200
    assert "transfer-encoding" not in answer.headers
    assert "content-length" not in answer.headers
    assert answer.headers["connection"] == "close"
    assert answer.body.startswith(b"data: {")
    assert answer.body.endswith(b"data: [DONE]\n\n")
    assert all(not line or line.startswith(b"data: ") for line in answer.body.split(b"\n"))


@pytest.mark.parametrize("headers", [(), NGINX, BENCH], ids=str)
async def test_a_whole_answer_keeps_its_length(g: Harness, headers: tuple[str, ...]) -> None:
    async with dialled(g.url) as wire:
        await wire.send(post(asking("m-chat"), *headers, version="1.0"))
        answer = await wire.answer()
        assert answer.status == 200
        assert int(answer.headers["content-length"]) == len(answer.body)
        assert answer.headers["connection"] == "close"
        assert await wire.rest() == b""


async def test_a_stream_comes_as_it_is_made_and_can_be_left(g: Harness) -> None:
    async with dialled(g.url) as wire:
        await wire.send(post(asking("slow", stream=True), version="1.0"))
        await wire.head()
        async with asyncio.timeout(2):  # the whole of it takes four seconds
            for _ in range(3):
                assert (await wire.reader.readuntil(b"\n\n")).startswith(b"data: {")
    (seen,) = g.simulator.log
    async with asyncio.timeout(2):
        while seen.disconnected is None or g.state.live:
            await asyncio.sleep(0.01)


async def test_a_held_stream_pings(g: Harness) -> None:
    async with dialled(g.url) as wire:
        await wire.send(post(asking("held", stream=True), version="1.0"))
        answer = await wire.answer()
    assert answer.body.startswith(b": ping\n\n")
    assert answer.body.endswith(b"data: [DONE]\n\n")


async def test_what_the_framework_answers_has_its_length_too(g: Harness) -> None:
    for path, status in (("/healthz", 200), ("/v1/models", 200), ("/nowhere", 404)):
        async with dialled(g.url) as wire:
            head = f"GET {path} HTTP/1.0\r\nAuthorization: Bearer {KEY}\r\n\r\n"
            await wire.send(head.encode())
            answer = await wire.answer()
            assert answer.status == status
            assert int(answer.headers["content-length"]) == len(answer.body)
            assert await wire.rest() == b""


async def test_what_has_no_body_says_nothing_of_it(g: Harness) -> None:
    preflight = "Origin: https://page.example\r\nAccess-Control-Request-Method: POST\r\n"
    for first, status in ((f"OPTIONS {CHAT}", 204), ("HEAD /", 200)):
        async with dialled(g.url) as wire:
            await wire.send(f"{first} HTTP/1.0\r\n{preflight}\r\n".encode())
            answer = await wire.answer(bodiless=True)
            assert (answer.status, answer.headers["connection"]) == (status, "close")
            assert "transfer-encoding" not in answer.headers
            assert await wire.rest() == b""


async def test_events_of_a_run_end_with_their_connection(g: Harness) -> None:
    run = (await g.post("/runs", {"agent": {"name": "a", "model": "m-chat"}, "input": "hi"})).json()
    async with dialled(g.url) as wire:
        head = f"GET /runs/{run['id']}/events HTTP/1.0\r\nAuthorization: Bearer {KEY}\r\n\r\n"
        await wire.send(head.encode())
        answer = await wire.answer()
    assert answer.status == 200
    assert "transfer-encoding" not in answer.headers
    assert answer.body.startswith(b": ping")
    assert b"event: run.completed\n" in answer.body
    assert answer.body.endswith(b"\n\n")
