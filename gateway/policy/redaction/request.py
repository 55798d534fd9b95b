"""Every text of a request that a provider would read, in order, each passed through a function.

Called twice: once to collect, once to put back what was masked. Left alone is what is no text of
a person's: names of tools, the constraints of schemas (they are contracts, and the answer is
checked against them), sealed reasoning, and the addresses of media, which the provider follows.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any

from adapters.canonical.parts import (
    NO_EXTRAS,
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
from adapters.canonical.request import FunctionTool, JsonSchema, Message, Request, Tool
from gateway.policy.redaction import json_text
from gateway.policy.redaction.masking import Masking, Piece

Change = Callable[[Piece], str]

SEALED = frozenset(
    {"encrypted_content", "encrypted_index", "signature", "thought_signature", "data", "image_url"}
    | {"file_data", "b64_json", "headers", "authorization"}
)
"""Keys of other protocols' objects whose values only their maker can read, or that are no text;
``headers`` and ``authorization`` let a provider in at the caller's own MCP server."""
ANNOTATIONS = frozenset({"description", "title", "$comment", "examples"})
"""Words of a schema that constrain nothing."""
_DIGITS = 7
"""Digits that a whole number needs to be looked at: no kind has fewer."""


def masked(masking: Masking, request: Request) -> Request:
    """``request`` with every value masked; the same object where there was none."""
    found: list[Piece] = []

    def collect(piece: Piece) -> str:
        found.append(piece)
        return piece.text

    _Walk(collect).request(request)
    new = masking.texts(found)
    if all(text is piece.text for text, piece in zip(new, found, strict=True)):
        return request
    return _Walk(_next_of(iter(new)), masking.torn).request(request)


def _next_of(texts: Iterator[str]) -> Change:
    return lambda piece: next(texts)


def masked_again(masking: Masking, request: Request, known: int) -> Request:
    """``request`` with the messages after the first ``known`` masked: they hold the model's own
    words with their values put back."""
    walk = _Walk(lambda p: masking.as_said(p.text) if p.signed else masking.again(p.text))
    more = tuple(walk.message(message) for message in request.messages[known:])
    return replace(request, messages=(*request.messages[:known], *more))


class _Walk:
    """Passes texts through ``change``; whatever need not change is the same object after."""

    __slots__ = ("_change", "_torn")

    def __init__(self, change: Change, torn: Collection[str] = ()) -> None:
        self._change = change
        self._torn = torn

    def text(self, text: str) -> str:
        return self._change(Piece(text)) if text else text

    def _maybe(self, text: str | None) -> str | None:
        return None if text is None else self.text(text)

    def request(self, request: Request) -> Request:
        cache, sampling, prompt = request.cache, request.sampling, request.prompt
        return replace(
            request,
            instructions=tuple(map(self._text_part, request.instructions)),
            messages=tuple(map(self.message, request.messages)),
            tools=None if request.tools is None else tuple(map(self._tool, request.tools)),
            output=self._output(request.output),
            sampling=replace(sampling, stop=tuple(map(self.text, sampling.stop))),
            cache=None if cache is None else replace(cache, key=self._maybe(cache.key)),
            prompt=None
            if prompt is None
            else replace(prompt, variables=self.tree(prompt.variables)),
            metadata=self.tree(request.metadata),
            end_user=self._maybe(request.end_user),
            safety_identifier=self._maybe(request.safety_identifier),
            extras=self.tree(request.extras),
        )

    def message(self, message: Message) -> Message:
        return replace(
            message,
            parts=tuple(map(self._part, message.parts)),
            name=self._maybe(message.name),
            extras=self.tree(message.extras),
        )

    # ------------------------------------------------------------------ parts

    def _part(self, part: Part) -> Part:
        match part:
            case Text():
                return self._text_part(part)
            case ToolResult():
                content = tuple(map(self._result, part.content))
                return replace(part, content=content, extras=self.tree(part.extras))
            case ToolCall():
                arguments = self._arguments(part)
                return replace(part, arguments=arguments, extras=self.tree(part.extras))
            case Thinking():
                return self._thinking(part)
            case Refusal():
                return replace(part, text=self.text(part.text), extras=self.tree(part.extras))
            case Media():
                return self._media(part)
            case Opaque():
                return replace(part, data=self.tree(part.data))

    def _text_part(self, part: Text) -> Text:
        citations = tuple(map(self.tree, part.citations))
        extras = self.tree(part.extras)
        return replace(part, text=self.text(part.text), citations=citations, extras=extras)

    def _result(self, part: Text | Media | Opaque) -> Text | Media | Opaque:
        if isinstance(part, Text) and part.text.lstrip()[:1] in ("{", "["):
            return replace(part, text=self._json(part.text), extras=self.tree(part.extras))
        return self._part(part)  # type: ignore[return-value]

    def _arguments(self, call: ToolCall) -> str:
        plain = call.kind == "custom"
        return self.text(call.arguments) if plain else self._json(call.arguments)

    def _json(self, raw: str) -> str:
        return json_text.changed(raw, self.text)

    def _thinking(self, part: Thinking) -> Thinking:
        """The model's own words: a placeholder in them is one of ours. Those that were signed
        with a value which the model had from nobody can't go back: masked, they are others."""
        signed = part.signature is not None

        def ours(text: str) -> str:
            return self._change(Piece(text, ours=True, signed=signed)) if text else text

        if part.summary is None:
            new = replace(part, text=ours(part.text), extras=self.tree(part.extras))
        else:
            summary = tuple(map(ours, part.summary))
            joined = "".join(part.summary) == part.text
            text = "".join(summary) if joined else ours(part.text)
            new = replace(part, text=text, summary=summary, extras=self.tree(part.extras))
        is_torn = signed and part.text in self._torn
        return replace(new, dialect=None, signature=None, sealed=None) if is_torn else new

    def _media(self, part: Media) -> Media:
        source, filename = part.source, self._maybe(part.filename)
        if isinstance(source, Inline) and source.media_type.startswith(
            ("text/", "application/json")
        ):
            source = replace(source, data=self._base64(source.data))
        return replace(part, source=source, filename=filename, extras=self.tree(part.extras))

    def _base64(self, data: str) -> str:
        """A text file that was sent along. What is no text is refused when it is encoded."""
        try:
            text = base64.b64decode(data, validate=True).decode()
        except (binascii.Error, ValueError):
            return data
        new = self.text(text)
        return data if new == text else base64.b64encode(new.encode()).decode()

    # ------------------------------------------------------------------ JSON

    def _tool(self, tool: Tool) -> Tool:
        if not isinstance(tool, FunctionTool):
            return replace(tool, data=self.tree(tool.data))
        return replace(
            tool,
            description=self._maybe(tool.description),
            parameters=None if tool.parameters is None else self._schema(tool.parameters),
            extras=self.tree(tool.extras),
        )

    def _output(self, output: Any) -> Any:
        if not isinstance(output, JsonSchema):
            return output
        description = self._maybe(output.description)
        return replace(output, description=description, schema=self._schema(output.schema))

    def _schema(self, schema: Any) -> Any:
        """A schema with its annotations passed through, its constraints as they are."""
        if isinstance(schema, Mapping):
            return _same(
                schema,
                {
                    key: self.tree(value) if key in ANNOTATIONS else self._schema(value)
                    for key, value in schema.items()
                },
            )
        if isinstance(schema, list):
            items = list(map(self._schema, schema))
            return schema if all(map(_is, items, schema)) else items
        return schema

    def tree(self, value: Any) -> Any:
        """Parsed JSON: its strings, and whole numbers that are long enough to be something."""
        if value is NO_EXTRAS or value is None:
            return value
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return _same(
                value,
                {
                    self.text(key): item if _is_sealed(key, value) else self.tree(item)
                    for key, item in value.items()
                },
            )
        if isinstance(value, list | tuple):
            items = list(map(self.tree, value))
            return value if all(map(_is, items, value)) else items
        if isinstance(value, int) and abs(value) >= 10 ** (_DIGITS - 1):
            digits = str(value)
            new = self.text(digits)
            return value if new == digits else new
        return value


def _is_sealed(key: str, around: Mapping[str, Any]) -> bool:
    return key in SEALED and around.get("type") != "text"


def _is(new: Any, old: Any) -> bool:
    return new is old


def _same(old: Mapping[str, Any], new: dict[str, Any]) -> Mapping[str, Any]:
    """``old`` itself if nothing in it changed."""
    unchanged = len(old) == len(new) and all(
        key in new and new[key] is value for key, value in old.items()
    )
    return old if unchanged else new
