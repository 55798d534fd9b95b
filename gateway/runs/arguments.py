"""A model's tool arguments: read strictly, or refused with words that the model can act on.

Nothing is repaired or guessed here (fault kind K05): a tool sees exactly what the model wrote,
or it is not called. Pure.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

Check = Callable[[Mapping[str, Any], Any], list[str]]
"""What is wrong with a value, by a JSON Schema; nothing if it fits."""

MAX_BYTES = 1_000_000
MAX_SHOWN = 300
"""Characters of refused arguments that the model is shown again."""


class Refused(ValueError):
    """The arguments can't be used; the text is for the model."""


def read(raw: str, schema: Mapping[str, Any], check: Check) -> dict[str, Any]:
    """The arguments as an object that fits ``schema``. Blank stands for no arguments.

    :raises Refused: anything else.
    """
    if len(raw) > MAX_BYTES:
        raise Refused(f"The arguments are longer than {MAX_BYTES} characters. Send less.")
    value = {} if not raw.strip() else _parsed(raw)
    if not isinstance(value, dict):
        raise Refused(f"The arguments must be a JSON object, not {_kind(value)}.{_hint(schema)}")
    problems = check(schema, value)
    if problems:
        told = "; ".join(problems[:5])
        raise Refused(f"The arguments do not fit the tool's schema: {told}.{_hint(schema)}")
    return value


def _parsed(raw: str) -> Any:
    try:
        return json.loads(raw, parse_constant=_no_constant, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        why = str(error) if isinstance(error, _Said) else "it is not valid JSON"
        raise Refused(f"The arguments can't be read: {why}. They began {_cut(raw)!r}.") from None


class _Said(ValueError):
    """A reason in our own words."""


def _no_constant(name: str) -> NoReturn:
    raise _Said(f"{name} is no JSON")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _Said("a key comes twice")
    return found


def _kind(value: Any) -> str:
    names = {list: "a list", str: "a string", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")


def _hint(schema: Mapping[str, Any]) -> str:
    properties = schema.get("properties")
    if not isinstance(properties, Mapping) or not properties:
        return ""
    required = schema.get("required") or ()
    names = [f"{name}{'' if name in required else ' (optional)'}" for name in properties]
    return f" It takes: {', '.join(names[:20])}."


def _cut(text: str) -> str:
    return text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + "…"


def digest(arguments: Any) -> str:
    """What stands for arguments that a person was shown; the order of keys doesn't matter."""
    text = json.dumps(arguments, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
