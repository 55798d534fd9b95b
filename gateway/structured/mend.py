"""Answers that are JSON but for their dress, read without a guess.

What parses is returned as it came. Else one JSON value is looked for, and only what stands
outside of its strings is changed: fences, prose and thinking around it, comments, quotes of
another kind, bare keys, Python's words, commas, a bracket that was forgotten at a true end. Each
change is listed. Where two readings are possible there is none: two values, a quote inside a
string, a missing value, a cut (fault kind K09, case O08). Linear in time and space.
"""

from __future__ import annotations

import re

from adapters.canonical.record import record
from adapters.wire.json import loads
from gateway.structured.lenient import Change, Reading, Unreadable, read

MAX_TRIES = 24
"""Brackets in one text at which a value is looked for."""

MAX_CHARACTERS = 256 * 1024
"""Longer answers are not mended: reading one carelessly takes about a microsecond a character."""

_THOUGHTS = "think|thinking|thought|reasoning|reflection|scratchpad"
_THOUGHT_END = re.compile(rf"</(?:{_THOUGHTS})>", re.IGNORECASE)
_THOUGHT_BEGIN = re.compile(rf"\s*<(?:{_THOUGHTS})>", re.IGNORECASE)
_OPENING = re.compile(r"[{\[]")
_FENCE = re.compile(r"```|~~~")
_GOES_ON = re.compile(r"[\s}\]]*[,:\"'“”]")
_GOES_INTO = re.compile(r"[\"'”]\s*[:,]\s*\Z")
_BEGINS = re.compile(r"[{\[]\s*(?:[\"'“”„‘’{\[]|[\w$-]+\s*:)")
"""What may be the beginning of data: a ``{x}`` or ``[see below]`` is not."""


class Unparsable(ValueError):
    """There is no JSON in the text that could be read without a guess; the text says why."""


@record(frozen=True, slots=True)
class Mended:
    """``text`` parses. ``changes`` says what was changed to make it so, in order."""

    text: str
    changes: tuple[Change, ...] = ()


def mend(text: str, *, ended: bool = True) -> Mended:
    """``text`` itself if it parses, else the one JSON value in it.

    :param ended: the model stopped by itself, so that brackets still open were forgotten and
        not cut off.
    :raises Unparsable: where there is none, or more than one reading.
    """
    if parses(text):
        return Mended(text)
    if len(text) > MAX_CHARACTERS:
        raise Unparsable(f"it has more than {MAX_CHARACTERS} characters, too many to be mended")
    begin = _behind_thoughts(text)
    value = _only(_values(text, begin, ended))
    before, behind = text[begin : value.start], text[value.end :]
    if _is_open(before) or _GOES_INTO.search(before[-100:]) or _GOES_ON.match(behind):
        raise Unparsable("the only JSON in it is part of something larger that can't be read")
    if _BEGINS.search(before) or _BEGINS.search(behind):
        raise Unparsable("beside the JSON in it there is some that can't be read")
    if not parses(value.text):
        raise Unparsable("it is no JSON")
    thoughts = (Change.of("thinking", 0, text[:begin], ""),) if begin else ()
    around = (*_left_out(before, begin), *value.changes, *_left_out(behind, value.end))
    return Mended(value.text, (*thoughts, *around))


def parses(text: str) -> bool:
    """Whether ``text`` is one JSON value as it stands."""
    try:
        loads(text)
    except ValueError:
        return False
    return True


def _behind_thoughts(text: str) -> int:
    """Where the answer begins behind what the model thought aloud. The opening tag is often part
    of the prompt, so that only the closing one is seen.

    :raises Unparsable: where the thinking does not end.
    """
    start = 0
    if text.lstrip()[:1] in ("{", "["):
        return start
    while (end := _THOUGHT_END.search(text, start)) is not None:
        start = end.end()
        if _THOUGHT_BEGIN.match(text, start) is None:
            return start
    if _THOUGHT_BEGIN.match(text, start) is not None:
        raise Unparsable("the thinking in front of the answer does not end")
    return start


def _values(text: str, start: int, ended: bool) -> list[Reading]:
    """Every value that can be read, each behind the one before.

    :raises Unparsable: if there is none, or one that is cut.
    """
    found: list[Reading] = []
    why = "there is no JSON object or array in it"
    for tried in range(MAX_TRIES):
        opening = _OPENING.search(text, start)
        if opening is None:
            break
        try:
            found.append(read(text, opening.start(), ended))
            start = found[-1].end
        except Unreadable as error:
            if error.cut:
                raise Unparsable(str(error)) from error
            why = str(error) if tried == 0 else why
            start = opening.end()
    if _OPENING.search(text, start) is not None:
        raise Unparsable("there are too many brackets in it")
    if not found:
        raise Unparsable(why)
    return found


def _only(found: list[Reading]) -> Reading:
    """The single value; beside an object, numbers in brackets are a remark such as ``[1]``.

    :raises Unparsable: if there is another.
    """
    if len(found) == 1:
        return found[0]
    values = [one for one in found if '"' in one.text or "{" in one.text]
    if len(values) != 1:
        raise Unparsable(f"there are {len(found)} JSON values in it and not one")
    return values[0]


def _is_open(before: str) -> bool:
    """Whether a bracket in front of the value is still open there."""
    opened = before.count("{") + before.count("[")
    return opened > before.count("}") + before.count("]")


def _left_out(piece: str, at: int) -> tuple[Change, ...]:
    """What stands before or behind the value."""
    if not piece.strip():
        return ()
    return (Change.of(_kind(piece), at, piece, ""),)


def _kind(piece: str) -> str:
    if _FENCE.search(piece) is not None:
        return "fence"
    for kind, pattern in _KINDS:
        if pattern.fullmatch(piece) is not None:
            return kind
    return "prose"


_KINDS = (
    ("markup", re.compile(r"\s*(?:</?[A-Za-z][^<>]*>\s*|<\|[^<>|]*\|>\s*)+")),
    ("stray_bracket", re.compile(r"[\s}\]]+")),
    ("comment", re.compile(r"(?:\s*(?://[^\n]*|/\*[^*]*\*/))+\s*")),
)
"""What a piece is called that has nothing else in it."""
