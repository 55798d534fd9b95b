"""Claims under which nobody works, since the books were gone just when they were made or given
back: they end by themselves, however busy their owner is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from adapters.canonical.faults import Fault
from adapters.simulator import Call, Say
from tests.harness import Harness, alias, gateway
from tests.runs.following import answered, begin, data, types, watch
from tests.runs.tools import slow, spy, use

SETTINGS = (
    alias("scripted", ("openai", "script"), retries=0),
    alias("other", ("chat", "script-other"), retries=0),
    "[runs]\nlease_seconds = 0.6\n",
)


def asks(model: str, *tools: str, **agent: Any) -> dict[str, Any]:
    return {"agent": {"model": model, "tools": list(tools), **agent}, "input": "go"}


async def busy(g: Harness) -> None:
    """A run that is worked on all the while."""
    g.simulator.script("script-other", [Call("long", "{}")])
    await watch(g, await begin(g, asks("other", "long")), until="tool.intent")


def gone_for(
    times: int, books: object, name: str, patch: pytest.MonkeyPatch, *, done: bool = False
) -> None:
    """The books are gone the next ``times`` that a method is asked; ``done``: or, where there is
    something to answer, when it has done its work."""
    method: Callable[..., Awaitable[Any]] = getattr(books, name)
    left = times

    async def gone(*given: Any, **named: Any) -> Any:
        nonlocal left
        found = await method(*given, **named) if done or not left else None
        if left and found != []:
            left -= 1
            raise Fault("store_unavailable", "for a moment")
        return found

    patch.setattr(books, name, gone)


async def test_a_claim_whose_answer_was_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with gateway(tmp_path, *SETTINGS) as g:
        use(g, spy("long", slow(60)))
        g.simulator.script("script", [Say("done")])
        await busy(g)
        gone_for(1, g.state.store, "claim_runs", monkeypatch, done=True)
        events = await watch(g, await begin(g, asks("scripted")))
        assert types(events)[-1] == "run.completed"
        assert {event["epoch"] for event in events} == {0, 2}


async def test_a_claim_that_could_not_be_given_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with gateway(tmp_path, *SETTINGS) as g:
        use(g, mail := spy("mail"), spy("long", slow(60)))
        g.simulator.script("script", [Call("mail", "{}"), Say("done")])
        await busy(g)
        gone_for(1, g.state.store, "release_run", monkeypatch)
        run_id = await begin(g, asks("scripted", "mail", tool_policy={"mail": "approve"}))
        events = await watch(g, run_id, until="run.waiting")
        (asked,) = data(events, "approval.requested")
        answer = await answered(g, run_id, asked["interrupt_id"], action="approve")
        assert answer.status == 200
        assert types(await watch(g, run_id))[-1] == "run.completed"
        assert len(mail.calls) == 1


async def test_a_worker_s_first_look_waits_for_the_books(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with gateway(tmp_path, *SETTINGS) as g:
        g.simulator.script("script", [Say("done")])
        gone_for(3, g.state.runs.bench.ledger, "tape", monkeypatch)
        events = await watch(g, await begin(g, asks("scripted")))
        assert types(events)[-1] == "run.completed"
        assert {event["epoch"] for event in events} == {0, 1}, "one worker"
