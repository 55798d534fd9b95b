"""Writes a streamed answer: canonical events in, Responses events out.

``response.created`` and ``in_progress``, the items, and one ending; dense sequence numbers from
0. A failure is an ``error`` event and ``response.failed``, never a completion (case E01). Where
the provider spoke the same dialect its own frames are relayed (:mod:`.relay`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from adapters.canonical.events import (
    Event,
    Failed,
    Started,
    Terminal,
    UsageReported,
    Verbatim,
)
from adapters.wire import sse
from adapters.wire.json import dumps
from adapters.wire.openai_responses import DIALECT
from gateway.northbound import errors
from gateway.northbound.base import Envelope
from gateway.northbound.openai_responses.output import Output
from gateway.northbound.openai_responses.relay import Relay
from gateway.northbound.openai_responses.resource import Answer, ending


class StreamEncoder:
    """One streamed answer; see :class:`gateway.northbound.base.StreamEncoder`."""

    PING: ClassVar[bytes] = sse.PING

    __slots__ = (
        "_answer",
        "_begun",
        "_ends_at",
        "_envelope",
        "_output",
        "_relay",
        "_relaying",
        "told",
    )

    def __init__(self, envelope: Envelope) -> None:
        self._envelope = envelope
        self._answer = Answer.of(envelope)
        self._output = Output(mark_of(envelope))
        self._relay = Relay(envelope)
        self._relaying = False
        self._begun = False
        self._ends_at: int | None = None
        self.told: Mapping[str, Any] | None = None

    def feed(self, events: list[Event]) -> bytes:
        """The frames for ``events``; those that a relayed frame decodes to are only watched."""
        out: list[bytes] = []
        for event in events:
            if isinstance(event, Verbatim):
                if not self._relaying and not self._begun:
                    # A whole body has no type: a provider may answer a stream with one.
                    self._relaying = event.dialect == DIALECT and "type" in event.json
                if self._relaying:
                    out.append(self._relay.feed(event))
            elif isinstance(event, Started):
                out.append(self._started(event))
            elif isinstance(event, UsageReported):
                self._answer.usage = event.usage
            elif not self._relaying:
                out += [self._write(name, fields) for name, fields in self._output.tell(event)]
        return b"".join(out)

    def verdict(self, told: Mapping[str, Any]) -> bytes:
        """An event of the gateway's own; see the interface."""
        return self._write("gateway.structured", told)

    def finish(self, terminal: Terminal) -> bytes:
        """The end of the stream; see the interface."""
        if self._ends_at is None:
            self._ends_at = self._relay.next
        self._relay.next = self._ends_at  # an end that was never sent took no numbers
        if isinstance(terminal, Failed):
            return self._failed(terminal)
        if self._relaying:
            written = self._relay.finish()
            self.told = self._relay.told
            return written
        self._answer.reported = terminal.extras
        status, details = ending(terminal, refused=self._output.refused)
        out = [self._write(name, fields) for name, fields in self._output.close(status)]
        self.told = self._answer.resource(status, self._output.items(status), details)
        return b"".join(out) + self._write(f"response.{status}", {"response": self.told})

    def _failed(self, terminal: Failed) -> bytes:
        error = errors.error_object(terminal.fault, DIALECT)
        status, details = ending(terminal, refused=False)
        items = self._output.items("incomplete")
        self.told = self._answer.resource(status, items, details)
        # Nested as OpenAI sends it, and flat as it documents it: clients read either.
        flat = {name: error.get(name) for name in ("code", "message", "param")}
        told = self._write("error", {**flat, "error": error})
        return told + self._write(f"response.{status}", {"response": self.told})

    def _started(self, event: Started) -> bytes:
        learn(self._answer, self._output, event, self._envelope)
        if self._relaying or self._begun:
            return b""
        self._begun = True
        response = self._answer.resource("in_progress", [])
        return b"".join(
            self._write(name, {"response": response})
            for name in ("response.created", "response.in_progress")
        )

    def _write(self, name: str, fields: Mapping[str, Any]) -> bytes:
        number = self._relay.next
        self._relay.next = number + 1
        event = {"type": name, **fields, "sequence_number": number}
        return sse.frame(dumps(event), name)


def mark_of(envelope: Envelope) -> str:
    """What makes an answer's item ids its own."""
    return envelope.id.rpartition("_")[2]


def learn(answer: Answer, output: Output, started: Started, envelope: Envelope) -> None:
    """Take from the answer's start what the response object says of it. Its id stays ours."""
    answer.dialect = started.dialect
    answer.reported = started.extras
    if started.dialect == DIALECT:
        output.is_native()
    if started.created is not None:
        answer.created = started.created
    if started.model and envelope.report_model == "upstream":
        answer.model = started.model
