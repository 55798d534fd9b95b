"""Runs whose books are slow, or fail for a moment: nothing is heard of too late, begun too late, or
cut for it; and nobody waits for what will not come."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from adapters.simulator import Call, Say
from gateway.runs import ledger
from gateway.runs.children import child_id
from gateway.runs.rewind import replay
from gateway.tools.base import Registry
from tests.harness import Harness, alias, gateway
from tests.runs.failing import failing, writing
from tests.runs.following import answered, begin, data, read, types, watch
from tests.runs.test_team import LAUNCH, team
from tests.runs.tools import slow, spy, use

SCRIPTED = alias("scripted", ("openai", "script"), retries=0)
OTHER = alias("other", ("openai", "other"), retries=0)


def asks(*tools: str, **agent: Any) -> dict[str, Any]:
    return {"agent": {"model": "scripted", "tools": list(tools), **agent}, "input": "go"}


def flow(**nodes: Any) -> dict[str, Any]:
    """A workflow whose nodes work at once."""
    output = [{"from": f"/nodes/{name}", "default": None} for name in nodes]
    return {"workflow": {"nodes": nodes, "output": output}}


def agent_node(*tools: str, **node: Any) -> dict[str, Any]:
    agent = {"name": "lead", "model": "scripted", "tools": list(tools), **node.pop("agent", {})}
    return {"kind": "agent", "agent": agent, "prompt": "go", **node}


def tool_node(name: str, **node: Any) -> dict[str, Any]:
    return {"kind": "tool", "tool": name, **node}


def asking_a_child(g: Harness, *turns: Any) -> dict[str, Any]:
    """The body's part about the child; and what its lead says."""
    ask = Call("agent_child", '{"input": "work"}', id="c")
    g.simulator.script("script", [ask, Say("done")], by="turn")
    g.simulator.script("other", [*turns, Say("child done")])
    return {"agents": [{"name": "child", "model": "other", "tools": ["t"]}]}


# what was written is heard of, though the word of it was lost


async def test_an_end_is_heard_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with gateway(tmp_path, SCRIPTED) as g:
        g.simulator.script("script", [Say("done")])
        failed = failing(g, monkeypatch, "add_run_events", writing("run.completed"), written=True)
        run_id = await begin(g, asks())
        assert types(await watch(g, run_id, seconds=5))[-1] == "run.completed"
        assert failed


async def test_a_cancel_is_heard_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with gateway(tmp_path, SCRIPTED) as g:
        use(g, spy("long", slow(30)))
        g.simulator.script("script", [Call("long", "{}"), Say("never")])
        run_id = await begin(g, asks("long"))
        await watch(g, run_id, until="tool.intent")
        failing(g, monkeypatch, "add_run_events", writing("run.cancel_requested"), written=True)
        assert (await g.post(f"/runs/{run_id}/cancel", {})).status == 503
        assert types(await watch(g, run_id, seconds=5))[-1] == "run.cancelled"


# what is late is not begun, not heard, not asked


@pytest.mark.parametrize(("late", "turns"), [("model.started", 0), ("tool.intent", 1)])
async def test_nothing_begins_once_a_cancel_has_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, late: str, turns: int
) -> None:
    """The cancel comes just before the beginning of a turn or of a call is written."""
    async with gateway(tmp_path, SCRIPTED) as g:
        use(g, tool := spy("t"))
        g.simulator.script("script", [Call("t", "{}"), Say("never")])
        store = g.state.store
        add = store.add_run_events

        async def add_run_events(addition: Any) -> bool:
            if writing(late)(addition):
                await g.post(f"/runs/{addition.run_id}/cancel", {})
            return bool(await add(addition))

        monkeypatch.setattr(store, "add_run_events", add_run_events)
        events = await watch(g, await begin(g, asks("t")), seconds=5)
        assert types(events)[-1] == "run.cancelled"
        assert late not in types(events)
        assert len(g.simulator.log.of("script")) == turns
        assert tool.calls == []
        assert [told["reason"] for told in data(events, "tool.skipped")] == ["ended"] * turns


async def test_tools_that_are_found_when_their_node_is_over_harm_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ready = Registry.ready

    async def slowly(registry: Registry, names: Any) -> None:
        await ready(registry, names)
        if "late" in names:
            await asyncio.sleep(0.6)

    async with gateway(tmp_path, SCRIPTED) as g:
        use(g, spy("late"), mail := spy("mail", slow(1.2)))
        body = flow(a=agent_node("late", timeout=0.2, on_error="skip"), b=tool_node("mail"))
        begun = await begin(g, body)
        await watch(g, begun)
        mail.calls.clear()
        monkeypatch.setattr(Registry, "ready", slowly)
        events = await watch(g, await begin(g, body))
        assert types(events)[-1] == "run.completed"
        assert "run.recovered" not in types(events)
        assert len(mail.calls) == 1


async def test_what_a_tool_says_that_was_given_up_is_not_heard(tmp_path: Path) -> None:
    async def stubborn(arguments: Any, context: Any) -> str:
        for _ in range(2):
            try:
                await asyncio.sleep(0.6)
            except asyncio.CancelledError:
                continue
        return "too late"

    async with gateway(tmp_path) as g:
        g.state.runs.supervisor.grace = 0.1
        use(g, spy("stubborn", stubborn), spy("long", slow(1.5)))
        hasty = tool_node("stubborn", timeout=0.2, on_error="skip")
        events = await watch(g, await begin(g, flow(a=hasty, b=tool_node("long"))))
        assert types(events)[-1] == "run.completed"
        assert [told["kind"] for told in data(events, "tool.failed")] == ["cancelled"]
        assert len(data(events, "tool.completed")) == 1, "the other's"


LATE = {"model.finished": "call", "tool.completed": "tool"}


@pytest.mark.parametrize("type", LATE)
async def test_what_is_written_just_when_it_is_stopped_ends_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, type: str
) -> None:
    """The end of a turn or a call is on its way into the books when its node's time is up, and
    there just before what the stop has to say."""
    async with gateway(tmp_path) as g:
        use(g, spy("t"))
        store = g.state.store
        add, stopping, late = store.add_run_events, asyncio.Event(), list[asyncio.Task[bool]]()

        async def arrive(addition: Any) -> bool:
            await stopping.wait()
            return bool(await add(addition))

        async def add_run_events(addition: Any) -> bool:
            if writing(type)(addition) and not late:
                late.append(asyncio.create_task(arrive(addition)))
                return await asyncio.shield(late[0])
            if late and not stopping.is_set():
                stopping.set()
                assert await late[0]
            return bool(await add(addition))

        monkeypatch.setattr(store, "add_run_events", add_run_events)
        node = {
            "call": {"kind": "call", "model": "m-openai", "prompt": "x"},
            "tool": tool_node("t"),
        }
        events = await watch(
            g, await begin(g, flow(a={**node[LATE[type]], "timeout": 0.5, "on_error": "skip"}))
        )
        ends = {"model.finished", "model.attempt_failed", "tool.completed", "tool.failed"}
        assert [event["type"] for event in events if event["type"] in ends] == [type]
        assert [told["node"] for told in data(events, "node.skipped")] == ["a", "output"]


QUESTIONS = {
    "call": agent_node("mail", agent={"tool_policy": {"mail": "approve"}}),
    "person": {"kind": "map", "over": [1], "node": {"kind": "approval", "message": "?"}},
}


@pytest.mark.parametrize("about", QUESTIONS)
async def test_what_a_question_was_about_ends_and_so_does_the_question(
    tmp_path: Path, about: str
) -> None:
    async with gateway(tmp_path, SCRIPTED) as g:
        use(g, mail := spy("mail"), spy("long", slow(2)))
        g.simulator.script("script", [Call("mail", "{}"), Say("never")])
        asking = {**QUESTIONS[about], "timeout": 0.5, "on_error": "skip"}
        run_id = await begin(g, flow(a=asking, b=tool_node("long")))
        type = "approval.requested" if about == "call" else "input.requested"
        (asked,) = data(await watch(g, run_id, until=type), type)
        await watch(g, run_id, until="node.skipped")
        assert (await read(g, run_id))["interrupts"] == []
        late = await answered(g, run_id, asked["interrupt_id"], action="approve")
        assert late.status == 409
        assert "ended meanwhile" in late.json()["error"]["message"]
        events = await watch(g, run_id)
        assert types(events)[-1] == "run.completed"
        assert not mail.calls
        assert not {"approval.granted", "input.provided"} & set(types(events))


# what fails once cuts nothing that is under way


@pytest.mark.parametrize("written", [False, True])
@pytest.mark.parametrize("name", ["calls_usage", "create_run", "put_agent", "agent"])
async def test_a_moment_s_failure_leaves_no_tool_in_doubt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, written: bool
) -> None:
    async with gateway(tmp_path, SCRIPTED, OTHER) as g:
        use(g, spy("t"), mail := spy("mail", slow(1)))
        if name in ("put_agent", "agent"):
            g.simulator.script("script", LAUNCH)
            first = team()["nodes"]["crew"]
            about: dict[str, Any] = {}
        else:
            about, first = asking_a_child(g), agent_node("agent:child")
        run_id = await begin(g, flow(a=first, b=tool_node("mail")) | about)
        failed = failing(g, monkeypatch, name, written=written)
        events = await watch(g, run_id)
        assert failed
        assert types(events)[-1] == "run.completed"
        assert not {"run.recovered", "tool.in_doubt"} & set(types(events))
        assert len(mail.calls) == 1


async def test_a_child_that_its_worker_let_go_is_taken_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While its parent has an hour until it looks again by itself."""
    async with gateway(tmp_path, SCRIPTED, OTHER) as g:
        use(g, spy("t"))
        body = flow(a=agent_node("agent:child", timeout=3600)) | asking_a_child(g)
        failed = failing(
            g,
            monkeypatch,
            "add_run_events",
            lambda addition: writing("run.started")(addition) and addition.run_id != run_id,
        )
        run_id = ""
        run_id = await begin(g, body)
        assert types(await watch(g, run_id))[-1] == "run.completed"
        assert failed


@pytest.mark.parametrize("written", [False, True])
async def test_a_child_whose_cancel_fails_has_ended_when_its_parent_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: bool
) -> None:
    async with gateway(tmp_path, SCRIPTED, OTHER) as g:
        use(g, spy("t", slow(30)))
        about = asking_a_child(g, Call("t", "{}"))
        run_id = await begin(g, asks("agent:child") | about)
        child = child_id(run_id, "c")
        await watch(g, run_id, until="tool.intent")
        await until_there(g, child)
        await watch(g, child, until="tool.intent")
        cancelling = writing("run.cancel_requested", child)
        failed = failing(g, monkeypatch, "add_run_events", cancelling, written=written)
        await g.post(f"/runs/{run_id}/cancel", {})
        assert types(await watch(g, run_id))[-1] == "run.cancelled"
        assert (await read(g, child))["status"] == "cancelled"
        assert failed


async def until_there(g: Harness, run_id: str) -> None:
    async with asyncio.timeout(10):
        while await g.state.store.run(run_id) is None:
            await asyncio.sleep(0.01)


async def test_a_child_begins_nothing_while_its_parent_waits_for_a_tool_to_stop(
    tmp_path: Path,
) -> None:
    async def stubborn(arguments: Any, context: Any) -> str:
        for _ in range(2):
            try:
                await asyncio.sleep(1)
            except asyncio.CancelledError:
                continue
        return "at last"

    async with gateway(tmp_path, SCRIPTED, OTHER) as g:
        use(g, spy("t", slow(0.2), read_only=True), spy("stubborn", stubborn))
        about = asking_a_child(g, *(Call("t", "{}", id=f"t{n}") for n in range(40)))
        ask = Call("agent_child", '{"input": "work"}', id="c")
        g.simulator.script("script", [[ask, Call("stubborn", "{}")], Say("never")])
        run_id = await begin(g, asks("agent:child", "stubborn") | about)
        child = child_id(run_id, "c")
        await until_there(g, child)
        await watch(g, child, until="tool.intent")
        await g.post(f"/runs/{run_id}/cancel", {})
        assert types(await watch(g, run_id))[-1] == "run.cancelled"
        told = types(await watch(g, child))
        assert "run.recovered" not in told[: told.index("run.cancel_requested")], "it went on"
        assert not {"model.started", "tool.intent"} & set(
            told[told.index("run.cancel_requested") :]
        )


# claims


async def test_a_claim_is_given_back_though_that_fails_at_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else an answer would wait for the end of the lease, or of all that its worker has to do."""
    async with gateway(tmp_path, SCRIPTED) as g:
        use(g, mail := spy("mail"))
        g.simulator.script("script", [Call("mail", "{}"), Say("done")])
        failed = failing(g, monkeypatch, "release_run")
        run_id = await begin(g, asks("mail", tool_policy={"mail": "approve"}))
        (asked,) = data(await watch(g, run_id, until="run.waiting"), "approval.requested")
        await answered(g, run_id, asked["interrupt_id"], action="approve")
        assert types(await watch(g, run_id, seconds=10))[-1] == "run.completed"
        assert failed
        assert len(mail.calls) == 1


# tapes


async def test_what_began_late_can_be_played_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A turn was decided on in time; its node's time is up when its beginning can be written."""
    monkeypatch.setattr(ledger, "PAUSE", 0.8)
    async with gateway(tmp_path) as g:
        call = {"kind": "call", "model": "m-openai", "prompt": "x", "timeout": 0.4}
        failed = failing(g, monkeypatch, "add_run_events", writing("model.started"))
        run_id = await begin(g, flow(a={**call, "on_error": "skip"}, b=tool_node("time")))
        events = await watch(g, run_id)
        assert failed
        assert "model.started" in types(events)
        assert [told["node"] for told in data(events, "node.skipped")] == ["a"]
        tape = await g.state.runs.bench.ledger.read(run_id, 0)
        assert replay(tape, g.state.runs.bench.check) is None
