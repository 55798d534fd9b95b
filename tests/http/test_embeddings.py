"""Embeddings: every form in and out, and the same tries, limits and books as any call."""

from __future__ import annotations

import asyncio
import base64
import struct
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import openai
import pytest

from tests.harness import ENVIRONMENT, KEY, Harness, gateway

TIGHT = "test-tight-key"
EXTRA = """
[[keys]]
name = "tight"
key = "${TIGHT}"
limits = { tpm = 100 }

[[keys]]
name = "elsewhere"
key = "${ELSEWHERE}"
models = ["m-openai"]
"""


def alias(name: str, *targets: tuple[str, str], **settings: Any) -> str:
    rows = ", ".join(f'{{ provider = "{p}", model = "{m}" }}' for p, m in targets)
    lines = [f"{key} = {value!r}" for key, value in {"retries": 0, **settings}.items()]
    return "\n".join([f'[models.{name}]\nkind = "embedding"\ntargets = [{rows}]', *lines, ""])


ALIASES = (
    alias("embed", ("chat", "sim-embed")),
    alias("embed-openai", ("openai", "sim-embed")),
    alias("reversed", ("chat", "fault-reversed-data")),
    alias("flaky", ("chat", "fault-once-500"), retries=2),
    alias("moved", ("chat", "fault-status-503"), ("openai", "sim-embed")),
    alias(
        "fastest",
        ("chat", "sim-embed+fault-slow-headers-1.5"),
        ("openai", "sim-embed+quick"),
        strategy="least_latency",
    ),
    alias("broken", ("chat", "fault-half-json")),
    alias("silent", ("chat", "fault-no-response")),
    alias("limited", ("chat", "fault-status-429-retry-after-7")),
)


@pytest.fixture
async def g(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Harness]:
    monkeypatch.setitem(ENVIRONMENT, "TIGHT", TIGHT)
    monkeypatch.setitem(ENVIRONMENT, "ELSEWHERE", "test-elsewhere-key")
    async with gateway(tmp_path, *ALIASES, EXTRA) as running:
        yield running


@pytest.fixture
async def client(g: Harness) -> AsyncIterator[openai.AsyncOpenAI]:
    async with openai.AsyncOpenAI(base_url=g.url + "/v1", api_key=KEY, max_retries=0) as made:
        yield made


async def vectors(g: Harness, **body: Any) -> list[Any]:
    answer = await g.post("/v1/embeddings", {"model": "embed", **body})
    assert answer.status == 200, answer.body
    data = answer.json()["data"]
    assert [item["index"] for item in data] == list(range(len(data)))
    return [item["embedding"] for item in data]


# --------------------------------------------------------------------------- forms


@pytest.mark.parametrize("model", ["embed", "embed-openai"])
async def test_the_sdk_reads_them(client: openai.AsyncOpenAI, model: str) -> None:
    # The SDK asks for base64 and unpacks it by itself.
    answer = await client.embeddings.create(model=model, input=["one", "two"], dimensions=8)
    assert [len(item.embedding) for item in answer.data] == [8, 8]
    assert answer.model == "sim-embed"
    assert answer.usage.prompt_tokens == answer.usage.total_tokens > 0


async def test_both_forms_hold_the_same_numbers(g: Harness) -> None:
    (floats,) = await vectors(g, input="hello", encoding_format="float", dimensions=4)
    (unsaid,) = await vectors(g, input="hello", dimensions=4)
    (packed,) = await vectors(g, input="hello", encoding_format="base64", dimensions=4)
    assert floats == unsaid
    assert struct.unpack("<4f", base64.b64decode(packed)) == tuple(floats)


async def test_texts_and_token_arrays(g: Harness) -> None:
    assert len(await vectors(g, input=["a", "b", "c"])) == 3
    assert len(await vectors(g, input=[1, 2, 3])) == 1
    assert len(await vectors(g, input=[[1, 2], [3]])) == 2
    assert [sent.body["input"] for sent in g.simulator.log] == [
        ["a", "b", "c"],
        [[1, 2, 3]],
        [[1, 2], [3]],
    ]


async def test_the_order_is_the_inputs(g: Harness) -> None:
    texts = ["a", "b", "c"]
    told = await vectors(g, model="reversed", input=texts, dimensions=4)
    alone = [(await vectors(g, model="reversed", input=t, dimensions=4))[0] for t in texts]
    assert told == alone


async def test_unknown_fields_travel_on(g: Harness) -> None:
    answer = await g.post(
        "/embeddings",
        {"model": "embed", "input": "x", "user": "u", "api_base": "http://evil"},
    )
    assert answer.headers["x-gateway-dropped"] == "api_base"
    assert g.simulator.log[0].body["user"] == "u"
    assert "api_base" not in g.simulator.log[0].body


# --------------------------------------------------------------------------- the books


async def test_a_row_like_any_calls(g: Harness) -> None:
    answer = await g.post("/v1/embeddings", {"model": "embed", "input": "hello", "user": "u"})
    found = await g.explain(answer)
    (row,) = found["attempts"]
    assert (found["alias"], found["status"], found["end_user"]) == ("embed", "completed", "u")
    assert (row["usage_source"], row["output_tokens"]) == ("provider", 0)
    assert row["input_tokens"] == answer.json()["usage"]["prompt_tokens"]
    metrics = (await g.get("/metrics")).body.decode()
    assert 'gen_ai_operation_name="embeddings"' in metrics


@pytest.mark.parametrize(
    ("model", "kinds"), [("flaky", ["first", "retry"]), ("moved", ["first", "failover"])]
)
async def test_retried_and_failed_over(g: Harness, model: str, kinds: list[str]) -> None:
    answer = await g.post("/v1/embeddings", {"model": model, "input": "hello"})
    assert answer.status == 200
    assert [row["kind"] for row in (await g.explain(answer))["attempts"]] == kinds
    assert answer.headers["x-gateway-attempts"].endswith(":ok")


async def test_faults_keep_their_status_and_hints(g: Harness) -> None:
    limited = await g.post("/v1/embeddings", {"model": "limited", "input": "x"})
    assert (limited.status, limited.headers["retry-after"]) == (429, "7")
    broken = await g.post("/v1/embeddings", {"model": "broken", "input": "x"})
    assert (broken.status, broken.json()["error"]["code"]) == (502, "protocol_error")
    assert (await g.explain(broken))["attempts"][0]["status"] == "failed"


async def test_limits_hold(g: Harness) -> None:
    body = {"model": "embed", "input": [[1] * 60]}
    assert (await g.post("/v1/embeddings", body, key=TIGHT)).status == 200
    refused = await g.post("/v1/embeddings", body, key=TIGHT)
    assert (refused.status, refused.json()["error"]["code"]) == (429, "rate_limit_exceeded")
    assert len(g.simulator.log) == 1


async def test_a_caller_that_leaves_closes_the_providers_socket(g: Harness) -> None:
    sent = asyncio.create_task(g.post("/v1/embeddings", {"model": "silent", "input": "x"}))
    while not len(g.simulator.log):
        await asyncio.sleep(0.01)
    sent.cancel()
    await asyncio.wait_for(g.simulator.log[0].ended.wait(), 5)
    for _ in range(100):
        if not g.state.live:
            break
        await asyncio.sleep(0.02)
    assert not g.state.live


# --------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"input": ""}, "input"),
        ({"input": []}, "input"),
        ({"input": [""]}, "input[0]"),
        ({"input": [1, "a"]}, None),
        ({"input": ["x"] * 2049}, "input"),
        ({"input": "x", "dimensions": 0}, "dimensions"),
        ({"input": "x", "encoding_format": "hex"}, "encoding_format"),
        ({}, "input"),
    ],
)
async def test_bad_bodies(g: Harness, body: Any, param: str | None) -> None:
    answer = await g.post("/v1/embeddings", {"model": "embed", **body})
    assert answer.status == 400
    if param is not None:
        assert answer.json()["error"]["param"] == param
    assert not len(g.simulator.log)


async def test_models_of_the_other_kind_are_unknown(g: Harness) -> None:
    answer = await g.post("/v1/embeddings", {"model": "m-openai", "input": "x"})
    assert answer.status == 404
    assert (await g.chat("embed")).status == 404


async def test_who_may_ask(g: Harness) -> None:
    body = {"model": "embed", "input": "x"}
    assert (await g.post("/v1/embeddings", body, key=None)).status == 401
    assert (await g.post("/v1/embeddings", body, key="test-elsewhere-key")).status in (403, 404)


async def test_the_fastest_is_known_by_its_whole_answers(g: Harness) -> None:
    """Vectors have no first content: their latency is that of the whole answer."""
    for _ in range(4):
        body = {"model": "fastest", "input": "hello"}
        assert (await g.post("/v1/embeddings", body)).status == 200
    slow = g.simulator.log.of("sim-embed+fault-slow-headers-1.5")
    assert (len(slow), len(g.simulator.log)) == (1, 4)
    found = (await g.get("/admin/deployments")).json()["deployments"]
    seconds = {row["deployment"]: row["first_content_seconds"] for row in found}
    assert seconds["openai/sim-embed+quick"] < 1.5
    assert 1.5 < seconds["chat/sim-embed+fault-slow-headers-1.5"] < 60
