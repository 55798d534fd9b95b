"""Random small workflows in a random world, against a plain reference of how each node ends.

The world is played here: tools and models that fail as often as the example says, people who
agree, refuse or never answer, pauses and crashes wherever they may come. Whatever the order of
things, each node ends as the reference says, is begun once a try, is never begun again when it is
over, and the run has exactly one ending.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adapters.canonical.parts import Text
from adapters.canonical.plain import plain
from gateway.runs import commands
from gateway.runs.actions import AskModel, Emit, Halt, LookAgain, LookUpTools, MakeCall
from gateway.runs.deciders import decide
from gateway.runs.ending import said
from gateway.runs.events import Draft, Event, draft, written
from gateway.runs.fold import evolve, fold
from gateway.runs.recovery import recovered
from gateway.runs.rewind import replay
from gateway.runs.spec import Answer, RunSpec
from gateway.runs.state import Run
from gateway.runs.status import ENDED
from gateway.runs.workflow_check import Known
from gateway.runs.workflow_check import check as flaws
from gateway.services.workflow_compile import compiled
from gateway.tools.base import ToolSpec
from tests.runs.test_machine import check

WORK = ToolSpec("work", read_only=True, parameters={"type": "object"})
KINDS = ("tool", "tool", "call", "approval", "branch", "map", "loop")
ANSWERS = ("approve", "deny", "nobody")
ITEMS = 3


@dataclass
class Planned:
    """A node and what will come of it. ``fails``: the first tries that fail; for a map and a loop
    the item or turn that does, 0 for none. ``chosen`` are the targets of a branch's case."""

    name: str
    kind: str
    needs: list[str]
    join: str
    on_error: str
    retries: int
    fails: int
    answer: str
    on_deny: str
    targets: tuple[list[str], list[str]] = ((), ())  # type: ignore[assignment]
    first: bool = True
    deciders: list[str] = field(default_factory=list)

    @property
    def chosen(self) -> list[str]:
        return self.targets[0] if self.first else self.targets[1]

    def body(self) -> dict[str, Any]:
        """As it is written."""
        more: dict[str, Any] = {"needs": self.needs, "join": self.join, "kind": self.kind}
        if self.kind != "branch":
            more |= {"on_error": self.on_error, "retries": self.retries, "backoff": 0.5}
        if self.on_error == "default_value" and self.kind != "branch":
            more["default_value"] = DEFAULTS.get(self.kind, "made up")
        work = {"kind": "tool", "tool": "work"}
        match self.kind:
            case "tool":
                return more | work
            case "call":
                return more | {"model": "m", "prompt": "go"}
            case "approval":
                return more | {"message": "?", "on_deny": self.on_deny, "expires_in": 60}
            case "branch":
                when = {"from": "/input", "equals": 1 if self.first else 2}
                return more | {"cases": [{"when": when, "to": self.targets[0]}],
                               "else": self.targets[1]}  # fmt: skip
            case "map":
                return more | {"over": list(range(ITEMS)), "concurrency": 2, "node": work}
            case _:
                return more | {"times": ITEMS, "node": work}

    def ends(self) -> str:
        """How it ends if it runs."""
        if self.kind == "branch":
            return "completed"
        if self.kind == "approval":
            denied = self.answer != "approve" and self.on_deny == "skip"
            return "skipped" if denied else "completed"
        tries = self.retries + 1
        bad = self.fails > 0 if self.kind in ("map", "loop") else self.fails >= tries
        soft = {"fail": "failed", "skip": "skipped", "default_value": "completed"}
        return soft[self.on_error] if bad else "completed"


DEFAULTS: Mapping[str, Any] = {"approval": {"approved": True}, "map": ["made", "up"]}


@st.composite
def graphs(pick: Any) -> list[Planned]:
    """Two to six nodes, each behind some of those before it; branches decide about later ones."""
    nodes: list[Planned] = []
    count = pick(st.integers(2, 6))
    for number in range(count):
        before = [node.name for node in nodes]
        nodes.append(
            Planned(
                name=f"n{number}",
                kind=pick(st.sampled_from(KINDS)),
                needs=sorted(pick(st.sets(st.sampled_from(before), max_size=2))) if before else [],
                join=pick(st.sampled_from(["all", "all", "any"])),
                on_error=pick(st.sampled_from(["fail", "skip", "default_value"])),
                retries=pick(st.integers(0, 2)),
                fails=pick(st.sampled_from([0, 0, 1, 2, 3])),
                answer=pick(st.sampled_from(ANSWERS)),
                on_deny=pick(st.sampled_from(["skip", "continue"])),
                first=pick(st.booleans()),
            )
        )
    for place, node in enumerate(nodes):
        later = [one.name for one in nodes[place + 1 :]]
        if node.kind == "branch" and later:
            sides = [sorted(pick(st.sets(st.sampled_from(later), max_size=2))) for _ in range(2)]
            node.targets = (sides[0], sides[1])
            for target in nodes[place + 1 :]:
                if target.name in (*sides[0], *sides[1]):
                    target.deciders.append(node.name)
    return nodes


def reference(nodes: Sequence[Planned]) -> dict[str, str]:
    """How each node ends: what is said in the documentation, and no more."""
    ends: dict[str, str] = {}
    by_name = {node.name: node for node in nodes}
    for node in nodes:
        needs = {*node.needs, *node.deciders}
        left_out = any(
            ends[name] == "completed" and node.name not in by_name[name].chosen
            for name in node.deciders
        )
        there = [name for name in needs if ends[name] == "completed"]
        enough = len(there) == len(needs) or (node.join == "any" and bool(there))
        ends[node.name] = "skipped" if left_out or not enough else node.ends()
    return ends


class World:
    """One run of a graph, and everybody outside of it."""

    def __init__(self, nodes: Sequence[Planned]) -> None:
        self.nodes = {node.name: node for node in nodes}
        made = compiled(
            {
                "nodes": {
                    **{node.name: node.body() for node in nodes},
                    "end": {"kind": "output", "value": 1, "needs": list(self.nodes)},
                }
            },
            "w",
            {}.get,
        )
        assert made.flaws == ()
        serious = [f for f in flaws(made.workflow, Known()) if "unreachable" not in f.message
                   and "leads to nothing" not in f.message]  # fmt: skip
        assert serious == []
        self.tape: list[Event] = []
        self.run: Run
        self.at = 1_000.0
        spec = RunSpec("workflow", "w", agents=made.agents, workflow=made.workflow, value=1)
        self.write([draft("run.created", spec=spec.plain())])
        self.write([draft("run.started")])

    @property
    def alive(self) -> bool:
        return self.run.status not in ENDED

    def write(self, drafts: Sequence[Draft]) -> None:
        for one in drafts:
            event = written(one, "run_1", len(self.tape) + 1, self.at, 0)
            self.run = evolve(self.run if self.tape else None, event)
            self.tape.append(event)

    # a worker

    def work(self, data: st.DataObject) -> None:
        """One look of a worker; where it has nothing to do, something happens outside."""
        self.at += 0.01
        decision = decide(self.run, self.at, check)
        emits = [d for action in decision if isinstance(action, Emit) for d in action.drafts]
        if emits:
            self.write(emits)
            return
        assert not any(isinstance(action, Halt) for action in decision)
        begun = [action for action in decision if self.begin(action)]
        if not begun:
            self.outside(data, [a.at for a in decision if isinstance(a, LookAgain)])

    def begin(self, action: Any) -> bool:
        match action:
            case LookUpTools(agent=agent, thread=thread):
                told = {"tools": [plain(WORK)]}
                self.write([draft("agent.started", agent=agent, step=f"{thread}/0", **told)])
            case AskModel(step=step):
                told = {"model": "m", "attempt": 1, "request_id": step}
                self.write([draft("model.started", step=step, **told)])
            case MakeCall(call_id=call_id):
                call = self.run.calls[call_id]
                told = {"tool": "work", "arguments": {}, "schema_hash": WORK.schema_hash}
                key, attempt = f"run_1:{call_id}", call.tries + 1
                self.write(
                    [draft("tool.intent", step=call.step, call_id=call_id, idempotency_key=key,
                           attempt=attempt, **told)]
                )  # fmt: skip
            case _:
                return False
        return True

    # everybody else

    def outside(self, data: st.DataObject, alarms: list[float]) -> None:
        """One of the things that can happen now happens."""
        happens: list[Any] = [*self.under_way(), *self.questions()]
        if self.run.status == "running":
            happens += ["crash", "pause"]
        if alarms:
            happens.append("time")
        if self.run.status == "paused":
            happens.append("resume")
        what = data.draw(st.sampled_from(happens))
        match what:
            case "crash":
                if self.run.under_way:
                    self.write([recovered(self.run, {})])
            case "pause":
                if not self.run.under_way:
                    self.write([draft("run.paused")])
            case "resume":
                self.write(commands.resume(self.run, "ann"))
            case "time":
                self.at = max(self.at, min(alarms))
            case ("turn", step):
                self.end_turn(step)
            case ("call", call_id):
                self.end_call(call_id)
            case ("question", interrupt_id):
                self.answer(interrupt_id)

    def under_way(self) -> list[tuple[str, str]]:
        turns = [("turn", str(t.open)) for t in self.run.threads.values() if t.open is not None]
        calls = [("call", c.call_id) for c in self.run.calls.values() if c.phase == "running"]
        return [*turns, *calls]

    def questions(self) -> list[tuple[str, str]]:
        """What can be answered now; who answers does so before others have not."""
        asked = [] if self.run.status == "paused" else self.run.open_interrupts()
        said = [one for one in asked if self.nodes[one.asked["node"]].answer != "nobody"]
        return [("question", one.id) for one in said or asked]

    def end_turn(self, step: str) -> None:
        if self.goes_wrong(step.rpartition("/")[0]):
            error = {"kind": "upstream_server", "message": "down"}
            self.write([draft("model.attempt_failed", step=step, error=error, final=True)])
            return
        told = {"message": {"role": "assistant", "parts": plain([Text("said")])}}
        usage = {"input_tokens": 1, "output_tokens": 1}
        self.write(
            [draft("model.finished", step=step, finish_reason="stop", usage=usage, cost_nano=1,
                   **told)]
        )  # fmt: skip

    def end_call(self, call_id: str) -> None:
        call = self.run.calls[call_id]
        told = {"call_id": call_id, "content": said(f"{call_id} done")}
        if self.goes_wrong(call_id):
            self.write([draft("tool.failed", step=call.step, kind="raised", **told)])
        else:
            self.write([draft("tool.completed", step=call.step, **told)])

    def goes_wrong(self, place: str) -> bool:
        """Whether the work at a place fails: ``n1~2`` is the second try of ``n1``, ``n2/1/node``
        the second item of a map, or the first turn of a loop."""
        head, _, rest = place.partition("/")
        name, _, attempt = head.partition("~")
        node = self.nodes[name]
        if node.kind == "map":
            return int(rest.partition("/")[0]) + 1 == node.fails
        if node.kind == "loop":
            return int(rest.partition("/")[0]) == node.fails
        return int(attempt or 1) <= node.fails

    def answer(self, interrupt_id: str) -> None:
        node = self.nodes[self.run.interrupts[interrupt_id].asked["node"]]
        if node.answer == "nobody":
            self.at += 60
            self.write(commands.lapse(self.run, self.at))
        else:
            given = Answer("approve" if node.answer == "approve" else "deny")
            self.write(commands.answer(self.run, interrupt_id, given, "ann", check, self.at))


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(graphs(), st.data())
def test_each_node_ends_as_it_must_whatever_happens_in_between(
    nodes: list[Planned], data: st.DataObject
) -> None:
    world = World(nodes)
    for _ in range(400):
        if not world.alive:
            break
        world.work(data)
    assert not world.alive, "it comes to an end"
    ends = reference(nodes)
    run = world.run
    assert {name: run.nodes[name].status for name in ends} == ends
    _ended_well(world, ends)
    _nothing_twice(world)
    assert fold(world.tape) == run
    assert replay(world.tape, check) is None


def _ended_well(world: World, ends: Mapping[str, str]) -> None:
    (end,) = [event for event in world.tape if event.terminal]
    assert end is world.tape[-1]
    if "failed" in ends.values():
        assert end.type == "run.failed"
        cause = end.data["error"]["node"].partition("/")[0].partition("~")[0]
        assert ends[cause] == "failed"
    elif all(status == "completed" for status in ends.values()):
        assert (end.type, end.data["output"]["value"]) == ("run.completed", 1)
    assert end.type in ("run.completed", "run.failed")


def _nothing_twice(world: World) -> None:
    begun = Counter(
        (e.data["node"], e.data["attempt"]) for e in world.tape if e.type == "node.started"
    )
    assert set(begun.values()) <= {1}
    over: set[str] = set()
    for event in world.tape:
        if event.type == "node.started":
            assert event.data["node"] not in over, "what is over never begins again"
        final = event.type == "node.skipped" or (
            event.type == "node.finished" and "retry_after" not in event.data
        )
        if final:
            assert event.data["node"] not in over, "each node ends once"
            over.add(event.data["node"])
    results = Counter(
        e.data["call_id"] for e in world.tape if e.type in ("tool.completed", "tool.failed")
    )
    assert set(results.values()) <= {1}, "no tool has two results"
    for node in world.nodes.values():
        tries = [e for e in world.tape if e.type == "node.started" and e.data["node"] == node.name]
        if tries and node.kind in ("tool", "call"):
            assert len(tries) == min(node.fails, node.retries) + 1
