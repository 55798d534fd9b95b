"""Takes out of an answer the nulls that the gateway itself has asked for.

Strict mode has no optional properties: one that the caller may leave out was sent as required
and nullable (:mod:`adapters.wire.strict_schema`), so its null means "left out". The text is cut,
not written anew: every other byte stays. Linear.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import orjson

from adapters.wire.strict_schema import Path
from gateway.structured.lenient import Change

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s"{}\[\],:]+')

ITEMS = "*"
"""The step that stands for any item of an array."""


def without_nulls(text: str, optional: Sequence[Path]) -> tuple[str, tuple[Change, ...]]:
    """``text``, which must be valid JSON, without the members at ``optional`` paths that are
    null; and what was cut."""
    cuts = list(_cuts(text, frozenset(optional)))
    pieces: list[str] = []
    at = 0
    for start, end in cuts:
        pieces.append(text[at:start])
        at = end
    changes = tuple(Change.of("null", start, text[start:end], "") for start, end in cuts)
    return "".join([*pieces, text[at:]]), changes


class _Level:
    """An object or array that is open; ``kept`` counts its members that stay."""

    __slots__ = ("begin", "comma", "is_object", "kept", "path")

    def __init__(self, path: Path, is_object: bool) -> None:
        self.path = path
        self.is_object = is_object
        self.kept = 0
        self.comma: int | None = None
        """Where the comma in front of the member under way is."""
        self.begin = 0
        """Where that member begins."""


def _cuts(text: str, optional: frozenset[Path]) -> Iterator[tuple[int, int]]:
    """The stretches to leave out, each with the one comma that goes with it."""
    levels: list[_Level] = []
    key: str | None = None
    step: str = ITEMS
    for token in _TOKEN.finditer(text):
        mark, level = token.group(), levels[-1] if levels else None
        if mark in ("{", "["):
            path = () if level is None else (*level.path, step)
            levels.append(_Level(path, mark == "{"))
            step, key = ITEMS, None
            if level is not None:
                level.kept += 1
        elif mark in ("}", "]"):
            levels.pop()
        elif level is None or mark == ":":
            continue
        elif mark == ",":
            level.comma, key, step = token.start(), None, ITEMS
        elif level.is_object and key is None:
            key, level.begin = mark, token.start()
            step = orjson.loads(mark)
        elif mark == "null" and level.is_object and (*level.path, step) in optional:
            yield _stretch(text, level, token.end())
        else:
            level.kept += 1


_COMMA = re.compile(r"\s*,\s*")


def _stretch(text: str, level: _Level, end: int) -> tuple[int, int]:
    """From the member's comma, or for a first member to behind the next one's."""
    if level.kept and level.comma is not None:
        return level.comma, end
    comma = _COMMA.match(text, end)
    return level.begin, end if comma is None else comma.end()
