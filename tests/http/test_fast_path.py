"""The fast path gives the bytes of the full one: straight to the door or through the framework's
layers, the provider's own frames or frames written anew."""

from __future__ import annotations

import json
import re
from typing import Any

import aiohttp
import pytest

from gateway.http.idempotent import Idempotent
from gateway.http.middleware import Front
from gateway.http.routes import CONVERSATIONS, doors
from tests.harness import KEY, Harness, served

AUTH = {"authorization": f"Bearer {KEY}", "content-type": "application/json"}
PATHS = [path for _, _, paths in CONVERSATIONS for path in paths]

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
