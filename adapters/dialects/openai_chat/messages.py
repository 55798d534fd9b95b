"""Canonical messages as chat ``messages``.

Chat gives every tool result a message of its own, has room for pictures only in the user's
messages, and nests the parts of a call. Order is kept; what can't be carried is refused with its
path or named as dropped. Must not know the rest of the request.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adapters.canonical.facts import Facts
from adapters.canonical.pairing import safe_call_id
from adapters.canonical.parts import (
    FileRef,
    Inline,
    Media,
    Opaque,
    Part,
    Refusal,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from adapters.canonical.request import Message, Request
from adapters.dialects.openai_chat.notes import Notes, unsupported
from adapters.wire import data_url, openai_reasoning
from adapters.wire.names import CHAT, caller_name
from adapters.wire.places import Places, plain_text

MAX_CALL_ID = 40
"""Characters of a tool call's id that OpenAI's chat API accepts."""

SHOWN_BELOW = "The tool returned the attachment that the next user message shows."
"""Stands in a tool result that holds nothing but media, which its message has no room for."""

_AS_THEY_ARE = frozenset({"system", "user", "assistant"})
"""Roles that every server knows."""

Json = dict[str, Any]
Placed = tuple[tuple[Part, str], ...]
"""A message's parts, each with its place in the caller's body."""


class MessageWriter:
    """Builds the ``messages`` list of one request."""

    __slots__ = ("_attached", "_facts", "_notes", "_places", "messages")

    def __init__(self, notes: Notes, facts: Facts) -> None:
        self.messages: list[Json] = []
        self._notes = notes
        self._facts = facts
        self._places = Places(notes.origin)
        self._attached: list[Json] = []

    def write(self, request: Request) -> list[Json]:
        """The whole list.

        :raises Fault: ``unsupported`` with the path of a part that can't be carried.
        """
        if request.instructions:
            self._instructions(request.instructions)
        for number, message in enumerate(request.messages):
            text = plain_text(message)
            if text is None:
                self._add(number, message)
                continue
            self._places.skip()
            if self._attached:
                self._flush()
            role: str = message.role
            if role not in _AS_THEY_ARE:
                role = self._role(role)
            self.messages.append({"role": role, "content": text})
        self._flush()
        return self.messages

    def _instructions(self, texts: tuple[Text, ...]) -> None:
        """What other protocols keep apart from the messages opens the conversation here."""
        parts = [self._text(text, f"system[{n}]") for n, text in enumerate(texts)]
        self.messages.append({"role": "system", "content": _content(parts)})

    def _add(self, number: int, message: Message) -> None:
        where, paths = self._places.of(number, message)
        placed = tuple(zip(message.parts, paths, strict=True))
        others = tuple(one for one in placed if not isinstance(one[0], ToolResult))
        if len(others) < len(placed):
            head = self._head(message, "tool", where) if message.role == "tool" else {}
            for part, path in placed:
                if isinstance(part, ToolResult):
                    self._result(part, path, head)
            if not others:
                return
        self._flush()
        if message.role == "assistant":
            self._assistant(message, where, placed)
        else:
            head = self._head(message, self._role(message.role), where)
            parts = [self._part(part, path) for part, path in others]
            self.messages.append({**head, "content": _content(parts)})

    # ----------------------------------------------------------------- heads

    def _head(self, message: Message, role: str, where: str) -> Json:
        head: Json = {"role": role, **self._notes.extras(message.extras, where)}
        if message.name is not None:
            head["name"] = message.name
        return head

    def _role(self, role: str) -> str:
        if role == "developer" and "developer" in self._facts.refuses:
            self._notes.adjusted.append("role=developer->system")
            return "system"
        return "user" if role == "tool" else role

    # ----------------------------------------------------------------- tool results

    def _result(self, result: ToolResult, where: str, head: Json) -> None:
        texts: list[Json] = []
        for number, part in enumerate(result.content):
            path = f"{where}.{self._places.results}[{number}]"
            if isinstance(part, Text) or self._notes.native:
                texts.append(self._part(part, path))
            else:
                self._attach(part, path)
        if result.is_error:
            self._notes.drop(f"{where}.is_error")
        moved = len(texts) < len(result.content)
        if moved and not texts:
            texts.append({"type": "text", "text": SHOWN_BELOW})
        self.messages.append(
            {
                **head,
                "role": "tool",
                "tool_call_id": safe_call_id(result.call_id, MAX_CALL_ID),
                "content": _content(texts),
                **self._notes.extras(result.extras, where),
            }
        )

    def _attach(self, part: Media | Opaque | Text, path: str) -> None:
        """Media of a result: after the last of the results, as the user's own."""
        self._attached.append(self._part(part, path))
        self._notes.adjusted.append(f"{path}=tool->user")

    def _flush(self) -> None:
        """Results must follow their calls without a break, so media waits for their end."""
        if self._attached:
            self.messages.append({"role": "user", "content": self._attached})
            self._attached = []

    # ----------------------------------------------------------------- the assistant's own

    def _assistant(self, message: Message, where: str, placed: Placed) -> None:
        body = self._head(message, "assistant", where)
        texts: list[Json] = []
        refusals: list[str] = []
        calls: list[Json] = []
        for part, path in placed:
            match part:
                case Text():
                    texts.append(self._text(part, path))
                case Refusal():
                    refusals.append(part.text)
                    self._notes.lose(part.extras, path)
                case ToolCall():
                    calls.append(self._call(part, path))
                case Opaque(dialect="openai-chat"):
                    body[part.type] = part.data
                case Opaque():
                    # Another provider's server tools: history, not a demand.
                    self._notes.drop(path)
                case Media():
                    raise unsupported(
                        "An assistant message can hold no image, file or sound.", f"{path}.type"
                    )
                case _:
                    pass  # Reasoning is written below, results stand in messages of their own.
        body["content"] = _content(texts) if texts else None
        if refusals:
            body["refusal"] = "".join(refusals)
        if calls:
            body["tool_calls"] = calls
        body.update(self._reasoning(placed))
        self.messages.append(body)

    def _reasoning(self, placed: Placed) -> Json:
        """Reasoning goes back only to its own protocol; elsewhere it means nothing."""
        own: list[Thinking] = []
        for part, path in placed:
            if isinstance(part, Thinking) and part.dialect == CHAT:
                own.append(part)
            elif isinstance(part, Thinking):
                self._notes.drop(path)
        kept = openai_reasoning.details(own)
        plain = [t for t in own if openai_reasoning.FOREIGN not in t.extras]
        written: Json = {}
        if kept:
            written["reasoning_details"] = kept
        elif plain:
            written[openai_reasoning.text_field(plain[0])] = "".join(
                thinking.text for thinking in plain
            )
        return written

    def _call(self, call: ToolCall, path: str) -> Json:
        written: Json = {
            "id": safe_call_id(call.call_id, MAX_CALL_ID),
            "type": call.kind,
            **self._notes.extras(call.extras, path),
        }
        if call.kind == "custom":
            written["custom"] = {"name": call.name, "input": call.arguments}
        else:
            written["function"] = {"name": call.name, "arguments": call.arguments}
        return written

    # ----------------------------------------------------------------- content parts

    def _part(self, part: Part, path: str) -> Json:
        match part:
            case Text():
                return self._text(part, path)
            case Media():
                return {**self._media(part, path), **self._notes.extras(part.extras, path)}
            case Opaque(dialect="openai-chat"):
                return dict(part.data)
            case Opaque():
                raise unsupported(
                    f"A part of type {part.type!r} belongs to the {part.dialect} protocol and "
                    "can't be sent to a provider that speaks openai-chat.",
                    f"{path}.type",
                )
            case _:
                raise unsupported("This part can only stand in an assistant message.", path)

    def _text(self, part: Text, path: str) -> Json:
        if part.citations:
            self._notes.drop(f"{path}.{caller_name(self._notes.origin, 'citations')}")
        return {"type": "text", "text": part.text, **self._notes.extras(part.extras, path)}

    def _media(self, part: Media, path: str) -> Json:
        if part.kind == "audio":
            return _audio(part, path)
        if part.kind == "file":
            return self._file(part, path)
        if isinstance(part.source, FileRef):
            raise unsupported(
                "Images by file id can't be sent to a provider that speaks openai-chat. Send "
                "the image itself or its URL.",
                path,
            )
        image: Json = {"url": data_url.write(part.source)}
        if part.detail is not None:
            image["detail"] = part.detail
        return {"type": "image_url", "image_url": image}

    def _file(self, part: Media, path: str) -> Json:
        file: Json = {}
        if part.filename is not None:
            file["filename"] = part.filename
        elif isinstance(part.source, Inline) and not self._notes.native:
            file["filename"] = data_url.filename(part.source)
            self._notes.injected.append(f"{path}.filename={file['filename']}")
        if isinstance(part.source, FileRef):
            file["file_id"] = part.source.file_id
        else:
            file["file_data"] = data_url.write(part.source)
        return {"type": "file", "file": file}


def _audio(part: Media, path: str) -> Json:
    source = part.source
    if not isinstance(source, Inline) or not source.media_type.startswith("audio/"):
        raise unsupported("Sound has to be sent along, as base64 of a known format.", path)
    form = source.media_type.removeprefix("audio/")
    form = _AUDIO_FORMATS.get(form, form)
    return {"type": "input_audio", "input_audio": {"data": source.data, "format": form}}


_AUDIO_FORMATS: Mapping[str, str] = {"mpeg": "mp3", "x-wav": "wav", "wave": "wav"}
"""Media types whose name is not the format's."""


def _content(parts: list[Json]) -> str | list[Json]:
    """A single plain text as a string, which every server understands; none as an empty one."""
    if not parts:
        return ""
    if len(parts) == 1 and parts[0].keys() == {"type", "text"}:
        text: str = parts[0]["text"]
        return text
    return parts
