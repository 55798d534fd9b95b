"""``kill -9`` after every single event: the same ending, nothing twice, nothing lost.

One scripted run with parallel tools, an approval, a hand-over and a repaired answer is killed
after one of its events and started again by another process, over SQLite, where that one takes the
run up at once, and over PostgreSQL, where the dead one's lease has to end. The simulator and the
tools count.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from adapters import simulator as sim
from adapters.simulator import Call, Say
from tests.harness import KEY, KEYS, PROVIDERS, alias
from tests.ports import reserved_port
from tests.runs.crashing import EFFECT
from tests.runs.nursery import Nursery, alive
from tests.store.postgres_server import Server

LAST = 45
"""At least as many events as the run has."""
EFFECTS = tuple(EFFECT - number for number in (1, 2, 3))
"""After a tool's effect, before its result."""
SOME = (*EFFECTS, 1, 4, 6, 9, 11, 15, 19, 24, 28)
"""Killed after in ``make test``; all others in ``make test-all``."""
FEW = (*EFFECTS, 6, 24)
"""The same, over PostgreSQL."""
AT_ONCE = 6
"""Runs over PostgreSQL that are killed beside one another, each in a database of its own."""

SCHEMA = {
    "type": "object",
    "properties": {"n": {"type": "integer"}},
    "required": ["n"],
    "additionalProperties": False,
}
ASKED = {
    "agent": {
        "name": "helper",
        "model": "scripted",
        "tools": ["read", "write", "mail"],
        "tool_policy": {"mail": "approve"},
        "handoffs": ["billing"],
    },
    "agents": [{"name": "billing", "model": "scripted", "output_schema": SCHEMA}],
    "input": "go",
}
TURNS = [
    [Call("read", "{}", id="c1"), Call("write", "{}", id="c2")],
    Call("mail", "{}", id="c3"),
    Call("transfer_to_billing", "{}", id="c4"),
    Say('{"n": "one"}'),
    Say('{"n": 1}'),
]
"""By the number of answers in the conversation, so that a question asked again gets the same."""


@dataclass
class Rig:
    """A simulator that lives on, and a gateway process that does not."""

    folder: Path
    port: int
    simulator: sim.Simulator
    http: aiohttp.ClientSession
    nursery: Nursery
    process: int = 0
    seen: list[dict[str, Any]] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def start(self, kill_at: int) -> None:
        config, effects = self.folder / "gateway.toml", self.folder / "effects"
        self.process = self.nursery.begin(config, self.port, effects, kill_at)
        async with asyncio.timeout(90):
            while alive(self.process):
                with contextlib.suppress(aiohttp.ClientError):
                    async with self.http.get(f"{self.url}/healthz"):
                        return
                await asyncio.sleep(0.05)
        raise AssertionError("the gateway did not start")

    async def stop(self) -> None:
        if self.process and alive(self.process):
            os.kill(self.process, signal.SIGKILL)
            while not await self.gone():
                pass

    async def gone(self) -> bool:
        """Whether the gateway is dead; known after a moment."""
        await asyncio.sleep(0.05)
        return not alive(self.process)

    async def call(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        own = {"authorization": f"Bearer {KEY}", **headers}
        async with self.http.request(method, self.url + path, json=body, headers=own) as reply:
            return reply.status, await reply.json()

    def effects(self) -> Counter[str]:
        file = self.folder / "effects"
        return Counter(file.read_text().splitlines()) if file.exists() else Counter()

    async def follow(self, run_id: str) -> None:
        """Read on from the last event seen, until the connection or the run ends."""
        headers = {"authorization": f"Bearer {KEY}"}
        if self.seen:
            headers["last-event-id"] = str(self.seen[-1]["seq"])
        path = f"{self.url}/runs/{run_id}/events"
        with contextlib.suppress(aiohttp.ClientError):
            async with self.http.get(path, headers=headers) as reply:
                async for line in reply.content:
                    if line.startswith(b"data: "):
                        self.seen.append(json.loads(line[6:]))

    @property
    def ended(self) -> bool:
        return bool(self.seen) and self.seen[-1]["type"] in ENDS


HEAD = """
[store]
url = "{url}"
[server]
pepper = "file:{folder}/pepper"
"""
LEASE = "[runs]\nlease_seconds = 1.5\n"
"""Over PostgreSQL: nobody can know that a worker is dead before this is over."""
ENDS = ("run.completed", "run.failed", "run.incomplete", "run.cancelled", "run.expired")


@contextlib.asynccontextmanager
async def rig(folder: Path, nursery: Nursery, url: str | None = None) -> AsyncIterator[Rig]:
    """A gateway to be, over SQLite or what ``url`` names."""
    connector = aiohttp.TCPConnector(limit=0, force_close=True)
    async with contextlib.AsyncExitStack() as stack:
        port = stack.enter_context(reserved_port())
        provider = await stack.enter_async_context(sim.running())
        http = await stack.enter_async_context(aiohttp.ClientSession(connector=connector))
        (folder / "pepper").write_text("a pepper that each start finds again, long enough")
        head = HEAD.format(url=url or f"sqlite:///{folder / 'gateway.db'}", folder=folder)
        scripted = alias("scripted", ("openai", "script"), retries=0)
        text = head + ("" if url is None else LEASE) + PROVIDERS + scripted + KEYS
        (folder / "gateway.toml").write_text(text.replace("{url}", provider.url))
        provider.script("script", TURNS, by="turn")
        one = Rig(folder, port, provider, http, nursery)
        try:
            yield one
        finally:
            await one.stop()


async def person(one: Rig, run_id: str) -> None:
    """Somebody who answers: agrees to the mail, and looks whether a doubtful call took effect."""
    while True:
        await asyncio.sleep(0.03)
        with contextlib.suppress(aiohttp.ClientError):
            _, children = await one.call("GET", f"/runs?parent={run_id}")
            for name in (run_id, *(child["id"] for child in children["data"])):
                _, run = await one.call("GET", f"/runs/{name}")
                for question in run.get("interrupts", ()):
                    path = f"/runs/{name}/interrupts/{question['id']}"
                    await one.call("POST", path, said_to(one, question))


def said_to(one: Rig, question: dict[str, Any]) -> dict[str, Any]:
    if question["kind"] != "in_doubt":
        return {"action": "approve"}
    done = one.effects()[f"{question['tool']} {question['idempotency_key']}"] > 0
    text = f"{question['tool']} done"
    return {"action": "result", "content": text} if done else {"action": "rerun"}


async def survive(one: Rig, kill_at: int) -> dict[str, Any]:
    """The run as it ended, having been killed after one event."""
    await one.start(kill_at)
    run_id = await begin(one)
    helper = asyncio.create_task(person(one, run_id))
    try:
        async with asyncio.timeout(150):
            while not one.ended:
                await one.follow(run_id)
                if not one.ended and await one.gone():
                    await one.start(0)
        _, run = await one.call("GET", f"/runs/{run_id}")
    finally:
        helper.cancel()
        await asyncio.wait([helper])
    return dict(run)


async def begin(one: Rig) -> str:
    """Begin the run, under a key: a caller that heard nothing asks again and gets the same one."""
    while True:
        with contextlib.suppress(aiohttp.ClientError):
            status, run = await one.call("POST", "/runs", ASKED, **{"idempotency-key": "one"})
            assert status == 201, run
            return str(run["id"])
        if await one.gone():
            await one.start(0)


def check(one: Rig, run: dict[str, Any], kill_at: int) -> None:
    events = one.seen
    assert run["status"] == "completed"
    assert run["output"]["value"] == {"n": 1}
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1)), "each once"
    assert [event["type"] for event in events if event["type"] in ENDS] == ["run.completed"]
    effects = one.effects()
    assert Counter(line.split()[0] for line in effects if not line.startswith("read")) == {
        "write": 1,
        "mail": 1,
    }
    for line, times in effects.items():
        assert times == 1 or line.startswith("read "), f"{line}: {times} times"
    outputs = [
        item["output"]
        for item in one.simulator.log[-1].body["input"]
        if item["type"] == "function_call_output"
    ]
    assert outputs[:3] == ["read done", "write done", "mail done"]
    assert_no_turn_twice(one, kill_at)


def assert_no_turn_twice(one: Rig, kill_at: int) -> None:
    """A turn whose end was written before the kill was asked for once."""
    asked = Counter(_answers(attempt.body["input"]) for attempt in one.simulator.log)
    known = [event for event in one.seen if event["seq"] <= kill_at]
    finished = sum(event["type"] == "model.finished" for event in known)
    before = (0, 2, 3, 4)[:finished]
    for size in before:
        assert asked[size] == 1, f"the turn after {size} items was asked {asked[size]} times"
    assert all(times <= 2 for times in asked.values())


def _answers(items: list[dict[str, Any]]) -> int:
    """How much the model had said before it was asked this."""
    return sum(i["type"] == "function_call" or i.get("role") == "assistant" for i in items)


async def run_it(folder: Path, kill_at: int, nursery: Nursery, url: str | None = None) -> None:
    async with rig(folder, nursery, url) as one:
        run = await survive(one, kill_at)
        check(one, run, kill_at)
        if kill_at and kill_at < len(one.seen):
            assert any(event["epoch"] > 1 for event in one.seen) or kill_at == 1


async def over_postgres(
    postgres: Server, folder: Path, points: Iterable[int], run: Callable[..., Awaitable[None]]
) -> None:
    """Killed after each of these events, several at once."""
    gate = asyncio.Semaphore(AT_ONCE)
    failed: dict[int, Exception] = {}

    async def one(kill_at: int) -> None:
        async with gate:
            own = folder / str(kill_at)
            own.mkdir()
            try:
                await run(own, kill_at, url=postgres.database())
            except Exception as error:
                error.add_note(f"killed after event {kill_at}")
                failed[kill_at] = error

    await asyncio.gather(*map(one, points))
    if failed:
        raise ExceptionGroup(f"killed after {sorted(failed)}", list(failed.values()))


async def test_without_a_crash(tmp_path: Path, nursery: Nursery) -> None:
    await run_it(tmp_path, 0, nursery)


@pytest.mark.parametrize("kill_at", SOME)
async def test_killed_after(tmp_path: Path, nursery: Nursery, kill_at: int) -> None:
    await run_it(tmp_path, kill_at, nursery)


@pytest.mark.all
@pytest.mark.parametrize("kill_at", [n for n in range(1, LAST) if n not in SOME])
async def test_killed_after_any_event(tmp_path: Path, nursery: Nursery, kill_at: int) -> None:
    await run_it(tmp_path, kill_at, nursery)


async def test_killed_over_postgres(tmp_path: Path, nursery: Nursery, postgres: Server) -> None:
    await over_postgres(postgres, tmp_path, FEW, partial(run_it, nursery=nursery))


@pytest.mark.all
async def test_killed_after_any_event_over_postgres(
    tmp_path: Path, nursery: Nursery, postgres: Server
) -> None:
    points = [n for n in range(1, LAST) if n not in FEW]
    await over_postgres(postgres, tmp_path, points, partial(run_it, nursery=nursery))
