"""The words for what is wrong with an answer, which a model and a person can act on.

Bounded: so many characters, whatever the schema and the answer hold.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from jsonschema_rs import ValidationError

from adapters.canonical.record import record
from adapters.wire.json import dumps

MAX_TEXT = 160
"""Characters of each of an error's texts."""


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


def told(error: ValidationError, at: str) -> Violation:
    """The validator's account of one keyword that failed at ``at``, in our words."""
    about = error.kind.as_dict()
    words = _WANTED.get(error.kind.name)
    wanted = error.kind.name if words is None else words(about)
    return violation(at, error.instance, wanted)


def violation(at: str, found: Any, wanted: str) -> Violation:
    """What stands at ``at`` is not what is ``wanted``."""
    return Violation(cut(at), shown(found), cut(wanted))


def shown(value: Any) -> str:
    """``value`` as JSON, cut."""
    try:
        return cut(dumps(value).decode())
    except (TypeError, ValueError, RecursionError):  # nested deeper than JSON is written
        return f"something of type {json_type(value)}"


def cut(text: str) -> str:
    """``text`` in at most :data:`MAX_TEXT` characters."""
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"


def as_json(value: Any) -> str:
    """``value`` as JSON."""
    return dumps(value).decode()


def names(found: list[Any]) -> str:
    """Names of properties, or values, one behind the other."""
    return ", ".join(map(as_json, found))


def json_type(value: Any) -> str:
    """JSON Schema's name for the type of ``value``."""
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
    "enum": lambda a: f"one of {names(a['options'])}",
    "const": lambda a: f"exactly {as_json(a['expected_value'])}",
    "required": lambda a: f"the property {as_json(a['property'])}, which is missing",
    "additionalProperties": lambda a: f"no property {names(a['unexpected'])}",
    "additionalItems": lambda a: f"at most {a['limit']} items",
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
    "minProperties": lambda a: f"at least {a['limit']} properties",
    "maxProperties": lambda a: f"at most {a['limit']} properties",
}
"""What each keyword wants, from the validator's account of its failure."""
