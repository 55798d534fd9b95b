"""Approvals, cancels, pauses, budgets: what people do to a run while it is under way."""

from __future__ import annotations

import asyncio
import gc
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from adapters.simulator import Call, Say
from gateway.runs import supervisor
from tests.harness import ADMIN, KEY, Harness, alias, gateway
from tests.runs.following import answered, begin, data, idle, read, types, watch
from tests.runs.tools import slow, spy, use

SCRIPTED = alias("scripted", ("openai", "script"), retries=0)
PRICED = alias("scripted", ("openai", "gpt-5.2"), retries=0)
MAIL = {"type": "object", "properties": {"to": {"type": "string"}}, "required": ["to"]}


def asked(*tools: str, **agent: Any) -> dict[str, Any]:
    return {
        "agent": {"name": "helper", "model": "scripted", "tools": list(tools), **agent},
        "input": "go",
    }


def mailing(**agent: Any) -> dict[str, Any]:
    return asked("read", "mail", tool_policy={"mail": "approve"}, **agent)


async def mail_question(g: Harness, **agent: Any) -> tuple[str, dict[str, Any]]:
    """A run that waits for leave to send a mail, and its question."""
    g.simulator.script(
        "script", [[Call("read", "{}"), Call("mail", '{"to": "ann"}')], Say("done"), Say("more")]
    )
    run_id = await begin(g, mailing(**agent))
    await watch(g, run_id, until="run.waiting")
    (question,) = (await read(g, run_id))["interrupts"]
    return run_id, question


def outputs(g: Harness, turn: int) -> list[str]:
    body = g.simulator.log.of("script")[turn - 1].body
    return [item["output"] for item in body["input"] if item["type"] == "function_call_output"]


async def settle(g: Harness, run_id: str, *statuses: str, seconds: float = 10.0) -> dict[str, Any]:
    """The run once it has one of these statuses."""
    async with asyncio.timeout(seconds):
        while (run := await read(g, run_id))["status"] not in statuses:
            await asyncio.sleep(0.02)
    return run


# approvals


async def test_an_approval_shows_what_it_is_about(tmp_path: Path) -> None:
    async with gateway(tmp_path, SCRIPTED) as g:
        _, mail = tools(g)
        run_id, question = await mail_question(g)
        assert question["kind"] == "approval"
        assert question["arguments"] == {"to": "ann"}
        assert len(question["arguments_hash"]) == len(question["schema_hash"]) == 64
        assert question["default"] == "deny"
        assert not mail.calls
        tasks = (await g.get(f"/runs/{run_id}/tasks", key=KEY)).json()["data"]
        statuses = {t["name"]: t["status"] for t in tasks if t["kind"] == "tool"}
        assert statuses == {"read": "completed", "mail": "paused"}
        await asyncio.sleep(0.05)
        await idle(g)  # who waits holds nothing


async def test_an_approved_call_is_made_once_and_its_sibling_is_not_repeated(
    tmp_path: Path,
) -> None:
    async with gateway(tmp_path, SCRIPTED) as g:
        reads, mail = tools(g)
        run_id, question = await mail_question(g)
        answers = await asyncio.gather(
            *(answered(g, run_id, question["id"], action="approve") for _ in range(20))
        )
        assert Counter(a.status for a in answers) == {200: 20}
        await watch(g, run_id)
        assert (len(reads.calls), len(mail.calls)) == (1, 1)
        assert outputs(g, 2) == ["read done", "mail done"], "in the calls' order"
        assert len(g.simulator.log.of("script")) == 2, "no model turn twice"


async def test_of_contradicting_answers_the_first_wins(tmp_path: Path) -> None:
    async with gateway(tmp_path, SCRIPTED) as g:
        _, mail = tools(g)
        run_id, question = await mail_question(g)
        actions = ["approve", "deny"] * 5
        answers = await asyncio.gather(
            *(answered(g, run_id, question["id"], action=action) for action in actions)
        )
        won = {a for a, answer in zip(actions, answers, strict=True) if answer.status == 200}
        assert len(won) == 1
        assert Counter(answer.status for answer in answers) == {200: 5, 409: 5}
        await watch(g, run_id)
        assert len(mail.calls) == (won == {"approve"})


async def test_a_denial_reaches_the_model_with_its_reason(tmp_path: Path) -> None:
    async with gateway(tmp_path, SCRIPTED) as g:
        _, mail = tools(g)
        run_id, question = await mail_question(g)
        await answered(g, run_id, question["id"], action="deny", reason="not to ann")
        await watch(g, run_id)
        assert not mail.calls
        assert "not to ann" in outputs(g, 2)[1]


async def test_edited_arguments_are_what_the_tool_gets(tmp_path: Path) -> None:
    async with gateway(tmp_path, SCRIPTED) as g:
        _, mail = tools(g)
        run_id, question = await mail_question(g)
        bad = await answered(g, run_id, question["id"], action="edit", arguments={"to": 5})
        assert bad.status == 400
        good = await answered(g, run_id, question["id"], action="edit", arguments={"to": "bob"})
        assert good.status == 200
        again = await answered(g, run_id, question["id"], action="edit", arguments={"to": "bob"})
        assert again.status == 200
        other = await answered(g, run_id, question["id"], action="edit", arguments={"to": "eve"})
        assert other.status == 409
        await watch(g, run_id)
        assert mail.calls == [{"to": "bob"}]


async def test_an_answer_is_bound_to_the_arguments_shown(tmp_path: Path) -> None:
    async with gateway(tmp_path, SCRIPTED) as g:
        tools(g)
        run_id, question = await mail_question(g)
        stale = await answered(g, run_id, question["id"], action="approve", arguments_hash="0" * 64)
        assert stale.status == 409
        wrong = await answered(g, run_id, question["id"], action="top_up", budget={"usd": 1})
        assert wrong.status == 400
        unknown = await answered(g, run_id, "nothing", action="approve")
        assert unknown.status == 404
        right = {"action": "approve", "arguments_hash": question["arguments_hash"]}
        assert (await answered(g, run_id, question["id"], **right)).status == 200


async def test_each_of_two_approvals_is_answered_by_itself(tmp_path: Path) -> None:
    async with gateway(tmp_path, SCRIPTED) as g:
        clean, mail = spy("clean"), spy("mail")
        reads = spy("read")
        use(g, reads, clean, mail)
        calls = [Call(name, "{}") for name in ("read", "clean", "mail")]
        g.simulator.script("script", [calls, Say("done")])
        policy = {"clean": "approve", "mail": "approve"}
        run_id = await begin(g, asked("read", "clean", "mail", tool_policy=policy))
        await watch(g, run_id, until="run.waiting")
        questions = {q["tool"]: q["id"] for q in (await read(g, run_id))["interrupts"]}
        await answered(g, run_id, questions["mail"], action="deny", reason="no")
        await settle(g, run_id, "waiting")
        await answered(g, run_id, questions["clean"], action="approve")
        await watch(g, run_id)
        assert (len(reads.calls), len(clean.calls), len(mail.calls)) == (1, 1, 0)
        assert len(outputs(g, 2)) == 3
        assert outputs(g, 2)[:2] == ["read done", "clean done"]


@pytest.mark.parametrize(("default", "sent"), [("deny", 0), ("approve", 1)])
async def test_an_unanswered_approval_has_its_default(
    tmp_path: Path, default: str, sent: int
) -> None:
    async with gateway(tmp_path, SCRIPTED) as g:
        _, mail = tools(g)
        run_id, question = await mail_question(g, approvals={"expires_in": 1, "default": default})
        events = await watch(g, run_id)
        assert types(events)[-1] == "run.completed"
        assert len(mail.calls) == sent
        late = await answered(g, run_id, question["id"], action="approve")
        assert late.status == 409


@pytest.mark.parametrize(("default", "sent"), [("deny", 0), ("approve", 1)])
async def test_an_answer_that_comes_late_is_none_even_if_nobody_has_noticed_yet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, default: str, sent: int
) -> None:
    """The supervisor looks twice a second, and not at all while every process is down."""
    monkeypatch.setattr(supervisor, "TICK", 60.0)
    async with gateway(tmp_path, SCRIPTED) as g:
        _, mail = tools(g)
        run_id, question = await mail_question(g, approvals={"expires_in": 1, "default": default})
        await asyncio.sleep(1.1)
        action = "approve" if default == "deny" else "deny"
        late = await answered(g, run_id, question["id"], action=action)
        assert late.status == 409
        g.state.runs.supervisor.nudge()
        events = await watch(g, run_id)
        assert types(events)[-1] == "run.completed"
        assert types(events).count("approval.expired") == 1
        assert len(mail.calls) == sent


async def test_of_a_cancel_and_an_answer_one_ends_the_run(tmp_path: Path) -> None:
    async with gateway(tmp_path) as g:
        await race(g, g)


async def race(worker: Harness, other: Harness) -> None:
    """Cancels, each asked for thrice, that come anywhere between a run's beginning and its end."""

    async def one(seconds: float) -> str:
        run_id = await begin(worker, {"agent": {"model": "m-openai"}, "input": "hello"})
        await asyncio.sleep(seconds)
        reading = asyncio.create_task(watch(other, run_id))
        asked = (g.post(f"/runs/{run_id}/cancel", {}) for g in (worker, other, worker))
        answers = {answer.status for answer in await asyncio.gather(*asked)}
        events = await reading
        assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
        (end,) = (type for type in types(events) if type in ("run.completed", "run.cancelled"))
        assert types(events)[-1] == end
        assert answers == {200 if end == "run.cancelled" else 409}
        assert await read(worker, run_id) == await read(other, run_id)
        return end

    ends: list[str] = []
    for batch in range(4):
        pauses = [0.0, *(0.02 * 1.16 ** (batch + 4 * n) for n in range(8))]  # to 1.3 s
        ends += await asyncio.gather(*map(one, pauses))
    assert len(set(ends)) == 2, "neither always wins"


async def test_a_changed_tool_voids_the_approval(tmp_path: Path) -> None:
    async with gateway(tmp_path, SCRIPTED) as g:
        tools(g)
        run_id, question = await mail_question(g)
        reads, mail = spy("read"), spy("mail", parameters=MAIL, description="Sends it at once.")
        use(g, reads, mail)
        asked_at = (await read(g, run_id))["last_seq"]
        await answered(g, run_id, question["id"], action="approve")
        events = await watch(g, run_id, until="run.waiting", after=asked_at)
        assert not mail.calls
        (again,) = (await read(g, run_id))["interrupts"]
        assert again["id"] != question["id"]
        assert again["schema_hash"] != question["schema_hash"]
        assert [d["reason"] for d in data(events, "approval.expired")] == ["schema_changed"]
        await answered(g, run_id, again["id"], action="approve")
        await watch(g, run_id)
        assert len(mail.calls) == 1


@pytest.mark.parametrize(
    ("answer", "status", "made", "told"),
    [
        ({"action": "rerun"}, "completed", 2, "charge done"),
        ({"action": "result", "content": "it was paid"}, "completed", 1, "it was paid"),
        ({"action": "error", "reason": "it was not paid"}, "completed", 1, "it was not paid"),
        ({"action": "fail"}, "failed", 1, None),
    ],
)
async def test_a_call_that_may_have_taken_effect_waits_for_a_person(
    tmp_path: Path, answer: dict[str, Any], status: str, made: int, told: str | None
) -> None:
    lost = asyncio.Event()

    async def cut(arguments: Any, context: Any) -> str:
        if not lost.is_set():
            lost.set()
            await asyncio.sleep(60)
        return "charge done"

    async with gateway(tmp_path, SCRIPTED) as g:
        charge = spy("charge", cut)
        use(g, charge)
        g.simulator.script("script", [Call("charge", "{}"), Say("done")])
        run_id = await begin(g, asked("charge"))
        await lost.wait()
        g.state.runs.supervisor._work[run_id].cancel()  # as if its worker had died
        events = await watch(g, run_id, until="run.waiting")
        assert events[-1]["data"]["for"] == "in_doubt"
        (question,) = (await read(g, run_id))["interrupts"]
        assert (question["kind"], question["tool"]) == ("in_doubt", "charge")
        assert len(charge.calls) == 1, "nothing is made again unasked"
        assert (await answered(g, run_id, question["id"], **answer)).status == 200
        assert (await answered(g, run_id, question["id"], **answer)).status == 200, "once more"
        run = await settle(g, run_id, "completed", "failed")
        assert run["status"] == status
        assert len(charge.calls) == made
        assert len(set(charge.keys)) == 1, "the tool can tell that it is the same call"
        if told is not None:
            (output,) = outputs(g, 2)
            assert told in output


async def test_another_project_s_run_is_not_there(tmp_path: Path) -> None:
    async with gateway(tmp_path, SCRIPTED) as g:
        tools(g)
        run_id, question = await mail_question(g)
        wanted = {"name": "other", "project": "other"}
        other = (await g.post("/admin/keys", wanted, key=ADMIN)).json()["key"]
        for path in ("", "/events", "/tasks"):
            assert (await g.get(f"/runs/{run_id}{path}", key=other)).status == 404
        for path in ("cancel", "pause", "resume", "budget", f"interrupts/{question['id']}"):
            body = {"action": "approve"} if "interrupts" in path else {"tokens": 1}
            assert (await g.post(f"/runs/{run_id}/{path}", body, key=other)).status == 404
        assert (await g.post(f"/runs/{run_id}/stream-tokens", {}, key=other)).status == 404
        assert (await g.get("/runs", key=other)).json()["data"] == []


# cancel


async def test_a_cancel_stops_the_provider_and_the_tools(tmp_path: Path) -> None:
    paced = alias("scripted", ("openai", "paced-2000-20"), retries=0)
    async with gateway(tmp_path, paced) as g:
        run_id = await begin(g, asked())
        await watch(g, run_id, until="message.delta")
        for _ in range(2):
            assert (await g.post(f"/runs/{run_id}/cancel", {})).status == 200
        events = await watch(g, run_id, seconds=10)
        assert types(events)[-1] == "run.cancelled"
        assert types(events).count("run.cancelled") == 1
        attempt = g.simulator.log[0]
        await asyncio.wait_for(attempt.ended.wait(), 2)
        assert attempt.disconnected is not None
        run = await read(g, run_id)
        assert run["output"]["text"].startswith("w0 ")
        assert run["usage"]["input_tokens"] > 0, "what was used is billed"
        assert (await g.post(f"/runs/{run_id}/cancel", {})).status == 200, "again is fine"


async def test_a_cancel_leaves_a_transcript_that_is_valid(tmp_path: Path) -> None:
    async with gateway(tmp_path, SCRIPTED) as g:
        use(g, spy("slow", slow(30)), spy("mail"))
        g.simulator.script("script", [[Call("slow", "{}"), Call("mail", "{}")], Say("go on")])
        run_id = await begin(g, asked("slow", "mail", tool_policy={"mail": "approve"}))
        await watch(g, run_id, until="tool.intent")
        await g.post(f"/runs/{run_id}/cancel", {})
        events = await watch(g, run_id, seconds=10)
        assert types(events)[-1] == "run.cancelled"
        assert [d["kind"] for d in data(events, "tool.failed")] == ["cancelled"]
        assert len(data(events, "tool.skipped")) == 1
        late = await answered(g, run_id, f"approval_{data(events, 'tool.skipped')[0]['call_id']}",
                              action="approve")  # fmt: skip
        assert late.status == 409
        after = {"agent": {"model": "scripted"}, "input": "and?", "previous_run_id": run_id}
        next_id = await begin(g, after)
        assert types(await watch(g, next_id))[-1] == "run.completed"
        assert len(outputs(g, 2)) == 2, "each call has its result"


async def test_a_cancel_is_heard_whenever_it_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here between a worker's own writing and its next look, after which nothing is to be done
    for long but to wait."""
    async with gateway(tmp_path) as g:
        use(g, spy("quick"), spy("long", slow(20)))
        store = g.state.store
        add = store.add_run_events

        async def add_run_events(addition: Any) -> bool:
            written = bool(await add(addition))
            if any(event.type == "node.finished" for event in addition.events):
                await g.post(f"/runs/{addition.run_id}/cancel", {})
            return written

        monkeypatch.setattr(store, "add_run_events", add_run_events)
        nodes = {name: {"kind": "tool", "tool": name} for name in ("quick", "long")}
        body = {"workflow": {"nodes": nodes, "output": {"from": "/nodes/long"}}}
        run_id = await begin(g, body)
        events = await watch(g, run_id, seconds=5)
        assert types(events)[-1] == "run.cancelled"


async def test_a_tool_that_will_not_stop_is_given_up(tmp_path: Path) -> None:
    released = asyncio.Event()

    async def stubborn(arguments: Any, context: Any) -> str:
        while not released.is_set():
            try:
                await released.wait()
            except asyncio.CancelledError:
                continue
        return "too late"

    async with gateway(tmp_path, SCRIPTED) as g:
        g.state.runs.supervisor.grace = 0.2
        use(g, spy("stubborn", stubborn))
        g.simulator.script("script", [Call("stubborn", "{}"), Say("never")])
        run_id = await begin(g, asked("stubborn"))
        await watch(g, run_id, until="tool.intent")
        await g.post(f"/runs/{run_id}/cancel", {})
        try:
            events = await watch(g, run_id, seconds=5)
        finally:
            released.set()
        assert types(events)[-1] == "run.cancelled"
        await asyncio.sleep(0.1)
        assert await watch(g, run_id) == events, "what came late is not heard"


async def test_a_waiting_a_paused_and_a_queued_run_can_be_cancelled(tmp_path: Path) -> None:
    async with gateway(tmp_path, SCRIPTED) as g:
        tools(g)
        run_id, _ = await mail_question(g)
        await g.post(f"/runs/{run_id}/cancel", {})
        assert (await settle(g, run_id, "cancelled"))["interrupts"] == []
        run_id, _ = await mail_question(g)
        await g.post(f"/runs/{run_id}/pause", {})
        assert (await read(g, run_id))["status"] == "paused"
        await g.post(f"/runs/{run_id}/cancel", {})
        await settle(g, run_id, "cancelled")


async def test_a_cancelled_parent_ends_its_child(tmp_path: Path) -> None:
    other = alias("other", ("chat", "paced-2000-20"), retries=0)
    async with gateway(tmp_path, SCRIPTED, other) as g:
        g.simulator.script("script", [Call("agent_expert", '{"input": "dig"}'), Say("never")])
        expert = {"name": "expert", "model": "other"}
        run_id = await begin(g, asked("agent:expert") | {"agents": [expert]})
        (intent,) = data(await watch(g, run_id, until="tool.intent"), "tool.intent")
        child = intent["child_run_id"]
        while (await g.get(f"/runs/{child}", key=KEY)).status == 404:
            await asyncio.sleep(0.01)  # the intent stands before the effect
        await watch(g, child, until="message.delta")
        await g.post(f"/runs/{run_id}/cancel", {})
        events = await watch(g, run_id, seconds=5)
        assert types(events)[-1] == "run.cancelled"
        assert (await read(g, child))["status"] == "cancelled"
        attempt = g.simulator.log.of("paced-2000-20")[0]
        await asyncio.wait_for(attempt.ended.wait(), 2)
        assert attempt.disconnected is not None


async def test_approvals_take_effect_whatever_the_collector_does(tmp_path: Path) -> None:
    async with gateway(tmp_path, SCRIPTED) as g:
        tools(g)
        for _ in range(5):
            run_id, question = await mail_question(g)
            await answered(g, run_id, question["id"], action="approve")
            gc.collect()
            assert types(await watch(g, run_id))[-1] == "run.completed"


# pause


async def test_a_pause_takes_effect_at_the_step_s_border(tmp_path: Path) -> None:
    async with gateway(tmp_path, SCRIPTED) as g:
        tool = spy("slow", slow(0.3))
        use(g, tool)
        g.simulator.script("script", [Call("slow", "{}"), Say("done")])
        run_id = await begin(g, asked("slow"))
        await watch(g, run_id, until="tool.intent")
        asked_for = await g.post(f"/runs/{run_id}/pause", {})
        assert (asked_for.json()["status"], asked_for.json()["pausing"]) == ("running", True)
        run = await settle(g, run_id, "paused")
        assert run["pausing"] is False
        assert (len(tool.calls), len(g.simulator.log.of("script"))) == (1, 1)
        assert (await g.post(f"/runs/{run_id}/pause", {})).status == 200
        assert (await g.post(f"/runs/{run_id}/resume", {})).status == 200
        events = await watch(g, run_id)
        told = types(events)
        assert told.index("tool.completed") < told.index("run.paused") < told.index("run.resumed")
        assert told[-1] == "run.completed"
        assert (len(tool.calls), len(g.simulator.log.of("script"))) == (1, 2)
        assert (await g.post(f"/runs/{run_id}/pause", {})).status == 409


async def test_a_paused_run_takes_answers_and_waits_for_its_resume(tmp_path: Path) -> None:
    async with gateway(tmp_path, SCRIPTED) as g:
        _, mail = tools(g)
        run_id, question = await mail_question(g)
        assert (await g.post(f"/runs/{run_id}/resume", {})).status == 409
        await g.post(f"/runs/{run_id}/pause", {})
        await answered(g, run_id, question["id"], action="approve")
        await asyncio.sleep(0.2)
        assert not mail.calls
        await g.post(f"/runs/{run_id}/resume", {})
        await watch(g, run_id)
        assert len(mail.calls) == 1


async def test_a_run_asked_to_pause_that_comes_to_a_question_is_paused(tmp_path: Path) -> None:
    async with gateway(tmp_path, SCRIPTED) as g:
        read_slowly, mail = spy("read", slow(0.3)), spy("mail")
        use(g, read_slowly, mail)
        g.simulator.script(
            "script", [[Call("read", "{}"), Call("mail", '{"to": "ann"}')], Say("done")]
        )
        run_id = await begin(g, mailing())
        await watch(g, run_id, until="tool.intent")
        asked_for = await g.post(f"/runs/{run_id}/pause", {})
        assert (asked_for.json()["status"], asked_for.json()["pausing"]) == ("running", True)
        run = await settle(g, run_id, "paused")
        await answered(g, run_id, run["interrupts"][0]["id"], action="approve")
        await asyncio.sleep(0.2)
        assert not mail.calls
        await g.post(f"/runs/{run_id}/resume", {})
        assert types(await watch(g, run_id))[-1] == "run.completed"
        assert len(mail.calls) == 1


async def test_a_pause_is_heard_by_a_run_that_begins_to_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with gateway(tmp_path, SCRIPTED) as g:
        released = asyncio.Event()

        async def until_released(arguments: Any, context: Any) -> str:
            await released.wait()
            return "read"

        use(g, spy("read", until_released), spy("mail"))
        g.simulator.script("script", [[Call("read", "{}"), Call("mail", '{"to": "ann"}')]])
        run_id = await begin(g, mailing())
        await watch(g, run_id, until="tool.intent")
        store = g.state.store
        told = store.set_pausing

        async def late(run_id: str, pausing: bool) -> None:
            released.set()
            await settle(g, run_id, "waiting")
            await told(run_id, pausing)

        monkeypatch.setattr(store, "set_pausing", late)
        paused = await g.post(f"/runs/{run_id}/pause", {})
        assert (paused.json()["status"], paused.json()["pausing"]) == ("paused", False)


async def test_a_pause_that_has_not_come_about_is_taken_back(tmp_path: Path) -> None:
    async with gateway(tmp_path, SCRIPTED) as g:
        tool = spy("slow", slow(0.3))
        use(g, tool)
        g.simulator.script("script", [Call("slow", "{}"), Say("done")])
        run_id = await begin(g, asked("slow"))
        await watch(g, run_id, until="tool.intent")
        await g.post(f"/runs/{run_id}/pause", {})
        taken_back = await g.post(f"/runs/{run_id}/resume", {})
        assert (taken_back.status, taken_back.json()["pausing"]) == (200, False)
        events = types(await watch(g, run_id))
        assert events[-1] == "run.completed"
        assert "run.paused" not in events


# budgets


async def test_an_exhausted_budget_is_incomplete_and_says_which(tmp_path: Path) -> None:
    async with gateway(tmp_path, SCRIPTED) as g:
        use(g, spy("t"))
        g.simulator.script("script", [Call("t", "{}"), Say("never")])
        body = asked("t") | {"budget": {"tokens": 20}, "input": "go " * 20}
        run_id = await begin(g, body)
        events = await watch(g, run_id)
        run = await read(g, run_id)
        assert (run["status"], run["reason"]) == ("incomplete", "budget")
        (gone,) = data(events, "budget.exhausted")
        assert gone["which"] == "tokens"
        assert gone["used"] >= gone["limit"] == 20


async def test_a_budget_of_nothing_lets_nothing_through(tmp_path: Path) -> None:
    async with gateway(tmp_path, PRICED) as g:
        run_id = await begin(g, asked() | {"budget": {"usd": 0}})
        await watch(g, run_id)
        assert (await read(g, run_id))["reason"] == "budget"
        assert len(g.simulator.log) == 0


async def test_tool_calls_are_counted_and_none_too_many_is_made(tmp_path: Path) -> None:
    async with gateway(tmp_path, SCRIPTED) as g:
        tool = spy("t")
        use(g, tool)
        g.simulator.script("script", [[Call("t", "{}")] * 3, Say("never")])
        run_id = await begin(g, asked("t") | {"budget": {"tool_calls": 2}})
        events = await watch(g, run_id)
        run = await read(g, run_id)
        assert (run["status"], run["reason"], len(tool.calls)) == ("incomplete", "budget", 2)
        assert len(data(events, "budget.threshold")) == 0
        assert [row["outcome"] for row in run["trace"]] == ["completed", "completed", "skipped"]


@pytest.mark.parametrize(("calls", "reason"), [(0, None), (1, None), (2, "budget")])
async def test_the_last_allowed_call_can_still_be_answered(
    tmp_path: Path, calls: int, reason: str | None
) -> None:
    """A budget of calls stands against one call too many, not against the turn that needs none."""
    async with gateway(tmp_path, SCRIPTED) as g:
        use(g, spy("t"))
        g.simulator.script("script", [*([Call("t", "{}")] * calls), Say("done")])
        run_id = await begin(g, asked("t") | {"budget": {"tool_calls": min(calls, 1)}})
        await watch(g, run_id)
        run = await read(g, run_id)
        assert (run["status"], run["reason"]) == ("incomplete" if reason else "completed", reason)


async def test_a_run_can_wait_for_more_budget(tmp_path: Path) -> None:
    async with gateway(tmp_path, SCRIPTED) as g:
        tool = spy("t")
        use(g, tool)
        g.simulator.script("script", [[Call("t", "{}")] * 3, Say("done")])
        body = asked("t") | {"budget": {"tool_calls": 1}, "on_budget": "wait"}
        run_id = await begin(g, body)
        events = await watch(g, run_id, until="run.waiting")
        assert events[-1]["data"]["for"] == "budget"
        (question,) = (await read(g, run_id))["interrupts"]
        for _ in range(2):
            more = await answered(
                g, run_id, question["id"], action="top_up", budget={"tool_calls": 1}
            )
            assert more.status == 200
        run = await settle(g, run_id, "waiting")
        assert len(tool.calls) == 2, "the same answer twice adds once"
        headers = {"idempotency-key": "more"}
        for _ in range(2):
            more = await g.post(f"/runs/{run_id}/budget", {"tool_calls": 5}, headers=headers)
            assert more.status == 200
        events = await watch(g, run_id)
        assert types(events)[-1] == "run.completed"
        assert len(tool.calls) == 3
        run_id = await begin(g, body)
        g.simulator.script("script", [[Call("t", "{}")] * 3, Say("done")])
        await watch(g, run_id, until="run.waiting")
        (question,) = (await read(g, run_id))["interrupts"]
        await answered(g, run_id, question["id"], action="stop")
        run = await settle(g, run_id, "incomplete")
        assert run["reason"] == "budget"


async def test_the_deadline_stops_what_is_under_way(tmp_path: Path) -> None:
    async with gateway(tmp_path, SCRIPTED) as g:
        use(g, spy("slow", slow(30)))
        g.simulator.script("script", [Call("slow", "{}"), Say("never")])
        run_id = await begin(g, asked("slow") | {"budget": {"seconds": 1.5}})
        events = await watch(g, run_id, seconds=10)
        run = await read(g, run_id)
        assert (run["status"], run["reason"]) == ("incomplete", "deadline")
        assert [d["kind"] for d in data(events, "tool.failed")] == ["cancelled"]


async def test_thresholds_are_told_once(tmp_path: Path) -> None:
    async with gateway(tmp_path, SCRIPTED) as g:
        use(g, spy("t"))
        g.simulator.script("script", [Call("t", "{}")] * 4 + [Say("done")])
        run_id = await begin(g, asked("t") | {"budget": {"tool_calls": 5}})
        events = await watch(g, run_id)
        told = [(d["which"], d["share"]) for d in data(events, "budget.threshold")]
        assert told == [("tool_calls", 0.5), ("tool_calls", 0.8)]


async def test_a_revoked_key_s_run_ends(tmp_path: Path) -> None:
    async with gateway(tmp_path, SCRIPTED) as g:
        use(g, spy("slow", slow(0.5)))
        g.simulator.script("script", [Call("slow", "{}"), Say("never")])
        made = (await g.post("/admin/keys", {"name": "short"}, key=ADMIN)).json()
        begun = await g.post("/runs", asked("slow"), key=made["key"])
        run_id = begun.json()["id"]
        await watch(g, run_id, until="tool.intent")
        async with g.http.delete(
            f"{g.url}/admin/keys/{made['id']}", headers={"authorization": f"Bearer {ADMIN}"}
        ) as gone:
            assert gone.status == 200
        await watch(g, run_id)
        run = await read(g, run_id)
        assert (run["status"], run["error"]["kind"]) == ("failed", "forbidden")
        assert len(g.simulator.log.of("script")) == 1
        assert made["key"] not in json.dumps(run)


def tools(g: Harness) -> tuple[Any, Any]:
    reads, mail = spy("read"), spy("mail", parameters=MAIL)
    use(g, reads, mail)
    return reads, mail
