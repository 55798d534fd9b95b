"""Anything that may be done to a run, in any order, against the table of states.

The world is played here: a worker that acts on what is decided, models and tools that answer at
random, people who command, crashes in between. Whatever happens, the tape stays one that can be
folded and played, the status is the one that the table says, and there is one ending at most.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from adapters.canonical.faults import Fault
from adapters.canonical.pairing import check_results
from adapters.canonical.parts import Text, ToolCall
from adapters.canonical.plain import plain
from adapters.canonical.request import Message
from gateway.runs import commands
from gateway.runs.actions import AskModel, Emit, Halt, LookUpTools, MakeCall
from gateway.runs.asking import turn_request
from gateway.runs.deciders import decide
from gateway.runs.ending import said, unmade
from gateway.runs.events import Draft, Event, draft, written
from gateway.runs.fold import evolve, fold
from gateway.runs.recovery import recovered
from gateway.runs.rewind import replay
from gateway.runs.spec import AgentSpec, Answer, Budget, Rule, RunSpec
from gateway.runs.state import MAIN, Run
from gateway.runs.status import ENDED, MOVES
from gateway.structured.check import Schemas
from gateway.tools.base import ToolSpec

TOOLS = (
    ToolSpec("look", read_only=True, parameters={"type": "object"}),
    ToolSpec("write", parameters={"type": "object"}),
    ToolSpec("mail", parameters={"type": "object", "properties": {"n": {"type": "integer"}}}),
    ToolSpec("screen", kind="client", parameters={"type": "object"}),
)
CALLS = ["look", "write", "mail", "screen", "nowhere", "transfer_to_other"]
SELDOM = st.integers(0, 20)
NAMES = st.lists(st.sampled_from(CALLS), max_size=3)
REASONS = st.sampled_from(["stop", "stop", "stop", "length", "pause", "refusal"])
SPEC = RunSpec(
    kind="agent",
    agent="first",
    agents=(
        AgentSpec(
            "first",
            "m",
            tools=("look", "write", "mail"),
            tool_policy={"mail": "approve"},
            handoffs=("other",),
            max_turns=6,
            contract=(Rule("at_most", tool="write", count=3),),
        ),
        AgentSpec("other", "m", handoffs=("first",), parallel_tools=False),
    ),
    input=(Message("user", (Text("go"),)),),
    budget=Budget(tokens=60, tool_calls=8, seconds=500),
    on_budget="wait",
)
_SCHEMAS = Schemas()


def check(schema: Any, value: Any) -> list[str]:
    checker = _SCHEMAS.checker(schema)
    return [] if checker.fits(value) else [str(v) for v in checker.violations(value)]


class RunMachine(RuleBasedStateMachine):
    """One run and its world."""

    def __init__(self) -> None:
        super().__init__()
        self.tape: list[Event] = []
        self.run: Run
        self.at = 1_000.0
        self.ids = itertools.count()
        self.pausing = False
        self.effects: list[str] = []
        self.turns: list[str] = []
        self.doing: set[str] = set()

    # writing

    def write(self, drafts: Sequence[Draft]) -> None:
        for one in drafts:
            event = written(one, "run_1", len(self.tape) + 1, self.at, 0)
            before = self.run.status if self.tape else None
            self.run = evolve(self.run if self.tape else None, event)
            self.tape.append(event)
            if event.type in MOVES:
                assert self.run.status == MOVES[event.type][before], "as the table says"
            else:
                assert self.run.status == before

    def command(self, make: Any) -> None:
        kind = "conflict"
        try:
            self.write(make(self.run))
        except Fault as fault:
            kind = fault.kind
        assert kind in ("conflict", "bad_request")

    @initialize()
    def create(self) -> None:
        self.write([draft("run.created", spec=SPEC.plain())])

    @property
    def alive(self) -> bool:
        return self.run.status not in ENDED

    # the worker

    @rule(steps=st.integers(1, 4))
    def work(self, steps: int) -> None:
        """Some steps of a worker: a decision, and the beginning of what it asks for."""
        for _ in range(steps):
            self.step()

    @precondition(lambda self: self.alive)
    @rule(names=NAMES)
    def go_well(self, names: list[str]) -> None:
        """A worker for whom everything works: one whole turn."""
        for _ in range(6):
            self.step()
        if self.alive and self.run.threads[MAIN].open is not None:
            self.answer_with(names, "{}", "stop")
        for _ in range(3):
            self.step()
            for call_id in self.running() if self.alive else ():
                self.end_call(call_id, fails=False)

    def step(self) -> None:
        self.at += 0.25
        if self.run.status == "queued":
            self.write([draft("run.started")])
        decision = decide(self.run, self.at, check)
        emits = [d for action in decision if isinstance(action, Emit) for d in action.drafts]
        if emits:
            self.write(emits)
        elif any(isinstance(action, Halt) for action in decision):
            self.halt()
        elif self.pausing and not self.run.under_way and self.run.status == "running":
            self.pausing = False
            self.write([draft("run.paused")])
        elif not self.pausing:
            for action in decision:
                self.begin(action)

    def begin(self, action: Any) -> None:
        match action:
            case LookUpTools(agent=name):
                tools = TOOLS if name == "first" else ()
                self.write([draft("agent.started", agent=name, tools=[plain(t) for t in tools])])
            case AskModel(step=step):
                attempt = self.run.threads[MAIN].tries + 1
                check_results(turn_request(self.run, self.run.threads[MAIN]))
                told = {"model": "m", "attempt": attempt, "request_id": f"r{next(self.ids)}"}
                self.write([draft("model.started", step=step, **told)])
            case MakeCall(call_id=call_id):
                call = self.run.calls[call_id]
                assert call.phase in ("new", "granted")
                told = {"tool": call.name, "arguments": {}, "schema_hash": "h"}
                key = f"run_1:{call_id}"
                self.write(
                    [draft("tool.intent", step=call.step, call_id=call_id, idempotency_key=key,
                           attempt=call.tries + 1, **told)]
                )  # fmt: skip

    def halt(self) -> None:
        thread = self.run.threads[MAIN]
        if thread.open is not None:
            self.finish_turn("cut", [Text("so far")])
        self.write([unmade(c) for c in self.run.calls.values() if c.phase == "running"])

    # models and tools

    @precondition(lambda self: self.alive and self.run.threads[MAIN].open is not None)
    @rule(names=NAMES, bad=SELDOM, reason=REASONS)
    def model_answers(self, names: list[str], bad: int, reason: str) -> None:
        self.answer_with(names, "{}" if bad else "[", reason)

    def answer_with(self, names: list[str], arguments: str, reason: str) -> None:
        self.at += 1
        calls = [ToolCall(f"c{next(self.ids)}", name, arguments) for name in names]
        step = str(self.run.threads[MAIN].open)
        self.turns.append(step)
        self.finish_turn("tool_calls" if names else reason, calls or [Text("an answer")])

    def finish_turn(self, reason: str, parts: list[Any]) -> None:
        thread = self.run.threads[MAIN]
        step, agent = thread.open, thread.agent
        usage = {"input_tokens": 4, "output_tokens": 1}
        told = {"message": {"role": "assistant", "parts": plain(parts)}, "usage": usage}
        drafts = [
            draft(
                "model.finished", step=step, agent=agent, finish_reason=reason, cost_nano=5, **told
            )
        ]
        for part in parts:
            if isinstance(part, ToolCall):
                told = {"call_id": part.call_id, "tool": part.name, "arguments": part.arguments}
                drafts.append(draft("tool.requested", step=step, agent=agent, **told))
        self.write(drafts)

    @precondition(lambda self: self.alive and self.run.threads[MAIN].open is not None)
    @rule(chance=SELDOM)
    def model_fails(self, chance: int) -> None:
        if chance:
            return
        step = self.run.threads[MAIN].open
        error = {"kind": "upstream_server", "message": "down"}
        self.write([draft("model.attempt_failed", step=step, error=error, final=True)])

    @precondition(lambda self: self.alive and self.running())
    @rule(data=st.data(), fails=st.booleans())
    def tool_ends(self, data: st.DataObject, fails: bool) -> None:
        self.end_call(data.draw(st.sampled_from(self.running())), fails=fails)

    def end_call(self, call_id: str, *, fails: bool) -> None:
        call = self.run.calls[call_id]
        self.at += 1
        self.effects.append(call.call_id)
        told = {"call_id": call.call_id, "content": said("done")}
        if fails:
            self.write([draft("tool.failed", step=call.step, kind="raised", **told)])
        else:
            self.write([draft("tool.completed", step=call.step, **told)])

    def running(self) -> list[str]:
        return [c.call_id for c in self.run.calls.values() if c.phase == "running"]

    @precondition(lambda self: self.run.under_way and self.run.status in ("running", "cancelling"))
    @rule(chance=SELDOM)
    def crash(self, chance: int) -> None:
        """The worker is gone; the next one sorts what was under way."""
        if chance > 4:
            return
        self.at += 30
        self.write([recovered(self.run, {})])
        assert not self.run.under_way

    # people

    @rule(twice=st.booleans(), chance=SELDOM)
    def cancel(self, twice: bool, chance: int) -> None:
        for _ in range(0 if chance else 1 + twice):
            self.command(commands.cancel)

    @rule(chance=SELDOM)
    def pause(self, chance: int) -> None:
        if chance > 3:
            return
        if self.run.status == "running":
            self.pausing = True
        self.command(commands.pause)

    @rule()
    def resume(self) -> None:
        self.pausing = False
        self.command(lambda run: commands.resume(run, "ann"))

    @precondition(lambda self: self.run.interrupts)
    @rule(data=st.data(), twice=st.booleans())
    def answer(self, data: st.DataObject, twice: bool) -> None:
        interrupt = data.draw(st.sampled_from(sorted(self.run.interrupts)))
        action = data.draw(
            st.sampled_from(["approve", "deny", "edit", "result", "top_up", "stop", "rerun",
                             "error", "fail"])
        )  # fmt: skip
        given = Answer(
            action,
            arguments=data.draw(st.sampled_from([{"n": 1}, {"n": "x"}])),
            content=(Text("by hand"),),
            added={"tokens": 20},
        )
        for _ in range(1 + twice):
            self.command(lambda run: commands.answer(run, interrupt, given, "ann", check, self.at))

    @rule(key=st.sampled_from([None, "k1", "k2"]), chance=SELDOM)
    def top_up(self, key: str | None, chance: int) -> None:
        if chance > 2:
            return
        self.command(lambda run: commands.top_up(run, {"tokens": 10}, "ann", key))

    @precondition(lambda self: self.run.status in ("waiting", "paused"))
    @rule(expires=st.booleans(), chance=SELDOM)
    def time_passes(self, expires: bool, chance: int) -> None:
        if chance > 4:
            return
        self.at += 100_000
        self.command(lambda run: commands.lapse(run, self.at))
        if expires:
            self.command(lambda run: commands.expire(run, self.at))

    # what always holds

    @invariant()
    def one_ending_and_no_gap(self) -> None:
        assert [event.seq for event in self.tape] == list(range(1, len(self.tape) + 1))
        ends = [event for event in self.tape if event.terminal]
        assert len(ends) <= 1
        if ends:
            assert ends[0] is self.tape[-1]
            assert self.run.end == ends[0]

    @invariant()
    def nothing_twice(self) -> None:
        assert len(self.turns) == len(set(self.turns)), "no turn was finished twice"
        assert len(self.effects) == len(set(self.effects)), "no call took effect twice"

    @invariant()
    def a_tape_is_its_run(self) -> None:
        if len(self.tape) % 5 == 0 and self.tape:
            assert fold(self.tape) == self.run

    def teardown(self) -> None:
        if not self.tape:
            return
        for _ in range(60):
            if not self.alive:
                break
            self.command(commands.cancel)
            if self.run.under_way:
                self.halt()
            self.write([d for a in decide(self.run, self.at, check) if isinstance(a, Emit)
                        for d in a.drafts])  # fmt: skip
        assert not self.alive, "a cancel always ends it"
        for call in self.run.calls.values():
            assert call.phase == "done"
            assert call.outcome is not None
        transcript = self.run.transcript(self.run.threads[MAIN])
        check_results(turn_request(self.run, self.run.threads[MAIN]))
        assert transcript
        assert replay(self.tape, check) is None, "and can be played"


TestRunMachine = RunMachine.TestCase
TestRunMachine.settings = settings(
    max_examples=60,
    stateful_step_count=60,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


def test_every_move_leads_somewhere() -> None:
    reached = {status for moves in MOVES.values() for status in moves.values()}
    assert reached == {
        "queued", "running", "waiting", "paused", "cancelling",
        "completed", "failed", "incomplete", "cancelled", "expired",
    }  # fmt: skip
    left = {status for moves in MOVES.values() for status in moves if status is not None}
    assert reached - left == ENDED


@pytest.mark.parametrize("status", sorted(ENDED))
def test_nothing_follows_an_ending(status: str) -> None:
    assert all(status not in moves for moves in MOVES.values())
