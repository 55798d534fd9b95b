"""Writes a streamed chat answer: canonical events in, ``chat.completion.chunk`` frames out.

Slots of tool calls are dense and in order of first appearance; id and name stand only on the
first fragment; one reason a choice, after all deltas; usage only if asked for; a failure is one
error frame, without a reason and without ``[DONE]`` (cases S01, S06, S09, E01). Where the
provider spoke the same dialect its own chunks are relayed (:mod:`.relay`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from adapters.canonical.events import (
    ArgumentsDelta,
    Event,
    Failed,
    Finished,
    OpaqueEvent,
    PartAnnotated,
    PartEnded,
    PartStarted,
    Reason,
    Started,
    Terminal,
    TextDelta,
    TextRun,
    ThinkingDelta,
    Usage,
    UsageReported,
    Verbatim,
)
from adapters.canonical.parts import Dialect
from adapters.wire import sse
from adapters.wire.json import dumps
from adapters.wire.plain import expanded
from gateway.northbound import errors
from gateway.northbound.base import Envelope
from gateway.northbound.openai_chat import answer
from gateway.northbound.openai_chat.choice import Choice, OpenPart, open_part
from gateway.northbound.openai_chat.relay import Relay


class StreamEncoder:
    """One streamed answer; see :class:`gateway.northbound.base.StreamEncoder`."""

    PING: ClassVar[bytes] = sse.PING
    told = None

    __slots__ = (
        "_choices",
        "_created",
        "_dialect",
        "_envelope",
        "_head",
        "_id",
        "_model",
        "_parts",
        "_relay",
        "_relaying",
        "_tail",
        "_usage",
    )

    def __init__(self, envelope: Envelope) -> None:
        self._envelope = envelope
        self._relay = Relay(envelope)
        self._relaying = False
        self._parts: list[OpenPart] = []
        self._choices: dict[int, Choice] = {}
        self._usage: Usage | None = None
        self._dialect: Dialect | None = None
        self._id = envelope.id
        self._model = envelope.alias
        self._created = envelope.created
        self._tail = b',"usage":null}' if envelope.style.include_usage else b"}"
        self._head = self._outer({})

    # ----------------------------------------------------------------- the interface

    def feed(self, events: list[Event]) -> bytes:
        """The frames for ``events``; those that a relayed chunk decodes to are only watched."""
        out: list[bytes] = []
        for event in events:
            if isinstance(event, TextRun):
                out.append(self._run(event))
            elif isinstance(event, Verbatim):
                # A whole body, which a provider may answer a stream with, has no name.
                self._relaying = (
                    event.dialect == "openai-chat"
                    and event.name != ""
                    and not self._envelope.style.legacy_calls
                )
                if self._relaying:
                    out.append(self._relay.feed(event))
            elif not self._relaying:
                writer = _WRITERS.get(type(event))
                if writer is not None:
                    out.append(writer(self, event))
        return b"".join(out)

    def _run(self, run: TextRun) -> bytes:
        """Text that its decoder has not looked at; nor need we, where frames are relayed."""
        written = self._relay.run(run) if self._relaying else None
        return self.feed(expanded(run)) if written is None else written

    def verdict(self, told: Mapping[str, Any]) -> bytes:
        """A chunk without choices; see the interface."""
        fields = {"gateway": {"structured": told}}
        if self._relaying:
            return self._relay.own(fields)
        return self._head + b"]," + dumps(fields)[1:-1] + self._tail + b"\n\n"

    def finish(self, terminal: Terminal) -> bytes:
        """The end of the stream; see the interface."""
        if isinstance(terminal, Failed):
            return sse.frame(errors.body(terminal.fault, "openai-chat"))
        if self._relaying:
            return self._relay.finish() + sse.DONE
        return self._ending(terminal) + sse.DONE

    # ----------------------------------------------------------------- events

    def _started(self, event: Started) -> bytes:
        envelope = self._envelope
        self._dialect = event.dialect
        self._id = answer.answer_id(event.id, event.dialect, envelope.id)
        self._model = answer.model_name(event.model, envelope.alias, envelope.report_model)
        if event.created is not None:
            self._created = event.created
        self._head = self._outer(event.extras)
        return self._open(0)

    def _open(self, number: int) -> bytes:
        """The choice's opening chunk, which names the role."""
        self._choices[number] = Choice(number, self._envelope.style.legacy_calls)
        return self._chunk(number, {"role": "assistant"})

    def _part_started(self, event: PartStarted) -> bytes:
        number = event.choice
        opening = b"" if number in self._choices else self._open(number)
        part = open_part(self._choices[number], event.head)
        self._parts.append(part)
        return opening + self._deltas(number, part.opening())

    def _delta(self, event: TextDelta | ArgumentsDelta | ThinkingDelta) -> bytes:
        part = self._parts[event.index]
        section = event.section if isinstance(event, ThinkingDelta) else 0
        return self._deltas(part.choice.number, part.more(event.text, section))

    def _annotated(self, event: PartAnnotated) -> bytes:
        part = self._parts[event.index]
        if event.key == "logprobs":
            return self._logprobs(part, event.value)
        part.note(event.key, event.value)
        return b""

    def _logprobs(self, part: OpenPart, value: Any) -> bytes:
        found = part.logprobs(value)
        if found is None:
            return b""
        chunk = dumps({"index": part.choice.number, "delta": {}, "logprobs": found})
        return self._head + chunk[:-1] + b',"finish_reason":null}]' + self._tail + b"\n\n"

    def _part_ended(self, event: PartEnded) -> bytes:
        part = self._parts[event.index]
        return self._deltas(part.choice.number, part.closing())

    def _usage_reported(self, event: UsageReported) -> bytes:
        self._usage = event.usage
        return b""

    def _opaque(self, event: OpaqueEvent) -> bytes:
        number = event.data.get("choice")
        if event.dialect != "openai-chat" or number not in self._choices:
            return b""  # Another protocol's event has no place in this one.
        return self._chunk(number, {event.name: event.data.get("value")})

    # ----------------------------------------------------------------- frames

    def _outer(self, extras: Mapping[str, Any]) -> bytes:
        """All of a chunk that stays the same, up to the opening of ``choices``."""
        outer = {
            "id": self._id,
            "object": "chat.completion.chunk",
            "created": self._created,
            "model": self._model,
        }
        outer.update({name: extras[name] for name in answer.REPORTED if name in extras})
        return b"data: " + dumps(outer)[:-1] + b',"choices":['

    def _deltas(self, number: int, delta: dict[str, Any] | None) -> bytes:
        return b"" if delta is None else self._chunk(number, delta)

    def _chunk(self, number: int, delta: dict[str, Any]) -> bytes:
        return b'%b{"index":%d,"delta":%b,"logprobs":null,"finish_reason":null}]%b\n\n' % (
            self._head,
            number,
            dumps(delta),
            self._tail,
        )

    def _ending(self, finished: Finished) -> bytes:
        """One reason a choice, then the usage chunk if it was asked for."""
        reported = {n: finished.extras[n] for n in answer.REPORTED if n in finished.extras}
        if reported:
            self._head = self._outer(reported)
        reasons: dict[int, tuple[Reason, str | None]] = {
            0: (finished.reason, finished.raw_reason),
            **finished.choices,
        }
        out = [self._reason(number, *reasons[number]) for number in sorted(reasons)]
        if self._envelope.style.include_usage:
            usage = answer.usage_object(self._usage, self._dialect)
            out.append(self._head + b'],"usage":' + dumps(usage) + b"}\n\n")
        return b"".join(out)

    def _reason(self, number: int, reason: Reason, raw: str | None) -> bytes:
        opening = b"" if number in self._choices else self._open(number)
        choice = self._choices[number]
        shown = answer.finish(reason, raw, refused=choice.refused, legacy=choice.legacy)
        delta: dict[str, Any] = dict(choice.cited)
        if choice.is_silent:  # An empty answer, not one without content.
            delta["content"] = ""
        chunk = {"index": number, "delta": delta, "logprobs": None, **shown}
        return opening + self._head + dumps(chunk) + b"]" + self._tail + b"\n\n"


_WRITERS: Mapping[type, Callable[[StreamEncoder, Any], bytes]] = {
    Started: StreamEncoder._started,
    PartStarted: StreamEncoder._part_started,
    TextDelta: StreamEncoder._delta,
    ThinkingDelta: StreamEncoder._delta,
    ArgumentsDelta: StreamEncoder._delta,
    PartAnnotated: StreamEncoder._annotated,
    PartEnded: StreamEncoder._part_ended,
    UsageReported: StreamEncoder._usage_reported,
    OpaqueEvent: StreamEncoder._opaque,
}
"""A row for every event that ``feed`` may see but ``Verbatim``, which decides the path."""
