"""The agent loop over HTTP: what goes to tools, what goes back to the model, how it ends."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from adapters.simulator import Call, Say
from adapters.simulator.words import Answer as Spoken
from tests.harness import Harness, alias, gateway
from tests.runs.following import answered, begin, data, idle, read, types, watch
from tests.runs.tools import slow, spy, use

ADD = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
    "required": ["a"],
    "additionalProperties": False,
}

SCRIPTED = alias("scripted", ("openai", "script"), retries=0)


def asked(*tools: str, **agent: Any) -> dict[str, Any]:
    return {
        "agent": {"name": "helper", "model": "scripted", "tools": list(tools), **agent},
        "input": "go",
    }


def outputs(g: Harness, turn: int) -> list[dict[str, Any]]:
    """The tool outputs that the model's ``turn``-th request held."""
    body = g.simulator.log.of("script")[turn - 1].body
    return [item for item in body["input"] if item["type"] == "function_call_output"]


async def ended(g: Harness, body: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    run_id = await begin(g, body)
    events = await watch(g, run_id)
    return await read(g, run_id), events


async def test_parallel_calls_run_together_and_answer_in_the_calls_order(tmp_path: Path) -> None:
    both = asyncio.Barrier(2)

    async def slow(arguments: Any, context: Any) -> str:
        await both.wait()  # for ever, if they came one after the other
        await asyncio.sleep(0.2)
        return "slow but done"

    async with gateway(tmp_path, SCRIPTED) as g:
        use(g, spy("slow", slow), spy("quick"))
        calls = [Call("slow", "{}"), Call("quick", "{}"), Call("slow", "{}")]
        g.simulator.script("script", [calls, Say("done")])
        run, events = await ended(g, asked("slow", "quick"))
        assert run["status"] == "completed"
        order = [d["call_id"] for d in data(events, "tool.requested")]
        assert data(events, "tool.completed")[0]["call_id"] == order[1]
        assert [o["call_id"] for o in outputs(g, 2)] == order


@pytest.mark.parametrize(
    ("raw", "runs"),
    [
        ('{"a":1', False),
        ('{"{"a":1}', False),
        ("[1]", False),
        ("null", False),
        ('"x"', False),
        ("", False),
        ('{"a":"not-int"}', False),
        ('{"a":1,"extra":2}', False),
        ('{"a":1}{"a":2}', False),
        ('{"a":1,"a":2}', False),
        ('{"a":NaN}', False),
        ("x" * 200_000, False),
        ('{"a":1}', True),
    ],
)
async def test_only_sound_arguments_reach_a_tool(tmp_path: Path, raw: str, runs: bool) -> None:
    async with gateway(tmp_path, SCRIPTED) as g:
        add, other = spy("add", parameters=ADD), spy("other")
        use(g, add, other)
        g.simulator.script("script", [[Call("add", raw), Call("other", "")], Say("done")])
        run, events = await ended(g, asked("add", "other"))
        assert run["status"] == "completed"
        assert len(add.calls) == runs
        assert other.calls == [{}], "a sibling runs, and blank is no arguments"
        if not runs:
            (failed,) = data(events, "tool.failed")
            assert failed["kind"] == "invalid_arguments"
            assert len(json.dumps(failed)) < 1_500
            assert len(outputs(g, 2)) == 2


async def test_an_unknown_tool_a_raising_one_and_a_slow_one_are_error_results(
    tmp_path: Path,
) -> None:
    async def broken(arguments: Any, context: Any) -> str:
        raise RuntimeError("a secret text")

    async with gateway(tmp_path, SCRIPTED) as g:
        use(g, spy("broken", broken), spy("slow", slow(30), timeout=0.05), spy("good"))
        calls = [Call(name, "{}") for name in ("nowhere", "broken", "slow", "good")]
        g.simulator.script("script", [calls, Say("done")])
        run, events = await ended(g, asked("broken", "slow", "good"))
        assert run["status"] == "completed"
        kinds = {d["kind"] for d in data(events, "tool.failed")}
        assert kinds == {"unknown_tool", "raised", "timeout"}
        assert "secret" not in json.dumps(events)
        assert len(outputs(g, 2)) == 4


async def test_faulty_turns_in_a_row_end_the_run(tmp_path: Path) -> None:
    async with gateway(tmp_path, SCRIPTED) as g:
        use(g, spy("add", parameters=ADD))
        g.simulator.script("script", [Call("add", "[]")] * 9)
        run, events = await ended(g, asked("add", max_turns=9))
        assert (run["status"], run["reason"]) == ("failed", "invalid_tool_calls")
        assert len(data(events, "model.finished")) == 3


async def test_max_turns_is_incomplete_with_what_was_made(tmp_path: Path) -> None:
    async with gateway(tmp_path, SCRIPTED) as g:
        use(g, spy("more"))
        g.simulator.script("script", [(Say("so far"), Call("more", "{}"))] * 5)
        run, _ = await ended(g, asked("more", max_turns=2))
        assert (run["status"], run["reason"]) == ("incomplete", "max_turns")
        assert run["output"]["text"] == "so far"
        assert [row["outcome"] for row in run["trace"]] == ["completed", "completed"]


@pytest.mark.parametrize(
    ("spoken", "reason"),
    [
        (Spoken(), "output_unparsable"),
        (Spoken((Say("cut"),), stop="length"), "output_truncated"),
    ],
)
async def test_no_answer_is_no_success(tmp_path: Path, spoken: Spoken, reason: str) -> None:
    async with gateway(tmp_path, SCRIPTED) as g:
        g.simulator.script("script", [spoken])
        run, _ = await ended(g, asked())
        assert (run["status"], run["reason"]) == ("failed", reason)
        assert run["error"]["message"]


async def test_a_provider_that_fails_fails_the_run_with_its_cause(tmp_path: Path) -> None:
    down = alias("scripted", ("openai", "fault-status-500"), retries=1)
    async with gateway(tmp_path, down) as g:
        run, events = await ended(g, asked())
        assert (run["status"], run["reason"]) == ("failed", "model")
        assert run["error"]["kind"] == "upstream_server"
        assert len(data(events, "model.attempt_failed")) == 3, "two tries, and the end"


async def test_failover_is_told(tmp_path: Path) -> None:
    two = alias("scripted", ("openai", "fault-status-500"), ("chat", "echo"), retries=0)
    async with gateway(tmp_path, two) as g:
        run, events = await ended(g, asked())
        assert run["status"] == "completed"
        (failed,) = data(events, "model.attempt_failed")
        assert failed["deployment"] == "openai/fault-status-500"
        assert data(events, "model.failover") == [
            {"from": "openai/fault-status-500", "to": "chat/echo"}
        ]


async def test_an_output_schema_holds_and_repairs_are_told(tmp_path: Path) -> None:
    schema = {
        "type": "object",
        "properties": {"n": {"type": "integer"}},
        "required": ["n"],
        "additionalProperties": False,
    }
    async with gateway(tmp_path, SCRIPTED) as g:
        g.simulator.script("script", [Say('{"n": "one"}'), Say('{"n": 1}')])
        run, events = await ended(g, asked(output_schema=schema))
        assert run["status"] == "completed"
        assert run["output"]["value"] == {"n": 1}
        assert len(data(events, "schema.invalid")) == 1
        assert len(data(events, "schema.repaired")) == 1
        g.simulator.script("script", [Say('{"n": "one"}')] * 5)
        run, events = await ended(g, asked(output_schema=schema))
        assert (run["status"], run["error"]["kind"]) == ("failed", "output_invalid")
        assert len(data(events, "schema.gave_up")) == 1


async def test_repeated_call_ids_of_a_server_are_told_apart(tmp_path: Path) -> None:
    async with gateway(tmp_path, SCRIPTED) as g:
        tool = spy("t")
        use(g, tool)
        call = Call("t", "{}", id="call_0")
        g.simulator.script("script", [call, call, Say("done")])
        run, _ = await ended(g, asked("t"))
        assert run["status"] == "completed"
        assert len(tool.calls) == 2
        assert len(set(tool.keys)) == 2
        assert [o["call_id"] for o in outputs(g, 3)] == ["call_0", "call_0-2"]


async def test_a_handover_gives_the_conversation_to_another_agent(tmp_path: Path) -> None:
    other = alias("other", ("anthropic", "other"), retries=0)
    async with gateway(tmp_path, SCRIPTED, other) as g:
        g.simulator.script("script", [Call("transfer_to_billing", "{}")])
        g.simulator.script("other", [Say("billing speaks")])
        billing = {"name": "billing", "model": "other", "instructions": "You do bills."}
        body = asked(handoffs=["billing"]) | {"agents": [billing]}
        run, events = await ended(g, body)
        assert run["status"] == "completed"
        assert run["current_agent"] == "billing"
        assert [e["agent"] for e in events if e["type"] == "agent.started"] == ["helper", "billing"]
        outcomes = [
            (e["agent"], e["data"]["outcome"]) for e in events if e["type"] == "agent.finished"
        ]
        assert outcomes == [("helper", "handed_over"), ("billing", "answered")]
        asked_of_other = g.simulator.log.of("other")[0].body
        assert "You do bills." in json.dumps(asked_of_other["system"])
        assert "go" in json.dumps(asked_of_other["messages"]), "the conversation went along"


async def test_two_handovers_in_one_turn_are_one(tmp_path: Path) -> None:
    async with gateway(tmp_path, SCRIPTED) as g:
        calls = [Call("transfer_to_a", "{}"), Call("transfer_to_b", "{}")]
        g.simulator.script("script", [calls, Say("a speaks")])
        agents = [{"name": name, "model": "scripted"} for name in "ab"]
        run, events = await ended(g, asked(handoffs=["a", "b"]) | {"agents": agents})
        assert (run["status"], run["current_agent"]) == ("completed", "a")
        assert [d["reason"] for d in data(events, "tool.skipped")] == ["superseded"]


async def test_the_contract_is_kept_by_program(tmp_path: Path) -> None:
    rules = ["require look before act", "at_most 1 act"]
    async with gateway(tmp_path, SCRIPTED) as g:
        look, act = spy("look"), spy("act")
        use(g, look, act)
        turns = [
            [Call("act", "{}"), Call("look", "{}")],
            [Call("act", "{}"), Call("act", "{}")],
            Say("done"),
        ]
        g.simulator.script("script", turns)
        run, events = await ended(g, asked("look", "act", contract=rules))
        assert run["status"] == "completed"
        assert (len(look.calls), len(act.calls)) == (1, 1)
        broken = [d["rule"]["kind"] for d in data(events, "contract.violated")]
        assert broken == ["require", "at_most"]
        assert "after look" in outputs(g, 2)[0]["output"]
        strict = [{"rule": rules[0], "on_violation": "fail"}]
        g.simulator.script("script", turns)
        run, _ = await ended(g, asked("look", "act", contract=strict))
        assert (run["status"], run["reason"]) == ("failed", "contract")
        assert "act may only be called after look" in run["error"]["message"]
        assert (len(look.calls), len(act.calls)) == (1, 1), "nothing was done"


async def test_claims_cite_calls_or_are_assumptions(tmp_path: Path) -> None:
    rule = "claims cite tool call ids or are marked as assumptions"
    async with gateway(tmp_path, SCRIPTED) as g:
        use(g, spy("look"))
        turns = [
            Call("look", "{}", id="call_a"),
            Say("It is so.\nIt is [call_b]."),
            Say("It is [call_a].\nIt may be. [assumption]"),
        ]
        g.simulator.script("script", turns)
        run, events = await ended(g, asked("look", contract=[rule]))
        assert run["status"] == "completed"
        assert len(data(events, "contract.violated")) == 1
        assert outputs(g, 2)[0]["output"].startswith("[call_a]")
        assert "[assumption]" in json.dumps(g.simulator.log.of("script")[2].body["input"][-1])


async def test_an_answer_that_is_refused_again_and_again_ends_the_run(tmp_path: Path) -> None:
    rule = "claims cite tool call ids or are marked as assumptions"
    async with gateway(tmp_path, SCRIPTED) as g:
        g.simulator.script("script", [Say("It is so.")] * 9)
        run, events = await ended(g, asked(contract=[rule]))
        assert (run["status"], run["reason"]) == ("failed", "contract")
        assert len(data(events, "model.finished")) == 3
        assert run["output"]["text"] == "It is so.", "what was made is there"


async def test_an_earlier_conversation_goes_on(tmp_path: Path) -> None:
    async with gateway(tmp_path, SCRIPTED) as g:
        g.simulator.script("script", [Say("first answer"), Say("second answer")])
        first, _ = await ended(g, asked())
        body = asked() | {"input": "and now?", "previous_run_id": first["id"]}
        await ended(g, body)
        said = json.dumps(g.simulator.log.of("script")[1].body["input"])
        assert said.index("go") < said.index("first answer") < said.index("and now?")


async def test_client_tools_are_done_by_the_caller(tmp_path: Path) -> None:
    async with gateway(tmp_path, SCRIPTED) as g:
        g.simulator.script("script", [Call("screen", '{"n": 1}'), Say("seen")])
        body = asked()
        body["agent"]["tools"] = [{"name": "screen", "parameters": {"type": "object"}}]
        run_id = await begin(g, body)
        events = await watch(g, run_id, until="run.waiting")
        assert events[-1]["data"]["for"] == "input"
        (question,) = (await read(g, run_id))["interrupts"]
        assert (question["kind"], question["arguments"]) == ("input", {"n": 1})
        empty = await answered(g, run_id, question["id"], action="result")
        assert empty.status == 400
        for _ in range(2):
            done = await answered(g, run_id, question["id"], action="result", content="a cat")
            assert done.status == 200
        other = await answered(g, run_id, question["id"], action="result", content="a dog")
        assert other.status == 409
        await watch(g, run_id)
        assert outputs(g, 2)[0]["output"] == "a cat"
        assert (await read(g, run_id))["status"] == "completed"


async def test_progress_and_caps(tmp_path: Path) -> None:
    async def work(arguments: Any, context: Any) -> str:
        context.progress("half", 0.5)
        await asyncio.sleep(0.05)
        return "x" * 500

    async with gateway(tmp_path, SCRIPTED) as g:
        use(g, spy("t", work, output_cap=100))
        g.simulator.script("script", [Call("t", "{}"), Say("done")])
        _, events = await ended(g, asked("t"))
        assert data(events, "tool.progress")[0]["message"] == "half"
        (done,) = data(events, "tool.completed")
        assert done["truncated"] is True
        assert len(done["content"][0]["text"]) <= 100


async def test_another_agent_is_a_tool_with_its_own_ledger(tmp_path: Path) -> None:
    other = alias("other", ("chat", "other"), retries=0)
    async with gateway(tmp_path, SCRIPTED, other) as g:
        deep = spy("deep")
        use(g, deep)
        g.simulator.script("script", [Call("agent_expert", '{"input": "dig"}'), Say("done")])
        g.simulator.script("other", [Call("deep", "{}"), Say("found it")])
        expert = {"name": "expert", "model": "other", "tools": ["deep"]}
        run, events = await ended(g, asked("agent:expert") | {"agents": [expert]})
        assert run["status"] == "completed"
        assert outputs(g, 2)[0]["output"] == "found it"
        (intent,) = data(events, "tool.intent")
        child = await read(g, intent["child_run_id"])
        assert (child["status"], child["parent_run_id"]) == ("completed", run["id"])
        assert run["usage"]["input_tokens"] > child["usage"]["input_tokens"] > 0
        assert deep.keys[0].startswith(child["id"])


async def test_a_child_that_waits_makes_its_parent_wait_for_the_same(tmp_path: Path) -> None:
    other = alias("other", ("chat", "other"), retries=0)
    async with gateway(tmp_path, SCRIPTED, other) as g:
        deep = spy("deep")
        use(g, deep)
        g.simulator.script("script", [Call("agent_expert", '{"input": "dig"}'), Say("done")])
        g.simulator.script("other", [Call("deep", "{}"), Say("found it")])
        expert = {"name": "expert", "model": "other", "tools": ["deep"]}
        expert["tool_policy"] = {"deep": "approve"}
        run_id = await begin(g, asked("agent:expert") | {"agents": [expert]})
        events = await watch(g, run_id, until="run.waiting")
        assert events[-1]["data"]["for"] == "approval"
        (child,) = events[-1]["data"]["children"]
        (question,) = (await read(g, child))["interrupts"]
        await idle(g)  # who waits holds nothing
        assert (await answered(g, child, question["id"], action="approve")).status == 200
        events = await watch(g, run_id)
        assert types(events)[-1] == "run.completed"
        assert len(deep.calls) == 1
        assert outputs(g, 2)[0]["output"] == "found it"
