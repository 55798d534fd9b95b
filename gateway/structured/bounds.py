"""Which schemas are taken, so that no caller's schema can cost more than it should.

A schema is a program that a stranger sends (fault kind K16). Before one is compiled, its size,
its depth and the work that its references multiply are counted; nothing outside of it is ever
fetched; and patterns are matched in linear time or not at all. Must not know the validator.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

MAX_BYTES = 256 * 1024
"""Bytes of a schema as compact JSON."""

MAX_DEPTH = 64
"""Levels of arrays and objects in a schema."""

MAX_WORK = 200_000
"""Schema nodes once every reference is written out; a recursive one is not written out twice.
A chain of ``allOf`` pairs doubles with each link: the validator would spend 30 ns a node."""

_DATA = frozenset({"const", "enum", "default", "examples"})
"""Keywords whose values are data, not schemas."""

_DEFINITIONS = frozenset({"$defs", "definitions"})
"""Schemas that cost nothing until something refers to them."""

_NAMED = frozenset({"properties", "patternProperties", "dependentSchemas"})
"""Keywords whose values are schemas by names that are no keywords."""

_IN_PLACE = frozenset({"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas"})
"""Keywords whose schemas, like references, are held against the very same value."""

_LOOKS_BACK = ("unevaluatedProperties", "unevaluatedItems")
_LOOKED_AT = 4
"""How often a schema is held against a value whose evaluation is looked back at: measured, each
level of such schemas within one another doubles the validator's time, or triples it."""

_REFERENCES = ("$ref", "$dynamicRef")
_ANCHORS = ("$anchor", "$dynamicAnchor")

_UNBOUNDED = re.compile(r"\(\?(?:[=!]|<[=!])|\\[1-9]|\\k<")
"""Look-around and back-references: what can't be matched in linear time."""


class SchemaRefused(ValueError):
    """The schema can't be used; the text says why, and what to write instead."""


def admit(schema: Any, size: int) -> tuple[Any, int]:
    """``schema`` as it may be compiled (itself, or a copy whose patterns are linear), and its
    work: an upper bound of the schema nodes that one value is held against.

    :param size: its bytes as compact JSON.
    :raises SchemaRefused: for one that is too large, too deep, too costly, or not of one piece.
    """
    if size > MAX_BYTES:
        raise SchemaRefused(f"it has {size} bytes; at most {MAX_BYTES} are taken")
    count = _Count(schema)
    try:
        work = count.work(schema, 0)
    except RecursionError:
        raise SchemaRefused("its references lead from one to the next too often") from None
    if work > MAX_WORK:
        raise SchemaRefused(
            f"written out, its references make more than {MAX_WORK} schemas; refer to each "
            "definition fewer times"
        )
    return (_linear(schema) if count.unbounded else schema), work


class _Count:
    """Counts the work of a schema, each referenced part once."""

    __slots__ = ("_anchors", "_known", "_root", "unbounded")

    def __init__(self, root: Any) -> None:
        self._root = root
        self._known: dict[int, int] = {}
        """By the identity of a referenced part: its work, 1 while it is being counted."""
        self._anchors: dict[str, Any] | None = None
        self.unbounded = False

    def work(self, node: Any, depth: int) -> int:
        """The nodes of ``node`` with its references written out."""
        if depth > MAX_DEPTH:
            raise SchemaRefused(f"it is nested more than {MAX_DEPTH} levels deep")
        if isinstance(node, list):
            return 1 + sum(self.work(one, depth + 1) for one in node)
        if not isinstance(node, Mapping):
            return 1
        self._look(node, depth)
        total, in_place = 1, 0
        for keyword, value in node.items():
            work = self._keyword(keyword, value, depth)
            if keyword in _IN_PLACE:
                in_place += work
            total += work
        for keyword in _REFERENCES:
            if isinstance(node.get(keyword), str):
                work = self._referenced(node[keyword])
                in_place += work
                total += work
        if any(keyword in node for keyword in _LOOKS_BACK):
            total += (_LOOKED_AT - 1) * in_place
        return min(total, MAX_WORK + 1)

    def _keyword(self, keyword: str, value: Any, depth: int) -> int:
        if keyword in _DEFINITIONS:
            self._deep_enough(value, depth + 1)
            return 0
        if keyword in _NAMED and isinstance(value, Mapping):
            return sum(self.work(one, depth + 2) for one in value.values())
        return 0 if keyword in _DATA else self.work(value, depth + 1)

    def _look(self, node: Mapping[str, Any], depth: int) -> None:
        if depth and isinstance(node.get("$id"), str):
            raise SchemaRefused("a part of it has an $id of its own; use $defs and $ref instead")
        pattern = node.get("pattern")
        if isinstance(pattern, str) and _UNBOUNDED.search(pattern):
            self.unbounded = True

    def _deep_enough(self, definitions: Any, depth: int) -> None:
        """Definitions count when something refers to them, but never too deep ones."""
        if isinstance(definitions, Mapping):
            for one in definitions.values():
                self._known.setdefault(id(one), 0)
                self._known[id(one)] = self._once(one, depth + 1)

    def _once(self, node: Any, depth: int) -> int:
        known = self._known.get(id(node), 0)
        if known:
            return known
        self._known[id(node)] = 1
        self._known[id(node)] = found = self.work(node, depth)
        return found

    def _referenced(self, reference: str) -> int:
        return self._once(self._find(reference), 0)

    def _find(self, reference: str) -> Any:
        """The part that ``reference`` names.

        :raises SchemaRefused: where it is not in this schema.
        """
        if not reference.startswith("#"):
            raise SchemaRefused(
                f"$ref {reference[:100]!r} points out of it, and nothing is ever fetched; put "
                "the definition into $defs and refer to it as '#/$defs/NAME'"
            )
        if reference.startswith("#/") or reference == "#":
            found = part(self._root, reference)
        else:
            found = self._anchored(unquote(reference[1:]))
        if found is None:
            raise SchemaRefused(f"$ref {reference[:100]!r} points to nothing")
        return found

    def _anchored(self, name: str) -> Any:
        if self._anchors is None:
            self._anchors = _anchors(self._root)
        return self._anchors.get(name)


def part(root: Any, reference: str) -> Any:
    """What ``reference`` (``#`` or ``#/a/0``) names in ``root``; ``None`` if it is not there."""
    found = root
    for step in unquote(reference).split("/")[1:]:
        found = _step(found, step.replace("~1", "/").replace("~0", "~"))
    return found


def _step(node: Any, step: str) -> Any:
    if isinstance(node, Mapping):
        return node.get(step)
    if isinstance(node, list) and step.isdecimal() and int(step) < len(node):
        return node[int(step)]
    return None


def _anchors(root: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for node in _nodes(root):
        for keyword in _ANCHORS:
            name = node.get(keyword)
            if isinstance(name, str) and found.setdefault(name, node) is not node:
                raise SchemaRefused(f"the anchor {name[:100]!r} stands in it twice")
    return found


def _nodes(root: Any) -> Iterator[Mapping[str, Any]]:
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Mapping):
            yield node
            waiting += node.values()
        elif isinstance(node, list):
            waiting += node


# --------------------------------------------------------------------------- linear patterns


def _linear(node: Any) -> Any:
    """A copy in which no ``pattern`` looks around."""
    if isinstance(node, list):
        return [_linear(one) for one in node]
    if not isinstance(node, Mapping):
        return node
    copy: dict[str, Any] = {}
    for keyword, value in node.items():
        if keyword in _NAMED | _DEFINITIONS and isinstance(value, Mapping):
            copy[keyword] = {name: _linear(one) for name, one in value.items()}
        else:
            copy[keyword] = value if keyword in _DATA else _linear(value)
    pattern = copy.get("pattern")
    if isinstance(pattern, str) and _UNBOUNDED.search(pattern):
        del copy["pattern"]
        copy["allOf"] = [*copy.get("allOf", ()), *_conditions(pattern)]
    return copy


def _conditions(pattern: str) -> list[dict[str, Any]]:
    """A pattern with look-ahead at its start, as plain patterns that all have to hold.

    ``^(?!A)(?=B)C`` is "not ``^A``, and ``^B``, and ``^C``". Schema generators write decimals and
    passwords so.

    :raises SchemaRefused: for look-around anywhere else.
    """
    refused = SchemaRefused(
        f"the pattern {pattern[:100]!r} looks around or back, which can't be matched in bounded "
        "time; only look-ahead right after '^' is taken. Split it into several patterns in allOf"
    )
    if not pattern.startswith("^"):
        raise refused
    conditions: list[dict[str, Any]] = []
    rest = pattern[1:]
    while rest.startswith(("(?=", "(?!")):
        end = _closing(rest)
        if end is None:
            raise refused
        ahead = {"type": "string", "pattern": f"^(?:{rest[3:end]})"}
        # `pattern` says nothing of other types, so neither may its negation
        conditions.append({"not": ahead} if rest[2] == "!" else {"pattern": ahead["pattern"]})
        rest = rest[end + 1 :]
    conditions.append({"pattern": "^" + rest})
    bodies = [one.get("not", one)["pattern"] for one in conditions]
    if any(map(_UNBOUNDED.search, bodies)) or _branches(rest):
        raise refused
    return conditions


def _closing(pattern: str) -> int | None:
    """Where the group that opens ``pattern`` closes."""
    for place, depth in _depths(pattern):
        if depth == 0 and pattern[place] == ")":
            return place
    return None


def _branches(pattern: str) -> bool:
    """Whether ``pattern`` has alternatives outside of every group."""
    return any(depth == 0 and pattern[place] == "|" for place, depth in _depths(pattern))


def _depths(pattern: str) -> Iterator[tuple[int, int]]:
    """The places of unescaped characters outside of classes, with the groups open after each."""
    depth = 0
    in_class = escaped = False
    for place, char in enumerate(pattern):
        if escaped or char == "\\":
            escaped = not escaped
            continue
        if in_class:
            in_class = char != "]"
            continue
        in_class = char == "["
        depth += (char == "(") - (char == ")")
        yield place, depth
