"""The variables of a prompt: which there are, of what type, and whether a call's values fit.

Values are never converted: a number is no string. What is left out takes its default; without one
it is required.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from adapters.canonical.faults import Fault
from adapters.canonical.record import record

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")
"""Like a template's names, and never one that begins with ``_``: those are the gateway's."""

TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "number": (int, float),
    "integer": (int,),
    "boolean": (bool,),
    "array": (list, tuple),
    "object": (Mapping,),
}
"""JSON's types and Python's."""
UNSET: Any = object()
"""No default: the variable is required. ``null`` is a default like any other."""


@record(frozen=True, slots=True)
class Variable:
    """One variable; ``choices`` are all values that it may have, where they are limited."""

    type: str = "string"
    default: Any = UNSET
    choices: tuple[Any, ...] | None = None
    description: str | None = None

    def fits(self, value: Any) -> bool:
        """Whether ``value`` is of the type, and one of the choices."""
        if isinstance(value, bool) != (self.type == "boolean"):
            return False
        if not isinstance(value, TYPES[self.type]):
            return False
        return self.choices is None or value in self.choices


def required(variables: Mapping[str, Variable]) -> list[str]:
    """The names of those that a call has to give."""
    return [name for name, variable in variables.items() if variable.default is UNSET]


def values_of(
    variables: Mapping[str, Variable], given: Mapping[str, Any], prompt: str
) -> dict[str, Any]:
    """The value of each variable, in the order in which they are defined.

    :param prompt: the prompt's name, for the error.
    :raises Fault: ``bad_request`` naming the variable that is unknown, missing or of a wrong type.
    """
    for name in given:
        if name not in variables:
            near = get_close_matches(name, variables, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            known = ", ".join(variables) or "none"
            raise _wrong(name, f"The prompt {prompt} has no such variable.{hint} It has: {known}.")
    values: dict[str, Any] = {}
    for name, variable in variables.items():
        if name not in given:
            if variable.default is UNSET:
                raise _wrong(name, f"The prompt {prompt} needs the variable {name!r}.")
            values[name] = variable.default
            continue
        value = _plain(given[name])
        if not variable.fits(value):
            wanted = variable.type
            if variable.choices is not None:
                wanted += f" out of {', '.join(map(repr, variable.choices))}"
            raise _wrong(name, f"The prompt {prompt} takes a {wanted} as {name!r}.")
        values[name] = value
    return values


def _plain(value: Any) -> Any:
    """The text of an ``input_text`` object, in which the Responses API also takes a text."""
    if isinstance(value, Mapping) and value.get("type") == "input_text" and "text" in value:
        return value["text"]
    return value


def _wrong(name: str, message: str) -> Fault:
    shown = name if NAME.fullmatch(name) else "variables"
    return Fault(
        "bad_request", message, param=f"prompt.variables.{shown}", code="invalid_prompt_variables"
    )
