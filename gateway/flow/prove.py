"""The proof of an answer, as a stage: nothing unchecked goes on (promise 1).

``hold`` keeps the whole answer back, judges it at its end, and lets it go on proven and mended,
or ends it in a fault on which ``gateway.flow.attempt`` acts. ``verify`` lets it pass as it comes
and leaves its verdict for the end. Must not know providers, nor when a re-ask follows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from typing import Any

from adapters.canonical.completion import Completion, Fold
from adapters.canonical.events import (
    ArgumentsDelta,
    Event,
    Failed,
    Finished,
    PartAnnotated,
    PartStarted,
    Reason,
    TextDelta,
    Verbatim,
)
from adapters.canonical.faults import Fault
from adapters.canonical.parts import Refusal, Text, ToolCall
from adapters.canonical.record import record
from adapters.canonical.request import FunctionTool, JsonSchema
from adapters.wire.names import caller_name
from gateway.flow.context import Call
from gateway.structured.bounds import SchemaRefused
from gateway.structured.check import Checker
from gateway.structured.lenient import Change
from gateway.structured.mend import parses
from gateway.structured.negotiate import Asked
from gateway.structured.verdict import Kind, Verdict, Wanted, judge
from gateway.structured.words import Violation

CUT: frozenset[Reason] = frozenset({"length", "context_window"})
"""Ends that cut an answer off: it is never parsed (case O05)."""

PASSED: frozenset[Reason] = frozenset({"content_filter", "refusal", "pause"})
"""Ends without an answer, which the caller is to see as they are."""

MESSAGES: Mapping[Kind, str] = {
    "output_truncated": (
        "The model's answer was cut off at its token limit before the JSON was complete. Raise "
        "the limit of output tokens, or leave it out."
    ),
    "output_unparsable": (
        "The model's answer is no JSON, nor anything that could be read as JSON without a guess. "
        "`raw` has the answer, `errors` what is wrong with it."
    ),
    "output_invalid": (
        "The model's answer does not fit the JSON Schema that was asked for. `raw` has the "
        "answer, `errors` where it does not fit."
    ),
}

ARGUMENTS = (
    "The model's call of a tool does not fit the tool's own JSON Schema. `raw` has its arguments, "
    "`errors` what is wrong with them."
)
"""What is said instead where a tool call is meant."""


@record(frozen=True, slots=True)
class Promise:
    """What a call's answer has to be: ``output`` for its text, ``tools`` for the arguments of its
    calls, by the tool's name. ``None`` checks nothing."""

    output: Wanted | None
    tools: Mapping[str, Checker | None] | None


def promise(call: Call) -> Promise | None:
    """What the answer to ``call`` has to prove; ``None`` for most calls.

    :raises Fault: ``bad_request`` for a schema that is not taken.
    """
    return _promised(call) if call.proves else None


def _promised(call: Call) -> Promise:
    request, schemas = call.request, call.runtime.schemas
    output = None
    place = caller_name(request.origin, "output")
    try:
        if isinstance(request.output, JsonSchema):
            output = Wanted(schemas.checker(request.output.schema))
        elif request.output is not None:
            output = Wanted(None)
        tools: dict[str, Checker | None] | None = None
        if call.alias.on_invalid_arguments == "repair" and request.tools:
            tools = {}
            for number, tool in enumerate(request.tools):
                if isinstance(tool, FunctionTool):
                    place = f"tools[{number}].parameters"
                    given = tool.parameters
                    tools[tool.name] = None if given is None else schemas.checker(given)
    except SchemaRefused as why:
        raise Fault("bad_request", f"The JSON Schema can't be used: {why}.", param=place) from why
    return Promise(output, tools)


@record(slots=True)
class Proof:
    """The proof of one attempt.

    ``verdict`` is the worst found, ``None`` until the end or where nothing was to be judged.
    ``answer`` is what the model said, for a re-ask. ``changes`` are those made to what goes on.
    """

    promise: Promise
    asked: Asked | None
    verify: bool
    verdict: Verdict | None = None
    answer: Completion | None = None
    changes: tuple[Change, ...] = ()
    _fold: Fold = field(default_factory=Fold)
    _held: list[Event] = field(default_factory=list)

    def counts(self) -> dict[str, int]:
        """For the ledger: changes by kind, errors of a bad answer; numbers without text."""
        found = Counter(f"mended_{change.kind}" for change in self.changes)
        if self.verdict is not None and not self.verdict.ok:
            found["output_errors"] = len(self.verdict.violations)
        return dict(found)

    def told(self) -> Mapping[str, Any] | None:
        """What ``verify`` says at the end; ``valid`` is ``None`` where nothing was to be judged,
        as with a refusal."""
        if not self.verify or self.answer is None:
            return None
        verdict = self.verdict
        errors = () if verdict is None else verdict.violations
        return {
            "valid": None if verdict is None else verdict.ok,
            "code": None if verdict is None else verdict.kind,
            "errors": [violation.object() for violation in errors],
        }

    def feed(self, events: list[Event]) -> list[Event]:
        """Under ``hold`` nothing until the end, then all of it or a fault."""
        for event in events:
            self._fold.add(event)
        last = events[-1] if events else None
        if self.verify:
            if isinstance(last, Finished):
                self._judge(last)
            return events
        self._held += events
        if isinstance(last, Finished):
            return self._end(last)
        return self._release() if isinstance(last, Failed) else []

    def _release(self) -> list[Event]:
        held, self._held = self._held, []
        return held

    def _end(self, finished: Finished) -> list[Event]:
        verdicts = self._judge(finished)
        held = self._release()
        if self.verdict is not None and self.verdict.kind is not None:
            return [Failed(_fault(self.verdict.kind, self.verdict))]
        self.changes = tuple(change for _, one in verdicts for change in one.changes)
        return _rewritten(held, verdicts) if self.changes else held

    def _judge(self, finished: Finished) -> list[tuple[list[int], Verdict]]:
        """Each verdict with the parts that it speaks of; the first bad one is the answer's."""
        self.answer = self._fold.completion()
        verdicts = list(self._verdicts(self.answer, finished))
        if self.verify:
            verdicts = [(parts, _as_it_came(one)) for parts, one in verdicts]
        for _, verdict in verdicts:
            if self.verdict is None or (self.verdict.ok and not verdict.ok):
                self.verdict = verdict
        return verdicts

    def _verdicts(
        self, answer: Completion, finished: Finished
    ) -> Iterator[tuple[list[int], Verdict]]:
        others = {number: reason for number, (reason, _) in finished.choices.items()}
        for number, reason in sorted({0: finished.reason, **others}.items()):
            places = [n for n, choice in enumerate(answer.choices) if choice == number]
            if any(isinstance(answer.parts[n], ToolCall) for n in places):
                yield from self._calls(answer, places, reason, number)
            elif self.promise.output is not None:
                yield from self._text(answer, places, reason, number)

    def _text(
        self, answer: Completion, places: list[int], reason: Reason, number: int
    ) -> Iterator[tuple[list[int], Verdict]]:
        """The verdict on a choice's text."""
        refused = any(isinstance(answer.parts[n], Refusal) for n in places)
        wanted = self.promise.output
        if wanted is None or refused or reason in PASSED:
            return
        parts = {n: part for n in places if isinstance(part := answer.parts[n], Text)}
        text = "".join(part.text for part in parts.values())
        if reason in CUT:
            verdict = _truncated(text)
        else:
            optional = () if self.asked is None else self.asked.optional
            verdict = judge(text, replace(wanted, optional=optional), ended=reason == "stop")
        yield list(parts), replace(verdict, choice=number)

    def _calls(
        self, answer: Completion, places: list[int], reason: Reason, number: int
    ) -> Iterator[tuple[list[int], Verdict]]:
        """The verdicts on a choice's tool calls; of a turn that was cut off, a call that is whole
        is one."""
        tools = self.promise.tools
        for place in places if tools is not None else ():
            part = answer.parts[place]
            if isinstance(part, ToolCall) and part.kind == "function":
                cut = reason in CUT and not parses(part.arguments)
                known = tools or {}
                verdict = _truncated(part.arguments) if cut else _arguments(part, known)
                yield [place], replace(verdict, where=part.call_id, choice=number)


def _truncated(text: str) -> Verdict:
    cut = Violation("", "an answer that was cut off", "a whole one")
    return Verdict(text, (), "output_truncated", (cut,))


def _arguments(call: ToolCall, tools: Mapping[str, Checker | None]) -> Verdict:
    """The verdict on one call; no arguments at all are fine for a tool that takes none."""
    if call.name not in tools:
        known = ", ".join(tools)
        wrong = Violation("", f"a call of {call.name[:80]!r}", f"one of the tools {known[:400]}")
        return Verdict(call.arguments, (), "output_invalid", (wrong,))
    checker = tools[call.name]
    if not call.arguments and (checker is None or checker.fits({})):
        return Verdict(call.arguments)
    return judge(call.arguments, Wanted(checker))


def _as_it_came(verdict: Verdict) -> Verdict:
    """What is mended can't be called valid where the caller has it unmended already."""
    if not verdict.changes:
        return verdict
    wrong = tuple(
        Violation("", f"{change.before or 'nothing'} at character {change.at}", change.kind)
        for change in verdict.changes[:10]
    )
    return replace(verdict, changes=(), kind="output_unparsable", violations=wrong)


def _fault(kind: Kind, verdict: Verdict) -> Fault:
    data = verdict.data()
    if kind == "output_truncated":
        data["finish_reason"] = "length"
    if verdict.where is not None:
        data["tool_call_id"] = verdict.where
    is_call = verdict.where is not None and kind != "output_truncated"
    message = ARGUMENTS if is_call else MESSAGES[kind]
    return Fault(kind, message, data=data)


def _rewritten(events: list[Event], verdicts: list[tuple[list[int], Verdict]]) -> list[Event]:
    """``events`` with what was mended, in one piece, at the head of the first part that it
    stood in; the provider's own bytes and probabilities no longer tell of it."""
    written = {places[0]: one.text for places, one in verdicts if one.changes and places}
    silent = {place for places, one in verdicts if one.changes for place in places}
    out: list[Event] = []
    for event in events:
        if isinstance(event, Verbatim):
            continue
        if isinstance(event, TextDelta | ArgumentsDelta) and event.index in silent:
            continue
        if isinstance(event, PartAnnotated) and event.key == "logprobs" and event.index in silent:
            continue
        out.append(event)
        if isinstance(event, PartStarted) and event.index in written:
            delta = ArgumentsDelta if isinstance(event.head, ToolCall) else TextDelta
            out.append(delta(event.index, written[event.index]))
    return out


class Unwrap:
    """A stage that shows the arguments of the forced tool as the text that they stand for."""

    __slots__ = ("_calls", "_places", "_tool")

    def __init__(self, tool: str) -> None:
        self._tool = tool
        self._places: set[int] = set()
        self._calls = 0

    def feed(self, events: list[Event]) -> list[Event]:
        """``events`` as though the model had written its answer."""
        return [self._shown(event) for event in events if not isinstance(event, Verbatim)]

    def _shown(self, event: Event) -> Event:
        match event:
            case PartStarted(head=ToolCall(name=name)):
                if name != self._tool:
                    self._calls += 1
                    return event
                self._places.add(event.index)
                return PartStarted(event.index, Text(""), event.choice)
            case ArgumentsDelta() if event.index in self._places:
                return TextDelta(event.index, event.text)
            case Finished(reason="tool_calls") if self._places and not self._calls:
                return replace(event, reason="stop", raw_reason=None)
            case _:
                return event
