"""``input`` items into canonical messages; every item and content type has its row in a table.

A message of the caller's is one message. What the assistant did (reasoning, words, calls) is
several items that belong to one turn: they become one assistant message, up to its next words.
Items and content that the canonical words do not know stay whole. Must not know the fields
outside ``input``.
"""

from __future__ import annotations

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
    Thinking,
    ToolResult,
    Url,
)
from adapters.canonical.request import Message, Role
from adapters.wire import data_url
from adapters.wire.openai_responses import (
    AROUND,
    CALL_FIELD,
    DIALECT,
    call_of,
    content_opaque,
    thinking_of,
)
from gateway.northbound.allow import cleaned
from gateway.northbound.openai_responses.seal import unseal

Json = Mapping[str, Any]


EARLIER = "the earlier response"
"""Stands in messages for the path of an item that the caller did not send."""

ROLES: Mapping[str, Role] = {"user": "user", "system": "system", "developer": "developer"}
"""Of messages that are not the assistant's."""


class ItemReader:
    """Reads one request's ``input`` in order.

    ``messages`` is the result; ``dropped`` collects the paths of fields that no provider may
    see.
    """

    __slots__ = ("_answered", "_called", "_turn", "dropped", "messages")

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.dropped: list[str] = []
        self._turn: list[Part] = []
        self._called: dict[str, str] = {}
        self._answered: set[str] = set()

    def read(self, given: Sequence[Json], earlier: Sequence[Json] = ()) -> tuple[Message, ...]:
        """The canonical messages of ``input``, which has passed its shape.

        :param earlier: what the gateway kept of the responses that this one continues; it has
            passed none.
        :raises Fault: ``bad_request`` with the path of what contradicts itself.
        :raises AttributeError, KeyError, TypeError, Malformed: for an earlier item that is none.
        """
        for number, item in enumerate((*earlier, *given), -len(earlier)):
            where = f"input[{number}]" if number >= 0 else EARLIER
            kind = item.get("type", "message")
            ITEMS.get(kind, ItemReader._other)(self, cleaned(item, where, self.dropped), where)
        self._close()
        return tuple(self.messages)

    def check_calls(self, *, remembered: bool) -> None:
        """Refuse an output without its call, and a call that nothing answers.

        :param remembered: an earlier response is continued, whose calls are not known yet.
        :raises Fault: ``bad_request`` with the path of the item.
        """
        known = set(self._called)
        unknown = sorted(self._answered - known)
        if unknown and not remembered:
            raise Fault(
                "bad_request",
                "A tool output answers a call_id that no earlier item of input made. Send the "
                "function_call item before it, or continue its response with "
                "previous_response_id.",
                param="input",
            )
        for call_id, where in self._called.items():
            if call_id not in self._answered:
                raise Fault(
                    "bad_request",
                    f"{where} calls a tool whose output is missing. Every call needs an item "
                    "with its output and the same call_id.",
                    param="input" if where == EARLIER else where,
                )

    # ------------------------------------------------------------------ items

    def _message(self, item: Json, where: str) -> None:
        around = {n: v for n, v in item.items() if n not in ("type", "role", "content")}
        if item["role"] != "assistant":
            self._close()
            parts = self._content(item["content"], where)
            self.messages.append(Message(ROLES[item["role"]], parts, extras=around))
            return
        if any(isinstance(part, Text | Refusal) for part in self._turn):
            self._close()
        content = item["content"]
        if isinstance(content, str):
            content = [{"type": "output_text", "text": content}]
        for part in self._content(content, where):
            self._turn.append(_placed(part, around))

    def _call(self, item: Json, where: str) -> None:
        call = call_of(item)
        self._called.setdefault(call.call_id, where)
        self._turn.append(call)

    def _output(self, item: Json, where: str) -> None:
        self._close()
        self._answered.add(item["call_id"])
        extras = {n: v for n, v in item.items() if n not in ("type", "call_id", "output")}
        custom = item["type"] == "custom_tool_call_output"
        result = ToolResult(
            item["call_id"],
            self._content(item["output"], where, "output"),
            kind="custom" if custom else "function",
            extras=extras,
        )
        self.messages.append(Message("tool", (result,)))

    def _reasoning(self, item: Json, where: str) -> None:
        self._turn.append(_thinking(item))

    def _other(self, item: Json, where: str) -> None:
        """An item of a server tool, or one that is newer than this table."""
        opaque = Opaque(DIALECT, item["type"], item)
        if item["type"].endswith(("_output", "_response")):
            self._close()
            self.messages.append(Message("tool", (opaque,)))
        else:
            self._turn.append(opaque)

    def _close(self) -> None:
        """End the assistant's turn under way."""
        if self._turn:
            self.messages.append(Message("assistant", tuple(self._turn)))
            self._turn = []

    # ------------------------------------------------------------------ content

    def _content(self, content: str | list[Json], where: str, name: str = "content") -> Any:
        if isinstance(content, str):
            return (Text(content),)
        parts: list[Part] = []
        for number, part in enumerate(content):
            path = f"{where}.{name}[{number}]"
            if AROUND in part:
                # Our own word for the item around a part; no caller's field may pass for it.
                self.dropped.append(f"{path}.{AROUND}")
                part = {n: v for n, v in part.items() if n != AROUND}
            parts.append(CONTENT.get(part["type"], _unknown)(part, path))
        return tuple(parts)


ITEMS: Mapping[str, Callable[[ItemReader, Json, str], None]] = {
    "message": ItemReader._message,
    "reasoning": ItemReader._reasoning,
    "function_call_output": ItemReader._output,
    "custom_tool_call_output": ItemReader._output,
    **dict.fromkeys(CALL_FIELD, ItemReader._call),
}
"""Other types stay whole."""


def _thinking(item: Json) -> Thinking:
    content = item.get("encrypted_content")
    if isinstance(content, str):
        text = "".join(section["text"] for section in item["summary"])
        foreign = unseal(content, text)
        if foreign is not None:
            return foreign
    return thinking_of(item)


def _placed(part: Part, around: Json) -> Part:
    """An assistant's words with the fields of the message item that they stood in."""
    if not around:
        return part
    if isinstance(part, Text):
        return Text(part.text, part.citations, {**part.extras, AROUND: around})
    if isinstance(part, Refusal):
        return Refusal(part.text, {**part.extras, AROUND: around})
    return part


def _extras(part: Json, *known: str) -> dict[str, Any]:
    return {name: value for name, value in part.items() if name not in ("type", *known)}


def _text(part: Json, where: str) -> Part:
    cited = part.get("annotations")
    citations = tuple(cited) if isinstance(cited, list) else ()
    return Text(part["text"], citations, _extras(part, "text", "annotations"))


def _refusal(part: Json, where: str) -> Part:
    return Refusal(part["refusal"], _extras(part, "refusal"))


def _image(part: Json, where: str) -> Part:
    url, file_id = part.get("image_url"), part.get("file_id")
    if (url is None) == (file_id is None):
        raise Fault(
            "bad_request", f"{where} needs exactly one of image_url and file_id.", param=where
        )
    source = _source(url, f"{where}.image_url") if url is not None else FileRef(str(file_id))
    extras = _extras(part, "image_url", "file_id", "detail")
    return Media("image", source, detail=part.get("detail"), extras=extras)


_FILE_SOURCES = ("file_data", "file_id", "file_url")


def _file(part: Json, where: str) -> Part:
    given = [name for name in _FILE_SOURCES if part.get(name) is not None]
    if len(given) != 1:
        raise Fault(
            "bad_request",
            f"{where} needs exactly one of file_data, file_id and file_url.",
            param=where,
        )
    value = part[given[0]]
    source: Source
    if given[0] == "file_id":
        source = FileRef(value)
    elif given[0] == "file_url":
        source = Url(value)
    else:
        source = _source(value, f"{where}.file_data")
    extras = _extras(part, *_FILE_SOURCES, "filename", "detail")
    return Media("file", source, part.get("filename"), part.get("detail"), extras)


def _audio(part: Json, where: str) -> Part:
    audio = part["input_audio"]
    source = Inline(f"audio/{audio['format']}", audio["data"])
    return Media("audio", source, extras=_extras(part, "input_audio"))


def _unknown(part: Json, where: str) -> Part:
    return content_opaque(part)


def _source(url: str, where: str) -> Source:
    source = data_url.read(url)
    if source is None:
        raise Fault(
            "bad_request",
            f"{where} must be an https URL or a base64 data URL: data:<type>;base64,<data>.",
            param=where,
        )
    return source


CONTENT: Mapping[str, Callable[[Json, str], Part]] = {
    "input_text": _text,
    "output_text": _text,
    "text": _text,
    "refusal": _refusal,
    "input_image": _image,
    "input_file": _file,
    "input_audio": _audio,
}
"""Other types stay whole."""
