"""A JSON Schema as this protocol's structured output takes it.

The API compiles the schema into a grammar and refuses what the grammar can't express. A
projection is a looser copy: keywords it can't hold become words in ``description``, so that the
model still reads them, and the answer is checked against the caller's own schema afterwards
(case O01). The caller's object is never changed. Rules after the vendor's page on structured
outputs and its SDK's own transformation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from adapters.canonical.record import record
from adapters.wire.schema_words import described

KEPT = frozenset({"description", "title", "enum", "const"})
"""Keywords that every schema may keep as they are."""

OWN = frozenset({"default", "pattern"})
"""Keywords that the API takes in part: who wrote a schema for this protocol knows how."""

FORMATS = frozenset(
    {
        "date-time",
        "time",
        "date",
        "duration",
        "email",
        "hostname",
        "uri",
        "ipv4",
        "ipv6",
        "uuid",
    }
)
"""String formats that the grammar knows."""

MAX_OPTIONAL = 24
MAX_UNIONS = 16
"""Properties that may be left out, and alternatives, in all schemas of one request together: more
would take too long to compile."""

TYPES = frozenset({"object", "array", "string", "integer", "number", "boolean", "null"})
MAX_DEPTH = 64


class Unprojectable(ValueError):
    """The schema says something that the protocol can't express even loosely: free-form maps,
    recursion, references out of the document, or no type at all. The text says which."""


@record(slots=True)
class Projection:
    """``schema`` to be sent, and the keywords that became words, as ``path/keyword``.

    ``optional`` and ``unions`` count what the API compiles dearly."""

    schema: dict[str, Any]
    moved: list[str] = field(default_factory=list)
    optional: int = 0
    unions: int = 0


@record(slots=True)
class Room:
    """What one request's schemas may still hold."""

    optional: int = MAX_OPTIONAL
    unions: int = MAX_UNIONS

    def take(self, one: Projection) -> None:
        """Take ``one`` off.

        :raises Unprojectable: where it does not fit any more.
        """
        if one.optional > self.optional:
            raise Unprojectable("more properties may be left out than the API compiles")
        if one.unions > self.unions:
            raise Unprojectable("there are more alternatives than the API compiles")
        self.optional -= one.optional
        self.unions -= one.unions


def project(schema: Mapping[str, Any], *, own: bool = False) -> Projection:
    """The projection of ``schema``.

    :param own: it was written for this protocol.
    :raises Unprojectable: where none exists; use instructions instead.
    """
    walker = _Walker(schema, KEPT | OWN if own else KEPT)
    projected = walker.walk(schema, "")
    whole = {**projected, **walker.definitions()}
    return Projection(whole, walker.moved, walker.optional, walker.unions)


class _Walker:
    """Copies a schema, subschema by subschema."""

    __slots__ = ("_definitions", "_kept", "_path", "_root", "moved", "optional", "unions")

    def __init__(self, root: Mapping[str, Any], kept: frozenset[str]) -> None:
        self._root = root
        self._kept = kept
        self._definitions: dict[str, dict[str, Any]] = {}
        self._path: list[str] = []
        """The references being followed, to find recursion."""
        self.moved: list[str] = []
        self.optional = 0
        self.unions = 0

    def definitions(self) -> dict[str, Any]:
        """The ``$defs`` that are referred to, projected."""
        return {"$defs": self._definitions} if self._definitions else {}

    def walk(self, schema: Any, where: str) -> dict[str, Any]:
        """The projection of one subschema."""
        if not isinstance(schema, Mapping):
            raise Unprojectable(f"{where or 'the root'} is not a schema with a type")
        if where.count("/") > MAX_DEPTH:
            raise Unprojectable("the schema is nested too deeply")
        for name, shapes in _SHAPES.items():
            if name in schema and not isinstance(schema[name], shapes):
                raise Unprojectable(f"{where or 'the root'} has a {name} that is none")
        rest = {name: value for name, value in schema.items() if name not in _STRUCTURE}
        if "$ref" in schema:
            sent = self._reference(schema["$ref"])
        elif any(keyword in schema for keyword in _UNIONS):
            sent = self._union(schema, where)
            rest.pop("type", None)
        elif isinstance(schema.get("type"), list):
            sent = self._types(schema, rest, where)
        else:
            sent = self._typed(schema, rest, where)
        self._finish(sent, rest, where)
        return sent

    def _reference(self, target: str) -> dict[str, Any]:
        prefix, _, name = target.rpartition("/")
        if prefix not in ("#/$defs", "#/definitions"):
            raise Unprojectable("a $ref points outside $defs")
        if name in self._path:
            raise Unprojectable(f"{target} refers to itself")
        if name not in self._definitions:
            defined = self._root.get(prefix.removeprefix("#/"), {})
            if name not in defined:
                raise Unprojectable(f"{target} does not exist")
            self._path.append(name)
            self._definitions[name] = self.walk(defined[name], f"/$defs/{name}")
            self._path.pop()
        return {"$ref": f"#/$defs/{name}"}

    def _union(self, schema: Mapping[str, Any], where: str) -> dict[str, Any]:
        """Alternatives as ``anyOf``; a lone ``allOf`` member stands for itself."""
        used = [keyword for keyword in _UNIONS if keyword in schema]
        if len(used) > 1:
            raise Unprojectable(f"{where or 'the root'} combines {' and '.join(used)}")
        members = self._all(schema[used[0]], f"{where}/{used[0]}")
        if used[0] != "allOf":
            return {"anyOf": members}
        if len(members) == 1:
            return members[0]
        if any("$ref" in member for member in members):
            raise Unprojectable(f"{where}/allOf combines references")
        return {"allOf": members}

    def _types(self, schema: Mapping[str, Any], rest: dict[str, Any], where: str) -> dict[str, Any]:
        """A list of types as alternatives, each with the keywords that speak of it."""
        kinds = rest.pop("type")
        if "const" in schema or _simple_enum(schema.get("enum")):
            return {}
        common = {name: rest.pop(name) for name in list(rest) if name not in self._kept}
        variants = [{**_only_for(kind, common), "type": kind} for kind in kinds]
        return {"anyOf": self._all(variants, where)}

    def _all(self, schemas: Any, where: str) -> list[dict[str, Any]]:
        if not isinstance(schemas, list) or not schemas:
            raise Unprojectable(f"{where} is no list of schemas")
        return [self.walk(schema, f"{where}/{number}") for number, schema in enumerate(schemas)]

    def _typed(self, schema: Mapping[str, Any], rest: dict[str, Any], where: str) -> dict[str, Any]:
        kind = rest.pop("type", None)
        literal = "const" in schema or _simple_enum(schema.get("enum"))
        if kind is None and literal:
            return {}
        if kind is None and "properties" in schema:
            kind = "object"
        if kind not in TYPES:
            raise Unprojectable(f"{where or 'the root'} has no type")
        sent: dict[str, Any] = {"type": kind}
        if kind == "object":
            self._object(schema, rest, sent, where)
        elif kind == "array":
            if "items" not in schema:
                raise Unprojectable(f"{where} is a list of anything")
            sent["items"] = self.walk(rest.pop("items"), f"{where}/items")
            if rest.get("minItems") in (0, 1):
                sent["minItems"] = rest.pop("minItems")
        elif kind == "string" and rest.get("format") in FORMATS:
            sent["format"] = rest.pop("format")
        return sent

    def _object(
        self, schema: Mapping[str, Any], rest: dict[str, Any], sent: dict[str, Any], where: str
    ) -> None:
        properties = rest.pop("properties", {})
        others = rest.pop("additionalProperties", None)
        free = others is not None and others is not False
        if "patternProperties" in schema or (free and not (others is True and properties)):
            raise Unprojectable(f"{where or 'the root'} is a map with free keys")
        if not properties and others is None:
            raise Unprojectable(f"{where or 'the root'} is an object of anything")
        sent["properties"] = {
            name: self.walk(inner, f"{where}/properties/{name}")
            for name, inner in properties.items()
        }
        sent["additionalProperties"] = False
        if "required" in rest:
            named = [name for name in rest.pop("required") if isinstance(name, str)]
            sent["required"] = [name for name in named if name in properties]
        self.optional += len(properties) - len(set(sent.get("required", ())))

    def _finish(self, sent: dict[str, Any], rest: dict[str, Any], where: str) -> None:
        """Keep what any schema may have; what the grammar can't hold becomes words."""
        self.unions += "anyOf" in sent
        if "$ref" in sent:
            self.moved += [f"{where}/{name}" for name in rest]
            return
        for name in self._kept & rest.keys():
            value = rest[name]
            if name not in ("enum", "const") or _simple_enum(value if name == "enum" else [value]):
                sent[name] = rest.pop(name)
        if not rest:
            return
        self.moved += [f"{where}/{name}" for name in rest]
        sent["description"] = described(sent.get("description"), rest)


_UNIONS = ("anyOf", "oneOf", "allOf")

_STRUCTURE = frozenset({"$ref", "$defs", "definitions", "$schema", "$id", "$comment", *_UNIONS})
"""Keywords that the walker handles itself or that say nothing about values."""

_SHAPES: Mapping[str, tuple[type, ...]] = {
    "$ref": (str,),
    "$defs": (Mapping,),
    "definitions": (Mapping,),
    "type": (str, list),
    "format": (str,),
    "properties": (Mapping,),
    "required": (list,),
}
"""What the walker reads, and as what. The parameters of a tool are a caller's: nobody has checked
that they are a JSON Schema."""

_APPLY_TO: Mapping[str, frozenset[str]] = {
    "object": frozenset({"properties", "required", "additionalProperties", "patternProperties"}),
    "array": frozenset({"items", "minItems", "maxItems", "uniqueItems", "prefixItems"}),
    "string": frozenset({"format", "pattern", "minLength", "maxLength"}),
}


def _only_for(kind: str, keywords: Mapping[str, Any]) -> dict[str, Any]:
    """``keywords`` without those that speak of other types than ``kind``."""
    foreign = frozenset().union(*(names for other, names in _APPLY_TO.items() if other != kind))
    return {name: value for name, value in keywords.items() if name not in foreign}


def _simple_enum(values: Any) -> bool:
    return (
        isinstance(values, list)
        and bool(values)
        and all(value is None or isinstance(value, str | int | float) for value in values)
    )
