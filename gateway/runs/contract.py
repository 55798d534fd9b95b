"""An agent's contract, held against what has happened: by program, never by prompt. Pure.

A rule sees the run's calls and the answer; it can't be talked out of anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from adapters.canonical.plain import plain
from gateway.runs.spec import Rule
from gateway.runs.state import Call, Run

ASSUMPTION = "[assumption]"
_CITED = re.compile(r"\[([^\[\]\s]+)\]")


def broken_by_call(rules: tuple[Rule, ...], run: Run, call: Call) -> Rule | None:
    """The first rule that making ``call`` would break."""
    for rule in rules:
        if rule.kind == "require" and rule.before == call.name and not _succeeded(run, rule.tool):
            return rule
        if rule.kind == "at_most" and rule.tool == call.name and _made(run, call) >= rule.count:
            return rule
    return None


def _succeeded(run: Run, tool: str | None) -> bool:
    return any(c.name == tool and c.outcome == "completed" for c in run.calls.values())


def _made(run: Run, call: Call) -> int:
    """How many calls of the same tool come before ``call`` and are not refused."""
    count = 0
    for other in run.calls.values():
        if other.call_id == call.call_id:
            break
        refused = other.outcome == "skipped" or other.problem == "invalid_arguments"
        count += other.name == call.name and not refused
    return count


def broken_by_answer(rules: tuple[Rule, ...], run: Run, text: str, value: Any) -> Rule | None:
    """The first rule that this answer breaks. ``value`` is the answer as JSON, where it is."""
    for rule in rules:
        if rule.kind == "claims" and not all(
            _founded(run, claim) for claim in _claims(text, value)
        ):
            return rule
    return None


def _claims(text: str, value: Any) -> Iterator[Any]:
    """The claims of an answer: the objects of its ``claims`` list, else each line of text."""
    if isinstance(value, Mapping) and isinstance(value.get("claims"), list):
        yield from value["claims"]
    else:
        yield from (line for line in text.splitlines() if line.strip())


def _founded(run: Run, claim: Any) -> bool:
    """Whether a claim cites calls that succeeded, or says that it is an assumption."""
    if isinstance(claim, Mapping):
        if claim.get("assumption") is True:
            return True
        cited = claim.get("cites")
        cites = [str(one) for one in cited] if isinstance(cited, list) else []
    else:
        if ASSUMPTION in str(claim):
            return True
        cites = _CITED.findall(str(claim))
    known = [run.calls.get(call_id) for call_id in cites]
    return bool(known) and all(c is not None and c.outcome == "completed" for c in known)


def told(rule: Rule) -> str:
    """A broken rule in words for the model."""
    match rule.kind:
        case "require":
            return f"{rule.before} may only be called after {rule.tool} has succeeded."
        case "at_most":
            return f"{rule.tool} may be called {rule.count} times at most."
        case "claims":
            return (
                "Each claim of the answer must cite the tool calls that it rests on, as "
                f"[call id], or be marked {ASSUMPTION}. The ids stand at the head of the results."
            )


def shown(rule: Rule) -> dict[str, Any]:
    """A rule as events tell it."""
    data: dict[str, Any] = plain(rule)
    return data
