"""Many runs and many readers on one process: each event reaches its reader, and nothing stays
behind in memory when a run is over."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from pathlib import Path

import pytest

from adapters.simulator import Call, Say
from gateway.runs.events import draft
from tests.harness import KEY, alias, gateway
from tests.runs.following import begin, watch
from tests.runs.nursery import ROOT, Nursery
from tests.runs.test_crash import Rig, rig

SECONDS = 3
"""For so long each run says something every second."""
BODY = {
    "agent": {"name": "ticker", "model": "scripted", "tools": ["tick"]},
    "input": "go",
}
SETTINGS = "[runs]\nmax_concurrent = 1000\n"


async def one_run(one: Rig) -> tuple[int, float]:
    """A run that is followed to its end: its events, and the longest that one was on its way."""
    headers = {"authorization": f"Bearer {KEY}"}
    body = {**BODY, "stream": True}
    count, late = 0, 0.0
    async with one.http.post(f"{one.url}/runs", json=body, headers=headers) as reply:
        assert reply.status == 200
        async for line in reply.content:
            if line.startswith(b"data: "):
                count += 1
                _, _, rest = line.partition(b'"at":')
                late = max(late, time.time() - float(rest.partition(b",")[0]))
                ended = b'"type":"run.completed"' in line
    assert ended
    return count, late


def resident(pid: int) -> int:
    """Bytes of memory that a process has."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096


async def many(
    folder: Path, nursery: Nursery, runs: int, batches: int
) -> tuple[list[int], list[float]]:
    sizes, late = [], []
    async with rig(folder, nursery) as one:
        config = folder / "gateway.toml"
        config.write_text(config.read_text() + SETTINGS)
        turns = [Call("tick", f'{{"seconds": {SECONDS}}}'), Say("done")]
        one.simulator.script("script", turns, by="turn")
        await one.start(0)
        for _ in range(batches):
            found = await asyncio.gather(*(one_run(one) for _ in range(runs)))
            assert min(count for count, _ in found) >= 12 + SECONDS - 1
            late.append(max(worst for _, worst in found))
            await asyncio.sleep(1)
            sizes.append(resident(one.process))
    return sizes, late


async def test_every_reader_gets_every_event_in_time(tmp_path: Path, nursery: Nursery) -> None:
    _, late = await many(tmp_path, nursery, runs=60, batches=1)
    assert max(late) < 20


@pytest.mark.all
async def test_a_thousand_runs_with_a_thousand_readers_leave_nothing_behind(
    tmp_path: Path, nursery: Nursery, capsys: pytest.CaptureFixture[str]
) -> None:
    sizes, late = await many(tmp_path, nursery, runs=1_000, batches=5)
    grown = (sizes[-1] - sizes[2]) / 2_000  # by then the database's own caches are full
    with capsys.disabled():
        print(f"\n1000 runs, 1000 readers: {grown:.0f} bytes a finished run, "
              f"late by {max(late):.1f} s at most, {sizes[-1] / 1e6:.0f} MB")  # fmt: skip
    assert grown < 4_000, f"{grown:.0f} bytes stay behind for each finished run"
    assert max(late) < 30


EVENTS = 50_000
TEXT = "x" * 2_000


@pytest.mark.all
async def test_a_hundred_readers_of_which_ten_take_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Case T09."""
    monkeypatch.setattr("gateway.http.following.PATIENCE", 3)
    async with gateway(tmp_path, alias("scripted", ("openai", "script"), retries=0)) as g:
        g.simulator.script("script", [Call("screen", "{}")])
        agent = {"model": "scripted", "tools": [{"name": "screen"}]}
        run_id = await begin(g, {"agent": agent, "input": "go"})
        before = len(await watch(g, run_id, until="run.waiting"))
        host, _, port = g.url.removeprefix("http://").partition(":")
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.runs.reading", host, port, run_id, KEY, "90", "10",
            cwd=ROOT, stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        assert process.stdout is not None
        await process.stdout.readline()
        tape = await g.state.runs.ledger.tape(run_id)
        sizes = [resident(os.getpid())]
        begun = time.monotonic()
        for _ in range(EVENTS // 10):
            delta = draft("message.delta", step="main/1", part=0, text=TEXT)
            await tape.record([delta] * 10)
            sizes.append(resident(os.getpid()))
        written = time.monotonic() - begun
        assert (await g.post(f"/runs/{run_id}/cancel", {})).status == 200
        told = json.loads(await process.stdout.readline())
        read = time.monotonic() - begun
        sizes.append(resident(os.getpid()))
        after = len(await watch(g, run_id, after=before + EVENTS))
        assert told["seen"] == [before + EVENTS + after] * 90
        assert told["let_go"] == 10
        grown = max(sizes) - sizes[0]
        with capsys.disabled():
            print(f"\n100 readers, {EVENTS} events: written in {written:.0f} s, "
                  f"read in {read:.0f} s, {grown / 1e6:.0f} MB more")  # fmt: skip
        assert grown < 80e6
        assert await process.wait() == 0
