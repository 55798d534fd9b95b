"""What kinds of values a workflow's bindings bring, as far as schemas tell. Pure.

A type is a JSON Schema, ``None`` where nothing is known. Only what can't fit is told: where either
side says nothing, the value itself is looked at when it is there. ``$ref`` and combinations count
as "nothing known".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gateway.runs.binding import FORMS, Unbound, rooted, same, tokens

Type = Mapping[str, Any] | None

STRING: Mapping[str, Any] = {"type": "string"}
_OPAQUE = ("$ref", "anyOf", "oneOf", "allOf", "not", "if")


def kinds(schema: Type) -> frozenset[str] | None:
    """The JSON types that a schema allows; ``None`` for any."""
    if schema is None or any(word in schema for word in _OPAQUE):
        return None
    said = schema.get("type")
    if said is None:
        if "enum" in schema:
            return frozenset(kind_of(one) for one in schema["enum"])
        return None
    return frozenset([said] if isinstance(said, str) else said)


def kind_of(value: Any) -> str:
    """The JSON type of a value."""
    for type_, name in _NAMES:
        if isinstance(value, type_):
            return name
    return "null"


_NAMES: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (bool, "boolean"),
    (int, "integer"),
    (float, "number"),
    (str, "string"),
    (Mapping, "object"),
    ((list, tuple), "array"),
)


def inside(schema: Type, path: list[str]) -> Type:
    """The type at a path within a value.

    :raises Unbound: there can be nothing there.
    """
    for step in path:
        allowed = kinds(schema)
        if schema is None or allowed is None:
            return None
        if not allowed & {"object", "array"}:
            raise Unbound(f"there is no {step!r} in a value that is {' or '.join(allowed)}")
        schema = _member(schema, allowed, step)
    return schema


def _member(schema: Mapping[str, Any], allowed: frozenset[str], step: str) -> Type:
    if "object" in allowed:
        properties = schema.get("properties", {})
        if step in properties:
            found: Type = properties[step]
            return found
        if schema.get("additionalProperties") is False and allowed == {"object"}:
            known = ", ".join(properties) or "none"
            raise Unbound(f"there is no field {step!r}; there are: {known}")
        return None
    if not step.isdecimal():
        raise Unbound(f"{step!r} is no place in a list")
    items = schema.get("items")
    return items if isinstance(items, Mapping) else None


def type_of(binding: Any, scope: Mapping[str, Type]) -> Type:
    """The type of a binding's value.

    :param scope: the types of what pointers may begin with, by
        :func:`~gateway.runs.binding.rooted`'s names.
    :raises Unbound: it refers to what can't be there.
    """
    if isinstance(binding, Mapping):
        form = next(iter(binding)) if len(binding) == 1 else None
        if form == "from":
            return _pointed(binding["from"], scope)
        if form == "template":
            return STRING
        if form == "value":
            return literal(binding["value"])
        if form in FORMS:
            return None
        members = {name: type_of(one, scope) for name, one in binding.items()}
        return _object({name: {} if one is None else one for name, one in members.items()})
    if isinstance(binding, list | tuple):
        return {"type": "array"}
    return literal(binding)


def literal(value: Any) -> Type:
    """The type of a value that stands there as it is."""
    if isinstance(value, Mapping):
        return _object({name: literal(one) or {} for name, one in value.items()})
    return {"type": kind_of(value), **({} if isinstance(value, list) else {"enum": [value]})}


def _object(members: Mapping[str, Any]) -> Mapping[str, Any]:
    return {
        "type": "object",
        "properties": members,
        "required": list(members),
        "additionalProperties": False,
    }


def _pointed(pointer: str, scope: Mapping[str, Type]) -> Type:
    root, path = rooted(tokens(pointer))
    return inside(scope.get(root), path)


def misfits(given: Type, wanted: Type, path: str = "") -> Iterator[str]:
    """Why no value of one type can be one of the other."""
    has, needs = kinds(given), kinds(wanted)
    if given is None or wanted is None or has is None or needs is None:
        return
    where = f"{path}: " if path else ""
    if not has & needs and not ("integer" in has and "number" in needs):
        yield f"{where}{' or '.join(sorted(has))} can't be {' or '.join(sorted(needs))}"
        return
    if "enum" in given and "enum" in wanted:
        if not any(same(one, other) for one in given["enum"] for other in wanted["enum"]):
            yield f"{where}none of its values is allowed"
        return
    if has == {"object"} and needs == {"object"}:
        yield from _members(given, wanted, path)
    if has == {"array"} and needs == {"array"}:
        yield from misfits(_items(given), _items(wanted), f"{path}/*")


def _members(given: Mapping[str, Any], wanted: Mapping[str, Any], path: str) -> Iterator[str]:
    there, asked = given.get("properties", {}), wanted.get("properties", {})
    where = f"{path}: " if path else ""
    if given.get("additionalProperties") is False:
        for name in wanted.get("required", ()):
            if name not in there:
                yield f"{where}the required field {name!r} is missing"
    for name, one in there.items():
        if name in asked:
            yield from misfits(one, asked[name], f"{path}/{name}")
        elif wanted.get("additionalProperties") is False and name in given.get("required", ()):
            yield f"{where}the field {name!r} is not allowed"


def _items(schema: Mapping[str, Any]) -> Type:
    items = schema.get("items")
    return items if isinstance(items, Mapping) else None


def impossible(condition: Mapping[str, Any], scope: Mapping[str, Type]) -> Iterator[str]:
    """The tests of a well-formed condition that no value of its type can pass."""
    for word in ("all", "any"):
        for one in condition.get(word, ()):
            yield from impossible(one, scope)
    if "from" not in condition:
        return
    try:
        found = _pointed(condition["from"], scope)
    except Unbound:
        return  # told with the reference itself
    for name, operand in condition.items():
        why = next(NEVER[name](found, operand), None) if name in NEVER else None
        if why is not None:
            yield f"{condition['from']}: {name!r} can never hold: {why}"


def _unequal(found: Type, operand: Any) -> Iterator[str]:
    return misfits(literal(operand), found)


def _none_of(found: Type, choices: Any) -> Iterator[str]:
    reasons = [next(misfits(literal(one), found), None) for one in choices]
    if None not in reasons:
        yield "none of these values is possible there"


def _no_number(found: Type, operand: Any) -> Iterator[str]:
    allowed = kinds(found)
    if allowed is not None and not allowed & {"integer", "number"}:
        yield f"{' or '.join(sorted(allowed))} is no number"


NEVER = {
    "equals": _unequal,
    "in": _none_of,
    **dict.fromkeys(("gt", "ge", "lt", "le"), _no_number),
}
"""By test: why no value of a type can pass it."""
