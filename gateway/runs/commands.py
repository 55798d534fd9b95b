"""What people and programs outside may do to a run: a command and a state give events. Pure.

The ledger writes them only if the state still holds, so each command is one compare-and-set:
of many that come at once, the first wins, the same one again changes nothing, and a different
one is refused (fault kind K15). Nothing is ended here: commands write what happened, the deciders
draw the conclusions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from adapters.canonical.faults import Fault
from adapters.canonical.plain import plain
from adapters.wire.json import dumps
from gateway.runs.arguments import Check, Refused, digest, read
from gateway.runs.ending import closing, said
from gateway.runs.events import Draft, draft
from gateway.runs.judge import find_tool
from gateway.runs.spec import ACTIONS, Answer
from gateway.runs.state import Call, Interrupt, Run
from gateway.runs.status import ENDED, IDLE

Drafts = tuple[Draft, ...]

TOO_LATE = "Nobody answered in time, so this is settled."

NOTHING: Drafts = ()
"""The command has been carried out before, or asks for what is already so."""


def cancel(run: Run, reason: str | None = None) -> Drafts:
    """Ask for the end.

    :raises Fault: ``conflict`` for a run that has ended otherwise.
    """
    if run.status in ("cancelling", "cancelled"):
        return NOTHING
    _not_ended(run)
    return (draft("run.cancel_requested", **({} if reason is None else {"reason": reason})),)


def pause(run: Run) -> Drafts:
    """Pause a run that nobody works on; one at work is paused by its executor, at its step's
    border.

    :raises Fault: ``conflict`` for a run that is ending or has ended.
    """
    if run.status == "paused":
        return NOTHING
    _not_ended(run)
    if run.status == "cancelling":
        raise _conflict("The run is being cancelled, so it can't be paused.")
    return (draft("run.paused"),) if run.status in IDLE else NOTHING


def resume(run: Run, by: str) -> Drafts:
    """Let a paused run go on.

    :raises Fault: ``conflict`` for a run that waits for an answer, is ending or has ended.
    """
    _not_ended(run)
    match run.status:
        case "paused":
            return (draft("run.resumed", by=by),)
        case "waiting":
            raise _conflict(
                f"The run is not paused; it waits for {run.waiting_for}. Answer its open "
                "interrupts with POST /runs/{id}/interrupts/{interrupt_id}."
            )
        case "cancelling":
            raise _conflict("The run is being cancelled, so it can't be resumed.")
        case _:
            return NOTHING


def top_up(run: Run, added: Mapping[str, Any], by: str, key: str | None = None) -> Drafts:
    """Add to the budgets; a run that waits for more goes on.

    :param key: the caller's idempotency key; a second top-up of the same key adds nothing.
    :raises Fault: ``conflict`` for a run that is ending or has ended.
    """
    if key is not None and key in run.topped_up:
        return NOTHING
    _not_ended(run)
    if run.status == "cancelling":
        raise _conflict("The run is being cancelled; its budget does not matter any more.")
    told: dict[str, Any] = {"added": dict(added), "by": by}
    if key is not None:
        told["idempotency_key"] = key
    asked = next((i for i in run.open_interrupts() if i.kind == "budget"), None)
    if asked is not None:
        told["interrupt_id"] = asked.id
    return (draft("budget.topped_up", **told), *_resumed(run, by, waits_for="budget"))


def expire(run: Run, at: float) -> Drafts:
    """End a run that has been idle for longer than its time to live."""
    return closing(run, "run.expired", at) if run.status in IDLE else NOTHING


def give_up(run: Run, at: float) -> Drafts:
    """End a run that no worker can carry on with, through a mistake of the gateway's own."""
    if run.status == "cancelling":
        return closing(run, "run.cancelled", at)
    if run.status != "running":
        return NOTHING
    error = {"kind": "internal", "message": "The gateway made a mistake. It is in its log."}
    return closing(run, "run.failed", at, reason="internal", error=error)


def lapse(run: Run, at: float) -> Drafts:
    """Settle the approvals that nobody has given or refused in time, by their defaults."""
    late = [i for i in run.open_interrupts() if i.asked.get("expires_at", math.inf) <= at]
    drafts = [event for interrupt in late for event in _lapsed(run, interrupt)]
    return (*drafts, *_resumed(run, "expiry")) if drafts else NOTHING


def _lapsed(run: Run, interrupt: Interrupt) -> Drafts:
    default = interrupt.asked.get("default")
    if interrupt.call_id is None:
        told = {"interrupt_id": interrupt.id, "node": interrupt.asked["node"], "reason": "time"}
        why = {} if default is None else {"default": default}
        return (draft("approval.expired", step=interrupt.asked["node"], **told, **why),)
    call = run.calls[interrupt.call_id]
    expired = _about(call, "approval.expired", interrupt, reason="time", default=default)
    if default == "approve":
        return (expired,)
    return expired, _denied(call, "Nobody agreed to this call in time.")


# answers


def answer(run: Run, interrupt_id: str, given: Answer, by: str, check: Check, at: float) -> Drafts:
    """Answer an open question.

    :param at: Unix seconds: who comes after the question's expiry is late, even where nobody has
        drawn the conclusion yet.
    :raises Fault: ``not_found`` for an unknown question, ``bad_request`` for an answer that is
        none, ``conflict`` for one that comes too late or contradicts an earlier one.
    """
    interrupt = run.interrupts.get(interrupt_id)
    if interrupt is None:
        raise Fault("not_found", "This run has no interrupt of this id.", param="interrupt_id")
    allowed = ACTIONS[interrupt.kind]
    if given.action not in allowed:
        raise Fault(
            "bad_request",
            f"This interrupt is answered by {' or '.join(allowed)}, not {given.action}.",
            param="action",
        )
    if interrupt.answer is not None:
        return _again(interrupt, given)
    _not_ended(run)
    if run.status == "cancelling":
        raise _conflict("The run is being cancelled; this is not asked any more.")
    if interrupt.asked.get("expires_at", math.inf) <= at:
        raise _conflict(TOO_LATE)
    if given.arguments_hash not in (None, interrupt.asked.get("arguments_hash")):
        raise _conflict("The arguments are not those that were shown. Read the request again.")
    drafts = ANSWERS[(interrupt.kind, given.action)](_Answering(run, interrupt, given, by, check))
    return (*drafts, *_resumed(run, "answer"))


class _Answering:
    """One answer on its way to events."""

    __slots__ = ("_by", "_check", "_given", "_interrupt", "_run")

    def __init__(
        self, run: Run, interrupt: Interrupt, given: Answer, by: str, check: Check
    ) -> None:
        self._run = run
        self._interrupt = interrupt
        self._given = given
        self._by = by
        self._check = check

    @property
    def _call(self) -> Call:
        return self._run.calls[str(self._interrupt.call_id)]

    def _event(self, type: str, **data: Any) -> Draft:
        return _about(self._call, type, self._interrupt, by=self._by, **data)

    def granted(self) -> Drafts:
        return (self._event("approval.granted"),)

    def denied(self) -> Drafts:
        reason = self._given.reason
        told = f"A person refused this call{f': {reason}' if reason else '.'}"
        why = {} if reason is None else {"reason": reason}
        return self._event("approval.denied", **why), _denied(self._call, told)

    def edited(self) -> Drafts:
        arguments = self._given.arguments
        if arguments is None:
            raise Fault("bad_request", "edit needs the new arguments.", param="arguments")
        tool = find_tool(self._run, self._call)
        try:
            read(_text(arguments), {} if tool is None else tool.parameters, self._check)
        except Refused as refused:
            raise Fault("bad_request", str(refused), param="arguments") from None
        hashed = digest(arguments)
        return (self._event("approval.edited", arguments=arguments, arguments_hash=hashed),)

    def result(self) -> Drafts:
        given = self._given
        told: dict[str, Any] = {"content": plain(given.content)}
        if given.structured is not None:
            told["structured"] = given.structured
        if given.is_error:
            settled = self._settled("tool.failed", kind="error", content=told["content"])
        else:
            settled = self._settled("tool.completed", **told)
        return self._provided(), settled

    def error(self) -> Drafts:
        reason = self._given.reason or "A person says that the call did not work."
        return self._provided(), self._settled("tool.failed", kind="error", content=said(reason))

    def fail(self) -> Drafts:
        reason = self._given.reason or "Nobody knows whether the call took effect."
        told = {"kind": "in_doubt", "content": said(reason), "fatal": True}
        return self._provided(), self._settled("tool.failed", **told)

    def said(self) -> Drafts:
        """What a person says to a workflow's node; it must fit what was asked."""
        asked = self._interrupt.asked
        problems = self._check(asked["schema"], spoken(_told(self._given)))
        if problems:
            text = f"The answer does not fit what is asked for: {'; '.join(problems[:5])}."
            raise Fault("bad_request", text)
        told = {"interrupt_id": self._interrupt.id, "node": asked["node"]}
        return (draft("input.provided", step=asked["node"], **told, value=_told(self._given)),)

    def topped_up(self) -> Drafts:
        added, asked = dict(self._given.added), self._interrupt.id
        return (draft("budget.topped_up", added=added, interrupt_id=asked, by=self._by),)

    def stopped(self) -> Drafts:
        asked = self._interrupt.asked
        told = {name: asked[name] for name in ("which", "used", "limit")}
        return (draft("budget.exhausted", **told, interrupt_id=self._interrupt.id, final=True),)

    def _provided(self) -> Draft:
        call = self._call
        told = {"interrupt_id": self._interrupt.id, "call_id": call.call_id}
        return draft(
            "input.provided", step=call.step, agent=call.agent, **told, value=_told(self._given)
        )

    def _settled(self, type: str, **data: Any) -> Draft:
        call = self._call
        told = {"call_id": call.call_id, "by": self._by, **data}
        return draft(type, step=call.step, agent=call.agent, **told)


ANSWERS: Mapping[tuple[str, str], Callable[[_Answering], Drafts]] = {
    ("approval", "approve"): _Answering.granted,
    ("approval", "deny"): _Answering.denied,
    ("approval", "edit"): _Answering.edited,
    ("input", "result"): _Answering.result,
    ("person", "approve"): _Answering.said,
    ("person", "deny"): _Answering.said,
    ("person", "result"): _Answering.said,
    ("budget", "top_up"): _Answering.topped_up,
    ("budget", "stop"): _Answering.stopped,
    ("in_doubt", "rerun"): _Answering.granted,
    ("in_doubt", "result"): _Answering.result,
    ("in_doubt", "error"): _Answering.error,
    ("in_doubt", "fail"): _Answering.fail,
}
"""By kind of question and by action: what an answer means."""

SAID: Mapping[str, str] = {
    "approval.granted": "approve",
    "approval.denied": "deny",
    "approval.edited": "edit",
    "budget.topped_up": "top_up",
    "budget.exhausted": "stop",
}
"""What the event that settled a question had answered, where its type says it."""


def _again(interrupt: Interrupt, given: Answer) -> Drafts:
    """A second answer: nothing if it says the same as the first.

    :raises Fault: ``conflict`` where it does not.
    """
    event = interrupt.answer
    assert event is not None
    before = event.data.get("value", {}).get("action") or SAID.get(event.type)
    if interrupt.kind == "in_doubt" and event.type == "approval.granted":
        before = "rerun"
    same = before == given.action
    if same and event.type == "approval.edited":
        same = event.data["arguments_hash"] == digest(given.arguments)
    if same and event.type == "input.provided":
        same = event.data["value"] == _told(given)
    if same:
        return NOTHING
    if event.type == "approval.expired":
        raise _conflict(TOO_LATE)
    if event.type.startswith(("tool.", "node.")):
        raise _conflict("What this was about has ended meanwhile, so it is not asked any more.")
    raise _conflict("This was answered otherwise before. The first answer counts.")


def _told(given: Answer) -> dict[str, Any]:
    """An answer as the ledger keeps it."""
    told: dict[str, Any] = {"action": given.action, "content": plain(given.content)}
    if given.structured is not None:
        told["structured"] = given.structured
    if given.reason is not None:
        told["reason"] = given.reason
    return told


NOBODY = object()
"""In place of what a person has said: nobody has, in time."""


def spoken(told: Mapping[str, Any]) -> Any:
    """The value of what a person said to a node (:func:`_told`): yes or no with a comment, a
    structured value, or a text."""
    if told["action"] == "expire":
        return NOBODY
    if told["action"] == "result":
        return told.get("structured", "".join(part["text"] for part in told["content"]))
    comment = {} if told.get("reason") is None else {"comment": told["reason"]}
    return {"approved": told["action"] == "approve", **comment}


def _text(arguments: Mapping[str, Any]) -> str:
    return dumps(arguments).decode()


def _about(call: Call, type: str, interrupt: Interrupt, **data: Any) -> Draft:
    told = {"interrupt_id": interrupt.id, "call_id": call.call_id, **data}
    return draft(type, step=call.step, agent=call.agent, **told)


def _denied(call: Call, text: str) -> Draft:
    told = {"call_id": call.call_id, "reason": "denied", "content": said(text)}
    return draft("tool.skipped", step=call.step, agent=call.agent, **told)


def _resumed(run: Run, by: str, waits_for: str | None = None) -> Drafts:
    """A waiting run goes on after an answer; the decider finds out how far."""
    if run.status != "waiting" or waits_for not in (None, run.waiting_for):
        return NOTHING
    return (draft("run.resumed", by=by),)


def _not_ended(run: Run) -> None:
    if run.status in ENDED:
        raise _conflict(f"The run has ended: it is {run.status}.")


def _conflict(message: str) -> Fault:
    return Fault("conflict", message)
