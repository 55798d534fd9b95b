"""Parts of a request as content blocks: text, media, thinking, tool calls and their results.

Total: a part is mapped, refused with its path, or left out by name (fault kind K04). Must not
know how messages become turns; that is :mod:`.turns`.
"""

from __future__ import annotations

import base64
import binascii
from collections import defaultdict, deque

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
    Url,
)
from adapters.dialects.anthropic_messages.notes import Notes
from adapters.wire.anthropic_messages import (
    NAME,
    Block,
    input_of,
    thinking_block,
    tool_use_block,
)

IMAGE_TYPES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
PDF = "application/pdf"
PLAIN = "text/plain"
TEXT_TYPES = frozenset(
    {"application/json", "application/xml", "application/yaml", "application/javascript"}
)
"""Media types beside ``text/*`` that are sent as plain text."""

NO_OUTPUT = "The tool failed without saying why."
"""Stands for an empty result that is marked as an error: the protocol wants a text there."""


class CallIds:
    """The ids of one conversation's tool calls, as this protocol takes them.

    Legal ones stay. The protocol wants ids to be unique, so a second call under a used id
    (some servers number anew every turn) gets one of its own; results follow their calls in
    order (fault kind K01).
    """

    __slots__ = ("_given", "_waiting")

    def __init__(self) -> None:
        self._given: dict[str, int] = defaultdict(int)
        self._waiting: dict[str, deque[str]] = defaultdict(deque)

    def call(self, call_id: str) -> str:
        """The id to send for the next call that the conversation knows as ``call_id``."""
        uses = self._given[call_id]
        self._given[call_id] += 1
        sent = safe_call_id(call_id if uses == 0 else f"{call_id}#{uses}")
        self._waiting[call_id].append(sent)
        return sent

    def result(self, call_id: str) -> str:
        """The id of the call that this result answers."""
        waiting = self._waiting[call_id]
        return waiting.popleft() if waiting else safe_call_id(call_id)


class BlockWriter:
    """Writes the blocks of one request, noting in ``notes`` what it can't carry.

    :param results: what the caller's protocol calls the list in a tool result.
    """

    __slots__ = ("_ids", "_notes", "_results")

    def __init__(self, notes: Notes, results: str = "content") -> None:
        self._notes = notes
        self._results = results
        self._ids = CallIds()

    @property
    def notes(self) -> Notes:
        """What has been noted."""
        return self._notes

    def write(self, part: Part, where: str) -> Block | None:
        """The block for ``part``, or ``None`` where it is left out.

        :param where: the part's path in the caller's body, for errors and notes.
        :raises Fault: ``unsupported`` or ``bad_request`` with ``param`` = ``where``.
        """
        match part:
            case Text():
                return self._text(part, where)
            case Media():
                return self._media(part, where)
            case Thinking():
                return self._thinking(part, where)
            case ToolCall():
                return self._call(part, where)
            case ToolResult():
                return self._result(part, where)
            case Refusal():
                return self._text(Text(part.text, extras=part.extras), where)
            case Opaque():
                return self._opaque(part, where)

    def _text(self, part: Text, where: str) -> Block | None:
        if not (part.text if self._notes.own else part.text.strip()):
            # The API refuses empty texts, and most blank ones: its own callers know which. An
            # empty text says nothing; what else is left out is named.
            if part.text or part.extras:
                self._notes.adjust(where, "blank text", "left out")
            return None
        block: Block = {"type": "text", "text": part.text}
        if part.citations:
            if self._notes.own:
                block["citations"] = list(part.citations)
            else:
                self._notes.drop(f"{where}.{self._notes.name('citations')}")
        return {**block, **self._notes.extras(part.extras, where)}

    def _opaque(self, part: Opaque, where: str) -> Block | None:
        if part.dialect == NAME:
            return dict(part.data)
        self._notes.drop(where)
        return None

    # ------------------------------------------------------------------ the model's own parts

    def _thinking(self, part: Thinking, where: str) -> Block | None:
        proven = part.signature is not None or part.sealed is not None
        if part.dialect != NAME or not proven:
            self._notes.drop(where)
            return None
        return thinking_block(part)

    def _call(self, part: ToolCall, where: str) -> Block:
        given = {"input": part.arguments} if part.kind == "custom" else input_of(part.arguments)
        if given is None:
            # History, whose results may speak of exactly this text: keep it readable.
            given = {"unparsed_arguments": part.arguments}
            name = f"{where}.{self._notes.name('arguments')}"
            self._notes.adjust(name, "not a JSON object", "unparsed_arguments")
        block = tool_use_block(part, given)
        sent = {"id": self._ids.call(part.call_id)}
        kept = self._notes.extras(part.extras, where)
        return {name: block[name] for name in ("type", "id", "name", "input")} | sent | kept

    # ------------------------------------------------------------------ tool results

    def _result(self, part: ToolResult, where: str) -> Block:
        block: Block = {"type": "tool_result", "tool_use_id": self._ids.result(part.call_id)}
        inside = f"{where}.{self._results}"
        written = [self.write(item, f"{inside}[{n}]") for n, item in enumerate(part.content)]
        content = [item for item in written if item is not None]
        if part.is_error:
            content = self._error_content(content, block, where)
        elif part.is_error is not None:
            block["is_error"] = False
        if content:
            block["content"] = content
        return {**block, **self._notes.extras(part.extras, where)}

    def _error_content(self, content: list[Block], block: Block, where: str) -> list[Block]:
        """Errors must have content, and text only."""
        if any(item["type"] != "text" for item in content):
            self._notes.adjust(f"{where}.is_error", True, "unset (the result is not only text)")
            return content
        block["is_error"] = True
        if content:
            return content
        self._notes.inject(f"{where}.content", NO_OUTPUT)
        return [{"type": "text", "text": NO_OUTPUT}]

    # ------------------------------------------------------------------ media

    def _media(self, part: Media, where: str) -> Block:
        if part.kind == "audio":
            raise self._notes.refuse(where, "This model's protocol takes no audio. Send text.")
        source = part.source
        if isinstance(source, Url) and source.url.startswith("data:"):
            source = self._inline(source.url, where)
        if part.detail not in (None, "auto"):
            self._notes.drop(f"{where}.{self._notes.name('detail')}")
        extras = dict(self._notes.extras(part.extras, where))
        within = extras.pop("source", {})
        if part.kind == "image" or (
            isinstance(source, Inline) and source.media_type in IMAGE_TYPES
        ):
            written = self._image_source(source, where) | within
            return {"type": "image", "source": written, **extras}
        title = {} if part.filename is None else {"title": part.filename}
        written = self._document_source(source, where) | within
        return {"type": "document", "source": written, **title, **extras}

    def _image_source(self, source: Url | Inline | FileRef, where: str) -> Block:
        if not isinstance(source, Inline):
            return self._remote(source, where)
        media_type = source.media_type
        if media_type == "image/jpg":
            media_type = "image/jpeg"
            self._notes.adjust(f"{where}.media_type", "image/jpg", media_type)
        if media_type not in IMAGE_TYPES:
            raise self._notes.refuse(
                where, "This model takes images as JPEG, PNG, GIF or WebP. Convert the image."
            )
        return {"type": "base64", "media_type": media_type, "data": source.data}

    def _document_source(self, source: Url | Inline | FileRef, where: str) -> Block:
        if not isinstance(source, Inline):
            return self._remote(source, where)
        media_type = source.media_type.partition(";")[0].strip().lower()
        if media_type == PDF:
            return {"type": "base64", "media_type": PDF, "data": source.data}
        if media_type.startswith("text/") or media_type in TEXT_TYPES:
            if media_type != PLAIN:
                self._notes.adjust(f"{where}.media_type", media_type, PLAIN)
            return {"type": "text", "media_type": PLAIN, "data": self._decoded(source, where)}
        raise self._notes.refuse(
            where, "This model takes documents as PDF or as text. Convert the file."
        )

    def _decoded(self, source: Inline, where: str) -> str:
        try:
            return base64.b64decode(source.data, validate=True).decode()
        except (binascii.Error, ValueError):
            raise self._notes.reject(
                where, "The file's data is not base64 of UTF-8 text."
            ) from None

    def _remote(self, source: Url | FileRef, where: str) -> Block:
        if isinstance(source, FileRef):
            return {"type": "file", "file_id": source.file_id}
        if not source.url.startswith(("https://", "http://")):
            raise self._notes.reject(where, "Media URLs must start with https:// or be data URLs.")
        return {"type": "url", "url": source.url}

    def _inline(self, url: str, where: str) -> Inline:
        head, comma, data = url.removeprefix("data:").partition(",")
        media_type, *parameters = head.split(";")
        if not comma or "base64" not in parameters:
            raise self._notes.reject(
                where, "A data URL must be base64: data:<media type>;base64,<data>."
            )
        return Inline(media_type.lower(), data)
