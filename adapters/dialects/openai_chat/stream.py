"""Chat frames and bodies into events.

``finish_reason`` is the terminal and ``[DONE]`` is optional, so ``Finished`` is held until one
of ``[DONE]`` and the end of file comes: the usage chunk stands between them. An answer without
a ``finish_reason`` is truncated, whatever else it says (promise 4).
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import Any

from adapters.canonical.completion import Completion
from adapters.canonical.events import (
    Event,
    Failed,
    Finished,
    Pattern,
    Started,
    TextDelta,
    TextRun,
    UsageReported,
    Verbatim,
)
from adapters.canonical.faults import Fault
from adapters.canonical.parts import NO_EXTRAS
from adapters.dialects.openai_chat import errors
from adapters.dialects.openai_chat.choice import ChoiceReader
from adapters.dialects.openai_chat.straight import OUTER, straight
from adapters.wire import openai_chat
from adapters.wire.json import loads
from adapters.wire.openai_chat import DIALECT
from adapters.wire.plain import MARK, pattern, run_at
from adapters.wire.sse import Frame

_DONE = b"[DONE]"

_CONTENT = {"content"}
_BARE = {"index", "delta", "logprobs", "finish_reason"}
"""What a chunk's choice has where it only says more text."""

LEARNS = 8
"""How often a stream is tried for a pattern: some say something new in every chunk."""


class ChatDecoder:
    """One answer; see :class:`adapters.dialects.base.Decoder`."""

    __slots__ = (
        "_choices",
        "_ended",
        "_extras",
        "_indices",
        "_latest",
        "_learns",
        "_plain",
        "_started",
        "_told",
        "_verbatim",
        "skims",
    )

    def __init__(self, *, verbatim: bool = False, skims: bool = False) -> None:
        self._verbatim = verbatim
        self.skims = verbatim and skims
        self._learns = LEARNS if self.skims else 0
        self._plain: Pattern | None = None
        self._indices = count()
        self._choices: dict[int, ChoiceReader] = {}
        self._started: Started | None = None
        self._ended = False
        self._extras: dict[str, Any] = {}
        self._told: dict[str, Any] = {}
        self._latest: Mapping[str, Any] = NO_EXTRAS

    # ----------------------------------------------------------------- the interface

    def feed(self, frame: Frame) -> list[Event]:
        """The events of one frame."""
        if self._ended:
            return []
        if frame.data.strip() == _DONE:
            return self._end()
        try:
            chunk = loads(frame.data)
        except ValueError:
            return self._fail(errors.malformed("a frame is no JSON"))
        out: list[Event] = []
        if self._verbatim:
            # "message" is the default name of an SSE event; an empty one means a whole body.
            out.append(Verbatim(DIALECT, frame.name or "message", frame.data, chunk))
        fault = self._read(chunk, frame.name, "delta", out)
        if fault is not None:
            return self._fail(fault, chunk)
        if self._learns and len(out) == 2 and isinstance(out[1], TextDelta):
            self._learn(frame, chunk, out[1].text)
        return out

    def skim(self, data: bytes, at: int) -> TextRun | None:
        """See the interface."""
        plain = self._plain
        if plain is None:
            return None
        sample: Mapping[str, Any] = plain.sample.json
        reader = self._choices[sample["choices"][0].get("index", 0)]
        if reader.open_text is None or self._ended:
            return None
        run = run_at(data, at, plain, reader.open_text)
        if run is not None and self._latest is not sample:
            self._see(sample)
        return run

    def close(self) -> list[Event]:
        """End of file: the held end, if a ``finish_reason`` came."""
        return [] if self._ended else self._end()

    def body(self, data: bytes) -> list[Event]:
        """All events of a whole body."""
        try:
            value = loads(data)
        except ValueError:
            return self._fail(errors.malformed("the body is no JSON"))
        return self._whole(value, Verbatim(DIALECT, "", data, value) if self._verbatim else None)

    def answer(self, data: bytes) -> Completion | list[Event]:
        """See the interface."""
        try:
            value = loads(data)
        except ValueError:
            return self._fail(errors.malformed("the body is no JSON"))
        verbatim = Verbatim(DIALECT, "", data, value) if self._verbatim else None
        return straight(value, verbatim) or self._whole(value, verbatim)

    def _whole(self, value: Any, verbatim: Verbatim | None) -> list[Event]:
        out: list[Event] = [] if verbatim is None else [verbatim]
        fault = self._read(value, "", "message", out)
        if fault is None and not self._choices:
            fault = errors.malformed("the body has no choices")
        if fault is not None:
            return self._fail(fault, value)
        self._latest = NO_EXTRAS  # it is the only one, and was read
        return out + self._end()

    # ----------------------------------------------------------------- reading

    def _read(self, value: Any, event: str, field: str, out: list[Event]) -> Fault | None:
        """Add the events of a chunk or body to ``out``; gives the fault that it tells of."""
        if not isinstance(value, dict):
            return errors.malformed("a chunk is no object")
        fault = errors.in_answer(value, event)
        if fault is not None:
            return fault
        choices = value.get("choices")
        if not _is_well_formed(choices, field):
            return errors.malformed("choices are no list of choices")
        self._see(value)
        if self._started is None and (choices or value.get("id")):
            self._start(value, out)
        for choice in choices or ():
            self._choice(choice).read(choice, choice.get(field) or {}, out)
        if value.get("usage") is not None:
            out.extend(self._usage(value))
        return None

    def _usage(self, value: Mapping[str, Any]) -> list[Event]:
        usage = openai_chat.read_usage(value.get("usage"))
        return [] if usage is None or self._started is None else [UsageReported(usage)]

    def _learn(self, frame: Frame, chunk: dict[str, Any], text: str) -> None:
        """Try whether ``chunk``, which says ``text``, is like those that follow it."""
        choice = chunk["choices"][0]
        bare = choice.keys() <= _BARE and choice["delta"].keys() == _CONTENT
        if not bare or len(chunk["choices"]) > 1 or chunk.get("usage") is not None:
            return
        if self._plain is not None and (b"data: " + frame.data).startswith(self._plain.head):
            return
        self._learns -= 1
        marked = {**chunk, "choices": [{**choice, "delta": {"content": MARK}}]}
        self._plain = pattern(DIALECT, frame, "content", text, marked) or self._plain

    def _see(self, value: Mapping[str, Any]) -> None:
        """``value`` is the latest chunk."""
        if value.keys() != self._latest.keys():
            self._note(value)
        self._latest = value

    def _note(self, value: Mapping[str, Any]) -> None:
        """Remember the fields that the canonical words do not know. Most chunks have those of the
        one before, so only new sets of names are read; the last chunk is read at the end."""
        if not value.keys() <= OUTER:
            self._told |= {n: v for n, v in value.items() if n not in OUTER}

    def _start(self, value: Mapping[str, Any], out: list[Event]) -> None:
        """The first chunk that says whose answer this is; Azure's very first one does not."""
        created = value.get("created")
        self._extras, self._told = self._told, {}
        self._started = Started(
            _text(value.get("id")),
            _text(value.get("model")),
            created if isinstance(created, int) and created > 0 else None,
            self._extras,
            DIALECT,
        )
        out.append(self._started)

    def _choice(self, choice: Mapping[str, Any]) -> ChoiceReader:
        number = choice.get("index", 0)
        reader = self._choices.get(number)
        if reader is None:
            started = self._started
            seed = "" if started is None else f"{started.id}/{started.created}"
            reader = ChoiceReader(number, self._indices, seed)
            self._choices[number] = reader
        return reader

    # ----------------------------------------------------------------- ending

    def _fail(self, fault: Fault, told: Any = None) -> list[Event]:
        """The failure; what was used up to it may stand in the chunk that told of it."""
        self._ended = True
        return [*(self._usage(told) if isinstance(told, dict) else ()), Failed(fault)]

    def _end(self) -> list[Event]:
        """The terminal. Every choice needs its reason."""
        readers = [self._choices[number] for number in sorted(self._choices)]
        reasons = [reader.raw_reason for reader in readers]
        if not readers or None in reasons:
            return self._fail(errors.truncated())
        for raw in reasons:
            kind = openai_chat.FAILED_REASONS.get(raw or "")
            if kind is not None:
                return self._fail(errors.ended_by(raw or "", kind))
        out: list[Event] = []
        for reader in readers:
            reader.close(out)
            if reader.nameless:
                return self._fail(errors.malformed("a tool call has no name"))
        self._ended = True
        out.append(self._finished(readers))
        return out

    def _finished(self, readers: list[ChoiceReader]) -> Finished:
        first = readers[0]
        reason, raw = first.reason()
        self._note(self._latest)
        told = self._told
        late = {n: v for n, v in told.items() if self._extras.get(n) != v} if told else {}
        others = {r.number: r.reason() for r in readers[1:]} if len(readers) > 1 else {}
        return Finished(reason, raw, first.stop_sequence, late | first.extras, others)


def _is_well_formed(choices: Any, field: str) -> bool:
    """Whether everything that is read without looking, here and by who relays, is in place."""
    if choices is None:
        return True
    if not isinstance(choices, list):
        return False
    for choice in choices:
        if not isinstance(choice, dict):
            return False
        if not isinstance(choice.get(field), _SAID):
            return False
        if not isinstance(choice.get("index", 0), int):
            return False
    return True


_SAID = (dict, type(None))


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
