"""On which line of a TOML text each key stands.

The standard library's parser forgets places, and an error without its line sends a person
searching. This scanner walks a text that already parsed, so it trusts the grammar and only
follows keys; values it merely steps over.
"""

from __future__ import annotations

import re

Path = tuple[str | int, ...]

_BLANK = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)*")
_SPACE = re.compile(r"[ \t]*")
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_SCALAR = re.compile(r"[^,\]}\n#]*")
_STRINGS = (
    re.compile(r'"""(?:\\.|[^\\])*?"{3,5}', re.DOTALL),
    re.compile(r"'''.*?'{3,5}", re.DOTALL),
    re.compile(r'"(?:\\.|[^"\\])*"'),
    re.compile(r"'[^']*'"),
)
_ESCAPES = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r", "e": "\x1b"}
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))")


def positions(text: str) -> dict[Path, int]:
    """The line (from 1) of every key, table and array element of a valid TOML ``text``."""
    return _Scanner(text).walk()


class _Scanner:
    __slots__ = ("_at", "_elements", "_found", "_line", "_line_at", "_text")

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._line = 1
        self._line_at = 0
        self._found: dict[Path, int] = {}
        self._elements: dict[Path, int] = {}
        """Arrays of tables, each with the index of its last element."""

    def walk(self) -> dict[Path, int]:
        table: Path = ()
        self._skip(_BLANK)
        while self._at < len(self._text):
            if self._text[self._at] == "[":
                table = self._header()
            else:
                self._pair(table)
            self._skip(_BLANK)
        return self._found

    def _skip(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self._text, self._at)
        if match is None:  # an empty match is a match: the text was not valid TOML
            raise ValueError(f"no TOML at character {self._at}")
        self._at = match.end()
        return match.group()

    def _mark(self, path: Path) -> None:
        """Note where ``path`` first stood; the scanner only moves forward, so lines are
        counted on from the last mark."""
        self._line += self._text.count("\n", self._line_at, self._at)
        self._line_at = self._at
        self._found.setdefault(path, self._line)

    def _header(self) -> Path:
        is_element = self._text.startswith("[[", self._at)
        self._at += 2 if is_element else 1
        names = self._key()
        path: Path = ()
        for name in names[:-1]:
            path = self._inside((*path, name))
        path = (*path, names[-1])
        if is_element:
            self._mark(path)
            self._elements[path] = self._elements.get(path, -1) + 1
        path = self._inside(path)
        self._mark(path)
        self._at += 2 if is_element else 1
        return path

    def _inside(self, path: Path) -> Path:
        """``path`` itself, or its last element where it is an array of tables."""
        self._mark(path)
        return (*path, self._elements[path]) if path in self._elements else path

    def _pair(self, table: Path) -> None:
        path = table
        for name in self._key():
            path = (*path, name)
            self._mark(path)
        self._at += 1  # the equals sign
        self._skip(_SPACE)
        self._value(path)

    def _key(self) -> list[str]:
        """A dotted key, up to the ``=`` or ``]`` behind it."""
        names = []
        while True:
            self._skip(_SPACE)
            if self._text[self._at] in "\"'":
                names.append(_unquote(self._string()))
            else:
                names.append(self._skip(_BARE))
            self._skip(_SPACE)
            if self._text[self._at] != ".":
                return names
            self._at += 1

    def _value(self, path: Path) -> None:
        match self._text[self._at]:
            case "[":
                self._array(path)
            case "{":
                self._inline(path)
            case '"' | "'":
                self._string()
            case _:
                self._skip(_SCALAR)

    def _array(self, path: Path) -> None:
        index = 0
        self._at += 1
        while self._more("]"):
            self._mark((*path, index))
            self._value((*path, index))
            index += 1

    def _inline(self, path: Path) -> None:
        self._at += 1
        while self._more("}"):
            self._pair(path)

    def _more(self, end: str) -> bool:
        """Step over blanks and commas; ``False`` behind the closing ``end``."""
        self._skip(_BLANK)
        while self._text[self._at] == ",":
            self._at += 1
            self._skip(_BLANK)
        if self._text[self._at] != end:
            return True
        self._at += 1
        return False

    def _string(self) -> str:
        for pattern in _STRINGS:
            match = pattern.match(self._text, self._at)
            if match is not None:
                self._at = match.end()
                return match.group()
        raise ValueError(f"no TOML string at character {self._at}")


def _unquote(quoted: str) -> str:
    """A quoted key (always on one line) as its value."""
    inner = quoted[1:-1]
    return inner if quoted.startswith("'") else _ESCAPE.sub(_unescape, inner)


def _unescape(match: re.Match[str]) -> str:
    code = match.group(1) or match.group(2)
    if code is not None:
        return chr(int(code, 16))
    return _ESCAPES.get(match.group(3), match.group(3))
