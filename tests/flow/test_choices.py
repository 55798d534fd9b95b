"""Several choices: from providers that give them at once, and from those that don't."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import openai
import pytest

from adapters.canonical.events import (
    Finished,
    PartEnded,
    PartStarted,
    Started,
    TextDelta,
    Usage,
)
from adapters.canonical.parts import Text
from gateway.flow.context import AttemptNote, Head
from gateway.flow.merge import ChoiceSink, Merged, one_end, summed
from tests.harness import ENVIRONMENT, KEY, Harness, alias, gateway

TIGHT = "test-tight-key"
TIGHT_KEY = """
[[keys]]
name = "tight"
key = "${TIGHT}"
limits = { tpm = 1000 }
"""
HAS_N = """
[models.together]
targets = [{ provider = "chat", model = "some-model", facts = { has = ["n"] } }]
[models.said-to]
targets = [{ provider = "openai", model = "gpt-5.2", facts = { has = ["n"] } }]
[models.mixed]
targets = [
  { provider = "chat", model = "fault-status-500", facts = { has = ["n"] } },
  { provider = "anthropic", model = "claude-sonnet-4-6" },
]
[models.no-stop]
targets = [{ provider = "chat", model = "recite", facts = { has = ["n"], refuses = ["stop"] } }]
"""
ALIASES = (
    alias("one-fails", ("openai", "fault-every-2-500"), retries=0),
    alias("one-recovers", ("openai", "fault-once-500"), retries=1),
    alias("one-breaks", ("openai", "fault-every-2-cut-after-2"), retries=0),
    alias(
        "one-breaks-held", ("openai", "fault-every-2-cut-after-2+x"), retries=0, commit="complete"
    ),
    alias("one-is-slow", ("openai", "fault-slow-first-event-9+fault-every-2-500"), retries=0),
    alias("paced", ("openai", "paced-200-20")),
    alias("counts-missing", ("openai", "fault-every-2-usage-missing")),
    alias("held", ("openai", "paced-5-5"), commit="complete"),
    alias(
        "comes-back",
        ("openai", "fault-once-500+comes-back"),
        retries=0,
        breaker={"streak": 1, "cooldown": 0.05, "max_cooldown": 0.05},
    ),
    alias(
        "stays-away",
        ("openai", "fault-status-500+stays-away"),
        retries=0,
        breaker={"streak": 1, "cooldown": 60},
    ),
)


@pytest.fixture
async def g(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Harness]:
    monkeypatch.setitem(ENVIRONMENT, "TIGHT", TIGHT)
    async with gateway(tmp_path, *ALIASES, HAS_N, TIGHT_KEY) as running:
        yield running


async def rows(g: Harness, answer: Any) -> list[tuple[str, str]]:
    found = await g.explain(answer)
    assert "open" not in {found["status"], *(row["status"] for row in found["attempts"])}
    return [(row["kind"], row["status"]) for row in found["attempts"]]


# --------------------------------------------------------------------------- sound answers


@pytest.mark.parametrize("model", ["m-openai", "m-claude", "m-chat"])
async def test_as_many_calls_as_choices(g: Harness, model: str) -> None:
    answer = await g.chat(model, "hello there", n=3, user="u")
    body = answer.json()
    assert [choice["index"] for choice in body["choices"]] == [0, 1, 2]
    assert {choice["message"]["content"] for choice in body["choices"]} == {"hello there"}
    alone = (await g.chat(model, "hello there")).json()["usage"]
    for name in ("prompt_tokens", "completion_tokens", "total_tokens"):
        assert body["usage"][name] == 3 * alone[name]
    assert await rows(g, answer) == [("first", "completed"), *[("choice", "completed")] * 2]
    assert answer.headers["x-gateway-attempts"].count(":ok") == 3


@pytest.mark.parametrize("model", ["m-openai", "m-claude", "m-chat", "together"])
async def test_a_stream_of_choices(g: Harness, model: str) -> None:
    async with openai.AsyncOpenAI(base_url=g.url + "/v1", api_key=KEY, max_retries=0) as client:
        stream = await client.chat.completions.create(
            model=model,
            messages=[{"role": "user", "content": "one two three four"}],
            n=3,
            stream=True,
            stream_options={"include_usage": True},
        )
        texts, reasons, usages = ["", "", ""], {}, []
        async for chunk in stream:
            for choice in chunk.choices:
                texts[choice.index] += choice.delta.content or ""
                if choice.finish_reason:
                    reasons[choice.index] = choice.finish_reason
            usages += [chunk.usage] if chunk.usage else []
    assert texts == ["one two three four"] * 3
    assert reasons == {0: "stop", 1: "stop", 2: "stop"}
    assert usages[0].completion_tokens % 3 == 0


async def test_streams_are_interleaved(g: Harness) -> None:
    body = {"model": "paced", "messages": [{"role": "user", "content": "x"}], "n": 2}
    seen: list[int] = []
    async with g.http.post(
        g.url + "/v1/chat/completions",
        json={**body, "stream": True, "max_tokens": 40},
        headers={"authorization": f"Bearer {KEY}"},
    ) as reply:
        async for line in reply.content:
            if line.startswith(b"data: {") and b'"content"' in line:
                seen.append(0 if b'"index":0' in line else 1)
    changes = sum(a != b for a, b in itertools.pairwise(seen))
    assert changes > 4


async def test_a_provider_that_has_them_is_asked_once(g: Harness) -> None:
    answer = await g.chat("together", "hello", n=3)
    assert len(answer.json()["choices"]) == 3
    (sent,) = g.simulator.log
    assert sent.body["n"] == 3
    assert await rows(g, answer) == [("first", "completed")]
    found = (await g.explain(answer))["attempts"][0]
    alone = (await g.explain(await g.chat("together", "hello")))["attempts"][0]
    spare = found["reserved_tokens"] - found["estimated_input"]
    assert spare > 2 * (alone["reserved_tokens"] - alone["estimated_input"])


async def test_a_protocol_without_choices_is_asked_as_often(g: Harness) -> None:
    """Whatever the facts say of the model."""
    answer = await g.chat("said-to", n=2)
    assert len(answer.json()["choices"]) == 2
    assert len(g.simulator.log) == 2


async def test_where_one_target_lacks_it_every_choice_goes_alone(g: Harness) -> None:
    answer = await g.chat("mixed", n=2, max_tokens=16)
    assert len(answer.json()["choices"]) == 2
    assert all("n" not in sent.body for sent in g.simulator.log)
    kinds = [kind for kind, _ in await rows(g, answer)]
    assert kinds.count("failover") == 2


@pytest.mark.parametrize("n", [1, None])
async def test_one_choice_is_an_ordinary_call(g: Harness, n: int | None) -> None:
    answer = await g.chat("m-openai", n=n)
    assert await rows(g, answer) == [("first", "completed")]


async def test_more_than_the_cap_is_refused(g: Harness) -> None:
    assert (await g.chat("m-openai", n=8)).status == 200
    answer = await g.chat("m-openai", n=9)
    assert (answer.status, answer.json()["error"]["param"]) == (400, "n")


async def test_less_than_all_of_the_usage_is_none(g: Harness) -> None:
    answer = await g.chat("counts-missing", n=2)
    assert len(answer.json()["choices"]) == 2
    assert answer.json()["usage"] is None


async def test_a_held_stream_waits_for_all(g: Harness) -> None:
    answer = await g.chat("held", n=2, stream=True)
    assert answer.data()[-1] == "[DONE]"
    indices = {c["index"] for chunk in answer.data()[:-1] for c in chunk["choices"]}
    assert indices == {0, 1}


# --------------------------------------------------------------------------- failures


@pytest.mark.parametrize("stream", [True, False])
async def test_one_failure_fails_the_answer(g: Harness, stream: bool) -> None:
    answer = await g.chat("one-fails", n=2, stream=stream)
    if stream and answer.status == 200:  # the other one may have been quicker
        assert answer.data()[-1]["error"]["code"] == "upstream_server"
    else:
        assert (answer.status, answer.json()["error"]["code"]) == (502, "upstream_server")
    found = await g.explain(answer)
    assert (found["status"] in ("failed", "partial"), found["fault"]) == (True, "upstream_server")
    assert "failed" in {row["status"] for row in found["attempts"]}


async def test_a_failure_stops_the_others(g: Harness) -> None:
    began = asyncio.get_running_loop().time()
    answer = await g.chat("one-is-slow", n=2)
    assert answer.status == 502
    assert asyncio.get_running_loop().time() - began < 5
    stopped = [r for r in (await g.explain(answer))["attempts"] if r["status"] == "cancelled"]
    assert [row["fault_message"] for row in stopped] == [
        "Another choice of the same answer has failed."
    ]


async def test_a_choice_is_retried_by_itself(g: Harness) -> None:
    answer = await g.chat("one-recovers", n=3)
    assert [choice["message"]["content"] for choice in answer.json()["choices"]] == ["hi"] * 3
    kinds = [kind for kind, _ in await rows(g, answer)]
    assert sorted(kinds) == ["choice", "choice", "first", "retry"]
    assert (await g.explain(answer))["first_cause"] == "upstream_server"


async def test_after_the_commit_it_is_told_in_band(g: Harness) -> None:
    answer = await g.chat("one-breaks", "one two three four five", n=2, stream=True)
    assert answer.status == 200
    last = answer.data()[-1]
    assert last["error"]["code"] == "stream_truncated"
    assert (await g.explain(answer))["status"] == "partial"


async def test_held_choices_fail_with_a_plain_status(g: Harness) -> None:
    answer = await g.chat("one-breaks-held", "one two three four five", n=2, stream=True)
    assert (answer.status, answer.json()["error"]["code"]) == (502, "stream_truncated")


async def test_nothing_leaves_unless_all_is_reserved(g: Harness) -> None:
    body = {"model": "m-openai", "messages": [{"role": "user", "content": "x"}]}
    fields = {**body, "max_tokens": 300}
    refused = await g.post("/v1/chat/completions", {**fields, "n": 4}, key=TIGHT)
    assert (refused.status, len(g.simulator.log)) == (429, 0)
    found = await g.explain(refused)
    assert (found["status"], found["fault"]) == ("failed", "rate_limited")
    assert {row["cost_nano"] for row in found["attempts"]} == {0}
    # all of it was given back
    assert (await g.post("/v1/chat/completions", {**fields, "n": 3}, key=TIGHT)).status == 200


async def test_a_caller_that_leaves_stops_them_all(g: Harness) -> None:
    body = {"model": "paced", "messages": [{"role": "user", "content": "x"}], "n": 3}
    reply = await g.http.post(
        g.url + "/v1/chat/completions",
        json={**body, "stream": True},
        headers={"authorization": f"Bearer {KEY}"},
    )
    await reply.content.readline()
    reply.close()
    for attempt in list(g.simulator.log):
        await asyncio.wait_for(attempt.ended.wait(), 5)
    found: dict[str, Any] = {"status": "open"}
    for _ in range(100):
        answer = await g.get(f"/admin/requests/{reply.headers['x-request-id']}")
        found = answer.json()
        if found["status"] != "open":
            break
        await asyncio.sleep(0.02)
    assert found["status"] in ("cancelled", "partial")
    assert len(found["attempts"]) == 3
    assert all(row["status"] in ("cancelled", "partial") for row in found["attempts"])


# --------------------------------------------------------------------------- the merging


class Collecting:
    def __init__(self) -> None:
        self.events: list[Any] = []
        self.head = Head()

    def use(self, head: Head) -> None:
        self.head = head

    async def send(self, events: list[Any]) -> None:
        self.events += events


async def test_parts_are_numbered_as_they_come() -> None:
    sink = Collecting()
    merged = Merged(sink, hold=False)
    first, second = ChoiceSink(merged, 0), ChoiceSink(merged, 1)
    await second.send([Started("b", "m"), PartStarted(0, Text("")), TextDelta(0, "b")])
    await first.send([Started("a", "m"), PartStarted(0, Text("")), TextDelta(0, "a")])
    await second.send([PartEnded(0), PartStarted(1, Text(""))])
    await first.send([PartEnded(0)])
    assert sink.events == [
        Started("b", "m"),
        PartStarted(0, Text(""), 1),
        TextDelta(0, "b"),
        PartStarted(1, Text(""), 0),
        TextDelta(1, "a"),
        PartEnded(0),
        PartStarted(2, Text(""), 1),
        PartEnded(1),
    ]


async def test_heads_are_united() -> None:
    sink = Collecting()
    merged = Merged(sink, hold=False)
    for number, note in enumerate(("a", "b")):
        head = Head(attempts=(AttemptNote(note, "ok"),), dropped=("seed",), adjusted=(note,))
        merged.use(1 - number, head)
    assert [str(note) for note in sink.head.attempts] == ["b:ok", "a:ok"]
    assert (sink.head.dropped, sink.head.adjusted) == (("seed",), ("b", "a"))


def test_sums_and_ends() -> None:
    known = Usage(input=1, output=2, cache_read=3)
    assert summed([known, known]) == Usage(input=2, output=4, cache_read=6)
    assert summed([known, Usage(input=1, output=None)]) == Usage(input=2, cache_read=3)
    assert summed([known, None]) is None
    assert summed([known, Usage(invalid=True)]) is None
    ends = [Finished("stop", "stop"), Finished("length", "length")]
    assert one_end(ends) == Finished("stop", "stop", choices={1: ("length", "length")})


# --------------------------------------------------------------------------- circuit breakers


async def test_the_choices_of_one_call_are_one_probe(g: Harness) -> None:
    """Else nobody who always wants several would ever find the deployment sound again."""
    assert (await g.chat("comes-back")).status == 502
    await asyncio.sleep(0.1)
    answer = await g.chat("comes-back", "hello", n=3)
    assert answer.status == 200
    assert len(answer.json()["choices"]) == 3
    assert (await breaker(g, "openai/fault-once-500+comes-back"))["state"] == "closed"


async def test_a_probe_of_several_choices_that_fails_is_over_for_all(g: Harness) -> None:
    assert (await g.chat("stays-away")).status == 502
    assert len(g.simulator.log) == 1
    assert (await g.chat("stays-away", n=3)).status == 502
    assert 2 <= len(g.simulator.log) <= 4, "a try for each choice at most"
    row = await breaker(g, "openai/fault-status-500+stays-away")
    assert (row["state"], row["probing"]) == ("open", False)


async def test_a_probe_that_never_left_is_given_back(g: Harness) -> None:
    """The first choice had it, and was stopped because the second was refused."""
    assert (await g.chat("comes-back")).status == 502
    await asyncio.sleep(0.1)
    body = {"model": "comes-back", "messages": [{"role": "user", "content": "hi"}]}
    body |= {"n": 2, "max_tokens": 600}
    assert (await g.post("/v1/chat/completions", body, key=TIGHT)).status == 429
    assert (await breaker(g, "openai/fault-once-500+comes-back"))["probing"] is False
    assert (await g.chat("comes-back")).status == 200


async def breaker(g: Harness, deployment: str) -> dict[str, Any]:
    found = (await g.get("/admin/deployments")).json()["deployments"]
    return next(row for row in found if row["deployment"] == deployment)


async def test_choices_whose_stops_the_gateway_watches_for_are_all_given(g: Harness) -> None:
    """The end of one answer that it cuts is the end of its call, so that each has its own."""
    asked: dict[str, Any] = {"n": 2, "stop": "END"}
    whole = (await g.chat("no-stop", "a b END c", **asked)).json()["choices"]
    chunks = (await g.chat("no-stop", "a b END c", stream=True, **asked)).data()[:-1]
    told = [choice for chunk in chunks for choice in chunk["choices"]]
    assert [choice["finish_reason"] for choice in whole] == ["stop", "stop"]
    for number, choice in enumerate(whole):
        own = [one for one in told if one["index"] == number]
        assert own[-1]["finish_reason"] == "stop"
        streamed = "".join(one["delta"].get("content") or "" for one in own)
        assert choice["message"]["content"] == streamed == "user: a b "
    assert all("n" not in seen.body for seen in g.simulator.log)
