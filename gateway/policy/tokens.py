"""How many input tokens a request will be, counted offline: no tables of words, no network.

A tokenizer's work is guessed from how many characters of each class a text holds and how often
they change class, with factors for each model family (:mod:`gateway.policy.families`). That is a
few passes in C over the bytes (measured: 5 µs a kB), and beyond :data:`WHOLE` only evenly
spaced slices are looked at, so that no prompt, however large, holds up the event loop (case P05).
Real usage replaces the guess as soon as the provider reports it; until then limits reserve the
estimate plus its bound. Must not know dialects: vendors' JSON differs by less than the bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from functools import lru_cache
from operator import itemgetter, mul, sub
from typing import AnyStr, NamedTuple

from adapters.canonical.facts import Facts
from adapters.canonical.parts import Inline, Media, Opaque, Part, Refusal, Text, Thinking, ToolCall
from adapters.canonical.parts import ToolResult as Result
from adapters.canonical.record import record
from adapters.canonical.request import FunctionTool, JsonSchema, OpaqueTool, Request
from adapters.wire.json import dumps
from gateway.policy.families import CLASSES, FAMILIES, TOKENIZERS, Family
from gateway.policy.images import Size, size

WHOLE = 1 << 14
"""Bytes of text up to which all of it is looked at. All of a 100 kB prompt would cost 0.5 ms more,
as much as the whole call besides."""

SLICES = 128
"""How many pieces of a longer text are looked at."""

SLICE = 16
"""Bytes of each: many short pieces tell more of a text than few long ones."""

_PLACES = tuple(n * 0.6180339887498949 % 1 for n in range(SLICES))
"""Where in its share of the text each slice lies: never at the same place of what recurs, such as
records of one length, and evenly spread over it (multiples of the golden ratio)."""

SAMPLING_ERROR = 0.10
"""What slices may be off beyond the family's error: texts are not the same throughout (measured,
the worst family of each: 400 mixtures of code, prose and JSON are 2.6 % off in the middle, 95 % of
them within 7.1 %; 600 texts of records of any one length, a third digits and the rest prose, 2.3 %
and 9.7 %)."""

SERVER_TOOL = 10_500
"""Tokens that a tool of the provider's own may read unasked (recorded: web searches 8,234 to
10,414, MCP and code execution 1,171 to 7,559). Only in the bound: often it reads nothing."""

TOOL_PROMPT = 80
"""Tokens that the prompt for tools is uncertain by, at least: it differs by model, by what is
called, and by ``tool_choice`` (recorded: 86 more than expected). Only in the bound."""

OPAQUE_PART = 650
"""Tokens that a block of the provider's own may bring along beyond its JSON (recorded: search
results with citations 566, a compaction 79). Only in the bound."""

BYTES_PER_PAGE = 50_000
"""Of a PDF; each page counts like the dearest image."""

BYTES_PER_AUDIO_TOKEN = 250
"""Compressed sound at 64 kbit/s and 32 tokens a second."""

SEALED_PER_TOKEN = 16
"""Characters of sealed reasoning for each token that it counts as input."""

_BREAK, _START = "\x0b", b"\x0b"
"""Between texts, and before the first: white space that belongs to no class."""

_CUT = "\x1f"
"""Between slices: it belongs to no class, and to no joint either, since what stands side by side
there does not in the text. In a wide table, every tenth slice would seem to begin a word."""


class Estimate(NamedTuple):
    """``tokens`` is the best guess, ``tokens + bound`` what should not be exceeded."""

    tokens: int
    bound: int


_OF_SLICES = (1.0,) * len(CLASSES) + (SLICE / (SLICE - 1),) * 3
"""By what features are multiplied: a slice has all of its characters, but one joint too few."""

_l, _u, _d, _s, _n, _p, *_LEADS = (members for _, members in CLASSES)  # by their codes
_NO_LEADS = (0,) * len(_LEADS)

_LOWER, _UPPER, _DIGIT = (frozenset(members) for _, members in CLASSES[:3])
_SPACE = frozenset(b" \t\n\r\x0b\x0c")
_ANY = frozenset(range(256)) - {ord(_CUT)}
_JOINTS: tuple[tuple[int, frozenset[int], frozenset[int]], ...] = (
    (1, _SPACE, _ANY - _SPACE),
    (2, _LOWER, _UPPER),
    (4, _LOWER | _UPPER, _DIGIT),
    (8, _DIGIT, _LOWER | _UPPER),
)
"""A bit, and what stands before and after a joint: where a word begins, inside camelCase, between
letters and digits. No place in a text is two of them, and no byte is on both sides of one."""
_WORD, _HUMP = 1 << 4, 2 << 4
"""The first two, where they are complete."""


def _sides() -> bytes:
    """For each byte the joints that it begins, and in the upper half those that it completes."""
    bits = bytearray(256)
    for bit, before, after in _JOINTS:
        for byte in before:
            bits[byte] |= bit
        for byte in after:
            bits[byte] |= bit << 4
    return bytes(bits)


_SIDES = _sides()


def features(data: bytes) -> tuple[int, ...]:
    """How often each class, a word, and each kind of joint occurs, as ``TOKENIZERS`` has them.

    Of each class there are as many characters as less is left without them; those of which most
    texts have most go first. Joints are found for all places at once: what the bytes begin, as one
    large number, moved on to what the next ones complete, *and* that.
    """
    letters = len(data) - len(rest := data.translate(None, _l))
    spaces = len(rest) - len(rest := rest.translate(None, _s))
    signs = len(rest) - len(rest := rest.translate(None, _p))
    capitals = len(rest) - len(rest := rest.translate(None, _u))
    digits = len(rest) - len(rest := rest.translate(None, _d))
    ends = len(rest) - len(rest := rest.translate(None, _n))
    leads = _NO_LEADS if rest.isascii() else _leads(rest)
    begun = _START + data  # so that the first word begins, too
    sides = int.from_bytes(begun.translate(_SIDES), "big")
    joints = ((sides >> 4) & sides).to_bytes(len(begun), "big").translate(None, b"\0")
    words, humps = joints.count(_WORD), joints.count(_HUMP)
    others = len(joints) - words - humps
    return (letters, capitals, digits, spaces, ends, signs, *leads, words, humps, others)


def _leads(rest: bytes) -> Iterator[int]:
    """How often the lead bytes of each class occur in what has no ASCII of any."""
    left = [len(rest), *(len(rest := rest.translate(None, members)) for members in _LEADS)]
    return map(sub, left, left[1:])


def count(text: str | bytes, family: Family) -> float:
    """Tokens of one text, framing left out."""
    data = text.encode("utf-8", "replace") if isinstance(text, str) else text
    return _weight(features(data), family)


def _weight(counts: tuple[float, ...], family: Family) -> float:
    weight: float = sum(map(mul, counts, TOKENIZERS[family.tokenizer]))
    return family.scale * weight


@record(slots=True)
class Beside:
    """What a request holds beside plain text, for any family."""

    results: int = 0
    tools: int = 0
    server_tools: bool = False
    opaque_parts: int = 0
    schema: bool = False
    sealed: int = 0
    images: list[Size | None] = field(default_factory=list)
    pages: int = 0
    audio: int = 0


@record(frozen=True, slots=True)
class Measure:
    """What was counted of a request, for any family: made once, weighed for each target.

    ``share`` is the text's length as a multiple of what was looked at; ``beside`` is ``None`` for
    a request of nothing but text, as most are.
    """

    counts: tuple[float, ...]
    share: float
    messages: int
    beside: Beside | None


def measure(request: Request) -> Measure:
    """Look at all that the model will read of ``request``."""
    texts: list[str] = []
    messages = len(request.messages)
    if request.instructions:
        texts += [block.text for block in request.instructions]
        messages += 1
    beside: Beside | None = None
    for message in request.messages:
        for part in message.parts:
            if type(part) is Text:
                texts.append(part.text)
            else:
                beside = beside or Beside()
                texts.extend(_texts(part, beside))
    if request.tools or request.output is not None:
        beside = beside or Beside()
        texts.extend(_asked(request, beside))
    counts, share = _counted(_BREAK.join(texts))
    return Measure(counts, share, messages, beside)


def weigh(found: Measure, facts: Facts) -> Estimate:
    """The tokens of a measured request at a model with these facts."""
    family = FAMILIES.get(facts.family) or FAMILIES["unknown"]
    text = _weight(found.counts, family) * found.share
    error = family.error + (SAMPLING_ERROR if found.share > 1.0 else 0.0)
    framing = family.base + family.message * found.messages
    if found.beside is not None:
        return _weighed(found.beside, family, text, error, framing)
    return Estimate(int(text) + framing, family.least + framing // 4 + int(text * error))


def _weighed(beside: Beside, family: Family, text: float, error: float, framing: int) -> Estimate:
    """The tokens of a request that holds more than text."""
    text += beside.sealed / SEALED_PER_TOKEN
    framing += family.message * beside.results
    prompt = unasked = 0
    if beside.tools:
        prompt, unasked = family.tools, max(family.tools, TOOL_PROMPT)
        framing += family.tool * beside.tools
    if beside.schema:
        framing += family.schema
    if beside.server_tools:
        unasked += SERVER_TOOL
    media = beside.audio + family.image_most * beside.pages
    for image in beside.images:
        media += family.image_most if image is None else family.image(image)
    bound = family.least + framing // 4 + int(text * error) + media
    bound += unasked + OPAQUE_PART * beside.opaque_parts
    return Estimate(int(text) + prompt + framing + media, bound)


def estimate(request: Request, facts: Facts) -> Estimate:
    """The input tokens of ``request`` at a model with these facts."""
    return weigh(measure(request), facts)


def _counted(text: str) -> tuple[tuple[float, ...], float]:
    """The features of what is looked at of a text, and its length as a multiple of that."""
    if len(text) > WHOLE and text.isascii():
        found = features(_slices(text).encode())  # not of all encoded: a copy costs as much
        return tuple(map(mul, found, _OF_SLICES)), len(text) / (SLICES * SLICE)
    data = text.encode("utf-8", "replace")
    if len(data) <= WHOLE:
        return features(data), 1.0
    return tuple(map(mul, features(_slices(data)), _OF_SLICES)), len(data) / (SLICES * SLICE)


def _slices(text: AnyStr) -> AnyStr:
    """Evenly spread pieces of a text that is longer than :data:`WHOLE`."""
    step = len(text) // SLICES
    rough = step.bit_length() - 6
    cut = _CUT if isinstance(text, str) else _CUT.encode()
    return cut.join(_places(step >> rough << rough)(text))


@lru_cache(maxsize=128)
def _places(step: int) -> Callable[[AnyStr], tuple[AnyStr, ...]]:
    """What takes the pieces, one from each ``step`` bytes: looked up for all texts of about one
    length, since to work out where they lie costs more than to look at them."""
    starts = (n * step + int(place * (step - SLICE)) for n, place in enumerate(_PLACES))
    return itemgetter(*(slice(start, start + SLICE) for start in starts))


def _asked(request: Request, found: Beside) -> Iterator[str]:
    """The texts of tools and of an answer's schema."""
    for tool in request.tools or ():
        found.tools += 1
        yield from _tool_texts(tool, found)
    if isinstance(request.output, JsonSchema):
        found.schema = True
        yield dumps(request.output.schema).decode()


def _tool_texts(tool: FunctionTool | OpaqueTool, found: Beside) -> Iterator[str]:
    if isinstance(tool, OpaqueTool):
        found.server_tools = found.server_tools or tool.type != "custom"
        yield dumps(tool.data).decode()
        return
    yield tool.name
    if tool.description is not None:
        yield tool.description
    if tool.parameters is not None:
        yield dumps(tool.parameters).decode()


def _texts(part: Part, found: Beside) -> Sequence[str]:
    """The texts of a part; what is no text is noted in ``found``."""
    match part:
        case Text(text=text) | Refusal(text=text):
            return (text,)
        case Thinking(text=text, sealed=sealed):
            found.sealed += len(sealed or "")
            return (text,)
        case ToolCall(name=name, arguments=arguments):
            return name, arguments
        case Result(content=content):
            found.results += 1
            return [text for piece in content for text in _texts(piece, found)]
        case Opaque(data=data):
            found.opaque_parts += 1
            return (dumps(data).decode(),)
        case Media():
            _note_media(part, found)
    return ()


def text_length(part: Part) -> int:
    """Characters of a part that the model reads: a cheap stand-in for its share of the tokens."""
    return sum(map(len, _texts(part, Beside())))


def _note_media(media: Media, found: Beside) -> None:
    inline = media.source if isinstance(media.source, Inline) else None
    length = 0 if inline is None else len(inline.data) * 3 // 4
    if media.kind == "image":
        found.images.append(None if inline is None else size(inline.data))
    elif media.kind == "audio":
        found.audio += length // BYTES_PER_AUDIO_TOKEN
    else:
        found.pages += 1 + length // BYTES_PER_PAGE
