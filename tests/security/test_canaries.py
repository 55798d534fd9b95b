"""Canaries: secrets and content in every place that a caller and a provider can put them, then a
search through every sink. What is found there has leaked (promise 13)."""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from adapters.simulator import Call, Frame, Raw, Reply
from tests.harness import ADMIN, ENVIRONMENT, KEY, KEYS, PROVIDERS, Harness, alias, gateway

CONTENT = "canary-content-7f3a"
"""Something that only the two ends of a call may know."""
SECRET = "sk-canary-secret-000000000000000000000000"
"""What looks like somebody's key, known here or not."""
OWN = [KEY, ADMIN, *(v for k, v in ENVIRONMENT.items() if k.startswith("KEY_"))]
"""The gateway's own secrets."""

ALIASES = [
    alias("tools", ("openai", "canary-tools")),
    alias("headers", ("chat", "canary-headers"), retries=0),
    alias("errors", ("chat", "canary-errors"), retries=0),
    alias("cut", ("chat", "recite+fault-cut-after-2"), retries=0),
    alias("leaky", ("openai", "fault-leaks-key"), retries=0),
    alias("leaky-claude", ("anthropic", "fault-leaks-key"), retries=0),
    alias("strange", ("chat", "canary-strange"), retries=0),
]


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """Standard error, where the log goes."""
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    return stream


@pytest.fixture
async def g(tmp_path: Path, log: io.StringIO) -> AsyncIterator[Harness]:
    """A gateway at its most talkative."""
    config = (
        '[observe]\nlog_level = "debug"\nlog_format = "json"\n'
        f'[store]\nurl = "sqlite:///{tmp_path / "gateway.db"}"\nkeep_responses = false\n'
        + PROVIDERS
        + "\n".join(
            [
                alias("m-openai", ("openai", "recite")),
                alias("m-claude", ("anthropic", "recite")),
                alias("m-chat", ("chat", "recite")),
                *ALIASES,
            ]
        )
        + KEYS
    )
    async with gateway(tmp_path, config=config) as running:
        yield running


def error(message: str, status: int = 400) -> Reply:
    """A provider's error with these words, and canaries in its fields and headers."""
    body = {
        "error": {
            "message": message,
            "type": f"type-{SECRET}",
            "code": f"code-{SECRET}",
            "param": f"messages[0].{CONTENT}",
        }
    }
    headers = {
        "content-type": "application/json",
        "x-request-id": f"req-{SECRET}",
        "set-cookie": f"session={SECRET}",
        "x-ratelimit-limit-requests": SECRET,
        "retry-after": SECRET,
    }
    return Reply(status, headers, (Raw(json.dumps(body).encode()),), length=len(json.dumps(body)))


def strange() -> Reply:
    """A sound answer with canaries wherever a stranger's words may stand."""
    body = {
        "id": f"chatcmpl-{SECRET}",
        "object": "chat.completion",
        "created": 1,
        "model": f"model-{SECRET}",
        "system_fingerprint": f"fp-{SECRET}",
        "choices": [
            {
                "index": 0,
                "finish_reason": f"reason-{CONTENT}",
                "message": {"role": "assistant", "content": f"{CONTENT} {SECRET}"},
            }
        ],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2, CONTENT: SECRET},
    }
    headers = {"content-type": "application/json", "x-request-id": SECRET, "x-secret": SECRET}
    data = json.dumps(body).encode()
    return Reply(200, headers, (Frame("body", data),))


def bodies() -> Iterator[tuple[str, Any]]:
    """Calls with canaries in every field."""
    text = f"the prompt holds {CONTENT} and {SECRET}"
    chat: dict[str, Any] = {
        "model": "m-openai",
        "messages": [
            {"role": "system", "content": f"system {text}"},
            {"role": "user", "content": text, "name": "ann"},
        ],
        "metadata": {"note": text},
        "stop": [f"stop {CONTENT}"],
    }
    for model in ("m-openai", "m-claude", "m-chat"):
        for stream in (False, True):
            yield "/v1/chat/completions", {**chat, "model": model, "stream": stream}
    function = {"name": "note", "parameters": {"type": "object", "description": text}}
    yield "/v1/chat/completions", {
        **chat, "model": "tools", "tools": [{"type": "function", "function": function}],
    }  # fmt: skip
    yield "/v1/messages", {
        "model": "m-claude", "max_tokens": 50, "system": text,
        "messages": [{"role": "user", "content": text}],
    }  # fmt: skip
    yield "/v1/responses", {"model": "m-openai", "input": text, "instructions": text}
    for model in ("leaky", "leaky-claude", "errors", "cut", "headers", "strange"):
        yield "/v1/chat/completions", {**chat, "model": model, "stream": model == "cut"}
    # what is refused before anything is sent
    yield "/v1/chat/completions", {**chat, "model": f"{CONTENT}-{SECRET}"}
    yield "/v1/chat/completions", {**chat, "temperature": text}
    yield "/v1/chat/completions", {**chat, text: text}
    yield "/v1/chat/completions", {**chat, "messages": [{"role": text, "content": text}]}
    yield "/v1/chat/completions", f'{{"model": "m-openai", "{text}": '.encode()
    yield "/v1/chat/completions", text.encode()
    yield f"/v1/{CONTENT}/{SECRET}", chat
    yield f"/v1/chat/completions?key={SECRET}&q={CONTENT}", chat
    yield f"/v1/responses/{CONTENT}", chat


HEADERS = {
    "cookie": f"session={SECRET}",
    "user-agent": f"{CONTENT} {SECRET}",
    "referer": f"http://user:{SECRET}@host/{CONTENT}",
    "x-forwarded-for": SECRET,
    "x-api-base": f"http://{CONTENT}/",
    "anthropic-beta": f"{CONTENT}",
    "openai-organization": SECRET,
    "traceparent": SECRET,
}


async def everything(g: Harness) -> list[bytes]:
    """Make every call; the error bodies."""
    sim = g.simulator
    sim.script("canary-tools", [Call("note", json.dumps({"secret": SECRET, "text": CONTENT}))] * 9)
    echo = f"the prompt holds {CONTENT} and"
    sim.script(
        "canary-errors",
        [
            error(f"Bad value: {echo} more. Key {SECRET} is wrong"),
            error(f"'{CONTENT}' is not allowed", 422),
            error(f"Failed on {CONTENT} with Bearer {SECRET}", 500),
            error(f"{CONTENT}", 429),
            error(f"Invalid key {SECRET} for http://u:{SECRET}@host/", 401),
        ],
    )
    sim.script("canary-headers", [error("No.", 500)] * 9)
    sim.script("canary-strange", [strange()] * 9)
    failed = []
    for path, body in bodies():
        for _ in range(5 if isinstance(body, dict) and body["model"] == "errors" else 1):
            answer = await g.post(path, body, headers=HEADERS)
            if answer.status >= 400:
                failed.append(answer.body + repr(answer.headers).encode())
    answer = await g.post("/v1/chat/completions", b"{}", key=SECRET)
    assert answer.status == 401
    failed.append(answer.body)
    answer = await g.post("/v1/chat/completions", b"{}", key=None, headers={"x-api-key": SECRET})
    failed.append(answer.body)
    keyed = {**HEADERS, "idempotency-key": f"{CONTENT}-{SECRET}"}
    path, body = next(bodies())
    await g.post(path, body, headers=keyed)
    return failed


def found(sink: bytes, *canaries: str) -> list[str]:
    """Where a canary sits, with what is around it."""
    return [
        sink[max(0, match.start() - 90) : match.end() + 30].decode("utf-8", "replace")
        for canary in canaries
        for match in re.finditer(re.escape(canary.encode()), sink)
    ]


async def test_nothing_reaches_a_sink(g: Harness, log: io.StringIO) -> None:
    failed = await everything(g)
    seen = b"".join(attempt.raw for attempt in g.simulator.log)
    assert found(seen, CONTENT), "the calls carried it to the provider: the test tests something"
    metrics = (await g.get("/metrics")).body
    usage = (await g.get("/admin/usage?by=key,alias,provider,model,prompt")).body
    deployments = (await g.get("/admin/deployments")).body
    g.state.logs.close()
    logs = log.getvalue().encode()
    assert logs.count(b"gateway.access") > 20
    for sink in (logs, metrics, usage, deployments):
        assert not found(sink, CONTENT, SECRET, *OWN)
    for body in failed:
        assert not found(body, SECRET, *OWN), "an error told a secret"


async def test_nothing_stays_in_the_books(g: Harness, tmp_path: Path) -> None:
    await everything(g)
    for name, content in files(tmp_path):
        # the configuration names variables, never values
        assert not found(content, CONTENT, SECRET, *OWN), name


def files(folder: Path) -> list[tuple[str, bytes]]:
    return [(file.name, file.read_bytes()) for file in folder.iterdir()]


async def test_a_provider_is_told_no_secret_of_the_callers(g: Harness) -> None:
    """No header of a caller goes on, but those that the protocol itself has."""
    await everything(g)
    for attempt in g.simulator.log:
        told = repr(dict(attempt.headers)).encode()
        assert not found(told, SECRET, KEY, ADMIN), told


async def test_a_provider_hears_only_its_own_key(g: Harness) -> None:
    for model, own in (("m-openai", "KEY_OPENAI"), ("m-chat", "KEY_CHAT")):
        await g.chat(model)
        assert g.simulator.log[-1].headers["authorization"] == f"Bearer {ENVIRONMENT[own]}"
    await g.chat("m-claude")
    assert g.simulator.log[-1].headers["x-api-key"] == ENVIRONMENT["KEY_ANTHROPIC"]
    assert "authorization" not in g.simulator.log[-1].headers


async def test_no_caller_chooses_the_providers_address(g: Harness) -> None:
    """Neither a field nor a header moves a call, or its key, to another host (case X05)."""
    for name in ("api_base", "base_url", "api_key", "extra_headers", "proxy", "url"):
        answer = await g.chat("m-openai", "hi", **{name: "http://127.0.0.1:9/"})
        assert answer.status in (200, 400), name
    assert all("api_base" not in attempt.raw.decode() for attempt in g.simulator.log)
