"""What happens in a run: the closed table of event types, and the event itself.

Subscribers see exactly these. What a provider streams stays below ``flow``; here a model turn is
a few events, whose deltas are for the eye and whose ``message.completed`` is the authority.
``docs/runs.md`` shows this table; a test holds the two equal. Pure words, no rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adapters.canonical.record import record


@record(frozen=True, slots=True)
class Shape:
    """What an event of a type means, and the fields of its ``data``: all of ``need``, any of
    ``may``. The fields themselves are in :data:`FIELDS`."""

    meaning: str
    need: tuple[str, ...] = ()
    may: tuple[str, ...] = ()


def _shape(meaning: str, need: str = "", may: str = "") -> Shape:
    return Shape(meaning, tuple(need.split()), tuple(may.split()))


_END = "output trace usage"

EVENTS: Mapping[str, Shape] = {
    "run.created": _shape("The run exists from here on.", "spec", "forked_from"),
    "run.started": _shape("A worker has begun with it."),
    "run.waiting": _shape(
        "Nothing can go on before somebody answers; no worker is held.",
        "for interrupts",
        "children",
    ),
    "run.resumed": _shape("It may go on.", "by"),
    "run.paused": _shape("A caller paused it, at a step's border."),
    "run.cancel_requested": _shape("A caller wants it ended.", "", "reason"),
    "run.recovered": _shape(
        "A worker has taken it over from one that was lost in the middle of a step.",
        "abandoned rerun in_doubt",
    ),
    "run.completed": _shape("It has reached its answer.", _END),
    "run.failed": _shape("It could not.", f"reason error {_END}"),
    "run.incomplete": _shape("A limit ended it; what was made is there.", f"reason {_END}"),
    "run.cancelled": _shape("A caller ended it.", _END, "reason"),
    "run.expired": _shape("Nobody answered, or no worker came, within its time to live.", _END),
    "agent.started": _shape("An agent takes part, with these tools.", "tools", "missing"),
    "agent.handoff": _shape("An agent gave the conversation to another.", "to", "call_id"),
    "agent.created": _shape("A team made a new agent.", "spec", "created_by"),
    "agent.finished": _shape("An agent's part is over.", "outcome"),
    "node.started": _shape("A workflow's node began.", "node kind", "input attempt"),
    "node.finished": _shape(
        "A node's attempt ended; another follows where there is ``retry_after``.",
        "node status",
        "kind output error attempt retry_after",
    ),
    "node.skipped": _shape(
        "A node is not needed, or can't run any more.", "node reason", "kind error attempt"
    ),
    "model.started": _shape("A model turn began.", "model attempt request_id"),
    "model.attempt_failed": _shape(
        "A try at a provider failed; ``final`` where none follows.",
        "error",
        "deployment final retry_after usage cost_nano",
    ),
    "model.failover": _shape("The next try goes to another deployment.", "from to"),
    "model.finished": _shape(
        "A model turn ended; the message holds every part, sealed ones included.",
        "message finish_reason usage cost_nano",
        "model deployment ttft_ms",
    ),
    "message.delta": _shape("More text, as it comes.", "part text", "refusal"),
    "reasoning.delta": _shape("More reasoning, as it comes.", "part text", "section"),
    "message.completed": _shape("The whole message, whatever the deltas said.", "text parts"),
    "tool.requested": _shape("The model wants a tool.", "call_id tool arguments"),
    "tool.intent": _shape(
        "The call is about to be made; written before anything is done.",
        "call_id tool arguments idempotency_key schema_hash attempt",
        "child_run_id",
    ),
    "tool.progress": _shape(
        "The tool tells of its work; ``waiting_for`` where it is a child run that waits.",
        "call_id message",
        "done child_run_id waiting_for",
    ),
    "tool.completed": _shape(
        "The tool's result.",
        "call_id content",
        "structured truncated by usage cost_nano child_run_id",
    ),
    "tool.failed": _shape(
        "The call ended in an error, which the model is told.",
        "call_id kind content",
        "by fatal truncated usage cost_nano child_run_id",
    ),
    "tool.in_doubt": _shape(
        "A crash came between intent and result; a person has to say what is true.",
        "interrupt_id call_id tool arguments idempotency_key",
    ),
    "tool.skipped": _shape("The call was never made.", "call_id reason content"),
    "approval.requested": _shape(
        "A person has to agree to this call.",
        "interrupt_id call_id tool arguments arguments_hash schema_hash expires_at default",
    ),
    "approval.granted": _shape("Agreed.", "interrupt_id call_id", "by"),
    "approval.denied": _shape("Refused.", "interrupt_id call_id", "by reason"),
    "approval.edited": _shape(
        "Agreed, with other arguments.", "interrupt_id call_id arguments arguments_hash", "by"
    ),
    "approval.expired": _shape(
        "Not answered in time, or void since the tool has changed.",
        "interrupt_id reason",
        "call_id node default",
    ),
    "input.requested": _shape(
        "The caller's own program has to do this.",
        "interrupt_id tool arguments",
        "call_id node schema expires_at default",
    ),
    "input.provided": _shape("It did.", "interrupt_id", "call_id node value"),
    "schema.invalid": _shape("An answer did not fit its schema.", "errors attempt"),
    "schema.repaired": _shape("It was mended, or asked for again with success.", "changes"),
    "schema.gave_up": _shape("It never fitted.", "errors"),
    "budget.threshold": _shape("A share of a budget is used.", "which share used limit"),
    "budget.exhausted": _shape(
        "A budget is used up.", "which used limit", "interrupt_id final"
    ),
    "budget.topped_up": _shape("There is more.", "added", "interrupt_id idempotency_key by"),
    "context.trimmed": _shape("Old turns were left out so that the prompt fits.", "counts"),
    "contract.violated": _shape(
        "A rule of the contract was broken.", "rule action", "call_id message"
    ),
}  # fmt: skip
"""Every type there is. The set is closed: an unknown type is a programming error."""

TERMINAL = frozenset(
    {"run.completed", "run.failed", "run.incomplete", "run.cancelled", "run.expired"}
)
"""Each run gets exactly one of these, as its last event."""

DELTAS = frozenset({"message.delta", "reasoning.delta"})
"""For the eye only: nothing is decided on them, so they are not read when a run is taken up."""

FIELDS: Mapping[str, tuple[str, str]] = {
    "abandoned": ("list", "model turns that were cut: `{step, usage, cost_nano}`; asked again"),
    "action": ("string", "`block` or `fail`"),
    "added": ("object", "what the budget grew by: `{usd, tokens, tool_calls, seconds}`"),
    "arguments": ("string or object", "as the model wrote them; once checked, an object"),
    "arguments_hash": ("string", "SHA-256 of the arguments shown; an answer may name it"),
    "attempt": ("integer", "counts from 1"),
    "by": ("string", "who: a key's name, `caller`, `answer`, `expiry`, `child`"),
    "call_id": ("string", "the tool call; unique in the run"),
    "changes": ("list", "what was changed, in words"),
    "child_run_id": ("string", "the run that the tool is"),
    "children": ("list", "child runs that are waited for"),
    "content": ("list", "parts that the model reads"),
    "cost_nano": ("integer or null", "nano-dollars; null where no price is known"),
    "counts": ("object", "how much was left out"),
    "created_by": ("string", "the agent that made it"),
    "default": ("string", "what counts as the answer after the expiry"),
    "deployment": ("string", "`provider/model`"),
    "done": ("number", "how much is done, from 0 to 1"),
    "error": ("object", "`{kind, message}`"),
    "errors": ("list", "what did not fit, with paths"),
    "expires_at": ("number", "Unix seconds"),
    "fatal": ("boolean", "the run can't go on after this"),
    "final": ("boolean", "nothing more is tried"),
    "finish_reason": ("string", "why the model stopped; `cut` where it was stopped"),
    "for": ("string", "`approval`, `input`, `budget` or `in_doubt`"),
    "forked_from": ("object", "`{run_id, seq}` of the run that this one branches off"),
    "from": ("string", "a deployment"),
    "idempotency_key": ("string", "`run_id:call_id`, the same on every try"),
    "in_doubt": ("list", "calls of which nobody knows whether they took effect"),
    "input": ("any", "what the node was given"),
    "interrupt_id": ("string", "what an answer names"),
    "interrupts": ("list", "the open ones"),
    "kind": ("string", "which kind of failure, or of node"),
    "limit": ("number", "the budget"),
    "message": ("object or string", "`{role, parts}`; a text in `tool.progress`"),
    "missing": ("list", "tools that are not to be had now"),
    "model": ("string", "the alias asked; the model that answered"),
    "node": ("string", "the node's id"),
    "outcome": ("string", "`answered`, `handed_over` or `stopped`"),
    "output": ("object", "`{text, value}`: the answer, or what was made so far"),
    "part": ("integer", "the part's place in the message"),
    "parts": ("list", "the parts that a reader may see"),
    "reason": ("string", "why, from a closed set"),
    "refusal": ("boolean", "the text declines"),
    "request_id": ("string", "the call's rows in the ledger of requests"),
    "rerun": ("list", "calls that may be made again, since they are idempotent or read-only"),
    "retry_after": ("number", "seconds until the next try"),
    "rule": ("object", "the rule, as declared"),
    "schema": ("object", "the JSON Schema of what is asked for"),
    "schema_hash": ("string", "stands for the tool's description and parameters"),
    "section": ("integer", "the part of a reasoning summary"),
    "share": ("number", "from 0 to 1"),
    "spec": ("object", "the whole specification"),
    "status": ("string", "`completed`, `failed` or `cancelled`"),
    "structured": ("any", "the result as JSON, for programs"),
    "text": ("string", ""),
    "to": ("string", "an agent, or a deployment"),
    "tool": ("string", "the tool's name"),
    "tools": ("list", "with schemas, policies and hashes"),
    "trace": ("list", "every tool call: `{call_id, tool, arguments, outcome, content}`"),
    "truncated": ("boolean", "the text was longer than the tool's cap"),
    "ttft_ms": ("number", "milliseconds to the first content"),
    "usage": ("object or null", "tokens, and in an ending everything that the run used"),
    "used": ("number", "of the budget, so far"),
    "value": ("any", "what was given"),
    "waiting_for": ("string", "what a child run waits for"),
    "which": ("string", "`usd`, `tokens`, `tool_calls`, `seconds`; `key` for the key's own"),
}
"""Every field that any ``data`` may have: its JSON type, and what it says."""


@record(frozen=True, slots=True)
class Draft:
    """An event that is not written yet; ``seq`` and time are the ledger's to give.

    ``step`` is the piece of work that it belongs to (``main/2``: the second turn of the thread
    ``main``), ``agent`` the agent that acts.
    """

    type: str
    data: Mapping[str, Any]
    step: str | None = None
    agent: str | None = None


def draft(type: str, *, step: str | None = None, agent: str | None = None, **data: Any) -> Draft:
    """A draft whose ``data`` has the shape of its type. A field named like a keyword of Python
    is given with a trailing underscore (``from_``, ``for_``).

    :raises ValueError: a field is missing or foreign, or there is no such type.
    """
    shape = EVENTS.get(type)
    if shape is None:
        raise ValueError(f"there is no event type {type!r}")
    fields = {name.rstrip("_"): value for name, value in data.items()}
    missing = [name for name in shape.need if name not in fields]
    foreign = [name for name in fields if name not in shape.need and name not in shape.may]
    if missing or foreign:
        raise ValueError(f"{type}: missing {missing}, foreign {foreign}")
    return Draft(type, fields, step, agent)


@record(frozen=True, slots=True)
class Event:
    """A written event. ``seq`` counts from 1 without a gap, ``at`` is Unix seconds, ``epoch``
    says which claim of the run wrote it."""

    run_id: str
    seq: int
    type: str
    at: float
    epoch: int
    step: str | None
    agent: str | None
    data: Mapping[str, Any]

    @property
    def terminal(self) -> bool:
        """Whether it is the run's last."""
        return self.type in TERMINAL

    def shown(self) -> dict[str, Any]:
        """The envelope, as subscribers get it."""
        return {
            "run_id": self.run_id,
            "seq": self.seq,
            "type": self.type,
            "at": self.at,
            "epoch": self.epoch,
            "step": self.step,
            "agent": self.agent,
            "data": self.data,
        }


def written(draft: Draft, run_id: str, seq: int, at: float, epoch: int) -> Event:
    """The event that ``draft`` becomes."""
    return Event(run_id, seq, draft.type, at, epoch, draft.step, draft.agent, draft.data)
