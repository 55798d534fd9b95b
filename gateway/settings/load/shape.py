"""The parsed file against its shape: every fault at once, each with its nearest right word."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from copy import deepcopy
from types import UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from gateway.settings.load.positions import Path
from gateway.settings.scalars import Table

_ROUNDS = 6
"""How often what is wrong is cut out and the rest looked at again."""

T = TypeVar("T", bound=Table)


def read_shape(raw: Mapping[str, Any], shape: type[T]) -> tuple[T | None, dict[Path, str]]:
    """``raw`` as ``shape``, and what is wrong with it by key path.

    Where something is wrong the value is made of the rest, so that checks across tables can
    still report theirs; ``None`` where nothing usable is left. The first round finds every
    fault; what a later one finds is missing only because a fault was cut out.
    """
    rest = deepcopy(dict(raw))
    problems: dict[Path, str] = {}
    for attempt in range(_ROUNDS):
        try:
            return shape.model_validate(rest), problems
        except ValidationError as error:
            details = error.errors(include_url=False)
            if attempt == 0:
                problems = dict(_explain(detail, shape, raw) for detail in details)
            for detail in details:
                _cut(rest, detail)
    return None, problems


def nearest(word: str, known: Iterable[str]) -> str:
    """``; did you mean 'x'?``, or nothing where no known word is near."""
    close = difflib.get_close_matches(word, sorted(known), n=1, cutoff=0.6)
    return f"; did you mean {close[0]!r}?" if close else ""


def _cut(raw: dict[str, Any], detail: ErrorDetails) -> None:
    """Take the fault out of ``raw``: the value itself, or for a missing key its table.

    Of a list nothing is taken singly, since that would move the others' places: it goes whole.
    """
    path = _existing(detail["loc"], raw)
    if detail["type"] == "missing":
        path = path[:-1]
    while path and isinstance(path[-1], int):
        path = path[:-1]
    if not path:
        return
    node: Any = raw
    for step in path[:-1]:
        node = node[step]
    node.pop(path[-1], None)


def _existing(loc: Path, raw: Any) -> Path:
    """The steps of ``loc`` that ``raw`` has, and the key that is missing at their end.

    Pydantic's own steps are none of the file's: its mark for a key that is at fault
    (``[key]``), and what a plain number stands for (``usd``).
    """
    path: list[str | int] = []
    node = raw
    for step in loc:
        container: type[Any] = dict if isinstance(step, str) else list
        if step == "[key]" or not isinstance(node, container):
            break
        path.append(step)
        try:
            node = node[step]
        except (KeyError, IndexError):
            break
    return tuple(path)


def _explain(detail: ErrorDetails, shape: type[BaseModel], raw: Any) -> tuple[Path, str]:
    loc = _existing(detail["loc"], raw)
    context = detail.get("ctx", {})
    match detail["type"]:
        case "extra_forbidden":
            fields = _fields_at(shape, loc[:-1])
            return loc, f"is no known key{nearest(str(loc[-1]), fields)}{_listed(fields)}"
        case "missing":
            return loc, "is missing"
        case "literal_error":
            choices = [str(choice) for choice in _choices_at(shape, loc)]
            return (
                loc,
                f"must be one of {', '.join(choices)}{nearest(str(detail['input']), choices)}",
            )
        case "value_error":
            return loc, str(context["error"])
        case kind if kind in _WORDS:
            return loc, _WORDS[kind].format(**context)
        case _:
            return loc, detail["msg"].lower()


_WORDS = {
    "string_type": "must be a text in quotes",
    "int_type": "must be a whole number, without quotes",
    "bool_type": "must be true or false, without quotes",
    "list_type": "must be a list: [ … ]",
    "dict_type": "must be a table",
    "model_type": "must be a table",
    "model_attributes_type": "must be a table",
    "greater_than": "must be more than {gt}",
    "greater_than_equal": "must be {ge} or more",
    "less_than_equal": "must be {le} or less",
    "string_too_short": "must not be empty",
    "string_too_long": "must have at most {max_length} characters",
    "too_short": "must have at least {min_length} entry",
    "string_pattern_mismatch": "has a character that is not allowed there (pattern {pattern})",
}
"""What Pydantic's fault types are called here."""


def _listed(fields: Iterable[str]) -> str:
    known = sorted(fields)
    return f" (known: {', '.join(known)})" if known else ""


def _fields_at(shape: Any, loc: Path) -> frozenset[str]:
    """The keys that the table at ``loc`` may have."""
    for kind in _models(_type_at(shape, loc)):
        return frozenset(kind.model_fields)
    return frozenset()


def _choices_at(shape: Any, loc: Path) -> tuple[Any, ...]:
    for kind in _alternatives(_type_at(shape, loc)):
        if get_origin(kind) is Literal:
            return get_args(kind)
    return ()


def _type_at(shape: Any, loc: Path) -> Any:
    kind = shape
    for step in loc:
        kind = _step_into(kind, step)
    return kind


def _step_into(kind: Any, step: str | int) -> Any:
    """The type that stands behind one step of a path."""
    for choice in _alternatives(kind):
        if isinstance(choice, type) and issubclass(choice, BaseModel):
            field = choice.model_fields.get(str(step))
            return field.annotation if field is not None else None
        if get_origin(choice) in (list, dict):
            return get_args(choice)[-1]
    return None


def _models(kind: Any) -> list[type[BaseModel]]:
    return [k for k in _alternatives(kind) if isinstance(k, type) and issubclass(k, BaseModel)]


def _alternatives(kind: Any) -> list[Any]:
    """The members of a union, with ``Annotated`` peeled off."""
    origin = get_origin(kind)
    if origin is Annotated:
        return _alternatives(get_args(kind)[0])
    if origin in (Union, UnionType):
        return [choice for member in get_args(kind) for choice in _alternatives(member)]
    return [kind]
