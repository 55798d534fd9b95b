"""Streams as sockets see them: headers, pings, held answers, callers that leave."""

from __future__ import annotations

import asyncio
import json
import socket
import time

import pytest

from gateway.http.server import listening
from tests.harness import KEY, Harness

AUTH = {"authorization": f"Bearer {KEY}"}


def body(model: str, stream: bool = True) -> bytes:
    return json.dumps(
        {"model": model, "messages": [{"role": "user", "content": "hi"}], "stream": stream}
    ).encode()


async def wait_for(check, ceiling: float = 5.0) -> None:
    """Wait until ``check()`` holds."""
    end = time.monotonic() + ceiling
    while not check():
        assert time.monotonic() < end, "it never came true"
        await asyncio.sleep(0.01)


async def test_a_stream_tells_proxies_to_leave_it_alone(g: Harness) -> None:
    answer = await g.post("/v1/chat/completions", body("m-openai"))
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.headers["cache-control"] == "no-cache, no-transform"
    assert answer.headers["x-accel-buffering"] == "no"
    assert "content-length" not in answer.headers
    assert answer.data()[-1] == "[DONE]"


async def test_a_held_stream_is_whole_or_nothing(g: Harness) -> None:
    answer = await g.post("/v1/chat/completions", body("held"))
    assert answer.status == 200
    assert answer.data()[-1] == "[DONE]"
    assert b": ping" in answer.body, "a held stream pings while it waits"


async def test_no_byte_before_the_first_content(g: Harness) -> None:
    """A slow first token keeps the status open, so that a failure could still be told by it."""
    started = time.monotonic()
    async with g.http.post(
        g.url + "/v1/chat/completions", data=body("late"), headers=AUTH
    ) as reply:
        assert time.monotonic() - started > 0.9
        assert (await reply.read()).endswith(b"[DONE]\n\n")


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("model", ["slow", "silent"])
async def test_a_caller_that_leaves_closes_the_provider(
    g: Harness, model: str, stream: bool
) -> None:
    call = asyncio.create_task(
        g.http.post(g.url + "/v1/chat/completions", data=body(model, stream), headers=AUTH)
    )
    await wait_for(lambda: len(g.simulator.log) == 1)
    await asyncio.sleep(0.15)
    if call.done():
        reply = await call
        reply.close()
    else:
        call.cancel()
    seen = next(iter(g.simulator.log))
    await wait_for(lambda: seen.disconnected is not None, 2.0)
    await wait_for(lambda: not g.state.live)
    rows = (await g.get("/admin/usage?by=alias")).json()["usage"]
    assert [row["alias"] for row in rows] == [model]
    metrics = (await g.get("/metrics")).body.decode()
    assert (
        f'gateway_requests_total{{alias="{model}",fault="cancelled",status="499"}} 1.0' in metrics
    )


async def test_a_caller_that_leaves_early_pays_for_what_came(g: Harness) -> None:
    async with g.http.post(
        g.url + "/v1/chat/completions", data=body("slow"), headers=AUTH
    ) as reply:
        request_id = reply.headers["x-request-id"]
        await reply.content.readany()
        await asyncio.sleep(0.3)
    await wait_for(lambda: not g.state.live)
    row = (await g.get(f"/admin/requests/{request_id}")).json()
    assert row["status"] == "partial"
    assert row["fault"] == "cancelled"
    attempt = row["attempts"][0]
    assert attempt["usage_source"] == "estimated"
    assert attempt["output_tokens"] > 0
    assert attempt["cost_nano"] is None or attempt["cost_nano"] > 0


async def test_a_caller_that_leaves_after_the_end_is_a_success(g: Harness) -> None:
    """Codex closes its socket as soon as it has read the terminal."""
    async with g.http.post(
        g.url + "/v1/chat/completions", data=body("m-openai"), headers=AUTH
    ) as reply:
        request_id = reply.headers["x-request-id"]
        async for line in reply.content:
            if b"[DONE]" in line:
                break
        reply.close()
    await wait_for(lambda: not g.state.live)
    row = (await g.get(f"/admin/requests/{request_id}")).json()
    assert row["status"] == "completed"


async def test_stopping_ends_streams_in_band(g: Harness) -> None:
    from adapters.canonical.faults import Fault

    async with g.http.post(
        g.url + "/v1/chat/completions", data=body("slow"), headers=AUTH
    ) as reply:
        request_id = reply.headers["x-request-id"]
        await reply.content.readany()
        for exchange in list(g.state.live):
            exchange.stop(Fault("no_deployment", "stopping", code="shutting_down"))
        rest = await reply.read()
    assert b"shutting_down" in rest
    assert b"[DONE]" not in rest
    row = (await g.get(f"/admin/requests/{request_id}")).json()
    assert row["status"] == "partial"


def test_a_client_whose_host_takes_nothing_is_gone_after_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("gateway.http.server.GONE_AFTER_MS", 1_000)
    with listening("127.0.0.1", 0) as listener:
        listener.setblocking(True)
        with socket.create_connection(listener.getsockname()):
            connection, _ = listener.accept()
            begun = time.monotonic()
            with connection, pytest.raises(TimeoutError):
                while time.monotonic() - begun < 20:
                    connection.sendall(b"x" * 65_536)
