"""JSON Schemas in OpenAI's strict form, where that keeps their meaning (case O04).

In strict mode every object is closed and names all its properties as required, and only listed
keywords may stand. A schema can be written so if what the model may then answer can still be
valid for the caller: an open object is closed, an optional property becomes required but may be
null (and its null is taken out of the answer again), a limit that the mode has no word for is said
in the description, because the answer is checked against the caller's own schema anyhow. A
free-form map can't: closed, it could never hold a key. Pure; the caller's schema is never changed.
Source: OpenAI's guide on structured outputs, "supported schemas", and the refusals of its API.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import field, replace
from functools import lru_cache
from typing import Any

from adapters.canonical.parts import Dialect
from adapters.canonical.record import record
from adapters.wire.json import dumps
from adapters.wire.schema_types import implied, is_object, kinds, takes_null
from adapters.wire.schema_words import described
from adapters.wire.strict_size import takes_size

MAX_DEPTH = 10
"""Levels of nesting that strict mode takes."""
MAX_KEPT, MAX_KEPT_BYTES = 128, 16_384
"""How many strict forms are kept for the next call, and of how large a schema."""
MAX_OPTIONAL = 1000
"""Places at which a null may have to be taken out of the answer."""

FORMATS = frozenset(
    {"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}
)
_KEPT = frozenset({"type", "enum", "const", "description", "title"})
_LIMITS = frozenset(
    {"pattern", "format", "multipleOf", "minimum", "maximum", "exclusiveMinimum"}
    | {"exclusiveMaximum", "minItems", "maxItems"}
)
"""Limits that the mode has words for, but for fine-tuned models."""
_SAID = frozenset(
    {"minLength", "maxLength", "uniqueItems", "contains", "minContains", "maxContains", "not"}
    | {"minProperties", "maxProperties", "propertyNames", "dependentRequired", "dependentSchemas"}
    | {"if", "then", "else", "unevaluatedProperties", "unevaluatedItems", "prefixItems"}
)
"""Limits that the mode has no word for. Every other keyword asks nothing of an answer."""
_OF_THE_SAME = ("not", "if", "then", "else", "dependentRequired", "dependentSchemas")
"""Limits that speak of the object's own properties, and might want one that it has not got."""
_UNIONS = ("anyOf", "oneOf")
_IN_PLACE = frozenset({"allOf", "anyOf", "oneOf", "not", "if", "then", "else"})
_LOOKS_AROUND = re.compile(r"\(\?(?:[=!]|<[=!])|\\[1-9]|\\k<")
_REFERENCE = re.compile(r"#/(\$defs|definitions)/([^/~%]+)")

Path = tuple[str, ...]
"""Steps of properties from the root; ``*`` is any item of an array."""


@record(frozen=True, slots=True)
class Strict:
    """A schema in strict form. ``optional`` lists the properties that were made nullable,
    ``said`` the limits that became words, as ``/properties/a/minLength``."""

    schema: Mapping[str, Any]
    optional: tuple[Path, ...] = ()
    said: tuple[str, ...] = ()


def strict(schema: Mapping[str, Any], *, limits: bool = True) -> Strict | None:
    """``schema`` in strict form, or ``None`` where no such form means the same.

    :param limits: the model takes limits in it.
    """
    text = dumps(schema)
    return _kept(text, limits) if len(text) <= MAX_KEPT_BYTES else _form(schema, limits)


@lru_cache(maxsize=MAX_KEPT)
def _kept(text: bytes, limits: bool) -> Strict | None:
    """Callers send the same schema with every call (measured: 2 µs instead of 100)."""
    return _form(json.loads(text), limits)


def _form(schema: Mapping[str, Any], limits: bool) -> Strict | None:
    writing = _Writing(schema, limits)
    try:
        written = writing.root()
    except (_NoStrictForm, RecursionError):  # references may lead on and on
        return None
    if not takes_size(written):
        return None
    return Strict(written, tuple(writing.optional), tuple(writing.said))


def may_be_strict(parameters: Mapping[str, Any] | None, origin: Dialect) -> bool:
    """Whether a tool may be strict here because its caller of ``origin`` wants it so there.

    Both of OpenAI's protocols have the same rules, and who knows them is taken at their word.
    Elsewhere strict means another subset; the parameters stand as they are, because no answer of
    a tool is rewritten.
    """
    if origin in ("openai-chat", "openai-responses"):
        return True
    form = None if parameters is None else strict(parameters)
    return form is not None and form.schema == parameters


class _NoStrictForm(Exception):
    """The schema says something that strict mode can't."""


@record(frozen=True, slots=True)
class _At:
    """A place: in the answer, in the schema, and how deep."""

    path: Path = ()
    where: str = ""
    depth: int = 0

    def property(self, name: str) -> _At:
        return _At((*self.path, name), f"{self.where}/properties/{name}", self.depth + 1)

    def item(self, keyword: str) -> _At:
        return _At((*self.path, "*"), f"{self.where}/{keyword}", self.depth + 1)

    def branch(self, keyword: str, number: int) -> _At:
        return replace(self, where=f"{self.where}/{keyword}/{number}")


@record(slots=True)
class _Writing:
    """One schema being written anew."""

    given: Mapping[str, Any]
    limits: bool
    optional: list[Path] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    _written: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The definitions in use, by the keyword that they stand under."""
    _inside: dict[tuple[str, str], tuple[Path, ...]] = field(default_factory=dict)
    """The properties that were made nullable within each of them."""
    _open: list[tuple[str, str]] = field(default_factory=list)
    _recursive: set[tuple[str, str]] = field(default_factory=set)

    def root(self) -> dict[str, Any]:
        """The whole: an object, perhaps behind a reference, and never a union."""
        root = self.given
        if isinstance(root.get("$ref"), str):
            root = {**root, **self._defined(*_named(root["$ref"])), "$ref": None}
            del root["$ref"]
        if root.get("type") != "object":
            raise _NoStrictForm
        written = self.write(root, _At())
        if "anyOf" in written or (("", "") in self._recursive and self.optional):
            raise _NoStrictForm
        return written | self._written

    def write(self, schema: Any, at: _At) -> dict[str, Any]:
        """One subschema; every one has a type, alternatives or a reference in the end."""
        if not isinstance(schema, Mapping) or at.depth > MAX_DEPTH:
            raise _NoStrictForm
        _check_shape(schema)
        schema = _without_lone_all_of(schema)
        if not schema.keys().isdisjoint({"allOf", "patternProperties"}):
            raise _NoStrictForm
        kept, said = (_KEPT | _LIMITS, _SAID) if self.limits else (_KEPT, _SAID | _LIMITS)
        written = {name: value for name, value in schema.items() if name in kept}
        lacking = {name: schema[name] for name in schema if name in said}
        if "$ref" in schema:
            return self._behind(schema, written | lacking, at)
        if not is_object(schema) and any(name in schema for name in _UNIONS):
            return self._union(schema, written | lacking, at)
        lacking |= {name: schema[name] for name in _UNIONS if name in schema}
        written["type"] = implied(schema)
        if written["type"] is None:
            raise _NoStrictForm
        if "array" in kinds(written):
            written["items"] = self._items(schema, at)
        if "object" in kinds(written):
            _check_names(schema, lacking)
            written |= self._object(schema, at)
        lacking |= _unsupported(written)
        return self._told(written, lacking, at)

    def _told(self, written: dict[str, Any], lacking: Mapping[str, Any], at: _At) -> dict[str, Any]:
        """``written`` with what it lacks as words."""
        kept = {name: value for name, value in written.items() if name not in lacking}
        if not lacking:
            return kept
        self.said += [f"{at.where}/{name}" for name in lacking]
        return {**kept, "description": described(kept.get("description"), lacking)}

    def _union(
        self, schema: Mapping[str, Any], beside: Mapping[str, Any], at: _At
    ) -> dict[str, Any]:
        """Alternatives; what stands beside them is said in words."""
        used = [name for name in _UNIONS if name in schema]
        if len(used) > 1 or not schema[used[0]]:
            raise _NoStrictForm
        branches = [
            self.write(one, at.branch(used[0], number))
            for number, one in enumerate(schema[used[0]])
        ]
        return self._beside({"anyOf": branches}, beside, at)

    def _behind(
        self, schema: Mapping[str, Any], beside: Mapping[str, Any], at: _At
    ) -> dict[str, Any]:
        """A reference, which may have nothing beside it."""
        if any(name in schema for name in (*_UNIONS, "properties", "items")):
            raise _NoStrictForm
        reference = {"$ref": self._reference(schema["$ref"], at)}
        return self._beside({"anyOf": [reference]}, beside, at) if beside else reference

    def _beside(
        self, written: dict[str, Any], beside: Mapping[str, Any], at: _At
    ) -> dict[str, Any]:
        lacking = {name: beside[name] for name in beside if name not in ("description", "title")}
        lacking.pop("type", None)
        return self._told({**beside, **written}, lacking, at)

    # ------------------------------------------------------------------ references

    def _reference(self, reference: Any, at: _At) -> str:
        if reference == "#":
            self._recursive.add(("", ""))
            return "#"
        known = _named(reference)
        if known in self._open:
            self._recursive.add(known)
        else:
            if known not in self._inside:
                self._define(known)
            for inner in self._inside[known]:
                self._nullable((*at.path, *inner))
        return f"#/{known[0]}/{known[1]}"

    def _defined(self, keyword: str, name: str) -> Any:
        definitions = self.given.get(keyword)
        if not isinstance(definitions, Mapping) or not isinstance(definitions.get(name), Mapping):
            raise _NoStrictForm
        return definitions[name]

    def _define(self, known: tuple[str, str]) -> None:
        """Write a definition. It may stand at many places, so what was made nullable in it is
        kept apart, and has no place at all where the definition holds itself."""
        keyword, name = known
        outer, self.optional = self.optional, []
        self._open.append(known)
        written = self.write(self._defined(keyword, name), _At(where=f"/{keyword}/{name}"))
        self._open.pop()
        inner, self.optional = tuple(self.optional), outer
        if inner and known in self._recursive:
            raise _NoStrictForm
        self._inside[known] = inner
        self._written.setdefault(keyword, {})[name] = written

    # ------------------------------------------------------------------ arrays and objects

    def _items(self, schema: Mapping[str, Any], at: _At) -> dict[str, Any]:
        """What the items are; of a tuple, whose places the mode can't tell apart, any of them."""
        places = schema.get("prefixItems")
        if not isinstance(places, list) or not places:
            return self.write(schema.get("items"), at.item("items"))
        members = [
            self.write(place, at.item(f"prefixItems/{number}"))
            for number, place in enumerate(places)
        ]
        if isinstance(schema.get("items"), Mapping):
            members.append(self.write(schema["items"], at.item("items")))
        return {"anyOf": [one for n, one in enumerate(members) if one not in members[:n]]}

    def _object(self, schema: Mapping[str, Any], at: _At) -> dict[str, Any]:
        properties = schema.get("properties") or {}
        extra = schema.get("additionalProperties")
        if extra not in (None, False) or (not properties and extra is None):
            raise _NoStrictForm  # a map, or anything at all
        required = schema.get("required") or ()
        if not all(isinstance(name, str) and name in properties for name in required):
            raise _NoStrictForm
        written = {}
        for name, inner in properties.items():
            here = at.property(name)
            one = self.write(inner, here)
            if name not in required and not takes_null(inner):
                one = {"anyOf": [one, {"type": "null"}]}
                self._nullable(here.path)
            written[name] = one
        return {
            "properties": written,
            "required": list(properties),
            "additionalProperties": False,
        }

    def _nullable(self, path: Path) -> None:
        if len(self.optional) == MAX_OPTIONAL:
            raise _NoStrictForm
        self.optional.append(path)


_SHAPES: Mapping[str, type | tuple[type, ...]] = {
    "properties": Mapping,
    "required": list,
    "enum": list,
    "anyOf": list,
    "oneOf": list,
    "type": (str, list),
    "$defs": Mapping,
    "definitions": Mapping,
}
"""What is read, and as what: nobody has proved that a tool's parameters are a JSON Schema."""


def _check_shape(schema: Mapping[str, Any]) -> None:
    for name, shape in _SHAPES.items():
        if name in schema and not isinstance(schema[name], shape):
            raise _NoStrictForm


def _named(reference: Any) -> tuple[str, str]:
    """The definition that is referred to: the keyword that it stands under, and its name."""
    found = _REFERENCE.fullmatch(reference) if isinstance(reference, str) else None
    if found is None:
        raise _NoStrictForm
    return found.group(1), found.group(2)


def _without_lone_all_of(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """``schema`` with the single member of an ``allOf`` in its place, where both can stand."""
    members = schema.get("allOf")
    if not isinstance(members, list) or len(members) != 1 or not isinstance(members[0], Mapping):
        return schema
    rest = {name: value for name, value in schema.items() if name != "allOf"}
    clash = rest.keys() & members[0].keys() - {"description", "title"}
    return schema if clash else {**members[0], **rest}


def _unsupported(written: Mapping[str, Any]) -> dict[str, Any]:
    """Keywords that the mode has, with values that it has not."""
    lacking = {}
    if "format" in written and written["format"] not in FORMATS:
        lacking["format"] = written["format"]
    if isinstance(written.get("pattern"), str) and _LOOKS_AROUND.search(written["pattern"]):
        lacking["pattern"] = written["pattern"]
    return lacking


def _check_names(schema: Mapping[str, Any], lacking: Mapping[str, Any]) -> None:
    """A closed object can't hold a property that only one of its conditions speaks of."""
    for keyword in (*_OF_THE_SAME, *_UNIONS):
        if keyword in lacking and not _knows({keyword: lacking[keyword]}, schema):
            raise _NoStrictForm


def _knows(condition: Any, schema: Any) -> bool:
    """Whether ``schema`` has every property that ``condition`` speaks of."""
    if isinstance(condition, list):
        return all(_knows(one, schema) for one in condition)
    if not isinstance(condition, Mapping):
        return True
    known, branches = _own(schema)
    if branches:
        return any(_knows(condition, branch) for branch in branches)
    inside = _mapping(condition.get("properties"))
    spoken = {*_names(condition.get("required")), *inside}
    for names in _mapping(condition.get("dependentRequired")).values():
        spoken.update(_names(names))
    return (
        spoken <= known.keys()
        and all(_knows(inner, known[name]) for name, inner in inside.items())
        and all(_knows(condition[keyword], schema) for keyword in _IN_PLACE & condition.keys())
        and all(_knows(one, schema) for one in _mapping(condition.get("dependentSchemas")).values())
        and _knows(condition.get("items"), known.get("*"))
    )


def _own(schema: Any) -> tuple[Mapping[str, Any], list[Any]]:
    """The properties of ``schema``, its items as ``*``; or its alternatives, if it has those."""
    if not isinstance(schema, Mapping):
        return {}, []
    found = schema.get("anyOf") or schema.get("oneOf")
    branches = found if isinstance(found, list) and not is_object(schema) else []
    return {**_mapping(schema.get("properties")), "*": schema.get("items")}, branches


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _names(value: Any) -> list[str]:
    return [name for name in value if isinstance(name, str)] if isinstance(value, list) else []
