"""The canonical words as plain JSON data and back, byte for byte: for whatever is kept.

A value becomes an object with its ``type`` and the fields that differ from their defaults, so
that unset stays unset. Reading goes by the classes' own annotations, never by what the data
looks like: a caller's JSON that happens to have a ``type`` stays what it is.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import lru_cache
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from adapters.canonical import parts, request
from adapters.canonical.events import Usage

T = TypeVar("T")
Plain = dict[str, Any]

TAGS: Mapping[type, str] = {
    parts.Text: "text",
    parts.Media: "media",
    parts.Thinking: "thinking",
    parts.ToolCall: "tool_call",
    parts.ToolResult: "tool_result",
    parts.Refusal: "refusal",
    parts.Opaque: "opaque",
    parts.Url: "url",
    parts.Inline: "inline",
    parts.FileRef: "file",
    request.FunctionTool: "function",
    request.OpaqueTool: "opaque",
    request.JsonObject: "json_object",
    request.JsonSchema: "json_schema",
}
"""Classes that stand in for one another say which they are; all others are known by place."""

RENAMED = {"type": "block"}
"""Fields whose name would hide the tag."""


def plain(value: Any) -> Any:
    """``value`` as JSON data: a word of this package, a tuple of them, or JSON already."""
    if is_dataclass(value) and not isinstance(value, type):
        return _object(value)
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    if isinstance(value, Mapping):
        return dict(value)
    return value


def _object(value: Any) -> Plain:
    cls: Any = type(value)
    shown: Plain = {"type": TAGS[cls]} if cls in TAGS else {}
    for name, key, default in _written(cls):
        found = getattr(value, name)
        if default is MISSING or found != default:
            shown[key] = plain(found)
    return shown


@lru_cache(maxsize=64)
def _written(cls: Any) -> tuple[tuple[str, str, Any], ...]:
    """A class's fields: name, key in the data, default."""
    return tuple((f.name, RENAMED.get(f.name, f.name), _default(f)) for f in fields(cls))


def _default(field: Field[Any]) -> Any:
    if field.default_factory is not MISSING:
        return field.default_factory()
    return field.default


def parsed(cls: type[T], data: Any) -> T:
    """The value of class ``cls`` that :func:`plain` made ``data`` of.

    :raises ValueError: for data that was never made so.
    """
    hint: Any = cls
    try:
        return cast(T, _reader(hint)(data))
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not the plain form of {cls.__name__}: {error!r}") from error


def parsed_parts(data: Any) -> tuple[parts.Part, ...]:
    """The parts that :func:`plain` made ``data`` of.

    :raises ValueError: for data that was never made so.
    """
    return parsed(request.Message, {"role": "assistant", "parts": data}).parts


def parsed_usage(data: Mapping[str, Any] | None) -> Usage | None:
    """The usage that :func:`plain` made ``data`` of; ``None`` stays ``None``."""
    return None if data is None else parsed(Usage, data)


@lru_cache(maxsize=128)
def _reader(hint: Any) -> Callable[[Any], Any]:
    """How data under the annotation ``hint`` is read."""
    if get_origin(hint) in (Union, types.UnionType):
        return _one_of([arg for arg in get_args(hint) if arg is not type(None)])
    if get_origin(hint) is tuple:
        item = _reader(get_args(hint)[0])
        return lambda data: tuple(item(one) for one in data)
    if is_dataclass(hint):
        return _instance(hint)
    return lambda data: data


def _one_of(choices: list[Any]) -> Callable[[Any], Any]:
    """The member of a union that the data's tag names; a lone one needs no tag."""
    tagged = {TAGS[choice]: choice for choice in choices if choice in TAGS}
    if len(choices) == 1:
        only = _reader(choices[0])
        return lambda data: None if data is None else only(data)
    if not tagged:
        return lambda data: data
    return lambda data: None if data is None else _reader(tagged[data["type"]])(data)


def _instance(cls: Any) -> Callable[[Any], Any]:
    hints = get_type_hints(cls)
    known = {key: (name, hints[name]) for name, key, _ in _written(cls)}

    def read(data: Mapping[str, Any]) -> Any:
        given = {key: value for key, value in data.items() if key in known}
        return cls(**{known[key][0]: _reader(known[key][1])(v) for key, v in given.items()})

    return read
