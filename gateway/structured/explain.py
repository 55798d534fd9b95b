"""What is wrong with an answer, in words that a model and a person can act on.

The validator explains a failed union by every error of every branch, which grows exponentially
in recursive schemas (20 kinds of node, three levels: 15 s). Here a union is told by its nearest
branch alone. Bounded: so many errors, so many characters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any

from jsonschema_rs import Draft202012Validator, RegexOptions, Registry, ValidationError

from adapters.canonical.record import record
from adapters.wire.json import dumps
from gateway.structured.bounds import part

MAX_ERRORS = 10
"""Errors told of one answer."""

MAX_UNIONS = 24
"""Unions within unions that are looked into."""

MAX_STEPS = 8
"""References that lead to references, followed to look at a branch."""

MAX_TEXT = 160
"""Characters of each of an error's texts."""

ROOT = "urn:gateway:schema"
"""The schema's name among the validator's resources, so that parts of it can refer to it."""

OPTIONS = RegexOptions(size_limit=1 << 20, dfa_size_limit=1 << 20)
"""Linear-time patterns only; a pattern that compiles to more than a megabyte is refused."""

UNIONS = ("anyOf", "oneOf")


@record(frozen=True, slots=True)
class Violation:
    """One thing that is wrong: the JSON pointer to it, what stands there, what should."""

    pointer: str
    found: str
    wanted: str

    def __str__(self) -> str:
        return f"at {self.pointer or 'the root'}: found {self.found}, wanted {self.wanted}"

    def object(self) -> dict[str, str]:
        """As it stands in error bodies."""
        return {"pointer": self.pointer, "found": self.found, "wanted": self.wanted}


def fetch_nothing(uri: str) -> Any:
    """The validator's retriever: every reference out of the schema fails."""
    raise ValueError(f"{uri} is not part of the schema")


class Explainer:
    """Finds the violations of one schema. Made only once an answer has failed."""

    __slots__ = ("_keywords", "_registry", "_root", "_unions")

    def __init__(self, schema: Any) -> None:
        self._root = _located(schema)
        self._registry = Registry([(ROOT, self._root)])
        self._unions: list[tuple[str, list[Any]]] = []
        """Every union that the explanation under way has met, by its number."""
        self._keywords = {keyword: self._union(keyword) for keyword in UNIONS}

    def violations(self, value: Any) -> list[Violation]:
        """What is wrong with ``value``, at most :data:`MAX_ERRORS` things."""
        self._unions.clear()
        return list(islice(self._explain({"$ref": ROOT}, value, "", 0), MAX_ERRORS))

    def _explain(self, schema: Any, value: Any, at: str, depth: int) -> Iterator[Violation]:
        for error in self._compile(schema, self._keywords).iter_errors(value):
            here = at + _pointer(error.instance_path)
            if error.kind.name in UNIONS:
                yield from self._explain_union(error, here, depth)
            else:
                yield _violation(error, here)

    def _explain_union(self, error: ValidationError, at: str, depth: int) -> Iterator[Violation]:
        """The errors of the branch that comes nearest; of several that fit, that they do."""
        _, branches = self._unions[int(error.kind.as_dict()["message"])]
        value = error.instance
        best = max(branches, key=lambda branch: self._likeness(branch, value), default=False)
        told = False
        if depth < MAX_UNIONS:
            for violation in self._explain(best, value, at, depth + 1):
                told = True
                yield violation
        if not told:
            wanted = f"exactly one of {len(branches)} alternatives to fit"
            yield Violation(at, _shown(value), wanted)

    def _compile(self, schema: Any, keywords: Mapping[str, type]) -> Draft202012Validator:
        return Draft202012Validator(
            schema,
            registry=self._registry,
            retriever=fetch_nothing,
            pattern_options=OPTIONS,
            validate_formats=True,
            keywords=dict(keywords),
        )

    def _union(self, keyword: str) -> type:
        """A keyword class whose one error is the union's number."""
        explainer = self

        class Union:
            """The validator makes one for each place where the keyword stands."""

            def __init__(self, _schema: Any, branches: list[Any], _path: Any) -> None:
                self._number = len(explainer._unions)
                self._whole: Draft202012Validator | None = None
                explainer._unions.append((keyword, branches))

            def validate(self, instance: Any) -> None:
                if self._whole is None:
                    branches = explainer._unions[self._number][1]
                    self._whole = explainer._compile({keyword: branches}, {})
                if not self._whole.is_valid(instance):
                    raise ValueError(str(self._number))

        return Union

    def _likeness(self, branch: Any, value: Any) -> int:
        """How much ``branch`` seems to be meant by ``value``: its type, then its constants."""
        for _ in range(MAX_STEPS):
            if not (isinstance(branch, Mapping) and isinstance(branch.get("$ref"), str)):
                break
            branch = part(self._root, branch["$ref"].removeprefix(ROOT))
        if not isinstance(branch, Mapping):
            return 0
        kinds = branch.get("type")
        likeness = 1 if kinds is None or _type(value) in (kinds, *_listed(kinds)) else -100
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


def _located(node: Any) -> Any:
    """A copy in which references name the schema, so that they hold wherever a part is used."""
    if isinstance(node, list):
        return [_located(one) for one in node]
    if not isinstance(node, Mapping):
        return node
    copy = {name: _located(value) for name, value in node.items() if name != "$id"}
    reference = copy.get("$ref")
    if isinstance(reference, str) and reference.startswith("#"):
        copy["$ref"] = ROOT + reference
    return copy


# --------------------------------------------------------------------------- words


def _pointer(path: list[str | int]) -> str:
    steps = (str(step).replace("~", "~0").replace("/", "~1") for step in path)
    return _cut("".join(f"/{step}" for step in steps))


def _violation(error: ValidationError, at: str) -> Violation:
    about = error.kind.as_dict()
    words = _WANTED.get(error.kind.name)
    wanted = error.kind.name if words is None else words(about)
    return Violation(at, _shown(error.instance), _cut(wanted))


def _shown(value: Any) -> str:
    try:
        return _cut(dumps(value).decode())
    except (TypeError, ValueError, RecursionError):  # nested deeper than JSON is written
        return f"something of type {_type(value)}"


def _cut(text: str) -> str:
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"


def _json(value: Any) -> str:
    return dumps(value).decode()


def _names(names: list[Any]) -> str:
    return ", ".join(map(_json, names))


def _type(value: Any) -> str:
    for kind, name in _TYPES:
        if isinstance(value, kind):
            return name
    return "null"


_TYPES: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (bool, "boolean"),
    (int, "integer"),
    (float, "number"),
    (str, "string"),
    ((list, tuple), "array"),
    (Mapping, "object"),
)

_WANTED: Mapping[str, Callable[[dict[str, Any]], str]] = {
    "type": lambda a: " or ".join(f"type {kind}" for kind in a["types"]),
    "enum": lambda a: f"one of {_names(a['options'])}",
    "const": lambda a: f"exactly {_json(a['expected_value'])}",
    "required": lambda a: f"the property {_json(a['property'])}, which is missing",
    "additionalProperties": lambda a: f"no property {_names(a['unexpected'])}",
    "unevaluatedProperties": lambda a: f"no property {_names(a['unexpected'])}",
    "additionalItems": lambda a: f"at most {a['limit']} items",
    "unevaluatedItems": lambda a: f"no item {', '.join(a['unexpected'])}",
    "minimum": lambda a: f"at least {a['limit']}",
    "maximum": lambda a: f"at most {a['limit']}",
    "exclusiveMinimum": lambda a: f"more than {a['limit']}",
    "exclusiveMaximum": lambda a: f"less than {a['limit']}",
    "multipleOf": lambda a: f"a multiple of {a['multiple_of']}",
    "minLength": lambda a: f"at least {a['limit']} characters",
    "maxLength": lambda a: f"at most {a['limit']} characters",
    "pattern": lambda a: f"text that matches {a['pattern']}",
    "format": lambda a: f"text in the format {a['format']}",
    "minItems": lambda a: f"at least {a['limit']} items",
    "maxItems": lambda a: f"at most {a['limit']} items",
    "uniqueItems": lambda a: "no item twice",
    "contains": lambda a: "an item of the kind that `contains` asks for",
    "minProperties": lambda a: f"at least {a['limit']} properties",
    "maxProperties": lambda a: f"at most {a['limit']} properties",
    "propertyNames": lambda a: f"other property names: {a['error'].message}",
    "not": lambda a: f"nothing that fits {_json(a['schema'])}",
    "falseSchema": lambda a: "nothing here",
}
"""What each keyword wants, from the validator's account of its failure."""
