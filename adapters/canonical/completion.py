"""A whole answer: the fold of its events, and the way back.

An answer that is not streamed is the fold of the same events that a stream would have been,
so the two can't drift apart (design section 3). Dialects read an ordinary whole answer as that
fold at once, which a test holds against its events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field, replace
from typing import Any

from adapters.canonical.events import (
    ArgumentsDelta,
    Event,
    Failed,
    Finished,
    OpaqueEvent,
    PartAnnotated,
    PartEnded,
    PartStarted,
    Started,
    Terminal,
    TextDelta,
    ThinkingDelta,
    Usage,
    UsageReported,
    Verbatim,
)
from adapters.canonical.parts import (
    NO_EXTRAS,
    Dialect,
    Opaque,
    Part,
    Refusal,
    Text,
    Thinking,
    ToolCall,
)
from adapters.canonical.record import record


@record(frozen=True, slots=True)
class Completion:
    """``parts[i]`` came as part ``i``; ``choices[i]`` says which choice it belongs to.

    ``logprobs[i]`` are the token log-probabilities of part ``i``, where they came.
    ``terminal`` is ``None`` only while the answer is unfinished. ``verbatim`` is the
    provider's whole body, where one came and nothing has changed it since.
    """

    id: str | None = None
    model: str | None = None
    created: int | None = None
    parts: tuple[Part, ...] = ()
    choices: tuple[int, ...] = ()
    logprobs: Mapping[int, tuple[Any, ...]] = field(default_factory=dict)
    usage: Usage | None = None
    terminal: Terminal | None = None
    opaque: tuple[OpaqueEvent, ...] = ()
    extras: Mapping[str, Any] = NO_EXTRAS
    verbatim: Verbatim | None = None
    dialect: Dialect | None = None

    @property
    def text(self) -> str:
        """All text parts of choice 0, joined."""
        return "".join(
            part.text
            for part, choice in zip(self.parts, self.choices, strict=True)
            if isinstance(part, Text) and choice == 0
        )


class _OpenPart:
    """A part under construction."""

    __slots__ = ("annotations", "buffer", "choice", "head", "sections")

    def __init__(self, head: Part, choice: int) -> None:
        self.head = head
        self.choice = choice
        self.buffer: list[str] = []
        self.sections: dict[int, list[str]] = {}
        self.annotations: dict[str, Any] = {}

    def annotate(self, key: str, value: Any) -> None:
        if key == "citation":
            self.annotations.setdefault(key, []).append(value)
        elif key == "logprobs":
            self.annotations.setdefault(key, []).extend(value)
        elif key == "extras":
            self.annotations.setdefault(key, {}).update(value)
        else:
            self.annotations[key] = value

    def build(self) -> Part:
        head, notes = self.head, self.annotations
        extras = {**getattr(head, "extras", NO_EXTRAS), **notes.get("extras", {})}
        tail = "".join(self.buffer)
        match head:
            case Text():
                cited = (*head.citations, *notes.get("citation", ()))
                return Text(head.text + tail, cited, extras)
            case Refusal():
                return replace(head, text=head.text + tail, extras=extras)
            case ToolCall():
                return replace(head, arguments=head.arguments + tail, extras=extras)
            case Thinking():
                return self._thinking(head, extras)
            case Opaque():
                return replace(head, data=notes["data"]) if "data" in notes else head
            case _:
                return head

    def _thinking(self, head: Thinking, extras: Mapping[str, Any]) -> Thinking:
        notes = self.annotations
        tail = "".join(self.buffer)
        summary = head.summary
        if summary is not None:
            summary = (*summary, *("".join(self.sections[n]) for n in sorted(self.sections)))
        return replace(
            head,
            text=head.text + tail,
            signature=notes.get("signature", head.signature),
            sealed=notes.get("sealed", head.sealed),
            id=notes.get("id", head.id),
            summary=summary,
            extras=extras,
        )


class Fold:
    """Builds a :class:`Completion` from events as they pass; cheap enough for every stream."""

    __slots__ = ("_opaque", "_parts", "_started", "_usage", "terminal", "verbatim")

    def __init__(self) -> None:
        self._started: Started | None = None
        self._parts: list[_OpenPart] = []
        self._opaque: list[OpaqueEvent] = []
        self._usage: Usage | None = None
        self.terminal: Terminal | None = None
        self.verbatim: Verbatim | None = None

    def add(self, event: Event) -> None:
        """Take the next event of the stream."""
        take = _TAKES.get(type(event))
        if take is not None:
            take(self, event)

    def _more(self, event: TextDelta | ArgumentsDelta) -> None:
        self._parts[event.index].buffer.append(event.text)

    def _think(self, event: ThinkingDelta) -> None:
        part = self._parts[event.index]
        part.buffer.append(event.text)
        part.sections.setdefault(event.section, []).append(event.text)

    def _open(self, event: PartStarted) -> None:
        self._parts.append(_OpenPart(event.head, event.choice))

    def _annotate(self, event: PartAnnotated) -> None:
        self._parts[event.index].annotate(event.key, event.value)

    def _count(self, event: UsageReported) -> None:
        self._usage = event.usage

    def _start(self, event: Started) -> None:
        self._started = event

    def _keep(self, event: OpaqueEvent) -> None:
        self._opaque.append(event)

    def _end(self, event: Terminal) -> None:
        self.terminal = event

    def _relay(self, event: Verbatim) -> None:
        if not event.name:
            self.verbatim = event

    @property
    def usage(self) -> Usage | None:
        """The last usage reported so far."""
        return self._usage

    def completion(self) -> Completion:
        """The answer as far as it has come."""
        started = self._started if self._started is not None else Started(None, None)
        return Completion(
            id=started.id,
            model=started.model,
            created=started.created,
            parts=tuple([part.build() for part in self._parts]),
            choices=tuple([part.choice for part in self._parts]),
            logprobs={
                n: tuple(part.annotations["logprobs"])
                for n, part in enumerate(self._parts)
                if "logprobs" in part.annotations
            },
            usage=self._usage,
            terminal=self.terminal,
            opaque=tuple(self._opaque),
            extras=started.extras,
            verbatim=self.verbatim,
            dialect=started.dialect,
        )


_TAKES: Mapping[type, Callable[[Fold, Any], None]] = {
    TextDelta: Fold._more,
    ArgumentsDelta: Fold._more,
    ThinkingDelta: Fold._think,
    PartStarted: Fold._open,
    PartAnnotated: Fold._annotate,
    UsageReported: Fold._count,
    Started: Fold._start,
    OpaqueEvent: Fold._keep,
    Finished: Fold._end,
    Failed: Fold._end,
    Verbatim: Fold._relay,
}
"""What each kind of event adds. ``PartEnded`` and the frames of a stream change nothing in the
whole."""


def fold(events: Iterable[Event]) -> Completion:
    """The whole answer that ``events`` tell of."""
    folding = Fold()
    for event in events:
        folding.add(event)
    return folding.completion()


def unfold(completion: Completion) -> Iterator[Event]:
    """The events of a whole answer: ``fold(unfold(c)) == c`` but for ``verbatim``."""
    yield Started(
        completion.id,
        completion.model,
        completion.created,
        completion.extras,
        completion.dialect,
    )
    for index, part in enumerate(completion.parts):
        yield from part_events(index, part, completion.choices[index])
        if index in completion.logprobs:
            yield PartAnnotated(index, "logprobs", list(completion.logprobs[index]))
        yield PartEnded(index)
    yield from completion.opaque
    if completion.usage is not None:
        yield UsageReported(completion.usage)
    if completion.terminal is not None:
        yield completion.terminal


def part_events(index: int, part: Part, choice: int = 0) -> Iterator[Event]:
    """The events of one whole part, without its ``PartEnded``."""
    match part:
        case Text(text=text) | Refusal(text=text):
            yield PartStarted(index, _silent(part), choice)
            if text:
                yield TextDelta(index, text)
        case ToolCall(arguments=arguments):
            yield PartStarted(index, replace(part, arguments=""), choice)
            if arguments:
                yield ArgumentsDelta(index, arguments)
        case Thinking(text=text, summary=None):
            yield PartStarted(index, replace(part, text=""), choice)
            if text:
                yield ThinkingDelta(index, text)
        case Thinking(summary=summary):
            yield PartStarted(index, replace(part, text="", summary=()), choice)
            for number, section in enumerate(summary or ()):
                yield ThinkingDelta(index, section, number)
        case _:
            yield PartStarted(index, part, choice)


def _silent(part: Text | Refusal) -> Text | Refusal:
    """``part`` before its first word."""
    if isinstance(part, Refusal):
        return Refusal("", part.extras)
    return Text("", part.citations, part.extras)
