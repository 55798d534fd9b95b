"""The next turn of a conversation whose answer did not pass.

The model sees its own answer and exactly what is wrong with it; nothing is suggested. Pure.
"""

from __future__ import annotations

from dataclasses import replace

from adapters.canonical.completion import Completion
from adapters.canonical.parts import Part, Refusal, Text, Thinking, ToolCall, ToolResult
from adapters.canonical.request import Message, Request
from gateway.structured.verdict import Verdict

CORRECT = (
    "Your answer can't be used. It was checked by a program, which found:\n{errors}\n"
    "Answer again with the whole corrected JSON and nothing else."
)
ARGUMENTS = (
    "The tool was not run: its arguments don't fit its JSON Schema. A program found:\n{errors}\n"
    "Call the tool again with corrected arguments."
)
NOT_RUN = (
    "The tool was not run, because another call of the same turn had arguments that don't fit. "
    "Make all of the calls again."
)


def reask(request: Request, answer: Completion, verdict: Verdict) -> Request:
    """``request`` with the bad answer and the errors behind it."""
    if verdict.where is not None:
        return _with_results(request, answer, verdict)
    correction = Message("user", (Text(CORRECT.format(errors=_errors(verdict))),))
    said = tuple(part for part in _turn(answer, verdict.choice) if not _is_blank(part))
    turn = (Message("assistant", said),) if any(map(_speaks, said)) else ()
    return replace(request, messages=(*request.messages, *turn, correction))


def _with_results(request: Request, answer: Completion, verdict: Verdict) -> Request:
    """Every call of the turn gets a result, because every provider demands one."""
    turn = _turn(answer, verdict.choice)
    wrong = ARGUMENTS.format(errors=_errors(verdict))
    results = tuple(
        ToolResult(
            part.call_id,
            (Text(wrong if part.call_id == verdict.where else NOT_RUN),),
            is_error=True,
            kind=part.kind,
        )
        for part in turn
        if isinstance(part, ToolCall)
    )
    said = tuple(part for part in turn if not _is_blank(part))
    more = (Message("assistant", said), Message("tool", results))
    return replace(request, messages=(*request.messages, *more))


def _turn(answer: Completion, number: int) -> tuple[Part, ...]:
    parts = zip(answer.parts, answer.choices, strict=True)
    return tuple(part for part, choice in parts if choice == number)


def _is_blank(part: Part) -> bool:
    return isinstance(part, Text) and not part.text.strip()


def _speaks(part: Part) -> bool:
    """Whether a turn with ``part`` is more than thinking: providers refuse one that is not."""
    return not isinstance(part, Thinking | Refusal)


def _errors(verdict: Verdict) -> str:
    return "\n".join(f"- {violation}" for violation in verdict.violations)
