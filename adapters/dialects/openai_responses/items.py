"""Messages as ``input`` items.

Responses keeps a flat list: messages, reasoning, tool calls and tool results are items of their
own, so one canonical message may become several. Order is kept. What an item can't hold is
refused with its path or named as dropped; there is no silent default. Must not know the rest
of the request.
"""

from __future__ import annotations

from typing import Any

from adapters.canonical.faults import Fault
from adapters.canonical.pairing import safe_call_id
from adapters.canonical.parts import (
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
from adapters.canonical.request import Message
from adapters.dialects.openai_responses.notes import Notes
from adapters.wire import data_url
from adapters.wire.names import caller_name
from adapters.wire.openai_responses import (
    DIALECT,
    call_item,
    file_content,
    image_content,
    is_content,
    output_content,
    reasoning_item,
)
from adapters.wire.places import Places, plain_text


class InputItems:
    """Builds the ``input`` list of one request."""

    __slots__ = ("_content", "_head", "_notes", "_places", "items")

    def __init__(self, notes: Notes) -> None:
        self.items: list[dict[str, Any]] = []
        self._notes = notes
        self._places = Places(notes.origin)
        self._head: dict[str, Any] = {}
        self._content: list[dict[str, Any]] = []

    def add(self, number: int, message: Message) -> None:
        """Append message ``number`` of the request.

        :raises Fault: ``unsupported`` with the path of a part that can't be carried.
        """
        text = plain_text(message)
        if text is not None and not (self._notes.native and message.role == "assistant"):
            self._places.skip()
            role = "user" if message.role == "tool" else message.role
            self.items.append({"type": "message", "role": role, "content": text})
            return
        where, paths = self._places.of(number, message)
        if message.name is not None:
            self._notes.drop(f"{where}.name")
        role = "user" if message.role == "tool" else message.role
        self._head = {"role": role} | self._notes.extras(message.extras, where)
        for part, path in zip(message.parts, paths, strict=True):
            self._part(part, path)
        if message.parts:
            self._flush()
        else:
            self.items.append({"type": "message", **self._head, "content": ""})

    def _part(self, part: Part, path: str) -> None:
        match part:
            case Text() | Refusal() if self._head["role"] == "assistant":
                self._words(part, path)
            case Text():
                self._content.append(self._text(part, path))
            case Media():
                self._content.append(self._media(part, path))
            case Refusal():
                raise _unsupported("A refusal can only stand in an assistant message.", path)
            case Thinking():
                self._thinking(part, path)
            case ToolCall():
                item = call_item(part, safe_call_id(part.call_id))
                self._item(item | self._notes.extras(part.extras, path))
            case ToolResult():
                self._result(part, path)
            case Opaque():
                self._opaque(part, path)

    # ------------------------------------------------------------------ content of messages

    def _words(self, part: Text | Refusal, path: str) -> None:
        """The assistant's own words. ``extras["item"]`` says which message they stood in; words
        of different messages stay apart."""
        extras = dict(part.extras)
        around = extras.pop("item", None)
        around = dict(around) if around is not None and self._notes.native else {}
        head = {"role": "assistant", **around}
        if around and head != self._head:
            self._flush()
            self._head = head
        cited = isinstance(part, Text) and bool(part.citations)
        if cited and not self._notes.native:
            self._notes.drop(f"{path}.{caller_name(self._notes.origin, 'citations')}")
        content = output_content(part, citations=self._notes.native)
        self._content.append(content | self._notes.extras(extras, path))

    def _text(self, part: Text, path: str) -> dict[str, Any]:
        if part.citations:
            self._notes.drop(f"{path}.{caller_name(self._notes.origin, 'citations')}")
        extras = {name: value for name, value in part.extras.items() if name != "item"}
        return {"type": "input_text", "text": part.text} | self._notes.extras(extras, path)

    def _media(self, part: Media, path: str) -> dict[str, Any]:
        if part.kind == "audio":
            raise _unsupported("The Responses protocol takes no audio input.", f"{path}.type")
        if self._head["role"] == "assistant":
            raise _unsupported("An assistant message can hold no image or file.", f"{path}.type")
        extras = self._notes.extras(part.extras, path)
        if part.kind == "image":
            return image_content(part) | extras
        content = file_content(part)
        if isinstance(part.source, Inline) and part.filename is None:
            content["filename"] = data_url.filename(part.source)
            self._notes.injected.append(f"{path}.filename={content['filename']}")
        return content | extras

    # ------------------------------------------------------------------ items of their own

    def _thinking(self, part: Thinking, path: str) -> None:
        """Reasoning goes back only to its own protocol, and only where it still means
        something there: sealed, or just as a caller of this protocol sent it."""
        if part.dialect == DIALECT and (self._notes.native or part.sealed is not None):
            self._item(reasoning_item(part))
            return
        self._notes.drop(path)

    def _result(self, part: ToolResult, path: str) -> None:
        kind = "custom_tool_call_output" if part.kind == "custom" else "function_call_output"
        if part.is_error:
            self._notes.drop(f"{path}.is_error")
        self._item(
            {
                "type": kind,
                "call_id": safe_call_id(part.call_id),
                "output": self._output(part, path),
                **self._notes.extras(part.extras, path),
            }
        )

    def _output(self, part: ToolResult, path: str) -> str | list[dict[str, Any]]:
        match part.content:
            case ():
                return ""
            case (Text(text=text, citations=(), extras=extras),) if not extras:
                return text
        head, self._head = self._head, {"role": "user"}
        output: list[dict[str, Any]] = []
        for place, inner in enumerate(part.content):
            inside = f"{path}.{self._places.results}[{place}]"
            match inner:
                case Text():
                    output.append(self._text(inner, inside))
                case Media():
                    output.append(self._media(inner, inside))
                case Opaque():
                    output.append(self._own(inner, inside))
        self._head = head
        return output

    def _opaque(self, part: Opaque, path: str) -> None:
        if part.dialect != DIALECT and self._head["role"] == "assistant":
            self._notes.drop(path)  # another provider's server tools: history, not a demand
            return
        data = self._own(part, path)
        if is_content(part):
            self._content.append(data)
        else:
            self._item(data)

    def _own(self, part: Opaque, path: str) -> dict[str, Any]:
        if part.dialect != DIALECT:
            raise _unsupported(
                f"A part of type {part.type!r} belongs to the {part.dialect} protocol and can't "
                "be sent to a provider that speaks openai-responses.",
                f"{path}.type",
            )
        return dict(part.data)

    def _item(self, item: dict[str, Any]) -> None:
        self._flush()
        self.items.append(item)

    def _flush(self) -> None:
        """Close the message under way, if it holds anything."""
        if not self._content:
            return
        content: str | list[dict[str, Any]] = self._content
        if len(self._content) == 1 and set(self._content[0]) == {"type", "text"}:
            content = self._content[0]["text"]
        self.items.append({"type": "message", **self._head, "content": content})
        self._content = []


def _unsupported(why: str, path: str) -> Fault:
    return Fault("unsupported", why, param=path)
