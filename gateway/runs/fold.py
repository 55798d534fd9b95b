"""From events to the state of a run. ``fold(events)`` is the whole truth about it.

What an event of a type means is one handler in :data:`HANDLERS` and stands nowhere else; whether
it may happen at all is said by :mod:`~gateway.runs.status`. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Literal

from adapters.canonical.parts import Part, Text, ToolResult
from adapters.canonical.plain import parsed, parsed_parts
from adapters.canonical.request import Message
from adapters.wire.json import dumps
from gateway.runs import nodes
from gateway.runs.budget import more
from gateway.runs.events import DELTAS, Event
from gateway.runs.shares import share
from gateway.runs.spec import parsed_spec
from gateway.runs.state import MAIN, Call, Interrupt, Phase, Run, Thread
from gateway.runs.status import MOVES, Illegal, moved
from gateway.tools.base import ToolSpec


def fold(events: Iterable[Event]) -> Run:
    """The run that ``events`` tell of; deltas may be left out.

    :raises Illegal: for a list that no run can have written.
    """
    run: Run | None = None
    for event in events:
        run = evolve(run, event)
    if run is None:
        raise Illegal("no events")
    return run


def evolve(run: Run | None, event: Event) -> Run:
    """The run after ``event``.

    :raises Illegal: the event has no place after what came before.
    """
    status = moved(None if run is None else run.status, event.type)
    if run is None:
        return _created(event)
    if event.type in DELTAS:
        return replace(run, seq=event.seq)
    worked = 0.0 if event.type == "run.recovered" else run.seconds(event.at) - run.used.seconds
    run = replace(
        run,
        seq=event.seq,
        at=event.at,
        status=status,
        since=event.at if event.type in MOVES else run.since,
        used=replace(run.used, seconds=run.used.seconds + worked),
    )
    handler = HANDLERS.get(event.type)
    return run if handler is None else handler(run, event)


def _created(event: Event) -> Run:
    spec = parsed_spec(event.data["spec"])
    run = Run(
        id=event.run_id,
        spec=spec,
        status="queued",
        seq=event.seq,
        at=event.at,
        created_at=event.at,
        since=event.at,
        budget=spec.budget,
    )
    if spec.kind == "workflow":
        return run
    return run.with_thread(Thread(MAIN, spec.agent, (*spec.history, *spec.input)))


# the run itself


def _started(run: Run, event: Event) -> Run:
    return replace(run, started=True)


def _waiting(run: Run, event: Event) -> Run:
    children = tuple(event.data.get("children", ()))
    return replace(run, waiting_for=event.data["for"], children=children)


def _resumed(run: Run, event: Event) -> Run:
    calls = {
        key: replace(call, phase="granted", child_waits=None) if call.phase == "child" else call
        for key, call in run.calls.items()
    }
    return replace(run, waiting_for=None, children=(), calls=calls)


def _recovered(run: Run, event: Event) -> Run:
    """Cut turns are asked again; cut calls are made again, or somebody is asked about them."""
    for turn in event.data["abandoned"]:
        run = replace(run, used=run.used.plus(turn["usage"], turn["cost_nano"]))
    for thread in list(run.threads.values()):
        run = run.with_thread(replace(thread, open=None))
    for call_id in event.data["rerun"]:
        run = run.with_call(replace(run.calls[call_id], phase="granted"))
    for call_id in event.data["in_doubt"]:
        run = run.with_call(replace(run.calls[call_id], phase="lost"))
    return run


def _ended(run: Run, event: Event) -> Run:
    return replace(run, end=event, waiting_for=None, children=())


# agents


def _agent_started(run: Run, event: Event) -> Run:
    name, specs = str(event.agent), tuple(parsed(ToolSpec, tool) for tool in event.data["tools"])
    run = replace(run, tools={**run.tools, name: specs})
    if event.step is None:
        return run
    thread = _thread(run, event)
    return run.with_thread(replace(thread, met=(*thread.met, name)))


def _handoff(run: Run, event: Event) -> Run:
    to = event.data["to"]
    if "call_id" not in event.data:  # in a team: the next one has a conversation of its own
        return run
    told = (Text(f"The conversation is now with {to}."),)
    call = run.calls[event.data["call_id"]]
    run = run.with_call(replace(call, phase="done", outcome="completed", content=told))
    return run.with_thread(replace(_thread(run, event), agent=to))


# model turns


def _thread(run: Run, event: Event) -> Thread:
    return run.threads[str(event.step).rpartition("/")[0]]


def _model_started(run: Run, event: Event) -> Run:
    thread = _thread(run, event)
    return run.with_thread(
        replace(
            thread,
            messages=run.transcript(thread),
            asked=(),
            open=event.step,
            tries=event.data["attempt"],
            reason=None,
            faulty=run.faulty_turns(thread),
        )
    )


def _attempt_failed(run: Run, event: Event) -> Run:
    if not event.data.get("final", False):
        return run
    used = run.used.plus(event.data.get("usage"), event.data.get("cost_nano"))
    run = run.with_thread(replace(_thread(run, event), open=None))
    failure = {"reason": "model", "error": event.data["error"]}
    return nodes.broken(replace(run, used=used), event, failure)


def _model_finished(run: Run, event: Event) -> Run:
    thread, data = _thread(run, event), event.data
    parts = parsed_parts(data["message"]["parts"])
    used = run.used.plus(data["usage"], data["cost_nano"])
    run = replace(run, used=replace(used, turns=used.turns + 1))
    return run.with_thread(
        replace(
            thread,
            messages=(*thread.messages, Message("assistant", parts)) if parts else thread.messages,
            open=None,
            turns=thread.turns + 1,
            tries=0,
            reason=data["finish_reason"],
        )
    )


# tool calls


def _requested(run: Run, event: Event) -> Run:
    data, step = event.data, str(event.step)
    call = Call(data["call_id"], data["tool"], data["arguments"], step, str(event.agent))
    thread = _thread(run, event)
    run = run.with_thread(replace(thread, asked=(*thread.asked, call.call_id)))
    return run.with_call(call)


def _intent(run: Run, event: Event) -> Run:
    call = run.calls[event.data["call_id"]]
    tries, child = event.data["attempt"], event.data.get("child_run_id")
    if call.tries == 0:
        run = replace(run, used=replace(run.used, tool_calls=run.used.tool_calls + 1))
    begun = replace(call, phase="running", tries=tries, child=child)
    if child is not None and call.child is None:
        begun = replace(begun, share=share(run.with_call(replace(call, phase="running")), call))
    return run.with_call(begun)


def _progress(run: Run, event: Event) -> Run:
    waits = event.data.get("waiting_for")
    if waits is None:
        return run
    call = run.calls[event.data["call_id"]]
    return run.with_call(replace(call, phase="child", child_waits=waits))


def _settled(outcome: Literal["completed", "failed", "skipped"]) -> Callable[[Run, Event], Run]:
    def settle(run: Run, event: Event) -> Run:
        data = event.data
        content = parsed(ToolResult, {"call_id": "", "content": data["content"]}).content
        problem = data.get("kind", data.get("reason"))
        call = replace(run.calls[data["call_id"]], phase="done", outcome=outcome)
        told = data.get("structured")
        run = run.with_call(replace(call, problem=problem, content=content, structured=told))
        run = nodes.unasked(run, event, lambda asked: asked.get("call_id") == call.call_id)
        if "usage" in data:
            run = replace(run, used=run.used.plus(data["usage"], data.get("cost_nano")))
        if data.get("fatal", False):
            error = {"kind": "internal", "message": _said(content)}
            run = nodes.broken(run, event, {"reason": problem, "error": error})
        return run

    return settle


def _said(content: Iterable[Part]) -> str:
    return " ".join(part.text for part in content if isinstance(part, Text))


# questions and their answers


def _asks(kind: str, phase: Phase) -> Callable[[Run, Event], Run]:
    def ask(run: Run, event: Event) -> Run:
        iid, call_id = event.data["interrupt_id"], event.data.get("call_id")
        asked_of = "person" if "node" in event.data else kind
        interrupt = Interrupt(iid, asked_of, call_id, event.data)
        run = replace(run, interrupts={**run.interrupts, iid: interrupt})
        if call_id is None:
            return run
        return run.with_call(replace(run.calls[call_id], phase=phase, interrupt=iid))

    return ask


def _answered(run: Run, event: Event) -> Run:
    iid = str(event.data.get("interrupt_id"))
    if iid not in run.interrupts:
        return run
    interrupt = replace(run.interrupts[iid], answer=event)
    run = replace(run, interrupts={**run.interrupts, iid: interrupt})
    return nodes.answered(run, event)


def _granted(run: Run, event: Event) -> Run:
    run = _answered(run, event)
    interrupt = run.interrupts[event.data["interrupt_id"]]
    call = run.calls[event.data["call_id"]]
    edited = event.data.get("arguments")
    return run.with_call(
        replace(
            call,
            phase="granted",
            approved=interrupt.asked.get("schema_hash", call.approved),
            arguments=call.arguments if edited is None else dumps(edited).decode(),
        )
    )


def _approval_expired(run: Run, event: Event) -> Run:
    if "call_id" not in event.data:
        return _answered(run, event)
    return _granted(run, event) if event.data.get("default") == "approve" else _answered(run, event)


# bounds


def _violated(run: Run, event: Event) -> Run:
    """A refused answer is told to the model like a user's remark; a refused call has a result."""
    if event.data["action"] == "fail":
        why = f"The contract of the agent was broken. {event.data.get('message', '')}".rstrip()
        error = {"kind": "output_invalid", "message": why}
        return nodes.broken(run, event, {"reason": "contract", "error": error})
    if "call_id" in event.data:
        return run
    thread, remark = _thread(run, event), Message("user", (Text(event.data["message"]),))
    messages = (*thread.messages, remark)
    again = replace(thread, messages=messages, reason=None, faulty=thread.faulty + 1)
    return run.with_thread(again)


def _threshold(run: Run, event: Event) -> Run:
    return replace(run, told=run.told | {(event.data["which"], event.data["share"])})


def _exhausted(run: Run, event: Event) -> Run:
    run = replace(run, exhausted=event.data, stopped=event.data.get("final", False))
    if event.step is not None:  # the key's own budget, found used up when a turn was to be made
        run = run.with_thread(replace(_thread(run, event), open=None))
    iid = event.data.get("interrupt_id")
    if iid is None:
        return run
    if run.stopped:
        return _answered(run, event)
    return replace(
        run, interrupts={**run.interrupts, iid: Interrupt(iid, "budget", None, event.data)}
    )


def _topped_up(run: Run, event: Event) -> Run:
    key = event.data.get("idempotency_key")
    run = _answered(run, event)
    return replace(
        run,
        budget=more(run.budget, event.data["added"]),
        exhausted=None,
        told=frozenset(),
        topped_up=run.topped_up if key is None else run.topped_up | {key},
    )


HANDLERS: Mapping[str, Callable[[Run, Event], Run]] = {
    **nodes.HANDLERS,
    "run.started": _started,
    "run.waiting": _waiting,
    "run.resumed": _resumed,
    "run.recovered": _recovered,
    "run.completed": _ended,
    "run.failed": _ended,
    "run.incomplete": _ended,
    "run.cancelled": _ended,
    "run.expired": _ended,
    "agent.started": _agent_started,
    "agent.handoff": _handoff,
    "model.started": _model_started,
    "model.attempt_failed": _attempt_failed,
    "model.finished": _model_finished,
    "tool.requested": _requested,
    "tool.intent": _intent,
    "tool.progress": _progress,
    "tool.completed": _settled("completed"),
    "tool.failed": _settled("failed"),
    "tool.skipped": _settled("skipped"),
    "tool.in_doubt": _asks("in_doubt", "doubt"),
    "approval.requested": _asks("approval", "asking"),
    "approval.granted": _granted,
    "approval.edited": _granted,
    "approval.denied": _answered,
    "approval.expired": _approval_expired,
    "input.requested": _asks("input", "input"),
    "input.provided": _answered,
    "budget.threshold": _threshold,
    "budget.exhausted": _exhausted,
    "budget.topped_up": _topped_up,
    "contract.violated": _violated,
}
"""What each type changes. A type that is not here changes nothing but the place in the tape."""
