"""How many input tokens a request will be, counted offline: no tables, no network, linear.

A tokenizer's work is guessed from how many characters of each class a text holds (letters,
digits, CJK …), with factors for each model family. That costs a few passes in C over the
bytes, so it may run on the event loop for any body the gateway accepts (case P05). Real usage
replaces the guess as soon as the provider reports it; until then limits reserve the estimate
plus its bound. Must not know dialects: vendors' JSON differs by less than the bound.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from adapters.canonical.facts import Facts
from adapters.canonical.parts import Media, Opaque, Part, Refusal, Text, Thinking, ToolCall
from adapters.canonical.parts import ToolResult as Result
from adapters.canonical.request import FunctionTool, JsonSchema, OpaqueTool, Request
from adapters.wire.json import dumps


class Estimate(NamedTuple):
    """``tokens`` is the best guess, ``tokens + bound`` what should not be exceeded."""

    tokens: int
    bound: int


@dataclass(frozen=True, slots=True)
class Family:
    """One tokenizer family: tokens for each character of a class, and fixed costs.

    ``message`` and ``tool`` are tokens of framing; ``image`` is the dearest image;
    ``error`` is the share of the estimate that bounds its error.
    """

    letter: float
    digit: float
    space: float
    sign: float
    two_byte: float
    cjk: float
    three_byte: float
    four_byte: float
    message: int
    tool: int
    image: int
    error: float


FAMILIES: dict[str, Family] = {
    "openai": Family(0.19, 0.40, 0.06, 0.50, 0.45, 0.75, 0.80, 1.6, 4, 12, 1105, 0.25),
    "anthropic": Family(0.22, 0.55, 0.08, 0.60, 0.60, 1.10, 1.10, 2.5, 5, 40, 1600, 0.30),
    "unknown": Family(0.22, 0.60, 0.10, 0.60, 0.60, 1.10, 1.10, 2.5, 5, 20, 1600, 0.35),
}
"""Rows by ``Facts.family``; any other family is counted as ``unknown``."""

LEAST_BOUND = 32
"""Tokens: framing that no factor explains, whatever the length."""

_LETTERS = bytes(range(ord("a"), ord("z") + 1)) + bytes(range(ord("A"), ord("Z") + 1))
_DIGITS = b"0123456789"
_SPACES = b" \t\r\n"
_CONTINUATION = bytes(range(0x80, 0xC0))
_TWO = bytes(range(0xC2, 0xE0))
_CJK = bytes(range(0xE3, 0xEE))
"""Lead bytes of U+3000 to U+DFFF: kana, Han, Hangul."""
_THREE = b"\xe0\xe1\xe2\xef"
_FOUR = bytes(range(0xF0, 0xF5))


def _without(data: bytes, unwanted: bytes) -> bytes:
    return data.translate(None, unwanted)


def count(text: str | bytes, family: Family) -> float:
    """Tokens of one text, framing left out."""
    data = text.encode("utf-8", "replace") if isinstance(text, str) else text
    size = len(data)
    rest = _without(data, _LETTERS)
    tokens = (size - len(rest)) * family.letter
    for members, factor in (
        (_SPACES, family.space),
        (_DIGITS, family.digit),
        (_CONTINUATION, 0.0),
        (_CJK, family.cjk),
        (_TWO, family.two_byte),
        (_THREE, family.three_byte),
        (_FOUR, family.four_byte),
    ):
        if not rest:
            return tokens
        fewer = _without(rest, members)
        tokens += (len(rest) - len(fewer)) * factor
        rest = fewer
    return tokens + len(rest) * family.sign


def estimate(request: Request, facts: Facts) -> Estimate:
    """The input tokens of ``request`` at a model with these facts."""
    family = FAMILIES.get(facts.family, FAMILIES["unknown"])
    tokens = sum(count(block.text, family) for block in request.instructions)
    tokens += family.message * (len(request.messages) + bool(request.instructions))
    for message in request.messages:
        for part in message.parts:
            tokens += sum(count(piece, family) for piece in _texts(part))
            tokens += family.image * _media(part)
    for tool in request.tools or ():
        tokens += family.tool + count(_tool_text(tool), family)
    if isinstance(request.output, JsonSchema):
        tokens += family.tool + count(dumps(request.output.schema), family)
    whole = int(tokens) + 1
    return Estimate(whole, LEAST_BOUND + int(whole * family.error))


def _tool_text(tool: FunctionTool | OpaqueTool) -> bytes:
    if isinstance(tool, OpaqueTool):
        return dumps(tool.data)
    schema = b"" if tool.parameters is None else dumps(tool.parameters)
    return tool.name.encode() + (tool.description or "").encode("utf-8", "replace") + schema


def _texts(part: Part) -> Iterator[str | bytes]:
    """The texts of a part that the model reads."""
    match part:
        case Text(text=text) | Refusal(text=text) | Thinking(text=text):
            yield text
        case ToolCall(name=name, arguments=arguments):
            yield name
            yield arguments
        case Result(content=content):
            for piece in content:
                yield from _texts(piece)
        case Opaque(data=data):
            yield dumps(data)
        case _:
            pass


def _media(part: Part) -> int:
    if isinstance(part, Media):
        return 1
    return sum(isinstance(p, Media) for p in part.content) if isinstance(part, Result) else 0
