"""Requests as real clients send them, on every upstream: a proper answer, or a proper error."""

from __future__ import annotations

from typing import Any

import pytest

from tests.clients_recorded.replaying import CLIENTS, SHARED, UPSTREAMS, Recorded
from tests.harness import Answer, Harness

pytestmark = pytest.mark.asyncio(loop_scope="module")

LAST = {
    "/messages": ("message_stop",),
    "/responses": ("response.completed", "response.incomplete"),
}
"""The type of a stream's last event; chat's is no object."""


def recorded() -> list[Any]:
    found = [Recorded.read(path) for path in sorted(CLIENTS.glob("*.json"))]
    return [pytest.param(one, id=one.name) for one in found] or [None]


@pytest.mark.parametrize("upstream", UPSTREAMS)
@pytest.mark.parametrize("request_", recorded())
async def test_a_proper_answer(g: Harness, request_: Recorded | None, upstream: str) -> None:
    if request_ is None:
        pytest.skip(f"no recorded requests in {SHARED} (set GATEWAY_SHARED)")
    answer = await request_.replay(g, upstream)
    assert answer.status == request_.expected(upstream), answer.body
    if answer.status != 200:
        error = answer.json()["error"]
        assert error["message"]
        assert error["type"]
    elif answer.headers.get("content-type", "").startswith("text/event-stream"):
        check_stream(request_, answer)
    elif request_.method == "POST":
        check_body(request_, answer.json())


def check_stream(request_: Recorded, answer: Answer) -> None:
    events = answer.data()
    ends = [kinds for path, kinds in LAST.items() if path in request_.path]
    if ends:
        assert events[-1]["type"] in ends[0]
        assert not [event for event in events if event["type"] == "error"]
    else:
        assert events[-1] == "[DONE]"
        assert not [event for event in events[:-1] if event.get("error")]


def check_body(request_: Recorded, body: Any) -> None:
    if "/messages" in request_.path:
        assert (body["type"], body["role"]) == ("message", "assistant")
        assert body["stop_reason"]
    elif "/responses" in request_.path:
        assert body["status"] in ("completed", "incomplete")
    elif "/embeddings" in request_.path:
        assert all(item["embedding"] for item in body["data"])
    else:
        assert all(choice["finish_reason"] for choice in body["choices"])
