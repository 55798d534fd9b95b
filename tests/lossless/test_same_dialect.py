"""The same dialect in and out: what one side said reaches the other, field by field.

Over every golden case and every recording. The lists below are all that the gateway owns; a
frame in which it changes nothing arrives to the byte.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from adapters.wire.sse import SseParser
from tests.lossless.playing import WIRE, Case, Wire, golden, recorded

pytestmark = pytest.mark.asyncio(loop_scope="module")

Json = dict[str, Any]

ASKED: dict[str, Json] = {
    "openai-chat": {"messages": [{"role": "user", "content": "hi"}]},
    "openai-responses": {"input": "hi"},
    "anthropic-messages": {"max_tokens": 100, "messages": [{"role": "user", "content": "hi"}]},
}

OURS = (
    "id",
    "background",
    "conversation",
    "instructions",
    "previous_response_id",
    "prompt",
    "store",
)
"""Fields of a response object that concern our own store, and its id."""

SPECIAL = {
    "openai-responses-background-mode-with-tool-vcr": "a response that has not begun",
    "openai-responses-background-mode-with-tool-vcr-2": "a response that has not begun",
    "openai-responses-openai-responses-compact-messages-direct": "an answer of another endpoint",
    "github-copilot-responses-vercel-github-copilot-id-rotation-1-chunks": "unsteady ids",
    "raw-reasoning-rotating-ids": "unsteady ids: the first one stays",
}
"""Cases that can't be equal, and why."""


def cases(found: Iterable[Case], *, stream: bool) -> list[Any]:
    return [
        pytest.param(case, id=f"{case.dialect}-{case.name}")
        for case in found
        if case.stream == stream and case.name not in SPECIAL
    ]


def frames(data: bytes) -> list[bytes]:
    """The data of each event; the end mark of chat left out, which is optional."""
    return [f.data for f in SseParser().feed(data + b"\n\n") if f.data.strip() != b"[DONE]"]


# --------------------------------------------------------------------------- whole answers


def check_whole(case: Case, told: Json) -> None:
    given = json.loads(case.answer)
    if case.dialect == "openai-responses":
        given, told = (_without(side, OURS) for side in (given, told))
    assert told == given


def _without(body: Json, names: Iterable[str]) -> Json:
    return {name: value for name, value in body.items() if name not in names}


async def whole(wire: Wire, case: Case) -> None:
    _, answer = await wire.play(case, ASKED[case.dialect])
    if answer.status == 200:
        check_whole(case, answer.json())
    else:
        assert answer.json()["error"], "a failure is told as one"


@pytest.mark.parametrize("case", cases(golden(), stream=False))
async def test_golden_bodies(wire: Wire, case: Case) -> None:
    await whole(wire, case)


@pytest.mark.skipif(not WIRE.exists(), reason="the shared recordings are not here")
@pytest.mark.parametrize("case", cases(recorded(), stream=False))
async def test_recorded_bodies(wire: Wire, case: Case) -> None:
    await whole(wire, case)


# --------------------------------------------------------------------------- streams


def of_responses(event: Json) -> Json | None:
    """The sequence number is ours, and so are some fields of the response around the output."""
    event = _without(event, ("sequence_number",))
    if isinstance(event.get("response"), dict):
        event["response"] = _without(event["response"], OURS)
    return event


def of_messages(event: Json) -> Json | None:
    """Pings are the gateway's own."""
    return None if event.get("type") == "ping" else event


def of_chat(event: Json) -> Json | None:
    """One id and model for all chunks; usage in a chunk of its own, at the end."""
    bare = _without(event, ("id", "model", "usage"))
    return bare if bare.get("choices") and any(map(_says, bare["choices"])) else None


def _says(choice: Json) -> bool:
    """Whether a choice says anything beyond its role."""
    return choice.get("finish_reason") is not None or _content(choice)


def _content(choice: Json) -> bool:
    said = {n: v for n, v in (choice.get("delta") or {}).items() if n != "role"}
    return any(value not in (None, "") for value in said.values())


SHOWN: dict[str, Callable[[Json], Json | None]] = {
    "openai-responses": of_responses,
    "anthropic-messages": of_messages,
    "openai-chat": of_chat,
}


def shown(dialect: str, data: Iterable[bytes]) -> list[Json]:
    events = [SHOWN[dialect](json.loads(frame)) for frame in data]
    told = [event for event in events if event is not None]
    return _ended_once(told) if dialect == "openai-chat" else told


def _ended_once(events: list[Json]) -> list[Json]:
    """Some servers repeat a choice's reason beside the usage: it is told once."""
    ended: set[int] = set()
    kept = []
    for event in events:
        over = [choice["index"] in ended and not _content(choice) for choice in event["choices"]]
        if not all(over):
            kept.append(event)
        ended |= {c["index"] for c in event["choices"] if c.get("finish_reason") is not None}
    return kept


async def streamed(wire: Wire, case: Case) -> None:
    asked = dict(ASKED[case.dialect])
    if case.dialect == "openai-chat":
        asked["stream_options"] = {"include_usage": True}
    _, answer = await wire.play(case, asked)
    if answer.status != 200 or _failed(answer.body):
        return  # failures have tests of their own
    given, told = frames(case.answer), frames(answer.body)
    assert shown(case.dialect, told) == shown(case.dialect, given)
    if case.dialect == "openai-chat":
        assert _usage(told) == _usage(given)
    _to_the_byte(case, given, told)


def _failed(body: bytes) -> bool:
    return any(json.loads(f).get("error") is not None for f in frames(body))


def _usage(data: Iterable[bytes]) -> Any:
    counted = [json.loads(frame).get("usage") for frame in data]
    return next((usage for usage in reversed(counted) if usage is not None), None)


def _to_the_byte(case: Case, given: list[bytes], told: list[bytes]) -> None:
    """Frames that are equal as JSON are equal as bytes: nothing is written anew in vain."""
    same = [frame for frame in told if json.loads(frame) in [json.loads(g) for g in given]]
    joined = {frame.replace(b"\n", b"") for frame in given}
    assert all(frame in joined for frame in same)


@pytest.mark.parametrize("case", cases(golden(), stream=True))
async def test_golden_streams(wire: Wire, case: Case) -> None:
    await streamed(wire, case)


@pytest.mark.skipif(not WIRE.exists(), reason="the shared recordings are not here")
@pytest.mark.parametrize("case", cases(recorded(), stream=True))
async def test_recorded_streams(wire: Wire, case: Case) -> None:
    await streamed(wire, case)


# --------------------------------------------------------------------------- requests


def requests() -> list[Any]:
    return [
        pytest.param(case, id=f"{case.dialect}-{case.name}")
        for case in recorded()
        if case.request is not None and not case.request.get("background")
    ]


def normal(body: Any) -> Any:
    """``body`` with shorthands written out and what is unset left out."""
    if isinstance(body, list):
        return [normal(item) for item in body]
    if not isinstance(body, dict):
        return body
    told = {name: normal(value) for name, value in body.items() if value not in (None, [])}
    if "role" in told and told.get("type") == "message":
        del told["type"]
    if isinstance(told.get("content"), list):
        texts = [part for part in told["content"] if set(part) == {"type", "text"}]
        if texts == told["content"] and len(texts) == 1:
            told["content"] = texts[0]["text"]
    if isinstance(told.get("system"), list) and all(
        set(p) == {"type", "text"} for p in told["system"]
    ):
        told["system"] = "".join(part["text"] for part in told["system"])
    if isinstance(told.get("input"), str):
        told["input"] = [{"role": "user", "content": told["input"]}]
    return told


OWN = frozenset({"model", "stream", "stream_options", "store", "include", "n"})
"""What the gateway says to the provider itself: whose model, in which form; that nothing is kept
there, and so that reasoning comes sealed."""


@pytest.mark.skipif(not WIRE.exists(), reason="the shared recordings are not here")
@pytest.mark.parametrize("case", requests())
async def test_recorded_requests(wire: Wire, case: Case) -> None:
    assert case.request is not None
    sent, answer = await wire.play(case, case.request)
    if sent is None:
        # a capability that the plain facts of this configuration lack, or a response of theirs
        assert answer.json()["error"]["param"] in ("logprobs", "include", "conversation")
        return
    asked = _without(normal(case.request), OWN | {"functions", "function_call"})
    told = _without(normal(sent), OWN if "functions" not in case.request else OWN | {"tools"})
    assert told == asked
    assert "x-gateway-dropped" not in answer.headers
