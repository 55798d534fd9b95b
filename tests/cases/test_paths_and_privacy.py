"""Cases X07 and X09: names are never paths, and no cut of a stream lets a value slip."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from adapters.simulator import Call, Say, Think
from tests.harness import ADMIN, Answer, Harness, alias, gateway

OPENED: list[str] = []
LED_TO = frozenset({"passwd", "secret", "admin", "db", "x", "a\0.txt", "support.md"})
"""The names of files that a caller's name would have led to."""


@pytest.fixture
async def g(tmp_path: Path) -> AsyncIterator[Harness]:
    """Every mode of redaction, and a model of each protocol."""
    more = [
        alias("reversible-claude", ("anthropic", "claude-sonnet-4-6"), redaction="reversible"),
        alias("mask-claude", ("anthropic", "claude-sonnet-4-6"), redaction="mask"),
    ]
    async with gateway(tmp_path, *more) as running:
        yield running


# --------------------------------------------------------------------------- X07


@pytest.fixture
def opened() -> Iterator[list[str]]:
    """The files that are opened meanwhile. The interpreter lets no such hook go again."""
    watching = [True]

    def note(event: str, arguments: tuple[Any, ...]) -> None:
        if watching[0] and event in ("open", "os.listdir", "os.scandir"):
            OPENED.append(str(arguments[0]))

    OPENED.clear()
    sys.addaudithook(note)
    Path(__file__).read_bytes()
    yield OPENED
    watching[0] = False


PATHS = [
    "/admin/prompts/..%2f..%2fetc%2fpasswd",
    "/admin/prompts/%2e%2e/secret",
    "/admin/prompts/a%00.txt",
    "/runs/..%2f..%2fdb",
    "/runs/%2fetc%2fpasswd/events",
    "/v1/models/..%2fadmin",
    "/v1/responses/..%2f..%2fetc%2fpasswd",
    "/v1/conversations/..%2fsecret",
    "/admin/requests/..%2f..%2fetc%2fpasswd",
]
BODIES: list[dict[str, Any]] = [
    {"prompt": {"id": "../../etc/passwd"}},
    {"prompt": {"id": "support", "version": "../secret"}},
    {"prompt": {"name": "../../x"}},
    {"prompt": {"id": "a\0.txt"}},
    {"model": "../admin"},
    {"model": "/etc/passwd"},
]


async def test_ids_are_never_paths_X07(g: Harness, opened: list[str]) -> None:
    for path in PATHS:
        answer = await g.get(path)
        assert answer.status in (400, 404), path
        assert set(answer.json()) >= {"error"}
    for body in BODIES:
        answer = await g.chat(**{"model": "m-chat", **body})
        assert answer.status in (400, 404), body
    run = {"agent": "../../etc/passwd", "input": "hi"}
    assert (await g.post("/runs", run)).status in (400, 404)
    for name in ("/etc/cron.d/x", "a\0.txt"):
        file = {"filename": name, "file_data": "data:text/plain;base64,aGk="}
        answer = await g.post(
            "/v1/chat/completions",
            {
                "model": "m-openai",
                "messages": [{"role": "user", "content": [{"type": "file", "file": file}]}],
            },
        )
        assert answer.status in (200, 400), "a client's file name is a word and no more"
    assert __file__ in opened, "the hook sees what is opened"
    assert [path for path in opened if Path(path).name in LED_TO] == []


async def test_ids_that_are_made_are_never_paths_X07(g: Harness) -> None:
    made = await g.post("/admin/prompts", {"name": "../../x", "system": "hi"}, key=ADMIN)
    assert made.status == 400


# --------------------------------------------------------------------------- X09

MAIL, PHONE = "bob@acme.com", "+1 415 555 2671"
SAID = f"Contact {MAIL} or {PHONE}."
VECTORS = {
    "Contact <EMAIL_1> now": f"Contact {MAIL} now",
    "<EMAIL_1> and <PHONE_1>": f"{MAIL} and {PHONE}",
    "a <EMAIL_1": "a <EMAIL_1",
}


def deltas(answer: Answer, kind: str) -> list[str]:
    """What came of one kind, piece by piece, as Messages tells it."""
    return [
        event["delta"][kind]
        for event in answer.data()
        if event["type"] == "content_block_delta" and kind in event["delta"]
    ]


def asked(**fields: Any) -> dict[str, Any]:
    tools = [{"name": "send", "input_schema": {"type": "object"}}]
    body = {"model": "reversible-claude", "max_tokens": 3000, "stream": True, "tools": tools}
    return {**body, "messages": [{"role": "user", "content": SAID}], **fields}


def cut_anywhere(text: str) -> Iterator[tuple[str, str]]:
    for place in range(1, len(text)):
        yield text[:place], text[place:]


@pytest.mark.parametrize("vector", VECTORS)
async def test_no_cut_of_a_stream_lets_a_value_slip_X09(g: Harness, vector: str) -> None:
    for pieces in cut_anywhere(vector):
        arguments = json.dumps({"to": vector})
        call = Call("send", arguments, id="toolu_1")
        g.simulator.script("claude-sonnet-4-6", [[Think(vector), Say(vector, pieces), call]])
        thinking = {"type": "enabled", "budget_tokens": 1024}
        answer = await g.post("/v1/messages", asked(thinking=thinking))
        assert answer.status == 200, answer.body
        told = deltas(answer, "text")
        assert "".join(told) == VECTORS[vector]
        assert "".join(deltas(answer, "thinking")) == VECTORS[vector]
        assert json.loads("".join(deltas(answer, "partial_json"))) == {"to": VECTORS[vector]}
        for sent in told[:-1]:
            assert "<EMAIL" not in sent, "no part of a placeholder goes out before it is decided"
    assert all("acme" not in one.raw.decode() for one in g.simulator.log)


HIDDEN = [
    '{"to":"bo\\u0062@acme.com"}',
    '{"to":"bob@acme\\u002ecom"}',
    '{"to":"bob\\u0040acme.com","n":4111111111111111}',
]


@pytest.mark.parametrize("arguments", HIDDEN)
@pytest.mark.parametrize("model", ["reversible-claude", "mask-claude"])
async def test_escapes_hide_nothing_X09(g: Harness, model: str, arguments: str) -> None:
    """Arguments are looked at decoded, and so are the results of tools."""
    call = {"id": "call_1", "type": "function", "function": {"name": "send"}}
    call["function"]["arguments"] = arguments  # type: ignore[index]
    messages = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": arguments},
    ]
    body = {"model": model, "messages": messages}
    assert (await g.post("/v1/chat/completions", body)).status == 200
    sent = json.dumps(g.simulator.log[-1].body)
    assert sent.count("<EMAIL_1>") == 2
    assert "acme" not in sent
    assert "4111" not in sent
