"""Several gateways on one PostgreSQL: who works on a run, and who hears of it."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from adapters import simulator as sim
from adapters.simulator import Call, Say
from gateway.runs import supervisor
from tests.harness import KEYS, PROVIDERS, Harness, alias, aliases, gateway
from tests.ports import reserved_port
from tests.runs.following import answered, begin, data, read, types, watch
from tests.runs.test_control import race
from tests.runs.tools import slow, spy, use
from tests.store.postgres_server import Server

ROOT = Path(__file__).parents[2]
SCRIPTED = alias("scripted", ("openai", "script"), retries=0)
LEASE = 2.0
SHORT = f"[runs]\nlease_seconds = {LEASE}\n"


def written(folder: Path, postgres: Server, provider: sim.Simulator, *extra: str) -> str:
    """The configuration of gateways that share a fresh database."""
    shared = folder / "pepper"
    shared.write_text("a pepper that all replicas share, and long enough")
    head = f'[store]\nurl = "{postgres.database()}"\n[server]\npepper = "file:{shared}"\n'
    text = head + PROVIDERS + aliases([SCRIPTED, *extra]) + KEYS
    return text.replace("{url}", provider.url)


@contextlib.asynccontextmanager
async def replicas(folder: Path, postgres: Server) -> AsyncIterator[list[Harness]]:
    """Two gateways on one database, over one provider."""
    async with sim.running() as provider, contextlib.AsyncExitStack() as stack:
        text, found = written(folder, postgres, provider), []
        for name in "ab":
            (folder / name).mkdir()
            g = await stack.enter_async_context(gateway(folder / name, config=text))
            found.append(dataclasses.replace(g, simulator=provider))
        yield found


@contextlib.asynccontextmanager
async def process(config: Path) -> AsyncIterator[tuple[asyncio.subprocess.Process, str]]:
    """A gateway in a process of its own, and its URL."""
    with reserved_port() as port:
        made = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.runs.crashing", str(config), str(port),
            str(config.parent / "effects"), "0",
            cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
        try:
            yield made, f"http://127.0.0.1:{port}"
        finally:
            if made.returncode is None:
                made.kill()
            await made.wait()


async def answering(g: Harness, seconds: float = 90.0) -> None:
    """Wait until it serves."""
    async with asyncio.timeout(seconds):
        while True:
            with contextlib.suppress(aiohttp.ClientError):
                async with g.http.get(f"{g.url}/healthz"):
                    return
            await asyncio.sleep(0.05)


@pytest.fixture
def blind(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody looks into the books unless he is told to."""
    monkeypatch.setattr(supervisor, "TICK", 60.0)


def asks(*tools: str, **agent: Any) -> dict[str, Any]:
    return {"agent": {"model": "scripted", "tools": list(tools), **agent}, "input": "go"}


@pytest.mark.usefixtures("blind")
async def test_a_reader_and_an_answer_on_another_replica_are_heard_of_at_once(
    tmp_path: Path, postgres: Server
) -> None:
    async with replicas(tmp_path, postgres) as (a, b):
        tool = spy("mail")
        use(a, tool), use(b, tool)
        a.simulator.script("script", [[Call("mail", "{}")], Say("done")])
        run_id = await begin(a, asks("mail", tool_policy={"mail": "approve"}))
        (asked,) = data(await watch(b, run_id, until="run.waiting"), "approval.requested")
        following = [asyncio.create_task(watch(g, run_id)) for g in (a, b)]
        await asyncio.sleep(0.1)
        answer = await answered(b, run_id, asked["interrupt_id"], action="approve")
        assert answer.status == 200
        first, second = await asyncio.gather(*following)
        assert [e["seq"] for e in first] == list(range(1, len(first) + 1))
        assert first == second
        assert types(first)[-1] == "run.completed"
        assert len(tool.calls) == 1


@pytest.mark.usefixtures("blind")
async def test_what_one_replica_does_not_take_up_another_does_at_once(
    tmp_path: Path, postgres: Server
) -> None:
    async with replicas(tmp_path, postgres) as (a, b):
        a.simulator.script("script", [Say("done")])
        await a.state.runs.supervisor.drain(0)
        run_id = await begin(a, asks())
        assert types(await watch(a, run_id))[-1] == "run.completed"
        assert not a.state.runs.supervisor.working
        assert (await read(b, run_id))["output"]["text"] == "done"


@pytest.mark.parametrize("moment", [0.0, 0.2, 0.4])
async def test_a_database_that_is_gone_for_a_moment_costs_a_run_nothing(
    tmp_path: Path, postgres: Server, moment: float
) -> None:
    async with replicas(tmp_path, postgres) as (a, b):
        use(a, write := spy("write", slow(0.3)))
        turns = [[Call("write", "{}", id="c1"), Call("write", "{}", id="c2")], Say("done")]
        a.simulator.script("script", turns, by="turn")
        await b.state.runs.supervisor.drain(0)
        run_id = await begin(a, asks("write"))
        await watch(a, run_id, until="tool.intent")
        await asyncio.sleep(moment)
        postgres.kill()
        await asyncio.sleep(0.5)
        await asyncio.to_thread(postgres.start)
        events: list[dict[str, Any]] = []
        async with asyncio.timeout(30):
            while not events or events[-1]["type"] not in ("run.completed", "run.waiting"):
                with contextlib.suppress(aiohttp.ClientError, AssertionError):
                    events += await watch(b, run_id, after=len(events), until="run.waiting")
        assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
        assert types(events)[-1] == "run.completed"
        assert {event["epoch"] for event in events} == {0, 1}, "one worker"
        assert len(write.calls) == 2


@pytest.mark.parametrize("blow", [signal.SIGKILL, signal.SIGSTOP])
async def test_a_dead_or_stalled_worker_s_run_is_taken_over_and_it_writes_no_more(
    tmp_path: Path, postgres: Server, blow: signal.Signals
) -> None:
    """Within the lease and a look; who wakes up late finds his claim gone."""
    async with sim.running() as provider:
        provider.script("script", [Call("tick", '{"seconds": 4}'), Say("done")], by="turn")
        config = tmp_path / "gateway.toml"
        config.write_text(written(tmp_path, postgres, provider, SHORT))
        async with process(config) as (worker, url), aiohttp.ClientSession() as http:
            first = Harness(url, None, provider, http)  # type: ignore[arg-type]
            await answering(first)
            run_id = await begin(first, asks("tick"))
            await watch(first, run_id, until="tool.progress")
            worker.send_signal(blow)
            struck = time.time()
            (tmp_path / "b").mkdir()
            async with gateway(tmp_path / "b", config=config.read_text()) as b:
                use(b, spy("tick", read_only=True))
                events = await watch(b, run_id, seconds=40)
                (taken,) = (e for e in events if e["type"] == "run.recovered")
                assert taken["at"] - struck < LEASE + 10, "a busy machine's ceiling"
                assert types(events)[-1] == "run.completed"
                if blow == signal.SIGSTOP:
                    worker.send_signal(signal.SIGCONT)
                    await answering(first)
                    await asyncio.sleep(4)  # its tool comes back meanwhile
                    assert await watch(first, run_id) == events
                assert await watch(b, run_id) == events
                epochs = [event["epoch"] for event in events]
                assert epochs == sorted(epochs)
                assert types(events).count("tool.completed") == 1


async def test_of_a_cancel_and_an_answer_one_ends_the_run(tmp_path: Path, postgres: Server) -> None:
    async with replicas(tmp_path, postgres) as (a, b):
        await race(a, b)


async def test_of_many_at_both_replicas_the_first_wins(tmp_path: Path, postgres: Server) -> None:
    async with replicas(tmp_path, postgres) as (a, b):
        tool = spy("mail")
        use(a, tool), use(b, tool)
        a.simulator.script("script", [[Call("mail", "{}")], Say("done")])
        body, key = asks("mail", tool_policy={"mail": "approve"}), {"idempotency-key": "one"}
        begun = await asyncio.gather(*(g.post("/runs", body, headers=key) for g in (a, b) * 4))
        assert {answer.status for answer in begun} == {201}
        (run_id,) = {answer.json()["id"] for answer in begun}
        (asked,) = data(await watch(b, run_id, until="run.waiting"), "approval.requested")
        actions = [(g, action) for g in (a, b) for action in ("approve", "deny")] * 3
        said = await asyncio.gather(
            *(answered(g, run_id, asked["interrupt_id"], action=action) for g, action in actions)
        )
        won = {
            action
            for (_, action), answer in zip(actions, said, strict=True)
            if answer.status == 200
        }
        assert len(won) == 1
        assert Counter(answer.status for answer in said) == {200: 6, 409: 6}
        events = await watch(a, run_id)
        assert types(events)[-1] == "run.completed"
        assert len(tool.calls) == (won == {"approve"})
        ended = await asyncio.gather(*(g.post(f"/runs/{run_id}/cancel", {}) for g in (a, b)))
        assert {answer.status for answer in ended} == {409}, "it has ended"
