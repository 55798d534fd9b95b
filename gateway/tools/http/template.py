"""A request with holes: ``{name}`` in a URL, a header or a body, filled with a call's arguments.

An argument is data and stays data: in a path it is one segment, in a query one value, in a body
one JSON value, each encoded; the host has no holes. ``{{`` and ``}}`` are plain braces. Pure; must
not know HTTP clients or settings.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote

from adapters.canonical.record import record

_PIECE = re.compile(r"\{\{|\}\}|\{(?P<name>[A-Za-z_][A-Za-z0-9_-]*)\}|[^{}]+|[{}]")
_URL = re.compile(r"(?P<head>https?://[^/?]*)(?P<path>/[^?]*)?(?:\?(?P<query>.*))?", re.I)
_VISIBLE = re.compile(r"[!-~]*")
_HEADER_VALUE = re.compile(r"[ -~]*")
_NOTHING = object()


class BadTemplate(Exception):
    """A template that can't be used; the text says what to write instead."""


class BadArgument(Exception):
    """An argument that does not go where it belongs; the text is for the model."""


class Hole(NamedTuple):
    """Where an argument goes."""

    name: str


Pieces = tuple[str | Hole, ...]


def pieces(text: str) -> Pieces:
    """``text`` as plain stretches and holes.

    :raises BadTemplate: for a brace that is neither doubled nor around a name.
    """
    found: list[str | Hole] = []
    for match in _PIECE.finditer(text):
        if match["name"] is not None:
            found.append(Hole(match["name"]))
        elif match[0] in ("{", "}"):
            raise BadTemplate("has a brace without a name in it; write {{ or }} for a plain one")
        else:
            found.append(match[0][0] if match[0] in ("{{", "}}") else match[0])
    return tuple(found)


def holes(parts: Pieces) -> set[str]:
    """The names of the arguments that ``parts`` need."""
    return {part.name for part in parts if isinstance(part, Hole)}


@record(frozen=True, slots=True)
class UrlTemplate:
    """A URL whose path and query may have holes."""

    head: str
    segments: tuple[Pieces, ...]
    query: tuple[tuple[str, Pieces], ...]

    @property
    def names(self) -> set[str]:
        """The arguments it takes."""
        parts = [*self.segments, *(value for _, value in self.query)]
        return set().union(*map(holes, parts)) if parts else set()

    def fill(self, arguments: Mapping[str, Any]) -> str:
        """The URL of one call. A query value whose argument was left out is left out with its
        name; a list gives the name once for each of its items.

        :raises BadArgument: where a path segment would be missing, empty or a step up.
        """
        path = "".join("/" + _segment(segment, arguments) for segment in self.segments)
        pairs = [pair for name, value in self.query for pair in _pairs(name, value, arguments)]
        return self.head + path + ("?" + "&".join(pairs) if pairs else "")


def url_template(text: str) -> UrlTemplate:
    """Read a URL template.

    :raises BadTemplate: where it is none, or has a hole before its path.
    """
    match = _URL.fullmatch(text)
    if match is None or _VISIBLE.fullmatch(text) is None or "#" in text:
        raise BadTemplate("must be an http:// or https:// URL in ASCII, without a # part")
    if holes(pieces(match["head"])):
        raise BadTemplate("must not have an argument in its host; hosts come from this file alone")
    path = match["path"] or ""
    query = tuple(_query_pair(pair) for pair in (match["query"] or "").split("&") if pair)
    return UrlTemplate(
        head="".join(map(str, pieces(match["head"]))),
        segments=tuple(pieces(segment) for segment in path.split("/")[1:]),
        query=query,
    )


def _query_pair(text: str) -> tuple[str, Pieces]:
    name, equals, value = text.partition("=")
    if holes(pieces(name)):
        raise BadTemplate("must have arguments only behind the = in its query")
    return "".join(map(str, pieces(name))) + equals, pieces(value)


def _segment(segment: Pieces, arguments: Mapping[str, Any]) -> str:
    text = "".join(
        part if isinstance(part, str) else quoted(part.name, _needed(part.name, arguments))
        for part in segment
    )
    if holes(segment) and text in ("", ".", ".."):
        raise BadArgument(f"{', '.join(sorted(holes(segment)))} must not be empty, '.' or '..'.")
    return text


def _pairs(name: str, value: Pieces, arguments: Mapping[str, Any]) -> Iterator[str]:
    if any(arguments.get(hole) is None for hole in holes(value)):
        return
    if len(value) == 1 and isinstance(value[0], Hole):
        given = arguments[value[0].name]
        for item in given if isinstance(given, list) else [given]:
            yield name + quoted(value[0].name, item)
    else:
        yield name + "".join(
            part if isinstance(part, str) else quoted(part.name, arguments[part.name])
            for part in value
        )


def _needed(name: str, arguments: Mapping[str, Any]) -> Any:
    value = arguments.get(name)
    if value is None:
        raise BadArgument(f"{name} is missing.")
    if isinstance(value, list | dict):
        raise BadArgument(f"{name} must be a text or a number.")
    return value


def quoted(name: str, value: Any) -> str:
    """``value`` percent-encoded so that nothing in it ends a segment or a query value."""
    try:
        return quote(plain(value), safe="", encoding="utf-8", errors="strict")
    except UnicodeEncodeError as error:
        raise BadArgument(f"{name} has a character that can't be sent.") from error


def plain(value: Any) -> str:
    """Text as it is, everything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def fill_header(parts: Pieces, arguments: Mapping[str, Any]) -> str | None:
    """A header's value; ``None`` where an argument was left out, and with it the header.

    :raises BadArgument: for anything that could end the header or start another.
    """
    if any(arguments.get(hole) is None for hole in holes(parts)):
        return None
    text = "".join(p if isinstance(p, str) else plain(arguments[p.name]) for p in parts)
    if _HEADER_VALUE.fullmatch(text) is None:
        names = ", ".join(sorted(holes(parts)))
        raise BadArgument(f"{names} must be printable ASCII without line breaks.")
    return text.strip()


@record(frozen=True, slots=True)
class BodyTemplate:
    """A JSON value whose texts may have holes. A text that is one hole and nothing else becomes
    the argument itself, with its type; where that was left out, so is the key or the item."""

    shape: Any

    @property
    def names(self) -> set[str]:
        """The arguments it takes."""
        return set(_body_names(self.shape))

    def fill(self, arguments: Mapping[str, Any]) -> Any:
        """The JSON value of one call; ``None`` (``null``) where nothing is left."""
        filled = _filled(self.shape, arguments)
        return None if filled is _NOTHING else filled


def body_template(shape: Any) -> BodyTemplate:
    """Read a body template: a table or an array, or one hole that is the whole body.

    :raises BadTemplate: where it is neither. Text with holes is refused: an argument inside
        hand-written JSON could end its string and go on as JSON.
    """
    read = _read(shape)
    if isinstance(read, tuple) and not _whole(read):
        raise BadTemplate('must be a table such as { name = "{name}" }, or one "{argument}"')
    return BodyTemplate(read)


def _whole(read: Pieces) -> bool:
    return len(read) == 1 and isinstance(read[0], Hole)


def _read(shape: Any) -> Any:
    """``shape`` with its texts taken apart: a tuple of pieces in place of each."""
    if isinstance(shape, str):
        return pieces(shape)
    if isinstance(shape, Mapping):
        return {key: _read(value) for key, value in shape.items()}
    if isinstance(shape, Sequence):
        return [_read(value) for value in shape]
    return shape


def _body_names(read: Any) -> Iterator[str]:
    if isinstance(read, tuple):
        yield from holes(read)
    elif isinstance(read, dict | list):
        for value in read.values() if isinstance(read, dict) else read:
            yield from _body_names(value)


def _filled(read: Any, arguments: Mapping[str, Any]) -> Any:
    if isinstance(read, tuple):
        if _whole(read):
            return arguments.get(next(iter(holes(read))), _NOTHING)
        return "".join(
            part if isinstance(part, str) else plain(arguments.get(part.name, "")) for part in read
        )
    if isinstance(read, dict):
        filled = {key: _filled(value, arguments) for key, value in read.items()}
        return {key: value for key, value in filled.items() if value is not _NOTHING}
    if isinstance(read, list):
        items = [_filled(value, arguments) for value in read]
        return [item for item in items if item is not _NOTHING]
    return read
