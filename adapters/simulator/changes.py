"""How an answer is altered before it is written down; rows of the catalogue."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from adapters.simulator import mind
from adapters.simulator.meter import part_tokens
from adapters.simulator.words import Answer, Ask, Call, Stop, Think

Args = Mapping[str, str]


def reasoning(answer: Answer, ask: Ask, args: Args) -> Answer:
    """Reasoning first, asked for or not."""
    return _thinking(answer, mind.thought(ask))


def sealed_reasoning(answer: Answer, ask: Ask, args: Args) -> Answer:
    """Reasoning that comes sealed, without readable text."""
    return _thinking(answer, replace(mind.thought(ask), hidden=True))


def _thinking(answer: Answer, thought: Think) -> Answer:
    rest = [part for part in answer.parts if not isinstance(part, Think)]
    return replace(answer, parts=(thought, *rest))


def only_reasoning(answer: Answer, ask: Ask, args: Args) -> Answer:
    """The token limit met before any text."""
    return replace(answer, parts=(mind.thought(ask),), stop="length")


def slow(answer: Answer, ask: Ask, args: Args) -> Answer:
    """MS milliseconds before each delta."""
    return replace(answer, pace=float(args["MS"]) / 1000)


def length_cut(answer: Answer, ask: Ask, args: Args) -> Answer:
    """Half of the last part, ended by the token limit."""
    *before, last = answer.parts
    size = max(part_tokens(last) * 4 // 2, 1)
    return replace(answer, parts=(*before, mind.shortened(last, size)), stop="length")


def _stopped(answer: Answer, stop: Stop) -> Answer:
    return replace(answer, stop=stop)


def pause_turn(answer: Answer, ask: Ask, args: Args) -> Answer:
    """A turn that the caller is to continue."""
    return _stopped(answer, "pause")


def window_full(answer: Answer, ask: Ask, args: Args) -> Answer:
    """The answer met the end of the context window."""
    return _stopped(answer, "context")


def filtered(answer: Answer, ask: Ask, args: Args) -> Answer:
    """The filter ended the answer."""
    return _stopped(answer, "filter")


def unknown_reason(answer: Answer, ask: Ask, args: Args) -> Answer:
    """A reason to stop that nobody has heard of."""
    return replace(answer, reason="brand_new_reason")


def usage_missing(answer: Answer, ask: Ask, args: Args) -> Answer:
    """No usage anywhere."""
    return replace(answer, reports_usage=False)


def duplicate_ids(answer: Answer, ask: Ask, args: Args) -> Answer:
    """All tool calls under one id."""
    parts = [
        replace(part, id="call_duplicate") if isinstance(part, Call) else part
        for part in answer.parts
    ]
    return replace(answer, parts=tuple(parts))


def strange_ids(answer: Answer, ask: Ask, args: Args) -> Answer:
    """Tool calls under ids that other vendors refuse."""
    parts = [
        replace(part, id=f"functions.{part.name}:{number}|x" + "y" * 64)
        if isinstance(part, Call)
        else part
        for number, part in enumerate(answer.parts)
    ]
    return replace(answer, parts=tuple(parts))
