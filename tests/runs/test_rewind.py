"""Every run is a tape: played offline it gives the same events, and it can be branched off."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from adapters.simulator import Answer, Call, Say, Usage
from gateway.runs.events import Event
from gateway.runs.rewind import replay
from tests.harness import Harness, alias, gateway
from tests.runs.following import answered, begin, data, read, types, watch
from tests.runs.tools import spy, use

SCRIPTED = alias("scripted", ("openai", "script"), retries=0)
OTHER = alias("other", ("chat", "other"), retries=0)

BODY = {
    "agent": {
        "name": "helper",
        "model": "scripted",
        "tools": ["look", "mail"],
        "tool_policy": {"mail": "approve"},
        "handoffs": ["closer"],
        "contract": ["at_most 2 look"],
    },
    "agents": [{"name": "closer", "model": "scripted", "instructions": "Close."}],
    "input": "go",
    "budget": {"tool_calls": 10, "tokens": 100_000},
}
TURNS = [
    [Call("look", "{}", id="c1"), Call("look", "[]", id="c2"), Call("nowhere", "{}", id="c3")],
    [Call("mail", '{"to": "ann"}', id="c4"), Call("look", "{}", id="c5")],
    Call("transfer_to_closer", "{}", id="c6"),
    Say("closed"),
]


async def tape(g: Harness, run_id: str) -> list[Event]:
    return await g.state.runs.ledger.read(run_id, 0)


async def a_run(g: Harness) -> str:
    use(g, spy("look"), spy("mail"))
    g.simulator.script("script", TURNS, by="turn")
    run_id = await begin(g, BODY)
    await watch(g, run_id, until="run.waiting")
    (question,) = (await read(g, run_id))["interrupts"]
    await answered(g, run_id, question["id"], action="edit", arguments={"to": "bob"})
    await watch(g, run_id)
    return run_id


async def test_a_tape_played_offline_gives_the_same_events(tmp_path: Path) -> None:
    async with gateway(tmp_path, SCRIPTED) as g:
        events = await tape(g, await a_run(g))
        check = g.state.runs.bench.check
        assert events[-1].type == "run.completed"
        assert replay(events, check) is None
        for changed in tampered(events):
            assert replay(changed, check) is not None, "a changed tape does not follow"


def tampered(events: Sequence[Event]) -> list[list[Event]]:
    """The tape with a decided event left out, changed, or put in."""
    decided = ["approval.requested", "run.waiting", "agent.handoff", "run.completed"]
    found = []
    for type in decided:
        place = next(n for n, event in enumerate(events) if event.type == type)
        found.append([*events[:place], *events[place + 1 :]])
        data = {**events[place].data, "interrupts": ["other"], "to": "nobody", "output": {}}
        found.append([*events[:place], replace(events[place], data=data), *events[place + 1 :]])
    return found


@pytest.mark.parametrize("reason", ["cancelled", "budget", "failed", "deadline"])
async def test_other_endings_can_be_played_too(tmp_path: Path, reason: str) -> None:
    async with gateway(tmp_path, SCRIPTED) as g:
        use(g, spy("look"), spy("mail"))
        g.simulator.script("script", TURNS if reason != "failed" else [Say("")], by="turn")
        body: dict[str, Any] = {**BODY}
        if reason == "budget":
            body["budget"] = {"tool_calls": 1}
        run_id = await begin(g, body)
        if reason == "cancelled":
            await watch(g, run_id, until="run.waiting")
            await g.post(f"/runs/{run_id}/cancel", {})
        if reason == "deadline":
            await watch(g, run_id, until="run.waiting")
            (question,) = (await read(g, run_id))["interrupts"]
            await answered(g, run_id, question["id"], action="deny")
        await watch(g, run_id)
        assert replay(await tape(g, run_id), g.state.runs.bench.check) is None


async def test_a_fork_goes_on_from_its_place_and_repeats_nothing(tmp_path: Path) -> None:
    async with gateway(tmp_path, SCRIPTED, OTHER) as g:
        old = await a_run(g)
        events = await watch(g, old)
        look, mail = spy("look"), spy("mail")
        use(g, look, mail)
        asked_before = len(g.simulator.log.of("script"))
        place = [e["seq"] for e in events if e["type"] == "model.started"][2] - 1
        g.simulator.script("other", [Say("another end")])
        made = await g.post(f"/runs/{old}/fork?from={place}", {"model": "other"})
        assert made.status == 201, made.body
        new = made.json()["id"]
        told = await watch(g, new)
        assert types(told)[-1] == "run.completed"
        assert (await read(g, new))["output"]["text"] == "another end"
        assert told[0]["data"]["forked_from"]["run_id"] == old
        assert not look.calls
        assert not mail.calls
        assert len(g.simulator.log.of("script")) == asked_before
        used = [(await read(g, one))["usage"]["input_tokens"] for one in (new, old)]
        assert 0 < used[0] < used[1], "what was copied costs nothing again"
        assert [e["seq"] for e in told] == list(range(1, len(told) + 1))
        assert replay(await tape(g, new), g.state.runs.bench.check) is None


async def test_a_fork_can_change_a_result_and_the_instructions(tmp_path: Path) -> None:
    async with gateway(tmp_path, SCRIPTED) as g:
        old = await a_run(g)
        events = await watch(g, old)
        place = next(e["seq"] for e in events if e["type"] == "tool.completed")
        body = {
            "tool_results": [{"call_id": "c1", "content": "quite another thing"}],
            "instructions": "Look twice.",
            "metadata": {"why": "test"},
        }
        made = await g.post(f"/runs/{old}/fork?from={place}", body)
        new = made.json()["id"]
        await watch(g, new, until="run.waiting")
        last = json.dumps(g.simulator.log.of("script")[-1].body)
        assert "quite another thing" in last
        assert "Look twice." in last
        assert (await read(g, new))["metadata"] == {"why": "test"}
        late = await g.post(f"/runs/{old}/fork?from={len(events)}", body)
        assert late.status == 400, "a turn has seen the old result"
        unknown = {"tool_results": [{"call_id": "zz", "content": ""}]}
        assert (await g.post(f"/runs/{old}/fork?from={place}", unknown)).status == 400
        assert (await g.post(f"/runs/{old}/fork?from=999", {})).status == 400
        assert (await g.post(f"/runs/{old}/fork", {})).status == 400


async def test_a_fork_in_the_middle_of_a_step_does_the_step_again(tmp_path: Path) -> None:
    async with gateway(tmp_path, SCRIPTED) as g:
        old = await a_run(g)
        events = await watch(g, old)
        look = spy("look")
        use(g, look, spy("mail"))
        for place in (1, 4, next(e["seq"] for e in events if e["type"] == "tool.intent")):
            made = await g.post(f"/runs/{old}/fork?from={place}", {"input": "once more"})
            new = made.json()["id"]
            told = await watch(g, new, until="run.waiting")
            assert not data(told, "run.recovered")
            assert "once more" in json.dumps(g.simulator.log.of("script")[-1].body["input"][0])
        assert len(look.calls) == 3 * 2


async def test_a_fork_from_a_question_asks_it_again(tmp_path: Path) -> None:
    async with gateway(tmp_path, SCRIPTED) as g:
        old = await a_run(g)
        events = await watch(g, old)
        place = next(e["seq"] for e in events if e["type"] == "run.waiting")
        made = await g.post(f"/runs/{old}/fork?from={place}", {})
        new = made.json()["id"]
        await watch(g, new, until="run.waiting")
        (question,) = (await read(g, new))["interrupts"]
        assert question["arguments"] == {"to": "ann"}


async def test_what_one_conversation_writes_before_another_has_begun_is_no_difference(
    tmp_path: Path,
) -> None:
    """Both turns were decided at once; that the first is over, and half of the budget with it, is
    written before the second one's beginning."""
    async with gateway(tmp_path, SCRIPTED) as g:
        answer = Answer((Say("done"),), usage=Usage(prompt=90, output=10))
        g.simulator.script("script", [answer, answer])
        call = {"kind": "call", "model": "scripted", "prompt": "go"}
        output = [{"from": "/nodes/a"}, {"from": "/nodes/b"}]
        flow = {"nodes": {"a": call, "b": call}, "output": output}
        run_id = await begin(g, {"workflow": flow, "budget": {"tokens": 150}})
        await watch(g, run_id)
        events, check = await tape(g, run_id), g.state.runs.bench.check
        assert replay(events, check) is None
        begun = [place for place, e in enumerate(events) if e.type == "model.started"]
        over = next(place for place, e in enumerate(events) if e.type == "model.finished")
        late = begun[1] if events[over].step == events[begun[0]].step else begun[0]
        events.insert(over, events.pop(late))
        events = [replace(event, seq=seq) for seq, event in enumerate(events, 1)]
        assert replay(events[: over + 1], check) is None
        twice = [*events[: over + 1], replace(events[over], seq=over + 2, step="b/2")]
        assert replay(twice, check) is not None, "nobody has asked for that"
