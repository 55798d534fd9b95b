"""What is wrong with an answer: each keyword that failed, with its place.

The validator's verdict is quick, but its list of errors is not to be asked for: of a union it
tells every error of every branch, and what a recursive schema reaches by two ways it tells twice
at each level, so both grow exponentially (100 bytes of schema, 20 levels of answer: 8 s). Here the
schema is walked beside the answer: the validator judges one place at a time, a union is told by
its nearest branch alone, and no place is looked at twice by the same schema. Bounded: so many
errors, so many looks.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from jsonschema_rs import Draft202012Validator, RegexOptions, Registry

from gateway.structured.bounds import part
from gateway.structured.words import Violation, as_json, json_type, names, told, violation

MAX_ERRORS = 10
"""Errors told of one answer."""

MAX_LOOKS = 2_000
"""Places that are looked at, each by one schema."""

MAX_DEAR, MAX_CHEAP = 32, 4096
"""How many parts of a schema that refer to others, or have more characters than the second, are
compiled to explain one answer: each may cost as much as the whole."""

MANY = 20
"""Of more members of one kind than this only those are looked at that don't fit."""

MAX_STEPS = 8
"""References that lead to references, followed to look at a branch."""

ROOT = "urn:gateway:schema"
"""The schema's name among the validator's resources, so that parts of it can refer to it."""

OPTIONS = RegexOptions(size_limit=1 << 20, dfa_size_limit=1 << 20)
"""Linear-time patterns only; a pattern that compiles to more than a megabyte is refused."""

_UNIONS = ("anyOf", "oneOf")
_CONTAINS = ("contains", "minContains", "maxContains")
_UNEVALUATED = ("unevaluatedProperties", "unevaluatedItems")

_ALONE = frozenset(
    {"type", "enum", "const", "multipleOf", "maximum", "exclusiveMaximum", "minimum"}
    | {"exclusiveMinimum", "maxLength", "minLength", "pattern", "format", "maxItems", "minItems"}
    | {"uniqueItems", "maxProperties", "minProperties", "required", "dependentRequired"}
)
"""Keywords that hold no schema: the validator tells of them itself."""

_DATA = ("const", "enum")

Look = tuple[Any, Any, str]
"""A schema, the value that is held against it, and where that value stands."""


def fetch_nothing(uri: str) -> Any:
    """The validator's retriever: every reference out of the schema fails."""
    raise ValueError(f"{uri} is not part of the schema")


class Explainer:
    """Finds the violations of one schema. Made only once an answer has failed."""

    __slots__ = ("_registry", "_root")

    def __init__(self, schema: Any) -> None:
        self._root = _located(schema)
        self._registry = Registry([(ROOT, self._root)])

    def violations(self, value: Any) -> list[Violation]:
        """What is wrong with ``value``, at most :data:`MAX_ERRORS` things; nothing where that
        can't be told."""
        walk = _Walk(self._root, self._registry)
        found: list[Violation] = []
        with contextlib.suppress(_Enough):  # what has been found is told
            for one in islice(walk.all(value), MAX_ERRORS):
                found.append(one)
        return found


class _Enough(Exception):
    """The walk has asked the validator as much as it may."""


class _Walk:
    """One answer under the eyes of one schema."""

    __slots__ = ("_by_itself", "_compiled", "_dear", "_patterns", "_registry", "_root")

    def __init__(self, root: Any, registry: Registry) -> None:
        self._root = root
        self._registry = registry
        self._compiled: dict[tuple[int, tuple[str, ...]], Draft202012Validator] = {}
        """By the identity of a part of the schema, and the keywords of it."""
        self._dear = 0
        self._by_itself: dict[int, Draft202012Validator] = {}
        self._patterns: dict[str, Draft202012Validator] = {}

    def all(self, value: Any) -> Iterator[Violation]:
        """Every violation, in the order of the schema."""
        waiting: list[Look] = [(self._root, value, "")]
        seen: set[tuple[int, str]] = set()
        while waiting and len(seen) < MAX_LOOKS:
            schema, value, at = waiting.pop()
            if (id(schema), at) in seen or schema is True:
                continue
            seen.add((id(schema), at))
            if not isinstance(schema, Mapping):
                yield violation(at, value, "nothing here")
                continue
            yield from self._alone(schema, value, at)
            yield from self._as_a_whole(schema, value, at)
            yield from self._unevaluated(schema, value, at)
            inside = [*self._in_place(schema, value, at), *self._members(schema, value, at)]
            waiting += reversed(inside)

    # ------------------------------------------------------------------ the validator's word

    def _fits(self, schema: Any, value: Any, *keywords: str) -> bool:
        """Whether ``value`` fits ``schema``, or some keywords of it.

        :raises _Enough: where too much has been asked already.
        """
        if isinstance(schema, bool):
            return schema
        known = (id(schema), keywords)
        found = self._compiled.get(known)
        if found is None:
            said = {name: schema[name] for name in keywords if name in schema}
            found = self._compiled[known] = self._compile_part(said if keywords else schema)
        return found.is_valid(value)

    def _compile_part(self, schema: Any) -> Draft202012Validator:
        text = as_json(schema)
        self._dear += len(text) > MAX_CHEAP or ROOT in text
        if self._dear > MAX_DEAR:
            raise _Enough
        return self._compile(schema)

    def _compile(self, schema: Any) -> Draft202012Validator:
        return Draft202012Validator(
            schema,
            registry=self._registry,
            retriever=fetch_nothing,
            pattern_options=OPTIONS,
            validate_formats=True,
        )

    # ------------------------------------------------------------------ what a place is told

    def _alone(self, schema: Mapping[str, Any], value: Any, at: str) -> Iterator[Violation]:
        """The keywords that look at this place alone."""
        found = self._by_itself.get(id(schema))
        if found is None:
            alone = {name: schema[name] for name in schema if name in _ALONE}
            if schema.get("additionalProperties") is False:
                alone["additionalProperties"] = False
                for name in ("properties", "patternProperties"):
                    alone[name] = dict.fromkeys(schema.get(name, ()), True)
            found = self._by_itself[id(schema)] = self._compile(alone)
        for error in found.iter_errors(value):
            yield told(error, at)

    def _as_a_whole(self, schema: Mapping[str, Any], value: Any, at: str) -> Iterator[Violation]:
        """The keywords whose failure has no place further inside."""
        if "not" in schema and not self._fits(schema, value, "not"):
            yield violation(at, value, f"nothing that fits {_written(schema['not'])}")
        if "contains" in schema and not self._fits(schema, value, *_CONTAINS):
            yield violation(at, value, "items of the kind and number that `contains` asks for")
        if "propertyNames" in schema and isinstance(value, Mapping):
            for name in value:
                if not self._fits(schema["propertyNames"], name):
                    wanted = _written(schema["propertyNames"])
                    yield violation(at, name, f"a property's name that fits {wanted}")
        if "oneOf" in schema and not self._fits(schema, value, "oneOf"):
            branches = schema["oneOf"]
            if self._fits(self._nearest(branches, value), value):
                wanted = f"exactly one of {len(branches)} alternatives to fit"
                yield violation(at, value, wanted)

    def _unevaluated(self, schema: Mapping[str, Any], value: Any, at: str) -> Iterator[Violation]:
        """What no keyword has spoken of; told only where all the others hold."""
        for keyword in _UNEVALUATED:
            if keyword in schema and not self._fits(schema, value):
                others = tuple(name for name in schema if name != keyword)
                if not others or self._fits(schema, value, *others):
                    yield violation(at, value, _unknown(schema, value))

    # ------------------------------------------------------------------ where else to look

    def _in_place(self, schema: Mapping[str, Any], value: Any, at: str) -> Iterator[Look]:
        """Schemas that the same value is held against."""
        if isinstance(schema.get("$ref"), str):
            yield self._behind(schema, 1), value, at
        for one in schema.get("allOf", ()):
            yield one, value, at
        if "if" in schema:
            branch = "then" if self._fits(schema["if"], value) else "else"
            yield schema.get(branch, True), value, at
        if isinstance(value, Mapping):
            for name, one in schema.get("dependentSchemas", {}).items():
                if name in value:
                    yield one, value, at
        for keyword in _UNIONS:
            if keyword in schema and not self._fits(schema, value, keyword):
                yield self._nearest(schema[keyword], value), value, at

    def _members(self, schema: Mapping[str, Any], value: Any, at: str) -> Iterator[Look]:
        """Schemas that the members of the value are held against."""
        if isinstance(value, Mapping):
            pairs = [
                (one, value[name], name)
                for name in value
                for one in self._of_property(schema, name)
            ]
        elif isinstance(value, list):
            places = schema.get("prefixItems", ())
            behind = schema.get("items", True)
            pairs = [
                (places[n] if n < len(places) else behind, item, str(n))
                for n, item in enumerate(value)
            ]
        else:
            return
        kinds = len({id(one) for one, _, _ in pairs})
        if len(pairs) > kinds * MANY:
            pairs = [pair for pair in pairs if not self._fits(pair[0], pair[1])]
        for one, member, step in pairs:
            yield one, member, f"{at}/{step.replace('~', '~0').replace('/', '~1')}"

    def _of_property(self, schema: Mapping[str, Any], name: str) -> Iterator[Any]:
        """The schemas of the property ``name``."""
        known = False
        if name in schema.get("properties", {}):
            known = True
            yield schema["properties"][name]
        for pattern, one in schema.get("patternProperties", {}).items():
            if self._matches(pattern, name):
                known = True
                yield one
        if not known and schema.get("additionalProperties") not in (None, False):
            yield schema["additionalProperties"]

    def _matches(self, pattern: str, name: str) -> bool:
        found = self._patterns.get(pattern)
        if found is None:
            found = self._patterns[pattern] = self._compile({"pattern": pattern})
        return found.is_valid(name)

    def _behind(self, schema: Any, steps: int = MAX_STEPS) -> Any:
        """What stands behind the references that ``schema`` begins with, as far as it is known."""
        for _ in range(steps):
            if not (isinstance(schema, Mapping) and isinstance(schema.get("$ref"), str)):
                break
            found = part(self._root, schema["$ref"].removeprefix(ROOT))
            schema = True if found is None else found
        return schema

    def _nearest(self, branches: list[Any], value: Any) -> Any:
        return max(branches, key=lambda branch: _likeness(self._behind(branch), value))


def _likeness(branch: Any, value: Any) -> int:
    """How much ``branch`` seems to be meant by ``value``: its type, then its constants."""
    if not isinstance(branch, Mapping):
        return 0
    kinds = branch.get("type")
    likeness = 1 if kinds is None or json_type(value) in (kinds, *_listed(kinds)) else -100
    properties = branch.get("properties")
    if isinstance(value, Mapping) and isinstance(properties, Mapping):
        likeness += sum(
            _agreement(properties[name], value[name]) for name in properties if name in value
        )
    return likeness


def _listed(kinds: Any) -> tuple[Any, ...]:
    return tuple(kinds) if isinstance(kinds, list) else ()


def _agreement(schema: Any, value: Any) -> int:
    """Whether a property speaks for its branch: a constant that agrees says most."""
    if not isinstance(schema, Mapping):
        return 1
    constants = [schema["const"]] if "const" in schema else schema.get("enum")
    if not isinstance(constants, list):
        return 1
    return 10 if value in constants else -10


def _unknown(schema: Mapping[str, Any], value: Any) -> str:
    """What is wanted where something is there that no keyword speaks of."""
    if not isinstance(value, Mapping):
        return "no further items"
    known = schema.get("properties", {})
    return f"no property {names([name for name in value if name not in known])}"


def _written(schema: Any) -> str:
    """A part of the schema as its caller wrote it."""
    return as_json(schema).replace(ROOT, "")


def _located(node: Any) -> Any:
    """A copy in which references name the schema, so that they hold wherever a part is used."""
    if isinstance(node, list):
        return [_located(one) for one in node]
    if not isinstance(node, Mapping):
        return node
    copy = {
        name: value if name in _DATA else _located(value)
        for name, value in node.items()
        if not (name == "$id" and isinstance(value, str))
    }
    reference = copy.get("$ref")
    if isinstance(reference, str) and reference.startswith("#"):
        copy["$ref"] = ROOT + reference
    return copy
