"""A run's events as lines for people: when, who, what. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from gateway.cli.output import GREEN, RED, YELLOW, seen

Event = Mapping[str, Any]
Data = Mapping[str, Any]

MAX_TEXT = 200
"""Characters of any text in a line."""


def line(event: Event, began: float) -> str | None:
    """One line for an event; ``None`` for one that says nothing to a reader.

    :param began: Unix seconds of the run's beginning.
    """
    says = LINES.get(event["type"])
    if says is None:
        return None
    text = says(event["data"])
    return seen(f"{event['at'] - began:9.3f}  {event['agent'] or '-':<16}  {text}")


TONES: Mapping[str, int] = {
    "run.completed": GREEN,
    **dict.fromkeys(("run.failed", "run.expired", "tool.failed", "contract.violated"), RED),
    **dict.fromkeys(("model.attempt_failed", "schema.gave_up"), RED),
    **dict.fromkeys(("run.incomplete", "run.cancelled", "run.waiting", "run.paused"), YELLOW),
    **dict.fromkeys(("approval.requested", "input.requested", "tool.in_doubt"), YELLOW),
}
"""The lines that stand out: ends, faults, and what waits for a person."""


def _cut(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = " ".join(text.split())
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"


def _content(data: Data) -> str:
    return _cut(" ".join(part.get("text", f"<{part['type']}>") for part in data["content"]))


def _error(data: Data) -> str:
    error = data["error"]
    return f"{error['kind']}: {_cut(error.get('message', ''))}".rstrip(": ")


def _ended(word: str) -> Callable[[Data], str]:
    def says(data: Data) -> str:
        used = data["usage"]
        reason = f" ({data['reason']})" if data.get("reason") else ""
        error = f" {_error(data)}" if "error" in data else ""
        return (
            f"{word}{reason}{error}: {_count(used['turns'], 'turn')}, "
            f"{_count(used['tool_calls'], 'tool call')}, {_count(used['total_tokens'], 'token')}, "
            f"${used['cost_usd']}, {used['seconds']} s at work"
        )

    return says


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _node(data: Data) -> str:
    """How an attempt at a node ended; where it failed, why, and when the next one comes."""
    error = f": {_error(data)}" if data.get("error") else ""
    pause = data.get("retry_after")
    again = "" if pause is None else f"; again in {pause:g} s"
    return f"node {data['node']}: {data['status']}{error}{again}"


def _question(data: Data) -> str:
    return f"? may it call {data['tool']} {_cut(data['arguments'])} [{data['interrupt_id']}]"


LINES: Mapping[str, Callable[[Data], str]] = {
    "run.created": lambda d: f"created: {d['spec']['kind']} {d['spec'].get('agent', '')}".rstrip(),
    "run.started": lambda d: "started",
    "run.waiting": lambda d: f"waits for {d['for']} [{', '.join(d['interrupts'])}]",
    "run.resumed": lambda d: f"goes on ({d['by']})",
    "run.paused": lambda d: "paused",
    "run.cancel_requested": lambda d: "is to be cancelled",
    "run.recovered": lambda d: (
        f"taken over: {_count(len(d['abandoned']), 'turn')} asked again, "
        f"{_count(len(d['rerun']), 'call')} made again, {len(d['in_doubt'])} in doubt"
    ),
    "run.completed": _ended("completed"),
    "run.failed": _ended("failed"),
    "run.incomplete": _ended("incomplete"),
    "run.cancelled": _ended("cancelled"),
    "run.expired": _ended("expired"),
    "agent.started": lambda d: f"with {', '.join(t['name'] for t in d['tools']) or 'no tools'}",
    "agent.handoff": lambda d: f"hands over to {d['to']}",
    "node.started": lambda d: f"node {d['node']} ({d['kind']})",
    "node.finished": _node,
    "node.skipped": lambda d: f"node {d['node']} skipped: {d['reason']}",
    "model.started": lambda d: f"asks {d['model']}",
    "model.attempt_failed": lambda d: f"! {d.get('deployment', '')} {_error(d)}",
    "model.failover": lambda d: f"tries {d['to']}",
    "message.completed": lambda d: f'says "{_cut(d["text"])}"',
    "tool.intent": lambda d: f"-> {d['tool']} {_cut(d['arguments'])}",
    "tool.progress": lambda d: f".. {_cut(d['message'])}",
    "tool.completed": lambda d: f"<- {_content(d)}",
    "tool.failed": lambda d: f"<- failed ({d['kind']}): {_content(d)}",
    "tool.skipped": lambda d: f"<- not made ({d['reason']}): {_content(d)}",
    "tool.in_doubt": lambda d: f"? did {d['tool']} take effect? [{d['interrupt_id']}]",
    "approval.requested": _question,
    "approval.granted": lambda d: f"agreed ({d.get('by', '')})",
    "approval.denied": lambda d: f"refused ({d.get('by', '')})",
    "approval.edited": lambda d: f"agreed with {_cut(d['arguments'])}",
    "approval.expired": lambda d: f"nobody answered ({d['reason']})",
    "input.requested": lambda d: f"? {d['tool']} {_cut(d['arguments'])} [{d['interrupt_id']}]",
    "input.provided": lambda d: "answered",
    "schema.invalid": lambda d: "the answer does not fit its schema",
    "schema.repaired": lambda d: f"repaired: {_cut(', '.join(map(str, d['changes'])))}",
    "schema.gave_up": lambda d: "the answer never fitted its schema",
    "budget.threshold": lambda d: f"{d['share']:.0%} of the budget of {d['which']} is used",
    "budget.exhausted": lambda d: f"the budget of {d['which']} is used up",
    "budget.topped_up": lambda d: f"the budget grew by {_cut(d['added'])}",
    "context.trimmed": lambda d: f"left out of the prompt: {_cut(d['counts'])}",
    "contract.violated": lambda d: f"! contract: {_cut(d['rule'])}",
}
"""By type. Deltas and what only programs need are left out."""
