"""``Idempotency-Key``: one call for one key, whoever asks, whenever, however often."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from adapters.canonical.faults import Fault
from tests.harness import ADMIN, KEY, Harness, alias, gateway

ALIASES = (
    alias("paced", ("openai", "paced-10-40")),
    alias("endless", ("openai", "paced-1000-40")),
    alias("once-broken", ("openai", "fault-once-500"), retries=0),
    alias("cut", ("openai", "fault-once-cut-after-1"), retries=0),
    alias("long", ("openai", "weigh-5000")),
    '[observe]\nlog_level = "error"\n',
)
WORDS = "one two three four"
BODIES = {
    "/v1/chat/completions": {
        "model": "m-openai",
        "messages": [{"role": "user", "content": WORDS}],
    },
    "/v1/responses": {"model": "m-claude", "input": WORDS},
    "/v1/messages": {
        "model": "m-chat",
        "max_tokens": 100,
        "messages": [{"role": "user", "content": WORDS}],
    },
}


@pytest.fixture
async def g(tmp_path: Path) -> AsyncIterator[Harness]:
    """The running gateway."""
    async with gateway(tmp_path, *ALIASES) as running:
        yield running


async def ask(g: Harness, key: str, model: str = "m-openai", **fields: Any) -> Any:
    """A chat call under an idempotency key."""
    caller = fields.pop("caller", KEY)
    body = {"model": model, "messages": [{"role": "user", "content": WORDS}], **fields}
    headers = {"idempotency-key": key}
    return await g.post("/v1/chat/completions", body, key=caller, headers=headers)


def under_way(g: Harness, key: str, model: str, *, stream: bool = True) -> Any:
    """A call whose answer the test reads piece by piece: ``async with`` it."""
    body = {
        "model": model,
        "messages": [{"role": "user", "content": WORDS}],
        "stream": stream,
    }
    headers = {"authorization": f"Bearer {KEY}", "idempotency-key": key}
    return g.http.post(g.url + "/v1/chat/completions", json=body, headers=headers)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("path", BODIES)
async def test_a_finished_call_is_told_again(g: Harness, path: str, stream: bool) -> None:
    body = {**BODIES[path], "stream": stream}
    headers = {"idempotency-key": "k"}
    first, *others = [await g.post(path, body, headers=headers) for _ in range(3)]
    assert first.status == 200
    assert "idempotent-replayed" not in first.headers
    for again in others:
        assert again.status == 200
        assert again.body == first.body
        assert again.headers["content-type"] == first.headers["content-type"]
        assert again.headers["x-gateway-attempts"] == first.headers["x-gateway-attempts"]
        assert again.headers["idempotent-replayed"] == "true"
        assert again.headers["x-gateway-original-request"] == first.headers["x-request-id"]
        assert again.headers["x-request-id"] != first.headers["x-request-id"]
    assert len(g.simulator.log) == 1
    usage = (await g.get("/admin/usage?by=alias")).json()["usage"]
    assert sum(row["requests"] for row in usage) == 1


async def test_another_request_under_the_same_key_is_refused(g: Harness) -> None:
    assert (await ask(g, "k")).status == 200
    for changed in ({"temperature": 0.5}, {"stream": True}):
        refused = await ask(g, "k", **changed)
        assert refused.status == 422
        assert refused.json()["error"]["code"] == "idempotency_mismatch"
        assert refused.headers["x-should-retry"] == "false"
    elsewhere = BODIES["/v1/responses"]
    refused = await g.post("/v1/responses", elsewhere, headers={"idempotency-key": "k"})
    assert refused.status == 422
    assert len(g.simulator.log) == 1


async def test_a_mismatch_with_a_call_under_way(g: Harness) -> None:
    async with under_way(g, "k", "paced"):
        assert (await ask(g, "k", "paced", temperature=0.5, stream=True)).status == 422


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_calls_at_the_same_time_are_one(g: Harness, stream: bool) -> None:
    """Late ones read from the first byte."""

    async def later(number: int) -> Any:
        await asyncio.sleep(0.03 * number)
        return await ask(g, "k", "paced", stream=stream)

    answers = await asyncio.gather(*(later(n) for n in range(10)))
    assert {a.status for a in answers} == {200}
    assert len({a.body for a in answers}) == 1
    assert sum("idempotent-replayed" in a.headers for a in answers) == 9
    assert len(g.simulator.log) == 1


async def test_the_first_may_leave_and_the_second_gets_all(g: Harness) -> None:
    async with under_way(g, "k", "paced") as first:
        await first.content.readany()
        second = asyncio.create_task(ask(g, "k", "paced", stream=True))
        await asyncio.sleep(0.1)
        first.close()
    answer = await second
    assert answer.data()[-1] == "[DONE]"
    assert len(g.simulator.log) == 1
    assert g.simulator.log[0].disconnected is None


async def test_when_the_last_leaves_the_call_is_given_up_and_the_key_is_free(
    g: Harness, eventually: Any
) -> None:
    async with under_way(g, "k", "endless") as first, under_way(g, "k", "endless") as second:
        await first.content.readany()
        await second.content.readany()
        first.close()
        await asyncio.sleep(0.1)
        assert g.simulator.log[0].disconnected is None, "one still listens"
        second.close()
    seen = g.simulator.log[0]
    await eventually(lambda: seen.disconnected is not None, 2.0)
    async with under_way(g, "k", "endless") as again:
        assert again.status == 200
        assert "idempotent-replayed" not in again.headers
        await again.content.readany()
    assert g.simulator.log.total == 2
    await eventually(lambda: not g.state.live)


async def test_leaving_at_once_and_asking_again_at_once(g: Harness, eventually: Any) -> None:
    """The key is free although the first call has not quite let go."""
    for _ in range(10):
        call = asyncio.create_task(under_way(g, "k", "paced", stream=False).__aenter__())
        await asyncio.sleep(0.03)
        call.cancel()
    answer = await ask(g, "k", "paced", stream=False)
    assert answer.status == 200
    await eventually(lambda: not g.state.live)


async def test_failures_are_tried_again(g: Harness) -> None:
    assert (await ask(g, "k", "once-broken")).status == 502
    again = await ask(g, "k", "once-broken")
    assert again.status == 200
    assert "idempotent-replayed" not in again.headers
    assert (await ask(g, "k", "once-broken")).headers["idempotent-replayed"] == "true"
    assert g.simulator.log.total == 2


async def test_a_stream_that_failed_in_band_is_tried_again(g: Harness) -> None:
    first = await ask(g, "k", "cut", stream=True)
    assert first.status == 200
    assert first.data()[-1]["error"]["code"] == "stream_truncated"
    again = await ask(g, "k", "cut", stream=True)
    assert again.data()[-1] == "[DONE]"


async def test_limits_are_no_answers(g: Harness, make_key: Any) -> None:
    key = await make_key(limits={"rpm": 1})
    assert (await ask(g, "a", caller=key)).status == 200
    assert (await ask(g, "b", caller=key)).status == 429
    assert (await ask(g, "b")).status == 200, "the same project, another key of it"
    assert (await ask(g, "a", caller=key)).status == 200, "told again, which takes nothing"


async def test_what_can_never_work_is_told_again(g: Harness) -> None:
    first = await ask(g, "k", max_tokens=0)
    again = await ask(g, "k", max_tokens=0)
    assert (first.status, again.status) == (400, 400)
    assert first.body == again.body


async def test_projects_are_apart(g: Harness, make_key: Any) -> None:
    other = await make_key(project="other")
    assert (await ask(g, "k")).status == 200
    answer = await ask(g, "k", caller=other, temperature=0.3)
    assert answer.status == 200
    assert "idempotent-replayed" not in answer.headers


async def test_a_wrong_caller_learns_nothing(g: Harness) -> None:
    assert (await ask(g, "k")).status == 200
    refused = await ask(g, "k", caller="wrong")
    assert refused.status == 401
    assert "idempotent-replayed" not in refused.headers


@pytest.mark.parametrize("key", ["", "x" * 256])
async def test_keys_that_are_none(g: Harness, key: str) -> None:
    answer = await ask(g, key)
    assert answer.status == 400
    assert answer.json()["error"]["param"] == "Idempotency-Key"


async def test_an_answer_too_long_to_keep_is_not_paid_twice(g: Harness) -> None:
    first = await ask(g, "k", "long")
    assert first.status == 200
    assert len(first.body) > 5_000_000
    again = await ask(g, "k", "long")
    assert again.status == 409
    assert again.json()["error"]["code"] == "idempotency_not_kept"
    assert len(g.simulator.log) == 1


async def test_a_day_later_the_key_is_new(g: Harness, tmp_path: Path) -> None:
    assert (await ask(g, "k")).status == 200
    connection = sqlite3.connect(tmp_path / "gateway.db", timeout=5)
    connection.execute("UPDATE idempotency SET at = at - 86000")
    connection.commit()
    assert (await ask(g, "k")).headers["idempotent-replayed"] == "true"
    connection.execute("UPDATE idempotency SET at = at - 401")
    connection.commit()
    connection.close()
    assert "idempotent-replayed" not in (await ask(g, "k")).headers
    assert len(g.simulator.log) == 2


async def test_answers_outlive_a_restart(tmp_path: Path) -> None:
    async with gateway(tmp_path, *ALIASES) as before:
        first = await ask(before, "k")
    async with gateway(tmp_path, *ALIASES) as after:
        again = await ask(after, "k")
        assert again.body == first.body
        assert again.headers["idempotent-replayed"] == "true"
        assert len(after.simulator.log) == 0


async def test_no_content_is_kept_where_the_operator_wants_none(tmp_path: Path) -> None:
    text = f'[store]\nurl = "sqlite:///{tmp_path / "gateway.db"}"\nkeep_responses = false\n'
    from tests.harness import KEYS, PROVIDERS, aliases

    config = text + PROVIDERS + aliases() + KEYS
    async with gateway(tmp_path, config=config) as g:
        assert (await ask(g, "k")).status == 200
        again = await ask(g, "k")
        assert (again.status, again.json()["error"]["code"]) == (409, "idempotency_not_kept")
        assert WORDS.encode() not in (tmp_path / "gateway.db").read_bytes()
        assert WORDS.encode() not in (tmp_path / "gateway.db-wal").read_bytes()


async def test_stopping_ends_all_readers_in_band(g: Harness, eventually: Any) -> None:
    async with under_way(g, "k", "endless") as first, under_way(g, "k", "endless") as second:
        await first.content.readany()
        await second.content.readany()
        for exchange in list(g.state.live):
            exchange.stop(Fault("no_deployment", "stopping", code="shutting_down"))
        for reply in (first, second):
            assert b"shutting_down" in await reply.read()
    await eventually(lambda: not g.state.live)
    assert "idempotent-replayed" not in (await ask(g, "other")).headers


async def test_what_the_operator_makes_is_shown_once(g: Harness) -> None:
    body = json.dumps({"name": "made"}).encode()
    headers = {"idempotency-key": "k"}
    first = await g.post("/admin/keys", body, key=ADMIN, headers=headers)
    assert first.status == 201
    again = await g.post("/admin/keys", body, key=ADMIN, headers=headers)
    assert again.status == 409, "made once; its text is nowhere"
    assert again.json()["error"]["code"] == "conflict"


async def test_without_the_header_nothing_is_kept(g: Harness, books: Any) -> None:
    assert (await g.chat("m-openai")).status == 200
    assert not books.rows("SELECT * FROM idempotency")
