"""Are bindings, conditions and schemas well formed? What is wrong with each, in words. Pure.

Here a value is looked at alone; whether its pointers lead anywhere is said by
:mod:`~gateway.runs.workflow_check`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from gateway.runs.binding import FORMS, TESTS, astray

Unusable = Callable[[Mapping[str, Any]], str | None]
"""Why a JSON Schema can't be used; ``None`` if it can."""


def binding_flaws(binding: Any) -> Iterator[str]:
    """What is wrong with the form of a binding."""
    if isinstance(binding, list | tuple):
        for one in binding:
            yield from binding_flaws(one)
    if not isinstance(binding, Mapping):
        return
    form = next(iter(binding)) if len(binding) == 1 else ""
    if form in FORMS:
        yield from _FORMS[form](binding[form])
        return
    for one in binding.values():
        yield from binding_flaws(one)


def _from(pointer: Any) -> Iterator[str]:
    if not isinstance(pointer, str):
        yield "'from' takes a JSON pointer as a text, like \"/input/name\""


def _template(text: Any) -> Iterator[str]:
    if not isinstance(text, str):
        yield "'template' takes a text"
        return
    for found in astray(text):
        yield (
            f"{found!r} is no reference; write {{{{ /input/NAME }}}} or {{{{ /nodes/ID }}}}, or "
            "give the whole text as {value = …} if the braces are meant as they are"
        )


def _first(choices: Any) -> Iterator[str]:
    if not isinstance(choices, list | tuple) or not choices:
        yield "'first' takes a list of bindings"
        return
    yield from binding_flaws(choices)


def _value(content: Any) -> Iterator[str]:
    yield from ()


_FORMS: Mapping[str, Callable[[Any], Iterator[str]]] = {
    "from": _from,
    "template": _template,
    "first": _first,
    "value": _value,
}
"""By form of a binding: what is wrong with its content."""


# conditions


def condition_flaws(condition: Any, unusable: Unusable) -> Iterator[str]:
    """What is wrong with the form of a condition."""
    if not isinstance(condition, Mapping):
        yield "a condition is an object"
        return
    word = next((one for one in JOINS if one in condition), None)
    if word is None:
        yield from _test_flaws(condition, unusable)
        return
    if len(condition) > 1:
        yield f"{word!r} stands alone in a condition"
    inner = condition[word]
    if word == "not":
        yield from condition_flaws(inner, unusable)
    elif not isinstance(inner, list | tuple) or not inner:
        yield f"{word!r} takes a list of conditions"
    else:
        for one in inner:
            yield from condition_flaws(one, unusable)


JOINS = ("all", "any", "not")


def _test_flaws(condition: Mapping[str, Any], unusable: Unusable) -> Iterator[str]:
    if not isinstance(condition.get("from"), str) or len(condition) < 2:
        yield "a condition has 'from' and a test, or is one of all, any, not"
    for name, operand in condition.items():
        if name == "from":
            continue
        if name not in OPERANDS:
            yield f"there is no test {name!r}; there are: {', '.join(sorted(OPERANDS))}"
        elif not isinstance(operand, OPERANDS[name][0]) or _is_bool(name, operand):
            yield f"{name!r} takes {OPERANDS[name][1]}"
        elif isinstance(operand, Mapping) and name == "schema":
            why = unusable(operand)
            yield from () if why is None else (f"the schema can't be used: {why}",)
    if condition.get("exists") is False and len(condition) > 2:
        yield "'exists = false' stands alone: what is not there passes no other test"


def _is_bool(name: str, operand: Any) -> bool:
    """True and false are no numbers here."""
    return name in ("gt", "ge", "lt", "le") and isinstance(operand, bool)


_NUMBER: tuple[tuple[type, ...], str] = ((int, float), "a number")
OPERANDS: Mapping[str, tuple[tuple[type, ...], str]] = {
    **dict.fromkeys(TESTS, ((object,), "any value")),
    **dict.fromkeys(("gt", "ge", "lt", "le"), _NUMBER),
    "in": ((list, tuple), "a list"),
    "exists": ((bool,), "true or false"),
    "schema": ((Mapping,), "a JSON Schema"),
}
"""By test: the types that its operand may have, and how that is said."""
