"""Two gateways on one PostgreSQL: one set of limits, keys, answers and books."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from adapters import simulator as sim
from tests.harness import ADMIN, KEYS, PROVIDERS, Harness, alias, aliases, gateway
from tests.store.postgres_server import Server

SPENT = """SELECT count(*) AS attempts, coalesce(sum(charged_nano), 0)::bigint AS nano,
    coalesce(sum(output_tokens), 0)::bigint AS output FROM attempts"""
ROLLED = """SELECT coalesce(sum(attempts), 0)::bigint AS attempts,
    coalesce(sum(cost_nano), 0)::bigint AS nano,
    coalesce(sum(output_tokens), 0)::bigint AS output FROM rollups"""


@pytest.fixture(scope="module")
def postgres() -> Iterator[Server]:
    server = Server()
    yield server
    server.stop()


@pytest.fixture
async def pair(tmp_path: Path, postgres: Server) -> AsyncIterator[list[Harness]]:
    """The two, over one provider."""
    pepper = tmp_path / "pepper"
    pepper.write_text("a pepper that all replicas share, and long enough")
    rows = [
        alias("slow", ("openai", "paced-20-50")),
        alias("endless", ("openai", "fault-no-response")),
        alias("brief", ("anthropic", "paced-4-20+brief"), retries=0),
    ]
    text = (
        f'[store]\nurl = "{postgres.database()}"\n[server]\npepper = "file:{pepper}"\n'
        '[observe]\nlog_level = "error"\n' + PROVIDERS + aliases(rows) + KEYS
    )
    async with sim.running() as provider, contextlib.AsyncExitStack() as stack:
        found = []
        for name in "ab":
            (tmp_path / name).mkdir()
            config = text.replace("{url}", provider.url)
            g = await stack.enter_async_context(gateway(tmp_path / name, config=config))
            found.append(dataclasses.replace(g, simulator=provider))
        yield found


async def make_key(g: Harness, **fields: Any) -> dict[str, Any]:
    answer = await g.post("/admin/keys", {"name": "fresh", **fields}, key=ADMIN)
    assert answer.status == 201, answer.body
    made: dict[str, Any] = answer.json()
    return made


async def opens(g: Harness, key: str) -> bool:
    return (await g.get("/v1/models", key=key)).status == 200


async def until(check: Any, seconds: float = 20.0) -> None:
    """Wait until an awaited check holds."""
    async with asyncio.timeout(seconds):
        while not await check():
            await asyncio.sleep(0.02)


def chat(g: Harness, model: str, key: str, **fields: Any) -> Any:
    headers = fields.pop("headers", {})
    body = {"model": model, "messages": [{"role": "user", "content": "hi"}], **fields}
    return g.post("/v1/chat/completions", body, key=key, headers=headers)


@pytest.mark.parametrize(
    ("limits", "passed", "status"),
    [({"rpm": 7}, 7, 429), ({"usd_total": 0}, 0, 402)],
    ids=["rpm", "no money"],
)
async def test_a_limit_holds_over_both(
    pair: list[Harness], limits: dict[str, Any], passed: int, status: int
) -> None:
    key = (await make_key(pair[0], limits=limits))["key"]
    await until(lambda: opens(pair[1], key))
    answers = await asyncio.gather(*(chat(pair[n % 2], "brief", key) for n in range(30)))
    counts = Counter(answer.status for answer in answers)
    assert counts == Counter({200: passed, status: 30 - passed})
    assert len(pair[0].simulator.log) == passed


async def test_so_many_calls_at_once_are_under_way_on_both_together(pair: list[Harness]) -> None:
    key = (await make_key(pair[0], limits={"concurrent": 3}))["key"]
    await until(lambda: opens(pair[1], key))
    calls = [asyncio.create_task(chat(pair[n % 2], "endless", key)) for n in range(30)]

    async def refused() -> bool:
        return sum(call.done() for call in calls) == 27

    await until(refused)
    assert {call.result().status for call in calls if call.done()} == {429}
    await pair[0].simulator.log.wait_for(3)
    for call in calls:
        call.cancel()
    await asyncio.gather(*calls, return_exceptions=True)

    async def free() -> bool:
        return bool((await chat(pair[1], "brief", key)).status == 200)

    await until(free)
    assert len(pair[0].simulator.log) == 4


async def test_a_key_made_or_revoked_on_one_is_so_on_the_other(pair: list[Harness]) -> None:
    """Within a second; the ceiling is a busy machine's."""
    a, b = pair
    made = await make_key(a)
    began = time.monotonic()
    await until(lambda: opens(b, made["key"]))
    assert time.monotonic() - began < 5
    headers = {"authorization": f"Bearer {ADMIN}"}
    async with a.http.delete(f"{a.url}/admin/keys/{made['id']}", headers=headers) as reply:
        assert reply.status == 200
    assert not await opens(a, made["key"])
    began = time.monotonic()

    async def shut() -> bool:
        return not await opens(b, made["key"])

    await until(shut)
    assert time.monotonic() - began < 5


async def test_an_answer_is_told_again_by_the_other(pair: list[Harness]) -> None:
    a, b = pair
    key, once = (await make_key(a))["key"], {"idempotency-key": "once"}
    await until(lambda: opens(b, key))
    first = asyncio.create_task(chat(a, "slow", key, headers=once))
    await a.simulator.log.wait_for(1)
    meanwhile = await chat(b, "slow", key, headers=once)
    assert (meanwhile.status, meanwhile.json()["error"]["code"]) == (
        409,
        "idempotency_in_progress",
    )
    assert "retry-after" in meanwhile.headers
    told = await first
    again = await chat(b, "slow", key, headers=once)
    assert (again.status, again.body) == (200, told.body)
    assert again.headers["idempotent-replayed"] == "true"
    assert len(a.simulator.log) == 1


async def test_a_database_that_dies_under_load_leaves_no_row_open(
    pair: list[Harness], postgres: Server
) -> None:
    """Calls with several choices too: they end together, and the books add up afterwards."""
    key = (await make_key(pair[0], limits={"tpm": 10_000_000}))["key"]
    await until(lambda: opens(pair[1], key))
    stop = asyncio.Event()
    statuses: Counter[int] = Counter()

    async def caller(number: int) -> None:
        fields = {"n": 2} if number % 2 else {"stream": True}
        while not stop.is_set():
            answer = await chat(pair[number % 2], "brief", key, **fields)
            statuses[answer.status] += 1

    callers = [asyncio.create_task(caller(number)) for number in range(8)]
    await until(lambda: _seen(statuses, 200, 20))
    postgres.kill()
    await until(lambda: _seen(statuses, 503, 4))
    postgres.start()
    before = statuses[200]
    await until(lambda: _seen(statuses, 200, before + 8))
    stop.set()
    await asyncio.gather(*callers)
    assert set(statuses) <= {200, 503}
    read = pair[0].state.store._db.read  # type: ignore[attr-defined]

    async def quiet() -> bool:
        return not await read("SELECT id FROM requests WHERE status = 'open'")

    await until(quiet)
    assert not await read("SELECT id FROM attempts WHERE status = 'open'")
    assert not await read("SELECT * FROM accounts WHERE reserved_nano <> 0 OR in_flight <> 0")
    assert await read(SPENT) == await read(ROLLED)


async def _seen(statuses: Counter[int], status: int, count: int) -> bool:
    return statuses[status] >= count
