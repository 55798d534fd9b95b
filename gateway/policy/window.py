"""Making a request fit a model's context window, by the alias's choice.

``refuse`` sends nothing that can't fit. ``trim_history`` drops the oldest whole turns: a tool
call never without its result, system messages and the last user message never.
``truncate_tool_results`` keeps the head and the tail of long tool results and marks the cut.
What was taken away is counted, for the header, the ledger and a run's events. Trimming aims at
the estimate *plus* its bound, so that the request surely fits; a request is refused only where
the estimate *less* its bound is too much, so that nothing is refused on a guess. Pure; must not
know dialects or where the request came from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

from adapters.canonical.facts import Facts
from adapters.canonical.faults import Fault
from adapters.canonical.parts import Part, Text, ToolResult
from adapters.canonical.record import record
from adapters.canonical.request import Message, Request
from gateway.policy.tokens import Estimate, estimate, text_length

Policy = Literal["refuse", "trim_history", "truncate_tool_results"]

SHORTEST_RESULT = 400
"""Characters that a truncated tool result keeps at least: less would say nothing."""

MARK_LENGTH = 60
"""Characters: a result is cut only where that saves more than the mark costs."""

HEAD_SHARE = 0.7
"""The share of a truncated result that is kept from its head."""

ROUNDS = 12
"""How often a cut is checked and tightened; the first nearly always does."""

PINNED = ("system", "developer")


class Fit(NamedTuple):
    """A request that fits, and what was left out of it: ``turns`` and ``messages``, or
    ``tool_results`` and ``characters``; empty where nothing was."""

    request: Request
    trimmed: Mapping[str, int]


@record(frozen=True, slots=True)
class _Budget:
    """``window`` less the tokens reserved for the answer, and how requests are counted."""

    facts: Facts
    room: int

    def count(self, request: Request) -> Estimate:
        return estimate(request, self.facts)

    def sure(self, counted: Estimate) -> bool:
        return counted.tokens + counted.bound <= self.room

    def hopeless(self, counted: Estimate) -> bool:
        return counted.tokens - counted.bound > self.room

    def excess(self, counted: Estimate) -> float:
        """The share of the request that has to go."""
        whole = counted.tokens + counted.bound
        return max(0.0, 1.0 - self.room / whole) if whole else 0.0


def fit(request: Request, facts: Facts, policy: Policy, reserved: int = 0) -> Fit:
    """Make ``request`` fit the model's window together with ``reserved`` output tokens.

    A model whose window is not known takes everything.

    :raises Fault: ``context_overflow`` with the numbers, where it can't fit.
    """
    if facts.window is None:
        return Fit(request, {})
    budget = _Budget(facts, facts.window - reserved)
    counted = budget.count(request)
    if budget.sure(counted):
        return Fit(request, {})
    found = POLICIES[policy](request, budget, counted)
    if found.trimmed:
        counted = budget.count(found.request)
    if budget.hopeless(counted):
        raise overflow(facts, counted, reserved, found.trimmed)
    return found


def overflow(
    facts: Facts, counted: Estimate, reserved: int, trimmed: Mapping[str, int] | None = None
) -> Fault:
    """The fault of a request that is too long, with every number it rests on."""
    answer = f" and {reserved} for the answer" if reserved else ""
    after = " after everything that may be trimmed was" if trimmed else ""
    return Fault(
        "context_overflow",
        f"The request needs about {counted.tokens} input tokens (give or take {counted.bound})"
        f"{answer}{after}, but the context window of {facts.model} is {facts.window} tokens. "
        "Shorten the messages, ask for a shorter answer, or use a model with a wider window.",
        data={
            "estimated_input_tokens": counted.tokens,
            "error_bound": counted.bound,
            "reserved_output_tokens": reserved,
            "context_window": facts.window,
        },
    )


def _refuse(request: Request, budget: _Budget, counted: Estimate) -> Fit:
    return Fit(request, {})


# ------------------------------------------------------------------ whole turns


def _trim_history(request: Request, budget: _Budget, counted: Estimate) -> Fit:
    """Drop the oldest turns until the rest surely fits, or only the last turn is left."""
    turns = _turns(request.messages)
    lengths = [sum(map(_length, (request.messages[n] for n in turn))) for turn in turns]
    total = sum(map(_length, request.messages)) or 1
    dropped, kept = 0, request
    for _ in range(ROUNDS):
        goal = budget.excess(counted) * total
        gone = 0
        while dropped < len(turns) - 1 and gone < max(goal, 1):
            gone += lengths[dropped]
            dropped += 1
        total -= gone
        left_out = {n for turn in turns[:dropped] for n in turn}
        messages = tuple(m for n, m in enumerate(request.messages) if n not in left_out)
        kept = replace(request, messages=messages)
        counted = budget.count(kept)
        if budget.sure(counted) or dropped >= len(turns) - 1:
            break
    if not dropped:
        return Fit(request, {})
    return Fit(kept, {"turns": dropped, "messages": len(request.messages) - len(kept.messages)})


def _turns(messages: Sequence[Message]) -> list[list[int]]:
    """The conversation's turns as message numbers, pinned messages left out. A turn begins with
    a user's own message; one that begins with tool results goes on."""
    turns: list[list[int]] = []
    for number, message in enumerate(messages):
        if message.role in PINNED:
            continue
        if not turns or _begins_turn(message):
            turns.append([])
        turns[-1].append(number)
    return turns


def _begins_turn(message: Message) -> bool:
    return message.role == "user" and not any(isinstance(p, ToolResult) for p in message.parts)


def _length(message: Message) -> int:
    return sum(map(text_length, message.parts))


# ------------------------------------------------------------------ tool results


def _truncate_tool_results(request: Request, budget: _Budget, counted: Estimate) -> Fit:
    """Cut the longest tool results to one common length that lets the request fit."""
    lengths = sorted((len(text.text) for text in _result_texts(request)), reverse=True)
    if not lengths or lengths[0] <= SHORTEST_RESULT + MARK_LENGTH:
        return Fit(request, {})
    total = sum(map(_length, request.messages)) or 1
    limit = _common_length(lengths, budget.excess(counted) * total)
    kept = request
    for _ in range(ROUNDS):
        kept = _cut(request, limit)
        if limit <= SHORTEST_RESULT or budget.sure(budget.count(kept)):
            break
        limit = max(SHORTEST_RESULT, int(limit * 0.7))
    cut = [length for length in lengths if length > limit + MARK_LENGTH]
    if not cut:
        return Fit(request, {})
    return Fit(kept, {"tool_results": len(cut), "characters": sum(cut) - limit * len(cut)})


def _common_length(longest_first: Sequence[int], too_much: float) -> int:
    """The length to which the longest results must be cut to lose ``too_much`` characters."""
    taken = 0.0
    for rank, length in enumerate(longest_first, start=1):
        shorter = longest_first[rank] if rank < len(longest_first) else 0
        taken += rank * (length - shorter)
        if taken >= too_much:
            return max(SHORTEST_RESULT, shorter + int((taken - too_much) / rank))
    return SHORTEST_RESULT


def _result_texts(request: Request) -> Iterator[Text]:
    for message in request.messages:
        for part in message.parts:
            if isinstance(part, ToolResult):
                yield from (piece for piece in part.content if isinstance(piece, Text))


def _cut(request: Request, limit: int) -> Request:
    """``request`` with every tool result's text cut to ``limit`` characters."""

    def shortened(part: Part) -> Part:
        if not isinstance(part, ToolResult):
            return part
        pieces = tuple(
            replace(p, text=_ends(p.text, limit)) if isinstance(p, Text) else p
            for p in part.content
        )
        return part if pieces == part.content else replace(part, content=pieces)

    messages = []
    for message in request.messages:
        parts = tuple(map(shortened, message.parts))
        messages.append(message if parts == message.parts else replace(message, parts=parts))
    return replace(request, messages=tuple(messages))


def _ends(text: str, limit: int) -> str:
    """``limit`` characters of ``text`` from its two ends, and between them how many are gone."""
    if len(text) <= limit + MARK_LENGTH:
        return text
    head = int(limit * HEAD_SHARE)
    tail = limit - head
    return f"{text[:head]}\n[... {len(text) - limit} characters left out ...]\n{text[-tail:]}"


POLICIES: Mapping[Policy, Callable[[Request, _Budget, Estimate], Fit]] = {
    "refuse": _refuse,
    "trim_history": _trim_history,
    "truncate_tool_results": _truncate_tool_results,
}
"""One function for each value of ``Alias.context``."""
