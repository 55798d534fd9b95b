"""How nodes refer to one another: pointers (typed), templates (text), conditions. Pure.

A binding is JSON in which an object with the one key ``from`` stands for the value at a JSON
pointer, ``template`` for a text with ``{{ /pointer }}`` in it, ``first`` for the first of several
bindings that is there, ``value`` for its content as it is. Whatever a pointer brings is data: it
is never rendered again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from adapters.wire.json import dumps
from gateway.runs.arguments import Check

OUTER = "outer"
"""What a pointer begins with that leads out of a graph within a graph, into the one around it."""
MAX_TEXT = 1_000_000
"""Characters of a filled-in template."""

_HOLE = re.compile(r"\{\{\s*(/[^}]*?)\s*\}\}")
_MEANT = re.compile(r"\{\{\s*(?:/|[A-Za-z_][\w./-]*\s*\}\})[^\n]{0,60}")

Scope = Mapping[str, Any]


class Unbound(ValueError):
    """A reference leads nowhere; the text says which."""


def tokens(pointer: str) -> list[str]:
    """The parts of a JSON pointer (RFC 6901).

    :raises Unbound: it is none.
    """
    if not pointer.startswith("/"):
        raise Unbound(f"{pointer!r} is no JSON pointer: it begins with '/'")
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer[1:].split("/")]


def rooted(path: list[str]) -> tuple[str, list[str]]:
    """What a pointer's parts begin with, as the name of one value (``input``, ``nodes/ID``,
    ``settings/NAME``, any of them after ``outer/``), and the path within that."""
    root, rest = path[0], path[1:]
    if root == OUTER and rest:
        inner, within = rooted(rest)
        return f"{OUTER}/{inner}", within
    if root in ("nodes", "settings") and rest:
        return f"{root}/{rest[0]}", rest[1:]
    return root, rest


def look(pointer: str, scope: Scope) -> Any:
    """The value that ``pointer`` leads to.

    :raises Unbound: there is none.
    """
    found: Any = scope
    for part in tokens(pointer):
        if isinstance(found, Mapping) and part in found:
            found = found[part]
        elif isinstance(found, list | tuple) and part.isdecimal() and int(part) < len(found):
            found = found[int(part)]
        else:
            raise Unbound(f"{pointer} leads nowhere: there is no {part!r}")
    return found


def bind(binding: Any, scope: Scope) -> Any:
    """The value of a binding.

    :raises Unbound: a reference leads nowhere.
    """
    if isinstance(binding, list | tuple):
        return [bind(one, scope) for one in binding]
    if not isinstance(binding, Mapping):
        return binding
    form = _form(binding)
    if form in FORMS:
        return FORMS[form](binding[form], scope)
    return {name: bind(one, scope) for name, one in binding.items()}


def _form(binding: Mapping[str, Any]) -> str:
    """The one key of a binding that may be a reference."""
    return str(next(iter(binding))) if len(binding) == 1 else ""


def fill(template: str, scope: Scope) -> str:
    """The text of a template.

    :raises Unbound: a reference leads nowhere, or the text gets too long.
    """
    text = _HOLE.sub(lambda hole: shown(look(hole[1], scope)), template)
    if len(text) > MAX_TEXT:
        raise Unbound(f"a template gives more than {MAX_TEXT} characters")
    return text


def astray(template: str) -> list[str]:
    """What in a template looks like a reference and is none: ``{{ name }}``, ``{{ /open``."""
    return [found.strip() for found in _MEANT.findall(_HOLE.sub("", template))]


def shown(value: Any) -> str:
    """A value as text: a text as it is, nothing for null, JSON for everything else."""
    if value is None:
        return ""
    return value if isinstance(value, str) else dumps(value).decode()


def _first(choices: Any, scope: Scope) -> Any:
    for one in choices:
        try:
            found = bind(one, scope)
        except Unbound:
            continue
        if found is not None:
            return found
    raise Unbound("none of the choices of 'first' is there")


FORMS: Mapping[str, Callable[[Any, Scope], Any]] = {
    "from": look,
    "template": fill,
    "first": _first,
    "value": lambda content, scope: content,
}
"""By the one key of an object that is a reference: what it stands for."""


def pointers(binding: Any) -> Iterator[str]:
    """Every pointer in a binding or a condition."""
    if isinstance(binding, list | tuple):
        for one in binding:
            yield from pointers(one)
    if not isinstance(binding, Mapping):
        return
    form = _form(binding)
    if form == "value":
        return
    if form == "template" and isinstance(binding["template"], str):
        yield from _HOLE.findall(binding["template"])
        return
    for name, one in binding.items():
        if name == "from" and isinstance(one, str):
            yield one
        elif name not in LITERAL:
            yield from pointers(one)


LITERAL = frozenset({"equals", "in", "contains", "schema", "gt", "ge", "lt", "le", "exists"})
"""Fields of a condition that hold plain values."""


# conditions


def _compare(test: Callable[[float, float], bool]) -> Callable[[Any, Any], bool]:
    def compared(found: Any, bound: Any) -> bool:
        return _number(found) and _number(bound) and test(found, bound)

    return compared


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _contains(found: Any, wanted: Any) -> bool:
    if isinstance(found, str):
        return isinstance(wanted, str) and wanted in found
    return isinstance(found, list | tuple | Mapping) and wanted in found


def same(one: Any, other: Any) -> bool:
    """Whether two JSON values are equal; true is not 1."""
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


TESTS: Mapping[str, Callable[[Any, Any], bool]] = {
    "equals": same,
    "in": lambda found, choices: any(same(found, one) for one in choices),
    "contains": _contains,
    "gt": _compare(lambda a, b: a > b),
    "ge": _compare(lambda a, b: a >= b),
    "lt": _compare(lambda a, b: a < b),
    "le": _compare(lambda a, b: a <= b),
}
"""What a condition may ask of the value at its pointer."""


def holds(condition: Mapping[str, Any], scope: Scope, check: Check) -> bool:
    """Whether a condition is met. What is not there meets nothing but ``exists = false``."""
    if "all" in condition:
        return all(holds(one, scope, check) for one in condition["all"])
    if "any" in condition:
        return any(holds(one, scope, check) for one in condition["any"])
    if "not" in condition:
        return not holds(condition["not"], scope, check)
    try:
        found = look(condition["from"], scope)
    except Unbound:
        return condition.get("exists") is False
    if condition.get("exists") is False:
        return False
    if "schema" in condition and check(condition["schema"], found):
        return False
    return all(test(found, condition[name]) for name, test in TESTS.items() if name in condition)
