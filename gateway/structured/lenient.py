"""Reads one JSON value that is written carelessly, keeping every string's content.

What may follow is decided by the state alone, so a text has one reading or none. Valid tokens
are copied byte for byte. Must not know what stands around the value; that is :mod:`.mend`'s
matter.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping

from adapters.canonical.record import record
from adapters.wire.json import dumps

MAX_DEPTH = 200
"""Levels of arrays and objects."""

SHOWN = 60
"""Characters of a change's ``before`` and ``after`` that are kept."""


@record(frozen=True, slots=True)
class Change:
    """One change: its kind, its place in the answer in characters, and the text before and
    after, each cut to :data:`SHOWN` characters."""

    kind: str
    at: int
    before: str
    after: str

    @classmethod
    def of(cls, kind: str, at: int, before: str, after: str) -> Change:
        """A change with its texts cut."""
        return cls(kind, at, _shown(before), _shown(after))

    def __str__(self) -> str:
        """In ASCII, because it stands in a header."""
        return f"{self.kind}@{self.at} {json.dumps(self.before)} -> {json.dumps(self.after)}"


def _shown(text: str) -> str:
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"


class Unreadable(ValueError):
    """No value can be read here. ``cut``: the text ended inside of it."""

    def __init__(self, why: str, *, cut: bool = False) -> None:
        super().__init__(why)
        self.cut = cut


@record(frozen=True, slots=True)
class Reading:
    """A value that stood from ``start`` to ``end``, as proper JSON."""

    start: int
    end: int
    text: str
    changes: tuple[Change, ...]


def read(text: str, start: int, ended: bool) -> Reading:
    """The value whose bracket is at ``start``.

    :param ended: brackets that are still open at the end of the text may be closed.
    :raises Unreadable: where there is no reading, or more than one.
    """
    try:  # most often the value itself is well, and only its surroundings are not
        end = _PROPER.raw_decode(text, start)[1]
    except (ValueError, RecursionError):
        reader = _Reader(text, start, ended)
        reader.run()
    else:
        return Reading(start, end, text[start:end], ())
    return Reading(start, reader.at, "".join(reader.out), tuple(reader.changes))


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


_PROPER = json.JSONDecoder(parse_constant=_refuse)

# --------------------------------------------------------------------------- tokens

_SPACE = re.compile(r"[ \t\r\n]+")
_ODD_SPACE = re.compile(r"[\s\ufeff\u200b]+")
_COMMENT = re.compile(r"//[^\n]*|#[^\n]*|/\*.*?\*/", re.DOTALL)
_STRING = re.compile(r'"[^"\\\x00-\x1f]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*)*"')
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?![\w.+-])")
_WORD = re.compile(r"[^\W\d][\w$-]*")
_BARE_KEY = re.compile(r"((?:[^\W\d]|\$)[\w$-]*|0|[1-9][0-9]*)(?=\s*:)")
_FENCE = re.compile(r"```|~~~")
_RUN = re.compile(r"[^\\\x00-\x1f\"'“”„‘’]+")
_ESCAPE = re.compile(r'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})')
_BEHIND_STRING = re.compile(r"\s*(?:[,:}\]]|//|/\*|#|```|~~~|\Z)")

QUOTES: Mapping[str, str] = {
    '"': '"',
    "'": "'",
    "“": "“”",
    "”": "”",
    "„": "“”",
    "‘": "’",
    "’": "’",
}
"""What opens a string, and what may close it."""

QUOTE_KINDS: Mapping[str, str] = {'"': "control_character", "'": "single_quotes"}
"""What a rewritten string is called, by its opening; the others are typographic."""

WORDS: Mapping[str, tuple[str, str | None]] = {
    "true": ("true", None),
    "false": ("false", None),
    "null": ("null", None),
    "True": ("true", "python_literal"),
    "False": ("false", "python_literal"),
    "None": ("null", "python_literal"),
    "NaN": ("null", "nan"),
}
"""Bare words that are values. Not a number is no number: as in JavaScript's own writer it
becomes null, and the schema decides whether null will do."""

CLOSERS: Mapping[str, str] = {"{": "}", "[": "]"}

KEY, FIRST_KEY, ITEM, FIRST_ITEM, VALUE, COLON, COMMA, DONE = (
    "a key",
    "a key or '}'",
    "an item",
    "an item or ']'",
    "a value",
    "':'",
    "',' or a closing bracket",
    "nothing",
)
"""What the reader waits for."""


class _Reader:
    """One reading under way."""

    __slots__ = ("_comma", "_ended", "_firm", "_open", "_text", "at", "changes", "out", "state")

    def __init__(self, text: str, start: int, ended: bool) -> None:
        self._text = text
        self._ended = ended
        self._open: list[str] = []
        self._comma = 0
        """Where in ``out`` the last comma is."""
        self._firm = True
        """Whether the last value surely ends where it ends, even if no comma follows."""
        self.at = start
        self.out: list[str] = []
        self.changes: list[Change] = []
        self.state = VALUE

    def run(self) -> None:
        """Read to the closing bracket of the value."""
        while self.state != DONE:
            spaced = self._skip()
            if self.at == len(self._text) or _FENCE.match(self._text, self.at):
                self._close_all(spaced)
            else:
                _STEPS[self.state](self, self._text[self.at], spaced)

    # ----------------------------------------------------------------- between tokens

    def _skip(self) -> bool:
        """Pass over white space and comments; whether there were any."""
        text, start = self._text, self.at
        while True:
            if plain := _SPACE.match(text, self.at):
                self._take(plain.group())
            elif odd := _ODD_SPACE.match(text, self.at):
                self._replace("odd_space", odd.group(), " ")
            elif comment := _COMMENT.match(text, self.at):
                self._replace("comment", comment.group(), "")
            else:
                return self.at > start

    def _take(self, token: str) -> None:
        self.out.append(token)
        self.at += len(token)

    def _replace(self, kind: str, before: str, after: str) -> None:
        self.changes.append(Change.of(kind, self.at, before, after))
        self.out.append(after)
        self.at += len(before)

    # ----------------------------------------------------------------- brackets and commas

    def _push(self, bracket: str) -> None:
        if len(self._open) == MAX_DEPTH:
            raise Unreadable(f"it is nested more than {MAX_DEPTH} levels deep")
        self._open.append(bracket)
        self._take(bracket)
        self.state = FIRST_KEY if bracket == "{" else FIRST_ITEM

    def _close(self, bracket: str) -> None:
        """Take a closing bracket; a comma right before it goes."""
        if bracket != CLOSERS[self._open[-1]]:
            raise Unreadable("its brackets don't match")
        if self.state in (KEY, ITEM):
            self.changes.append(Change.of("trailing_comma", self.at, ",", ""))
            self.out[self._comma] = ""
        self._open.pop()
        self._take(bracket)
        self._valued(firm=True)

    def _close_all(self, spaced: bool) -> None:
        """The text has ended: close what is open, if nothing can be missing."""
        if not (self._ended and self.state == COMMA and (self._firm or spaced)):
            raise Unreadable("it ends in the middle", cut=True)
        missing = "".join(CLOSERS[bracket] for bracket in reversed(self._open))
        self.changes.append(Change.of("missing_bracket", self.at, "", missing))
        self.out.append(missing)
        self.state = DONE

    def _valued(self, *, firm: bool) -> None:
        self._firm = firm
        self.state = COMMA if self._open else DONE

    def _next(self) -> str:
        return KEY if self._open[-1] == "{" else ITEM

    # ----------------------------------------------------------------- the states

    def _key(self, char: str, _spaced: bool) -> None:
        if char == "}":
            self._close(char)
        elif char in QUOTES:
            self._string(char)
            self.state = COLON
        elif bare := _BARE_KEY.match(self._text, self.at):
            self._replace("bare_key", bare.group(), f'"{bare.group()}"')
            self.state = COLON
        else:
            raise self._surprise(char)

    def _colon(self, char: str, _spaced: bool) -> None:
        if char != ":":
            raise self._surprise(char)
        self._take(char)
        self.state = VALUE

    def _item(self, char: str, spaced: bool) -> None:
        if char == "]":
            self._close(char)
        else:
            self._value(char, spaced)

    def _value(self, char: str, _spaced: bool) -> None:
        if char in CLOSERS:
            self._push(char)
        elif char in QUOTES:
            self._valued(firm=self._string(char))
        elif number := _NUMBER.match(self._text, self.at):
            self._take(number.group())
            self._valued(firm=False)
        else:
            self._word(char)

    def _word(self, char: str) -> None:
        word = _WORD.match(self._text, self.at)
        if word is None or word.group() not in WORDS:
            raise self._surprise(char)
        written, kind = WORDS[word.group()]
        if kind is None:
            self._take(written)
        else:
            self._replace(kind, word.group(), written)
        self._valued(firm=True)

    def _more(self, char: str, spaced: bool) -> None:
        """Behind a value: a comma, the end, or a comma that was forgotten."""
        if char == ",":
            self._comma = len(self.out)
            self._take(char)
        elif char in "}]":
            self._close(char)
            return
        elif not spaced or not self._is_next(char):
            raise self._surprise(char)
        else:
            self._comma = len(self.out)
            self.changes.append(Change.of("missing_comma", self.at, "", ","))
            self.out.append(",")
        self.state = self._next()

    def _is_next(self, char: str) -> bool:
        """Whether a next member surely begins here, so that only its comma is missing.

        In an object its colon proves it. In an array two strings in a row may be one with
        quotes inside; then there is space on the inner side of one of them.
        """
        if self._open[-1] == "{":
            return char in QUOTES or _BARE_KEY.match(self._text, self.at) is not None
        behind = self._text[self.at + 1 : self.at + 2]
        return self._firm and (char in CLOSERS or (char in QUOTES and not behind.isspace()))

    def _surprise(self, char: str) -> Unreadable:
        return Unreadable(f"{char!r} stands at character {self.at} where {self.state} should be")

    # ----------------------------------------------------------------- strings

    def _string(self, opening: str) -> bool:
        """Take a string; whether no space stands before its closing quote."""
        if opening == '"' and (proper := _STRING.match(self._text, self.at)):
            self._take(proper.group())
            return not proper.group()[-2:-1].isspace()
        written, end = self._careless(opening)
        kind = QUOTE_KINDS.get(opening, "smart_quotes")
        self._replace(kind, self._text[self.at : end], f'"{written}"')
        return not written[-1:].isspace()

    def _careless(self, opening: str) -> tuple[str, int]:
        """The content of a string as JSON writes it, and where the string ends."""
        text, at = self._text, self.at + 1
        written: list[str] = []
        while at < len(text):
            char = text[at]
            if char in QUOTES[opening]:
                if _BEHIND_STRING.match(text, at + 1) is None:
                    raise Unreadable(f"a quote stands inside of a string at character {at}")
                return "".join(written), at + 1
            if plain := _RUN.match(text, at):
                written.append(plain.group())
                at = plain.end()
            elif escape := _ESCAPE.match(text, at):
                written.append(escape.group())
                at = escape.end()
            elif text.startswith("\\'", at):
                written.append("'")
                at += 2
            elif char == "\\":
                raise Unreadable(f"an escape at character {at} is none of JSON's")
            else:
                # a quote of another kind, or a control character: content as it stands
                written.append(dumps(char).decode()[1:-1])
                at += 1
        raise Unreadable("it ends in the middle of a string", cut=True)


_STEPS: Mapping[str, Callable[[_Reader, str, bool], None]] = {
    KEY: _Reader._key,
    FIRST_KEY: _Reader._key,
    ITEM: _Reader._item,
    FIRST_ITEM: _Reader._item,
    VALUE: _Reader._value,
    COLON: _Reader._colon,
    COMMA: _Reader._more,
}
