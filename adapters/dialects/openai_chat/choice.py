"""One choice of a chat answer: its deltas, or its whole message, into events.

A whole message is read as one delta that says everything, so that both readings are the same.
Parts are opened when they first say something. Reasoning and text end when another kind of part
begins; tool calls stay open, because their fragments may interleave. Must not know frames,
chunks or how a stream ends.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from adapters.canonical.events import (
    ArgumentsDelta,
    Event,
    OpaqueEvent,
    PartAnnotated,
    PartEnded,
    PartStarted,
    Reason,
    TextDelta,
    ThinkingDelta,
)
from adapters.canonical.parts import NO_EXTRAS, Opaque, Part, Refusal, Text, Thinking, ToolCall
from adapters.wire import openai_chat, openai_reasoning
from adapters.wire.json import dumps
from adapters.wire.openai_chat import DIALECT


class OpenCall:
    """A tool call whose fragments are still coming; it has no index before it has a name."""

    __slots__ = ("call_id", "index", "kind", "waiting")

    def __init__(self, call_id: str, kind: Any) -> None:
        self.call_id = call_id
        self.kind = kind
        self.index: int | None = None
        self.waiting: list[str] = []


class ChoiceReader:
    """The state of one choice.

    ``number`` is its place among the choices, ``raw_reason`` the first ``finish_reason`` that
    came, ``extras`` the fields around its deltas that the canonical words do not know.
    ``nameless`` tells of a tool call that never got a name.

    :param indices: number the parts of the answer, across its choices.
    :param seed: makes ids for calls that come without one, different for every answer.
    """

    __slots__ = (
        "_audio",
        "_calls",
        "_details",
        "_indices",
        "_last",
        "_refusal",
        "_seed",
        "_seen",
        "_slots",
        "_text",
        "_thinking",
        "extras",
        "nameless",
        "number",
        "raw_reason",
    )

    def __init__(self, number: int, indices: Iterator[int], seed: str) -> None:
        self.number = number
        self.raw_reason: str | None = None
        self.extras: dict[str, Any] = {}
        self.nameless = False
        self._indices = indices
        self._seed = seed
        self._text: int | None = None
        self._refusal: int | None = None
        self._thinking: int | None = None
        self._details: list[dict[str, Any]] = []
        self._calls = 0
        self._slots: dict[Any, OpenCall] = {}
        self._last: OpenCall | None = None
        self._audio: dict[str, Any] = {}
        self._seen: dict[str, Any] = {}

    # ----------------------------------------------------------------- the interface

    def read(self, choice: Mapping[str, Any], delta: Mapping[str, Any], out: list[Event]) -> None:
        """Add to ``out`` what ``delta`` and the fields around it tell."""
        content = delta.get("content")
        if content and len(delta) == 1:
            self._content(content, out)  # Most deltas are this.
        elif delta:
            self._say(delta, out)
        logprobs = choice.get("logprobs")
        if logprobs:
            self._logprobs(logprobs, out)
        if not choice.keys() <= AROUND:
            self.extras.update({n: v for n, v in choice.items() if n not in AROUND})
        reason = choice.get("finish_reason")
        if isinstance(reason, str) and self.raw_reason is None:
            self.raw_reason = reason
            self.close(out)

    def _say(self, delta: Mapping[str, Any], out: list[Event]) -> None:
        for name, reader in _READERS:
            value = delta.get(name)
            if value:
                reader(self, value, out)
        if not delta.keys() <= KNOWN:
            self._unknown(delta, out)

    def close(self, out: list[Event]) -> None:
        """End every part that is open. What still comes after the reason opens new ones."""
        if self._thinking is not None:
            self._close_thinking(out)
        if self._text is not None:
            self._close_text(out)
        if self._refusal is not None:
            out.append(PartEnded(self._refusal))
            self._refusal = None
        for call in self._slots.values():
            if call.index is None:
                self.nameless = True
            else:
                out.append(PartEnded(call.index))
        self._slots = {}
        if self._audio:
            out.append(PartEnded(self._open(Opaque(DIALECT, "audio", self._audio), out)))
            self._audio = {}

    @property
    def open_text(self) -> int | None:
        """The index of the text that is under way, if one is."""
        return self._text

    def reason(self) -> tuple[Reason, str | None]:
        """Why the choice ended, in our words and in theirs."""
        raw = self.raw_reason
        if raw is None:
            return "unknown", None
        if raw == "stop" and self.stop_sequence is not None:
            return "stop_sequence", raw
        refused = "refusal" in self._seen
        return openai_chat.read_reason(raw, called=self._calls > 0, refused=refused), raw

    @property
    def stop_sequence(self) -> str | None:
        """The stop sequence that ended the choice, where a server names it."""
        for name in ("stop_reason", "matched_stop") if self.extras else ():
            value = self.extras.get(name)
            if isinstance(value, str):
                return value
        return None

    # ----------------------------------------------------------------- text and reasoning

    def _open(self, head: Part, out: list[Event]) -> int:
        index = next(self._indices)
        out.append(PartStarted(index, head, self.number))
        return index

    def _open_text(self, out: list[Event]) -> int:
        if self._text is None:
            if self._thinking is not None:
                self._close_thinking(out)
            self._text = self._open(Text(""), out)
        return self._text

    def _content(self, value: Any, out: list[Event]) -> None:
        if isinstance(value, str):
            out.append(TextDelta(self._open_text(out), value))
        elif isinstance(value, list):  # Some servers answer in parts.
            for part in value:
                if isinstance(part, Mapping) and isinstance(part.get("text"), str) and part["text"]:
                    out.append(TextDelta(self._open_text(out), part["text"]))

    def _annotations(self, value: Any, out: list[Event]) -> None:
        # They may come before their text.
        for annotation in value if isinstance(value, list) else ():
            if isinstance(annotation, Mapping):
                out.append(PartAnnotated(self._open_text(out), "citation", annotation))

    def _refused(self, value: Any, out: list[Event]) -> None:
        if not isinstance(value, str):
            return
        if self._refusal is None:
            self._close_thinking(out)
            self._refusal = self._open(Refusal(""), out)
        self._seen["refusal"] = True
        out.append(TextDelta(self._refusal, value))

    def _reasoning_content(self, value: Any, out: list[Event]) -> None:
        self._reason_more(value, NO_EXTRAS, out)

    def _reasoning(self, value: Any, out: list[Event]) -> None:
        # A server that sends both fields sends the same text twice.
        if openai_reasoning.PLAIN not in self._seen:
            rarer = {openai_reasoning.FIELD: openai_reasoning.RARER}
            self._reason_more(value, rarer, out)

    def _reason_more(self, value: Any, extras: Mapping[str, Any], out: list[Event]) -> None:
        if not isinstance(value, str):
            return
        self._seen[openai_reasoning.RARER if extras else openai_reasoning.PLAIN] = True
        out.append(ThinkingDelta(self._open_thinking(extras, out), value))

    def _open_thinking(self, extras: Mapping[str, Any], out: list[Event]) -> int:
        if self._thinking is None:
            self._close_text(out)
            self._thinking = self._open(Thinking("", dialect=DIALECT, extras=extras), out)
        return self._thinking

    def _reasoning_details(self, value: Any, out: list[Event]) -> None:
        if not isinstance(value, list):
            return
        index = self._open_thinking(NO_EXTRAS, out)
        openai_reasoning.merged(self._details, value)
        if self._seen.keys().isdisjoint((openai_reasoning.PLAIN, openai_reasoning.RARER)):
            text = openai_reasoning.readable([d for d in value if isinstance(d, Mapping)])
            if text:
                out.append(ThinkingDelta(index, text))

    def _close_thinking(self, out: list[Event]) -> None:
        index, self._thinking = self._thinking, None
        if index is None:
            return
        if self._details:
            kept = {openai_reasoning.FOREIGN: self._details}
            out.append(PartAnnotated(index, "extras", kept))
            self._details = []
        out.append(PartEnded(index))

    def _close_text(self, out: list[Event]) -> None:
        index, self._text = self._text, None
        if index is not None:
            out.append(PartEnded(index))

    # ----------------------------------------------------------------- tool calls

    def _tool_calls(self, value: Any, out: list[Event]) -> None:
        for fragment in value if isinstance(value, list) else ():
            if isinstance(fragment, Mapping):
                self._fragment(self._call_of(fragment), fragment, out)

    def _function_call(self, value: Any, out: list[Event]) -> None:
        """The older form: one call, without an id."""
        if isinstance(value, Mapping):
            call = self._slots.get("function") or self._new_call("function", None, "function")
            self._fragment(call, {"function": value}, out)

    def _call_of(self, fragment: Mapping[str, Any]) -> OpenCall:
        """The call that ``fragment`` continues or begins. The index decides; where it is missing
        or the same for different calls, the id does; where both are missing, a name begins."""
        index, call_id = fragment.get("index"), fragment.get("id")
        slot: int | str | None = index if isinstance(index, int) else None
        call_id = call_id if isinstance(call_id, str) and call_id else None
        slot = call_id if slot is None else slot
        call = self._last if slot is None else self._slots.get(slot)
        if call is not None and not (_name(fragment) and _is_another(call, slot, call_id)):
            return call
        kind = "custom" if fragment.get("type") == "custom" else "function"
        return self._new_call(slot, call_id, kind)

    def _new_call(self, slot: Any, call_id: str | None, kind: str) -> OpenCall:
        if call_id is None:
            # Unique among the calls of a conversation, and the same at every reading.
            seed = f"{self._seed}/{self.number}/{self._calls}"
            call_id = f"call_{hashlib.sha256(seed.encode()).hexdigest()[:24]}"
        call = OpenCall(call_id, kind)
        self._calls += 1
        if slot is None:
            slot = call
        elif slot in self._slots:  # One index for two calls: both stay open, under two keys.
            self._slots[call] = self._slots[slot]
        self._slots[slot] = call
        return call

    def _fragment(self, call: OpenCall, fragment: Mapping[str, Any], out: list[Event]) -> None:
        self._last = call
        body = fragment.get("custom" if call.kind == "custom" else "function")
        if not isinstance(body, Mapping):
            return
        more = body.get("input" if call.kind == "custom" else "arguments")
        if more is not None and not isinstance(more, str):
            more = dumps(more).decode()  # Some servers send the object itself.
        if call.index is None:
            if more:
                call.waiting.append(more)
            self._name_call(call, body.get("name"), out)
        elif more:
            out.append(ArgumentsDelta(call.index, more))

    def _name_call(self, call: OpenCall, name: Any, out: list[Event]) -> None:
        if not isinstance(name, str) or not name:
            return
        self._close_thinking(out)
        self._close_text(out)
        call.index = self._open(ToolCall(call.call_id, name, "", call.kind), out)
        out.extend(ArgumentsDelta(call.index, text) for text in call.waiting)
        call.waiting = []

    # ----------------------------------------------------------------- the rest

    def _audio_delta(self, value: Any, out: list[Event]) -> None:
        """Sound is collected: its pieces mean nothing alone, and the text goes with it."""
        if not isinstance(value, Mapping):
            return
        for name, piece in value.items():
            before = self._audio.get(name)
            joined = name in ("data", "transcript") and isinstance(before, str)
            self._audio[name] = before + piece if joined else piece

    def _logprobs(self, logprobs: Any, out: list[Event]) -> None:
        if not isinstance(logprobs, Mapping):
            return
        for name, index in (("content", self._text), ("refusal", self._refusal)):
            tokens = logprobs.get(name)
            if tokens and isinstance(tokens, list) and index is not None:
                out.append(PartAnnotated(index, "logprobs", tokens))

    def _unknown(self, delta: Mapping[str, Any], out: list[Event]) -> None:
        for name, value in delta.items():
            if name in KNOWN or value in _EMPTY or self._seen.get(name) == value:
                continue
            self._seen[name] = value
            out.append(OpaqueEvent(DIALECT, name, {"choice": self.number, "value": value}))


_Reader = Callable[[ChoiceReader, Any, list[Event]], None]

_READERS: tuple[tuple[str, _Reader], ...] = (
    ("reasoning_content", ChoiceReader._reasoning_content),
    ("reasoning", ChoiceReader._reasoning),
    ("reasoning_details", ChoiceReader._reasoning_details),
    ("annotations", ChoiceReader._annotations),
    ("content", ChoiceReader._content),
    ("refusal", ChoiceReader._refused),
    ("tool_calls", ChoiceReader._tool_calls),
    ("function_call", ChoiceReader._function_call),
    ("audio", ChoiceReader._audio_delta),
)
"""In the order in which a message says them. Empty values say nothing."""

KNOWN = frozenset({name for name, _ in _READERS} | {"role", "name"})
AROUND = frozenset({"index", "delta", "message", "logprobs", "finish_reason", "text"})
_EMPTY: tuple[Any, ...] = (None, "", [], {})


def _is_another(call: OpenCall, slot: int | str | None, call_id: str | None) -> bool:
    """Whether a fragment that names a function begins another call than the ``call`` found."""
    if slot is None:
        return call.index is not None
    return call_id is not None and call_id != call.call_id


def _name(fragment: Mapping[str, Any]) -> Any:
    for kind in ("function", "custom"):
        body = fragment.get(kind)
        if isinstance(body, Mapping):
            return body.get("name")
    return None
