"""One JSON body for a chat answer that is not streamed.

Same dialect in and out: the provider's own bytes, if nothing had to be changed in them.
"""

from __future__ import annotations

from typing import Any

from adapters.canonical.completion import Completion
from adapters.canonical.events import Finished, Reason
from adapters.canonical.parts import Opaque, Refusal, Text, Thinking, ToolCall
from adapters.wire.json import dumps
from adapters.wire.openai_reasoning import details
from gateway.northbound.base import Envelope
from gateway.northbound.openai_chat import answer


def whole(completion: Completion, envelope: Envelope) -> bytes:
    """The body of a ``chat.completion``."""
    relayed = completion.verbatim
    if relayed is None or relayed.dialect != "openai-chat" or envelope.style.legacy_calls:
        return dumps(_object(completion, envelope))
    body = relayed.json
    own = answer.answer_id(completion.id, "openai-chat", envelope.id)
    model = answer.model_name(completion.model, envelope.alias, envelope.report_model)
    if body.get("id") == own and body.get("model") == model:
        return relayed.data
    return dumps({**body, "id": own, "model": model})


def _object(completion: Completion, envelope: Envelope) -> dict[str, Any]:
    terminal = completion.terminal
    finished = terminal if isinstance(terminal, Finished) else Finished("unknown")
    reasons: dict[int, tuple[Reason, str | None]] = {
        0: (finished.reason, finished.raw_reason),
        **finished.choices,
    }
    created = completion.created
    body: dict[str, Any] = {
        "id": answer.answer_id(completion.id, completion.dialect, envelope.id),
        "object": "chat.completion",
        "created": envelope.created if created is None else created,
        "model": answer.model_name(completion.model, envelope.alias, envelope.report_model),
        "choices": [
            _choice(completion, number, reasons[number], envelope.style.legacy_calls)
            for number in sorted(reasons)
        ],
        "usage": answer.usage_object(completion.usage, completion.dialect),
    }
    if completion.extras or finished.extras:
        told = {**completion.extras, **finished.extras}
        body.update({name: told[name] for name in answer.REPORTED if name in told})
    return body


def _choice(
    completion: Completion, number: int, reason: tuple[Reason, str | None], legacy: bool
) -> dict[str, Any]:
    said = _only_text(completion, number)
    if said is None:
        return _full_choice(completion, number, reason, legacy)
    return {
        "index": number,
        "message": {"role": "assistant", "content": said, "refusal": None, "annotations": []},
        "logprobs": None,
        **answer.finish(*reason, refused=False, legacy=legacy),
    }


def _only_text(completion: Completion, number: int) -> str | None:
    """What choice ``number`` says, if that is a plain text and all that the answer has."""
    if completion.choices != (number,) or completion.logprobs or completion.opaque:
        return None
    (part,) = completion.parts
    return part.text if type(part) is Text and not part.citations else None


def _full_choice(
    completion: Completion, number: int, reason: tuple[Reason, str | None], legacy: bool
) -> dict[str, Any]:
    message = Message(legacy)
    for index, part in enumerate(completion.parts):
        if completion.choices[index] == number:
            message.add(part, completion.logprobs.get(index))
    for event in completion.opaque:
        if event.dialect == "openai-chat" and event.data.get("choice") == number:
            message.extras[event.name] = event.data.get("value")
    refused = bool(message.refusals)
    return {
        "index": number,
        "message": message.object(),
        "logprobs": message.logprobs(),
        **answer.finish(*reason, refused=refused, legacy=legacy),
    }


class Message:
    """Collects the parts of one choice into one assistant message."""

    __slots__ = (
        "_legacy",
        "_logprobs",
        "calls",
        "cited",
        "extras",
        "refusals",
        "texts",
        "thoughts",
    )

    def __init__(self, legacy: bool) -> None:
        self._legacy = legacy
        self._logprobs: dict[str, list[Any]] = {}
        self.texts: list[str] = []
        self.refusals: list[str] = []
        self.thoughts: list[Thinking] = []
        self.calls: list[ToolCall] = []
        self.cited: dict[str, list[Any]] = {}
        self.extras: dict[str, Any] = {}

    def add(self, part: object, logprobs: tuple[Any, ...] | None) -> None:
        """Take the next part; foreign opaque parts have no place here."""
        match part:
            case Text():
                start = sum(map(len, self.texts))
                cited = answer.citations(part.citations, start, start + len(part.text))
                for name, items in cited.items():
                    self.cited.setdefault(name, []).extend(items)
                self.texts.append(part.text)
                self._logprobs.setdefault("content", []).extend(logprobs or ())
            case Refusal():
                self.refusals.append(part.text)
                self._logprobs.setdefault("refusal", []).extend(logprobs or ())
            case Thinking():
                self.thoughts.append(part)
            case ToolCall():
                self.calls.append(part)
            case Opaque(dialect="openai-chat"):
                self.extras[part.type] = part.data
            case _:
                pass

    def logprobs(self) -> dict[str, Any] | None:
        """The log-probabilities of content and refusal, if any came."""
        if not any(self._logprobs.values()):
            return None
        return {name: self._logprobs.get(name) or None for name in ("content", "refusal")}

    def object(self) -> dict[str, Any]:
        """The ``message`` object. ``content`` is ``null`` where something else stands for it,
        and empty where there is nothing at all."""
        silent = not (self.calls or self.refusals)
        content = "".join(self.texts)
        message: dict[str, Any] = {
            "role": "assistant",
            "content": content if content or silent else None,
            "refusal": "".join(self.refusals) if self.refusals else None,
            "annotations": [],
            **self.cited,
        }
        if self.thoughts:
            shown = [text for text in map(answer.shown_reasoning, self.thoughts) if text]
            if shown:  # Sealed reasoning has no text, and a stream says none either.
                message["reasoning_content"] = answer.SECTION_BREAK.join(shown)
            kept = details(self.thoughts)
            if kept:
                message["reasoning_details"] = kept
        message.update(self._call_fields())
        message.update(self.extras)
        return message

    def _call_fields(self) -> dict[str, Any]:
        calls = self.calls
        if not calls:
            return {}
        if self._legacy and len(calls) == 1:
            name, arguments = calls[0].name, calls[0].arguments
            return {"function_call": {"name": name, "arguments": arguments}}
        return {"tool_calls": [answer.call_object(call) for call in calls]}
