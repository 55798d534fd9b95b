"""The agent loop: what follows from where a run stands. Pure; read it top to bottom.

model turn -> its tool calls are judged -> made, in parallel -> results in the calls' order ->
next turn -> an answer that fits its schema and its contract -> ``run.completed``.

:data:`RULES` are asked in order; the first that has something to say decides. None of them acts,
waits, or knows what time it is: they are told.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from adapters.canonical.parts import Refusal, Text
from adapters.canonical.record import record
from gateway.runs import contract, shares, spec
from gateway.runs.actions import (
    WAIT,
    Ask,
    AskModel,
    Decision,
    Emit,
    End,
    Finding,
    LookUpTools,
    MakeCall,
)
from gateway.runs.arguments import Check
from gateway.runs.budget import Gauge, gauges, threshold
from gateway.runs.ending import end, json_value, said_in
from gateway.runs.events import Draft, draft
from gateway.runs.judge import Case, judged
from gateway.runs.spec import AgentSpec
from gateway.runs.state import MAIN, WAITING, Call, Run, Thread

MAX_FAULTY_TURNS = 3
"""Turns in a row whose calls all went wrong, after which the run gives up."""


@record(frozen=True, slots=True)
class Scene:
    """What a rule looks at: the run, its thread, who speaks, the time, and the judge of schemas."""

    run: Run
    thread: Thread
    at: float
    check: Check

    @property
    def agent(self) -> AgentSpec:
        """Who speaks now."""
        return self.run.spec.find(self.thread.agent)

    @property
    def first_agent(self) -> AgentSpec:
        """Who began; its bounds hold for the whole conversation."""
        return self.run.spec.find(self.thread.first or self.run.spec.agent)


Rule = Callable[[Scene], Finding | None]


def decide(run: Run, at: float, check: Check) -> Decision:
    """What is to be done now.

    :param at: Unix seconds; also the time of the events that are emitted.
    """
    return first(RULES, Scene(run, run.threads[MAIN], at, check))


def first(rules: tuple[Rule, ...], scene: Scene) -> Decision:
    """What the first rule says that has something to say, in a run that is one conversation."""
    if scene.run.status not in ("running", "cancelling"):
        return WAIT
    finding = found(rules, scene)
    for one in finding:
        if isinstance(one, End):
            return end(scene.run, one.type, scene.at, **one.data)
        if isinstance(one, Ask):
            return (Emit((waiting(scene.run, one.what, one.children),)),)
    return actions(finding)


def actions(finding: Finding) -> Decision:
    """A finding that is neither an end nor a question."""
    return tuple(one for one in finding if not isinstance(one, End | Ask))


def found(rules: tuple[Rule, ...], scene: Scene) -> Finding:
    """The finding of the first rule that has one."""
    return next((f for rule in rules if (f := rule(scene)) is not None), WAIT)


def waiting(run: Run, what: str, children: tuple[str, ...]) -> Draft:
    """The event of a run that can't go on before somebody answers."""
    open_ids = [interrupt.id for interrupt in run.open_interrupts()]
    return draft("run.waiting", for_=what, interrupts=open_ids, children=list(children))


# ends that come from outside


def cancelled(scene: Scene) -> Finding | None:
    """A caller wants no more."""
    if scene.run.status != "cancelling":
        return None
    return (End("run.cancelled", {}, whole=True),)


def failed(scene: Scene) -> Finding | None:
    """Something has happened that the run can't go on from."""
    if scene.run.failure is None:
        return None
    return (End("run.failed", scene.run.failure, whole=True),)


def out_of_time(scene: Scene) -> Finding | None:
    """The seconds are used up: even what is under way is stopped."""
    limit = scene.run.budget.seconds
    if limit is None or scene.run.seconds(scene.at) < limit:
        return None
    return (End("run.incomplete", {"reason": "deadline"}, whole=True),)


# the loop


def speaking(scene: Scene) -> Finding | None:
    """A turn is under way."""
    return None if scene.thread.open is None else WAIT


def introduced(scene: Scene) -> Finding | None:
    """An agent comes with its tools."""
    name = scene.thread.agent
    return None if name in scene.run.tools else (LookUpTools(name),)


def calling(scene: Scene) -> Finding | None:
    """The calls of the last turn: judge them all, make those that may be made, wait for others."""
    calls = scene.run.asked(scene.thread)
    drafts = [d for call in calls if call.phase in ("new", "lost") for d in _judged(scene, call)]
    if drafts:
        return (Emit(tuple(drafts)),)
    ready = [call for call in calls if call.phase in ("new", "granted")]
    running = any(call.phase == "running" for call in calls)
    if ready:
        return _made(scene, ready, running)
    if running:
        return WAIT
    return None if all(call.phase == "done" for call in calls) else _waiting(calls)


def _judged(scene: Scene, call: Call) -> tuple[Draft, ...]:
    agent = scene.run.spec.find(call.agent)
    return judged(Case(scene.run, scene.thread, call, agent, scene.at, scene.check))


def _made(scene: Scene, ready: list[Call], running: bool) -> Finding:
    """As many of the calls as the budget and the agent's ways allow."""
    ready = shares.admitted(scene.run, ready)
    if not ready:
        return WAIT if running else (_used_up(scene, ()) or WAIT)
    if not scene.agent.parallel_tools:
        ready = [] if running else ready[:1]
    return tuple(MakeCall(call.call_id) for call in ready)


def _waiting(calls: list[Call]) -> Finding:
    """Nothing can be done before somebody answers."""
    kinds = [WAITING.get(call.phase) or call.child_waits for call in calls if call.phase != "done"]
    children = tuple(call.child for call in calls if call.phase == "child" and call.child)
    return (Ask(str(kinds[0]), children),)


# the answer


FAILED: Mapping[str, tuple[str, str]] = {
    "length": ("output_truncated", "The answer was cut by its token limit."),
    "context_window": ("output_truncated", "The answer was cut: the context window is full."),
    "content_filter": ("content_filtered", "The provider's filter stopped the answer."),
    "refusal": ("content_filtered", "The model declined to answer."),
    "unknown": ("protocol_error", "The model stopped for a reason that is not known here."),
}
"""Reasons for which a turn's text is no answer, with the fault that says so."""

UNFIT = ("output_invalid", "The answer does not fit the agent's output schema.")
NO_ANSWER = ("output_unparsable", "The model ended its turn without saying or calling anything.")


def answering(scene: Scene) -> Finding | None:
    """The last turn asked for nothing: is it an answer?"""
    thread = scene.thread
    if thread.reason is None or thread.asked or thread.reason == "pause":
        return None
    if thread.reason in FAILED:
        return _no_answer(FAILED[thread.reason])
    text, refused = _spoken(thread)
    if refused:
        return _no_answer(FAILED["refusal"])
    if not text.strip():
        return _no_answer(NO_ANSWER)
    return _answer(scene, text)


def _answer(scene: Scene, text: str) -> Finding:
    value, problems = _value(scene, text)
    if problems:
        return _no_answer(UNFIT)
    rule = contract.broken_by_answer(scene.agent.contract, scene.run, text, value)
    if rule is not None:
        return (Emit((_objection(scene, rule),)),)
    return (End("run.completed", {"output": said_in((scene.thread,), value)}),)


def _value(scene: Scene, text: str) -> tuple[Any, list[str]]:
    """The answer as JSON where a schema asks for that, and what is wrong with it."""
    schema = scene.thread.output_schema or scene.agent.output_schema
    if schema is None:
        return None, []
    try:
        value = json_value(text)
    except ValueError:
        return None, ["it is not JSON"]
    return value, scene.check(schema, value)


def _objection(scene: Scene, rule: spec.Rule) -> Draft:
    """The answer breaks the contract: the model is told, or the run ends."""
    return draft(
        "contract.violated",
        step=f"{scene.thread.name}/{scene.thread.turns}",
        agent=scene.agent.name,
        rule=contract.shown(rule),
        action=rule.on_violation,
        message=contract.told(rule),
    )


def _spoken(thread: Thread) -> tuple[str, bool]:
    """The text of the last message, and whether it declines."""
    last = thread.messages[-1]
    parts = last.parts if last.role == "assistant" else ()
    refused = any(isinstance(part, Refusal) for part in parts)
    return "".join(part.text for part in parts if isinstance(part, Text)), refused


def _no_answer(fault: tuple[str, str]) -> Finding:
    kind, message = fault
    return (End("run.failed", {"reason": kind, "error": {"kind": kind, "message": message}}),)


# bounds


NO_CALL = (
    "invalid_tool_calls",
    f"{MAX_FAULTY_TURNS} turns in a row brought no tool call that could be made.",
)
NO_LEAVE = (
    "contract",
    f"{MAX_FAULTY_TURNS} turns in a row brought nothing that the agent's contract allows.",
)
"""Reasons for giving up, by what the last turn was: calls, or an answer that was refused."""


def gone_wrong(scene: Scene) -> Finding | None:
    """Turn after turn brings nothing but faulty calls and refused answers."""
    if scene.run.faulty_turns(scene.thread) < MAX_FAULTY_TURNS:
        return None
    reason, text = NO_CALL if scene.thread.asked else NO_LEAVE
    error = {"kind": "output_invalid", "message": text}
    return (End("run.failed", {"reason": reason, "error": error}),)


def out_of_turns(scene: Scene) -> Finding | None:
    """The first agent's bound on turns holds for the whole conversation."""
    if scene.thread.turns < scene.first_agent.max_turns:
        return None
    return (End("run.incomplete", {"reason": "max_turns"}),)


def out_of_budget(scene: Scene) -> Finding | None:
    """A budget is used up that the next turn needs; that of calls may be met without any."""
    return _used_up(scene, ("tool_calls",))


def _used_up(scene: Scene, but: tuple[str, ...]) -> Finding | None:
    """A budget is used up: say so; then wait for more, or end with what was made."""
    run = scene.run
    if run.stopped:
        return (End("run.incomplete", {"reason": "budget"}, whole=True),)
    if run.exhausted is None:
        used_up = (g for g in gauges(run.budget, run.used) if g.exhausted and g.which not in but)
        empty = next(used_up, None)
        if empty is not None:
            return (Emit((run_out(run, empty),)),)
        return _awaited(run) if shares.held_up(run, but) else None
    if run.spec.on_budget == "incomplete":
        return (End("run.incomplete", {"reason": "budget"}, whole=True),)
    return (Ask("budget"),)


def _awaited(run: Run) -> Finding:
    """Children hold what is left of a budget: wait until one is over, or has its answer."""
    holding = shares.holding(run)
    if any(call.phase != "child" for call in holding):
        return WAIT
    return (Ask(str(holding[0].child_waits), tuple(str(call.child) for call in holding)),)


def run_out(run: Run, gauge: Gauge) -> Draft:
    """The event of a used-up budget; a question, where the run waits for more."""
    told: dict[str, Any] = {"which": gauge.which, "used": gauge.used, "limit": gauge.limit}
    if run.spec.on_budget == "wait":
        told["interrupt_id"] = f"budget_{run.seq + 1}"
    return draft("budget.exhausted", **told)


def warned(scene: Scene) -> Finding | None:
    """Subscribers are told when a good part of a budget is used."""
    told = scene.run.told
    drafts = [
        draft("budget.threshold", which=g.which, share=share, used=g.used, limit=g.limit)
        for g in gauges(scene.run.budget, scene.run.used)
        if (share := threshold(g, told)) is not None
    ]
    return (Emit(tuple(drafts)),) if drafts else None


def next_turn(scene: Scene) -> Finding | None:
    """Nothing stands against asking the model."""
    return (AskModel(scene.thread.next_step),)


RULES: tuple[Rule, ...] = (
    cancelled,
    failed,
    out_of_time,
    speaking,
    introduced,
    calling,
    answering,
    gone_wrong,
    out_of_turns,
    out_of_budget,
    warned,
    next_turn,
)
"""Asked in this order."""
