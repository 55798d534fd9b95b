"""What bounds a run from outside: its time to live, the key's own money, the model's window."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from adapters.canonical.faults import Fault
from adapters.simulator import Call, Say
from tests.harness import ADMIN, alias, gateway
from tests.runs.following import answered, begin, data, read, types, watch
from tests.runs.tools import slow, spy, use

SCRIPTED = alias("scripted", ("openai", "script"), retries=0)
PRICED = alias("priced", ("openai", "gpt-5.2"), retries=0)
SHORT_LIVED = "[runs]\nrun_ttl = 0.5\n"
NARROW = """
[models.narrow]
context = "refuse"
targets = [{ provider = "chat", model = "recite", facts = { window = 400 } }]
"""
WAITS = {
    "agent": {"model": "scripted", "tools": ["mail"], "tool_policy": {"mail": "approve"}},
    "input": "go",
}


@pytest.mark.parametrize("state", ["waiting", "paused", "queued"])
async def test_a_run_that_nobody_moves_expires(tmp_path: Path, state: str) -> None:
    async with gateway(tmp_path, SCRIPTED, SHORT_LIVED) as g:
        use(g, spy("mail"))
        g.simulator.script("script", [Call("mail", "{}"), Say("never")])
        if state == "queued":  # no worker has room for it
            g.state.runs.supervisor._draining = True
        run_id = await begin(g, WAITS)
        if state != "queued":
            await watch(g, run_id, until="run.waiting")
        if state == "paused":
            await g.post(f"/runs/{run_id}/pause", {})
        events = await watch(g, run_id)
        assert types(events)[-1] == "run.expired"
        run = await read(g, run_id)
        assert (run["status"], run["interrupts"]) == ("expired", [])
        expected = [] if state == "queued" else ["skipped"]
        assert [row["outcome"] for row in run["trace"]] == expected
        assert (await g.post(f"/runs/{run_id}/cancel", {})).status == 409


@pytest.mark.parametrize("on_budget", ["incomplete", "wait"])
async def test_a_key_s_used_up_money_is_like_the_run_s_own(tmp_path: Path, on_budget: str) -> None:
    async with gateway(tmp_path, PRICED) as g:
        made = await g.post("/admin/keys", {"name": "poor", "limits": {"usd_total": 0}}, key=ADMIN)
        key = made.json()["key"]
        body: dict[str, Any] = {"agent": {"model": "priced"}, "input": "go", "on_budget": on_budget}
        run_id = (await g.post("/runs", body, key=key)).json()["id"]
        if on_budget == "incomplete":
            events = await watch(g, run_id)
            assert (await read(g, run_id))["reason"] == "budget"
        else:
            events = await watch(g, run_id, until="run.waiting")
            (question,) = (await read(g, run_id))["interrupts"]
            assert (question["kind"], question["which"]) == ("budget", "key")
            await answered(g, run_id, question["id"], action="stop")
            await watch(g, run_id)
            assert (await read(g, run_id))["status"] == "incomplete"
        assert [one["which"] for one in data(events, "budget.exhausted")] == ["key"]
        assert len(g.simulator.log) == 0


async def test_a_moment_without_books_costs_no_call_that_is_under_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its effect can't be taken back: who lets go of it must ask a person whether it came about."""
    async with gateway(tmp_path, SCRIPTED) as g:
        use(g, write := spy("write", slow(1.0)))
        g.simulator.script("script", [Call("write", "{}"), Say("done")])
        body = {"agent": {"model": "scripted", "tools": ["write"]}, "input": "go"}
        run_id = await begin(g, body)
        await watch(g, run_id, until="tool.intent")
        await asyncio.sleep(0.1)

        async def unread(*asked: Any) -> Any:
            raise Fault("store_unavailable", "The books can't be read.")

        with monkeypatch.context() as outage:
            outage.setattr(g.state.store, "run", unread)
            g.state.runs.hub.wake_all()
            await asyncio.sleep(0.5)
        events = await watch(g, run_id)
        assert types(events)[-1] == "run.completed"
        assert {event["epoch"] for event in events} == {0, 1}, "one worker"
        assert len(write.calls) == 1


async def test_a_turn_waits_for_books_that_can_not_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No call is made without its row; a run has time until there can be one."""
    async with gateway(tmp_path, SCRIPTED) as g:
        g.simulator.script("script", [Say("done")])
        store, refused = g.state.store, 0
        enter = store.open_attempt

        async def open_attempt(*row: Any) -> Any:
            nonlocal refused
            refused += 1
            if refused <= 2:
                raise Fault("store_unavailable", "not now", retry_after=0.1)
            return await enter(*row)

        monkeypatch.setattr(store, "open_attempt", open_attempt)
        run_id = await begin(g, {"agent": {"model": "scripted"}, "input": "go"})
        events = await watch(g, run_id)
        assert types(events)[-1] == "run.completed"
        assert [one["retry_after"] for one in data(events, "model.attempt_failed")] == [0.1, 0.1]
        assert len(g.simulator.log) == 1


async def test_an_agent_may_trim_where_its_model_refuses(tmp_path: Path) -> None:
    talk = [
        {"role": role, "content": f"{role} {n} " + "word " * 60}
        for n in range(8)
        for role in ("user", "assistant")
    ]
    body = {"input": [*talk, {"role": "user", "content": "and the last question"}]}
    async with gateway(tmp_path, NARROW) as g:
        run_id = await begin(g, {**body, "agent": {"model": "narrow"}})
        await watch(g, run_id)
        run = await read(g, run_id)
        assert (run["status"], run["error"]["kind"]) == ("failed", "context_overflow")
        run_id = await begin(g, {**body, "agent": {"model": "narrow", "context": "trim_history"}})
        events = await watch(g, run_id)
        assert (await read(g, run_id))["status"] == "completed"
        (trimmed,) = data(events, "context.trimmed")
        assert sum(trimmed["counts"].values()) > 0
        asked = str(g.simulator.log[-1].body["messages"])
        assert "the last question" in asked
        assert "user 0" not in asked
