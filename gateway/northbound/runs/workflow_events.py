"""A run as the seven workflow events: a pure projection of its ledger.

Each agent's part is ``start_of_agent``, its ``messages``, ``end_of_agent``; a node that is one call
counts as an agent of its node's name. What a coordinator says when it hands over is nobody's
message, and a new agent is told of before the end of the one that made it. The same ledger always
gives the same frames, so a frame's number is a reader's place.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from adapters.canonical.record import record
from adapters.wire.json import dumps

Json = dict[str, Any]
Event = Mapping[str, Any]
"""A run event's envelope."""

CALL = "call:"
TOOL = "tool:"


@record(slots=True)
class _Part:
    """An agent's part in the run, between its start and its end."""

    name: str
    id: str
    kind: str
    sent: dict[str, str] = field(default_factory=dict)


@record(slots=True)
class WorkflowEvents:
    """Feed it every event of a run, from the first on."""

    _run_id: str = ""
    _kinds: dict[str, str] = field(default_factory=dict)
    _counts: dict[str, int] = field(default_factory=dict)
    _open: dict[str, _Part] = field(default_factory=dict)
    _turns: dict[str, int] = field(default_factory=dict)
    _held: list[_Part] = field(default_factory=list)

    def feed(self, event: Event) -> list[Json]:
        """The workflow events that follow from ``event``."""
        if event["type"] in ENDINGS:
            return [*self._released(), *self._ended(event)]
        handler = HANDLERS.get(event["type"])
        return [] if handler is None else handler(self, event)

    def _created(self, event: Event) -> list[Json]:
        self._run_id = event["run_id"]
        given = _messages(event["data"]["spec"])
        data = {"workflow_id": self._run_id, "input": given}
        return [{"event": "start_of_workflow", "data": data}]

    # an agent's part

    def _node_started(self, event: Event) -> list[Json]:
        place = _place(event)
        self._kinds[place] = event["data"]["kind"]
        if event["data"]["kind"] != "call":
            return []
        return self._start(place, str(event["agent"]).removeprefix(CALL))

    def _agent_started(self, event: Event) -> list[Json]:
        name = str(event["agent"])
        return [] if name.startswith(TOOL) else self._start(_thread(event), name)

    def _start(self, thread: str, name: str) -> list[Json]:
        number = self._counts[name] = self._counts.get(name, 0) + 1
        kind = self._kinds.get(thread, "agent")
        part = _Part(name, f"{self._run_id}_{name}_{number}", kind)
        self._open[thread] = part
        return [_about(part, "start_of_agent")]

    def _agent_finished(self, event: Event) -> list[Json]:
        thread = _thread(event)
        part = self._open.get(thread)
        if part is None or part.name != event["agent"]:
            thread = next((t for t, p in self._open.items() if p.name == event["agent"]), "")
        return self._end(thread)

    def _node_ended(self, event: Event) -> list[Json]:
        path, attempt = event["data"]["node"], event["data"].get("attempt", 1)
        return self._end(path if attempt == 1 else f"{path}~{attempt}")

    def _end(self, thread: str) -> list[Json]:
        part = self._open.pop(thread, None)
        if part is None:
            return []
        if part.kind == "factory":  # its end comes after what it has made
            self._held.append(part)
            return []
        return [_about(part, "end_of_agent")]

    def _made(self, event: Event) -> list[Json]:
        spec = event["data"]["spec"]
        data = {"new_agent_name": spec["name"], "agent_obj": spec}
        name = event["data"]["created_by"]
        return [
            {"event": "new_agent_created", "agent_name": name, "data": data},
            *self._released(),
        ]

    def _released(self) -> list[Json]:
        held, self._held = self._held, []
        return [_about(part, "end_of_agent") for part in held]

    # messages

    def _asked(self, event: Event) -> list[Json]:
        self._turns[event["step"]] = self._turns.get(event["step"], 0) + 1
        return []

    def _delta(self, event: Event) -> list[Json]:
        part = self._open.get(_thread(event))
        if part is None or part.kind == "coordinator":
            return []
        return self._said(part, event, event["data"]["text"])

    def _completed(self, event: Event) -> list[Json]:
        """The whole message is the authority: what no delta has told is told now."""
        part = self._open.get(_thread(event))
        if part is None:
            return []
        text = event["data"]["text"]
        if part.kind == "coordinator":
            return self._said(part, event, _answer(text))
        before = part.sent.get(self._message(event), "")
        return self._said(part, event, text[len(before) :] if text.startswith(before) else "")

    def _said(self, part: _Part, event: Event, text: str) -> list[Json]:
        if not text:
            return []
        message = self._message(event)
        part.sent[message] = part.sent.get(message, "") + text
        data = {"message_id": message, "delta": {"content": text}}
        return [{"event": "messages", "agent_name": part.name, "data": data}]

    def _message(self, event: Event) -> str:
        step = event["step"]
        return f"{self._run_id}_{step}_{self._turns.get(step, 1)}"

    # the end

    def _ended(self, event: Event) -> list[Json]:
        ends = [_about(part, "end_of_agent") for part in self._open.values()]
        self._open.clear()
        data = event["data"]
        about: Json = {"workflow_id": self._run_id}
        if event["type"] == "run.completed":
            said = {"role": "assistant", "content": data["output"]["text"] or ""}
            return [*ends, {"event": "end_of_workflow", "data": {**about, "messages": [said]}}]
        status = event["type"].removeprefix("run.")
        error = (data.get("error") or {}).get("message")
        reason = f": {data['reason']}" if data.get("reason") else ""
        told = error or f"The run is {status}{reason}."
        return [*ends, {"event": "error", "data": {**about, "error": told}}]


ENDINGS = frozenset(
    {"run.completed", "run.failed", "run.incomplete", "run.cancelled", "run.expired"}
)
HANDLERS = {
    "run.created": WorkflowEvents._created,
    "node.started": WorkflowEvents._node_started,
    "node.finished": WorkflowEvents._node_ended,
    "node.skipped": WorkflowEvents._node_ended,
    "agent.started": WorkflowEvents._agent_started,
    "agent.finished": WorkflowEvents._agent_finished,
    "agent.created": WorkflowEvents._made,
    "model.started": WorkflowEvents._asked,
    "message.delta": WorkflowEvents._delta,
    "message.completed": WorkflowEvents._completed,
}
"""By type of run event: what becomes of it. All others are nothing here."""


def _place(event: Event) -> str:
    path, attempt = event["data"]["node"], event["data"].get("attempt", 1)
    return path if attempt == 1 else f"{path}~{attempt}"


def _thread(event: Event) -> str:
    """The conversation of an event; that of a run with only one is ``main``."""
    step = event["step"]
    return "main" if step is None else str(step).rpartition("/")[0]


def _about(part: _Part, event: str) -> Json:
    return {"event": event, "data": {"agent_name": part.name, "agent_id": part.id}}


def _answer(text: str) -> str:
    """What a coordinator answers; nothing where it hands over."""
    try:
        said = json.loads(text)
    except ValueError:
        return ""
    return str(said.get("text", "")) if said.get("action") == "answer" else ""


def _messages(spec: Mapping[str, Any]) -> list[Json]:
    """The run's input as messages."""
    if spec.get("kind") != "workflow":
        return [_shown(one) for one in spec.get("input") or ()]
    earlier = [_shown(one) for one in spec.get("history") or ()]
    value = spec.get("value")
    if value is None:
        return earlier
    if _are_messages(value):
        return [*earlier, *({"role": m["role"], "content": m["content"]} for m in value)]
    text = value if isinstance(value, str) else dumps(value).decode()
    return [*earlier, {"role": "user", "content": text}]


def _are_messages(value: Any) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(one, Mapping) and {"role", "content"} <= set(one) for one in value)
    )


def _shown(message: Mapping[str, Any]) -> Json:
    texts = [part.get("text", "") for part in message["parts"]]
    return {"role": message["role"], "content": "".join(texts)}


def frames(told: Sequence[Json], first: int) -> bytes:
    """Server-sent events, numbered from ``first`` on."""
    return b"".join(
        b"id: %d\nevent: %s\ndata: %s\n\n" % (number, one["event"].encode(), dumps(one))
        for number, one in enumerate(told, first)
    )
