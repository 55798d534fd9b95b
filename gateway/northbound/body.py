"""From a caller's bytes to checked JSON: what all northbound dialects do first.

Strict where the two readings of a sloppy body could differ: duplicate keys, lone surrogates
and deep nesting are refused (fault kinds K10 and K16). Errors name paths and rules,
never the caller's values (case E08). Must not know any dialect's fields.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import jiter
from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from adapters.canonical.faults import Fault
from gateway.northbound.base import Limits

MAX_ERRORS = 5
"""How many problems one 400 lists."""

SHORT = 2048
"""Bytes up to which a body's opening brackets are counted, wherever they stand: it is no deeper.
In a longer one it costs less to walk through the values at once."""

_SUBJECT = re.compile(r"^Value error, must|^\w+ should")
"""How Pydantic begins to say what is wrong; here the place stands before it."""

_PLACE = re.compile(r"at line (\d+) column (\d+)")

_JSON_CAUSES: tuple[tuple[str, str], ...] = (
    ("duplicate key", "an object names the same key twice"),
    ("recursion limit", "it is nested too deeply"),
    ("hex escape", "a \\u escape is half of a surrogate pair"),
    ("surrogate", "a \\u escape is half of a surrogate pair"),
    ("unicode", "it is not valid UTF-8"),
    ("EOF", "it ends too early"),
    ("trailing", "something follows after its end"),
    ("control character", "a control character in a string is not escaped"),
    ("number", "a number is malformed or too long"),
)


def read_object(body: bytes, limits: Limits) -> dict[str, Any]:
    """The JSON object in ``body``; integers of any length stay exact.

    :raises Fault: ``bad_request`` if it is no JSON, no object, or deeper than the limit.
    """
    try:
        value = jiter.from_json(body, catch_duplicate_keys=True, allow_inf_nan=False)
    except ValueError as error:
        raise Fault("bad_request", _json_problem(str(error)), code="invalid_json") from None
    if not isinstance(value, dict):
        raise Fault("bad_request", "The request body must be a JSON object.", code="invalid_json")
    if len(body) > SHORT or body.count(b"{") + body.count(b"[") > limits.depth:
        _check_depth(value, limits.depth)
    return value


def _json_problem(told: str) -> str:
    cause = next((words for sign, words in _JSON_CAUSES if sign in told), "a value is malformed")
    place = _PLACE.search(told)
    where = "" if place is None else f" (line {place[1]}, column {place[2]})"
    return f"The request body is not valid JSON: {cause}{where}."


_NESTING = frozenset({dict, list})


def _check_depth(value: dict[str, Any], limit: int) -> None:
    # Exact types, not isinstance: the parser makes no subclasses, and this is thrice as fast.
    level: list[Any] = [value]
    for _ in range(limit):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if type(outer) is dict else outer)
            if type(inner) in _NESTING
        ]
        if not level:
            return
    raise Fault(
        "bad_request",
        f"The request body is nested more than {limit} levels deep. Flatten it.",
        code="invalid_json",
    )


def validated(shape: TypeAdapter[Any], value: Mapping[str, Any]) -> Mapping[str, Any]:
    """``value`` checked against ``shape``, a typed dict's adapter.

    :raises Fault: ``bad_request`` whose message lists at most :data:`MAX_ERRORS` problems and
        whose ``param`` is the path of the first.
    """
    try:
        checked: Mapping[str, Any] = shape.validate_python(value)
    except ValidationError as error:
        raise mistakes(error, value) from None
    return checked


def problems(
    shape: TypeAdapter[Any], value: Mapping[str, Any]
) -> tuple[Mapping[str, Any] | None, list[tuple[str, str]]]:
    """``value`` checked against ``shape``; or nothing, and all that is wrong: by path, in words."""
    try:
        checked: Mapping[str, Any] = shape.validate_python(value)
    except ValidationError as error:
        return None, _told(error, value)
    return checked, []


def _told(error: ValidationError, value: Mapping[str, Any]) -> list[tuple[str, str]]:
    """By path, what is wrong; of a choice of shapes, with the one that the caller has begun."""
    details = error.errors(include_url=False, include_input=False)
    told = [(_path(detail, value), rule(detail)) for detail in details]
    begun = {at[:cut] for at, _ in told for cut in range(len(at)) if at[cut] in ".["}
    return _each_once(
        one
        for one, detail in zip(told, details, strict=True)
        if one[0] not in begun or not detail["type"].endswith("_type")
    )


def _each_once(told: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """The shapes that a value may have as one rule: it must be a string or a list."""
    rules: dict[str, str] = {}
    for path, rule in told:
        first = rules.get(path)
        other = rule if first is None else f"{first} or {rule.removeprefix('must be ')}"
        rules[path] = other
    return list(rules.items())


def mistakes(error: ValidationError, value: Mapping[str, Any]) -> Fault:
    """What is wrong with ``value``, in a caller's words: at most :data:`MAX_ERRORS` places, and
    ``param`` is the first."""
    told = _told(error, value)
    lines = [f"{path or 'The request body'} {rule}" for path, rule in told[:MAX_ERRORS]]
    if len(told) > MAX_ERRORS:
        lines.append(f"and {len(told) - MAX_ERRORS} more")
    return Fault("bad_request", "; ".join(lines) + ".", param=told[0][0] or None)


_TAGS = ("union_tag_invalid", "union_tag_not_found")

_RULES: Mapping[str, str] = {
    "missing": "is required",
    "extra_forbidden": "is not known here",
    "union_tag_not_found": "is required",
    "string_type": "must be a string",
    "int_type": "must be an integer",
    "int_from_float": "must be an integer",
    "int_parsing": "must be an integer",
    "float_type": "must be a number",
    "finite_number": "must be a finite number",
    "decimal_type": "must be a number",
    "bool_type": "must be true or false",
    "list_type": "must be a list",
    "dict_type": "must be an object",
    "dict_attributes_type": "must be an object",
    "model_attributes_type": "must be an object",
    "none_required": "must be null",
    "string_too_short": "must not be empty",
    "too_short": "has too few entries",
}
"""Pydantic's error types in a caller's words."""


def rule(detail: ErrorDetails) -> str:
    """What is wanted there, without the place. Only for a wrong tag is the caller's value
    repeated."""
    if detail["type"] == "union_tag_invalid":
        return f"must be one of {detail.get('ctx', {}).get('expected_tags')}"
    own = _RULES.get(detail["type"])
    return own or _SUBJECT.sub("must", detail["msg"]).replace("should", "must")


def _path(detail: ErrorDetails, value: Any) -> str:
    """The path as the caller would write it, without Pydantic's union tags.

    A step that the caller's own value does not have is a tag, unless it is the last one of a
    missing field; so is the first step into a value of that ``kind``, which may have a field of
    the same name.
    """
    location = detail["loc"]
    steps: list[str | int] = []
    entered = False
    for number, step in enumerate(location):
        missing = detail["type"] == "missing" and number == len(location) - 1
        if not entered and isinstance(value, dict) and value.get("kind") == step:
            entered = True
            continue
        if _is_tag(value, step, location[number + 1 : number + 2]):
            continue
        if _has(value, step):
            value, entered = value[step], False
        elif not missing:
            continue
        steps.append(step)
    if detail["type"] in _TAGS:
        steps.append(str(detail.get("ctx", {}).get("discriminator", "type")).strip("'"))
    return dotted(steps)


def _is_tag(value: Any, step: str | int, further: Sequence[str | int]) -> bool:
    """Whether ``step`` is the tag of a union and not the field that has its name, as both have in
    ``{"type": "text", "text": …}``: then the next step leads on from the value itself."""
    if not further or not isinstance(value, dict) or value.get("type") != step:
        return False
    return further[0] in value and not _has(value.get(step), further[0])


def _has(value: Any, step: str | int) -> bool:
    if isinstance(value, dict):
        return step in value
    return isinstance(value, list) and isinstance(step, int) and step < len(value)


def dotted(steps: Iterable[str | int]) -> str:
    """``("messages", 0, "role")`` as ``messages[0].role``."""
    path = ""
    for step in steps:
        path += f"[{step}]" if isinstance(step, int) else f".{step}" if path else step
    return path
