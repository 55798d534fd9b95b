"""Tool calls and their results: who belongs to whom, under which id.

Call ids minted by one provider are not always legal at another. They are mapped at the
upstream edge, deterministically, the same for call and result; the caller always sees its own
(fault kinds K01, N17, N18).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Set

from adapters.canonical.faults import Fault
from adapters.canonical.parts import ToolCall, ToolResult
from adapters.canonical.request import Request

PAIRED: Set[type] = frozenset({ToolCall, ToolResult})
"""The parts of which each needs another one."""

_ILLEGAL = re.compile(r"[^A-Za-z0-9_-]")


def safe_call_id(call_id: str, limit: int = 64) -> str:
    """``call_id`` unchanged where it is 1 to ``limit`` characters of ``[A-Za-z0-9_-]``, else
    cleaned and cut with a hash suffix: equal ids stay equal, different ones different."""
    if call_id and len(call_id) <= limit and _ILLEGAL.search(call_id) is None:
        return call_id
    digest = hashlib.sha256(call_id.encode()).hexdigest()[:12]
    return f"{_ILLEGAL.sub('_', call_id)[: limit - 13]}_{digest}"


def check_results(request: Request, param: str = "messages") -> None:
    """Refuse a tool result without its call, and a call that the next turn leaves unanswered.

    :param param: the name of the caller's list, for the error's ``param``.
    :raises Fault: ``bad_request`` with ``param`` = ``messages[i]``.
    """
    kinds = {type(part) for message in request.messages for part in message.parts}
    if kinds.isdisjoint(PAIRED):
        return
    known: set[str] = set()
    open_calls: dict[str, int] = {}
    for number, message in enumerate(request.messages):
        answered = False
        for part in message.parts:
            if isinstance(part, ToolResult):
                answered = True
                if part.call_id not in known:
                    raise _uncalled(f"{param}[{number}]")
                open_calls.pop(part.call_id, None)
        if open_calls and not answered and message.role in ("user", "assistant"):
            raise _unanswered(f"{param}[{min(open_calls.values())}]", f"{param}[{number}]")
        for part in message.parts:
            if isinstance(part, ToolCall):
                known.add(part.call_id)
                open_calls[part.call_id] = number


def _uncalled(where: str) -> Fault:
    return Fault(
        "bad_request",
        f"The tool result at {where} answers a call id that no earlier assistant "
        "message made. Send the assistant message with that tool call before it.",
        param=where,
    )


def _unanswered(call: str, turn: str) -> Fault:
    return Fault(
        "bad_request",
        f"{call} calls a tool whose result is missing before {turn}. "
        "Every tool call needs one tool result right after it.",
        param=call,
    )
