"""Chat messages into canonical messages; every role and part has its row in a table.

Nothing is merged or reordered: a system message in the middle stays there, an empty string is
an empty text and ``null`` is no text. Must not know the fields outside ``messages``.
"""

from __future__ import annotations

import mimetypes
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from adapters.canonical.faults import Fault
from adapters.canonical.parts import (
    FileRef,
    Inline,
    Media,
    Opaque,
    Part,
    Refusal,
    Source,
    Text,
    ToolCall,
    ToolResult,
)
from adapters.canonical.request import Message
from adapters.wire import data_url, openai_reasoning
from gateway.northbound.allow import cleaned, lost, unknown
from gateway.northbound.openai_chat import shapes


def _names(shape: Any) -> frozenset[str]:
    return frozenset(shape.__annotations__)


_ROLE_FIELDS: Mapping[str, frozenset[str]] = {
    "system": _names(shapes.SystemMessage),
    "developer": _names(shapes.SystemMessage),
    "user": _names(shapes.UserMessage),
    "assistant": _names(shapes.AssistantMessage),
    "tool": _names(shapes.ToolMessage),
    "function": _names(shapes.FunctionMessage),
}
_PART_FIELDS: Mapping[str, frozenset[str]] = {
    "text": _names(shapes.TextPart),
    "refusal": _names(shapes.RefusalPart),
    "image_url": _names(shapes.ImagePart),
    "input_audio": _names(shapes.AudioPart),
    "file": _names(shapes.FilePart),
}
_INNER_FIELDS: Mapping[str, frozenset[str]] = {
    "image_url": _names(shapes.ImageUrl),
    "input_audio": _names(shapes.InputAudio),
    "file": _names(shapes.FileData),
}
"""Of the object that such a part is about."""
_REASONING = frozenset({"reasoning_details", "reasoning_content", "reasoning"})
_PAIRED = frozenset({"tool_calls", "function_call", "tool_call_id"})
"""What a message with a tool's call has, or with its result; a ``function``'s answers a call."""
_RARE = frozenset({"refusal", "audio", "function_call"})
_CALL_FIELDS = _names(shapes.FunctionCall) | {"index"}
_CUSTOM_FIELDS = _names(shapes.CustomCall) | {"index"}
_NAMED_FIELDS = _names(shapes.NamedCall) | {"parsed_arguments"}
_INPUT_FIELDS = _names(shapes.CustomInput)
"""With what SDKs put into answers and send back as history: it says nothing to a model."""


class MessageReader:
    """Reads one request's messages in order; remembers the calls that results refer to.

    :param dropped: takes the paths of fields that no provider may see.

    ``paired`` is whether there are any tool calls or results.
    """

    __slots__ = ("_dropped", "_kinds", "_legacy", "paired")

    def __init__(self, dropped: list[str]) -> None:
        self._dropped = dropped
        self._kinds: dict[str, str] = {}
        self._legacy: list[tuple[str, str]] = []
        self.paired = False

    def read(self, given: Sequence[Mapping[str, Any]]) -> tuple[Message, ...]:
        """The canonical form of ``messages``, which have passed their shapes.

        :raises Fault: ``bad_request`` with the path of what contradicts itself.
        """
        messages = [
            Message(message["role"], (Text(message["content"]),))  # most, at half the cost
            if len(message) == 2 and type(message.get("content")) is str
            else self.message(number, message)
            for number, message in enumerate(given)
        ]
        return tuple(messages)

    def message(self, number: int, message: Mapping[str, Any]) -> Message:
        """``messages[number]``, whatever is in it."""
        if not _PAIRED.isdisjoint(message):
            self.paired = True
        role, content = message["role"], message.get("content")
        where = f"messages[{number}]"
        name = message.get("name")
        extras = unknown(message, _ROLE_FIELDS[role], where, self._dropped)
        if role == "assistant":
            extras = _asked(extras)
            return Message(role, self._assistant(number, message, where), name, extras)
        if role == "tool":
            return Message(role, (self._result(message, where),), name, extras)
        if role == "function":
            return Message("tool", (self._legacy_result(message, where),), None, extras)
        return Message(role, self._content(content, where), name, extras)

    def _content(self, content: str | list[Any] | None, where: str) -> tuple[Any, ...]:
        if content is None:
            return ()
        if isinstance(content, str):
            return (Text(content),)
        parts: list[Part] = []
        for number, part in enumerate(content):
            kind = part["type"]
            path = f"{where}.content[{number}]"
            extras = unknown(part, _PART_FIELDS[kind], path, self._dropped)
            if kind in _INNER_FIELDS:
                lost(part[kind], _INNER_FIELDS[kind], f"{path}.{kind}", self._dropped)
            parts.append(PARTS[kind](part, path, extras))
        return tuple(parts)

    # ----------------------------------------------------------------- assistant

    def _assistant(self, number: int, message: Mapping[str, Any], where: str) -> tuple[Part, ...]:
        parts: list[Part] = []
        if not _REASONING.isdisjoint(message):
            parts.extend(self._reasoning(message, where))
        parts.extend(self._content(message.get("content"), where))
        if not _RARE.isdisjoint(message):
            self._rare(number, message, parts)
        for place, call in enumerate(message.get("tool_calls") or ()):
            parts.append(self._call(call, f"{where}.tool_calls[{place}]"))
        return tuple(parts)

    def _rare(self, number: int, message: Mapping[str, Any], parts: list[Part]) -> None:
        refusal = message.get("refusal")
        if refusal is not None:
            parts.append(Refusal(refusal))
        audio = message.get("audio")
        if audio is not None:
            parts.append(Opaque("openai-chat", "audio", audio))
        legacy = message.get("function_call")
        if legacy is not None:
            call_id = f"call_function_{number}"
            self._legacy.append((legacy["name"], call_id))
            lost(legacy, _NAMED_FIELDS, f"messages[{number}].function_call", self._dropped)
            parts.append(ToolCall(call_id, legacy["name"], legacy["arguments"]))

    def _reasoning(self, message: Mapping[str, Any], where: str) -> list[Any]:
        given = message.get("reasoning_details")
        if given:
            safe = cleaned(given, f"{where}.reasoning_details", self._dropped)
            return openai_reasoning.thoughts({"reasoning_details": safe})
        return openai_reasoning.thoughts(message)

    def _call(self, call: Mapping[str, Any], where: str) -> ToolCall:
        call_id: str = call["id"]
        if call.get("type") == "custom":
            self._kinds[call_id] = "custom"
            custom = call["custom"]
            extras = unknown(call, _CUSTOM_FIELDS, where, self._dropped)
            lost(custom, _INPUT_FIELDS, f"{where}.custom", self._dropped)
            return ToolCall(call_id, custom["name"], custom["input"], "custom", extras)
        function = call["function"]
        extras = unknown(call, _CALL_FIELDS, where, self._dropped)
        lost(function, _NAMED_FIELDS, f"{where}.function", self._dropped)
        return ToolCall(call_id, function["name"], function["arguments"], extras=extras)

    # ----------------------------------------------------------------- results

    def _result(self, message: Mapping[str, Any], where: str) -> ToolResult:
        call_id = message["tool_call_id"]
        content = self._content(message["content"], where)
        kind = "custom" if self._kinds.get(call_id) == "custom" else "function"
        return ToolResult(call_id, content, kind=kind)  # type: ignore[arg-type]

    def _legacy_result(self, message: Mapping[str, Any], where: str) -> ToolResult:
        """The result of the oldest unanswered ``function_call`` of that name: this old form has
        no ids, so both sides get the one that was made for the call."""
        for place, (name, call_id) in enumerate(self._legacy):
            if name == message["name"]:
                del self._legacy[place]
                return ToolResult(call_id, self._content(message["content"], where))
        raise Fault(
            "bad_request",
            f"{where} answers a function that no earlier assistant message called. Send the "
            "assistant message with that function_call before it.",
            param=f"{where}.name",
        )


def _asked(extras: Mapping[str, Any]) -> Mapping[str, Any]:
    """``extras`` of an answer that comes back as history, without what only answers have: the
    SDK's ``parsed``, and the empty list of annotations that every answer holds."""
    return {
        name: value
        for name, value in extras.items()
        if name != "parsed" and (name, value) not in (("annotations", []), ("annotations", None))
    }


# --------------------------------------------------------------------------- parts


def _text(part: Mapping[str, Any], where: str, extras: Mapping[str, Any]) -> Part:
    return Text(part["text"], extras=extras)


def _refusal(part: Mapping[str, Any], where: str, extras: Mapping[str, Any]) -> Part:
    return Refusal(part["refusal"], extras)


def _image(part: Mapping[str, Any], where: str, extras: Mapping[str, Any]) -> Part:
    image = part["image_url"]
    source = _source(image["url"], f"{where}.image_url.url")
    return Media("image", source, detail=image.get("detail"), extras=extras)


def _audio(part: Mapping[str, Any], where: str, extras: Mapping[str, Any]) -> Part:
    audio = part["input_audio"]
    return Media("audio", Inline(f"audio/{audio['format']}", audio["data"]), extras=extras)


def _file(part: Mapping[str, Any], where: str, extras: Mapping[str, Any]) -> Part:
    file = part["file"]
    data, file_id, filename = file.get("file_data"), file.get("file_id"), file.get("filename")
    if (data is None) == (file_id is None):
        raise Fault(
            "bad_request",
            f"{where}.file needs exactly one of file_data and file_id.",
            param=f"{where}.file",
        )
    source: Source
    if data is None:
        source = FileRef(file_id)
    elif data.startswith(("data:", "http:", "https:")):
        source = _source(data, f"{where}.file.file_data")
    else:
        # Bare base64: the type is only in the name.
        guessed = mimetypes.guess_type(filename or "")[0]
        source = Inline(guessed or "application/octet-stream", data)
    return Media("file", source, filename=filename, extras=extras)


def _source(url: str, where: str) -> Source:
    source = data_url.read(url)
    if source is None:
        raise Fault(
            "bad_request",
            f"{where} must be an https URL or a base64 data URL: data:<type>;base64,<data>.",
            param=where,
        )
    return source


PARTS: Mapping[str, Callable[[Mapping[str, Any], str, Mapping[str, Any]], Part]] = {
    "text": _text,
    "refusal": _refusal,
    "image_url": _image,
    "input_audio": _audio,
    "file": _file,
}
"""A row for every part type that the shapes let through; a test holds the two equal."""
