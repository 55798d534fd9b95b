"""What a prompt is: its content, read from JSON or TOML alike, proved whole, and its hash.

A :class:`Prompt` can't be changed; another content is another version. Must not know files, nor
where prompts are kept.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import field
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Literal

from adapters.canonical.record import record
from adapters.canonical.request import JsonSchema
from gateway.policy.inject import FENCED
from gateway.policy.prompts.rendering import TemplateRefused
from gateway.policy.prompts.variables import NAME, TYPES, UNSET, Variable

if TYPE_CHECKING:
    from gateway.policy.prompts.template import Template

ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
"""Names and labels: opaque keys of an index, never part of a path (case X07)."""
LATEST = "latest"
"""A label that always is the highest version."""
LONGEST = 200_000
"""Characters of one template at most."""
EXAMPLES = 100
"""Examples of one prompt at most."""

Definition = Mapping[str, Any]


class PromptRefused(ValueError):
    """No prompt that can be used: ``where`` in its definition, and why."""

    def __init__(self, where: str, message: str) -> None:
        self.where = where
        self.message = message
        super().__init__(f"{where}: {message}" if where else message)


@record(frozen=True, slots=True)
class Example:
    """One turn that shows the model what is wanted; no template."""

    user: str
    assistant: str


@record(frozen=True, slots=True)
class Prompt:
    """One version of a prompt.

    ``user`` is ``None`` where none is defined: the variables go out as JSON then; a blank one
    sends nothing. ``fenced`` says what is marked as data (:mod:`gateway.policy.inject`).
    ``definition`` is the content that it was read from, ``at`` when it was made, if that is known.
    """

    name: str
    version: int
    hash: str
    definition: Definition
    system: Template | None = None
    user: Template | None = None
    variables: Mapping[str, Variable] = field(default_factory=dict)
    examples: tuple[Example, ...] = ()
    model: str | None = None
    output: JsonSchema | None = None
    fenced: frozenset[str] = frozenset()
    source: Literal["file", "store"] = "store"
    at: float | None = None

    @property
    def reference(self) -> str:
        """``name@version``, as on the ledger's rows."""
        return f"{self.name}@{self.version}"


def prompt_of(
    name: str, version: int, definition: Definition, source: Literal["file", "store"] = "store"
) -> Prompt:
    """The prompt with this content.

    :raises PromptRefused: for what is wrong with it, the first thing first.
    """
    check_id(name, "name")
    _known_keys(definition, "", FIELDS)
    for key, kind in FIELDS.items():
        _typed(definition.get(key), kind, key)
    system, user = (_template(definition.get(key), key) for key in ("system", "user"))
    variables = _variables(definition.get("variables", {}))
    examples = _examples(definition.get("examples", []))
    if not (system or user or examples):
        raise PromptRefused("system", "the prompt says nothing: give it a system or user text")
    _check_names(variables, system=system, user=user)
    return Prompt(
        name=name,
        version=version,
        hash=digest(definition),
        definition=definition,
        system=system,
        user=user,
        variables=variables,
        examples=examples,
        model=definition.get("model"),
        output=_output(definition.get("output")),
        fenced=_fenced(definition.get("fenced", [])),
        source=source,
    )


def digest(definition: Definition) -> str:
    """SHA-256 of the content, in hexadecimal; the order of keys changes nothing.

    :raises PromptRefused: for a value that JSON does not have, such as a date.
    """
    try:
        text = json.dumps(
            definition,
            sort_keys=True,
            ensure_ascii=False,
            separators=(",", ":"),
            allow_nan=False,
        )
    except (TypeError, ValueError) as error:
        raise PromptRefused("", f"holds a value that JSON does not have: {error}") from error
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def check_id(name: str, where: str) -> None:
    """:raises PromptRefused: for what can be no name or label."""
    if not ID.fullmatch(name):
        raise PromptRefused(
            where, "must begin with a letter or digit and hold only those, '.', '_' and '-', at "
            "most 64 of them"
        )  # fmt: skip


# ------------------------------------------------------------------ the parts

FIELDS: Mapping[str, type] = {
    "description": str,
    "system": str,
    "user": str,
    "model": str,
    "variables": dict,
    "examples": list,
    "output": dict,
    "fenced": list,
}
"""The content of a prompt."""
_VARIABLE: Mapping[str, type] = {"type": str, "default": object, "enum": list, "description": str}
_EXAMPLE: Mapping[str, type] = {"user": str, "assistant": str}
_OUTPUT: Mapping[str, type] = {"name": str, "schema": dict, "strict": bool, "description": str}
_WORDS = {str: "a text", dict: "a table", list: "a list", bool: "true or false"}


def _known_keys(given: Mapping[str, Any], where: str, known: Mapping[str, type]) -> None:
    for key in given:
        if key not in known:
            near = get_close_matches(str(key), known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise PromptRefused(
                _path(where, key), f"is no known key{hint} (known: {', '.join(known)})"
            )


def _typed(value: Any, kind: type, where: str) -> None:
    if value is not None and not isinstance(value, kind):
        raise PromptRefused(where, f"must be {_WORDS[kind]}")


def _path(where: str, key: Any) -> str:
    return f"{where}.{key}" if where else str(key)


def _template(source: str | None, where: str) -> Template | None:
    if source is None:
        return None
    if len(source) > LONGEST:
        raise PromptRefused(where, f"has more than {LONGEST} characters")
    from gateway.policy.prompts.template import Template  # noqa: PLC0415  brings Jinja

    try:
        return Template(source)
    except TemplateRefused as refused:
        raise PromptRefused(where, str(refused)) from refused


def _check_names(variables: Mapping[str, Variable], **templates: Template | None) -> None:
    """Every name that a template needs is defined."""
    for where, template in templates.items():
        missing = sorted((template.variables if template else frozenset()) - set(variables))
        if missing:
            raise PromptRefused(where, f"uses {missing[0]!r}, which is not defined under variables")


def _variables(given: Mapping[str, Any]) -> dict[str, Variable]:
    variables: dict[str, Variable] = {}
    for name, value in given.items():
        where = f"variables.{name}"
        if not NAME.fullmatch(name):
            raise PromptRefused(where, "must be a letter, then letters, digits and _, at most 64")
        row = {"type": value} if isinstance(value, str) else value
        if not isinstance(row, Mapping):
            raise PromptRefused(where, "must be a type, or a table with a type")
        variables[name] = _variable(row, where)
    return variables


def _variable(row: Mapping[str, Any], where: str) -> Variable:
    _known_keys(row, where, _VARIABLE)
    kind = row.get("type", "string")
    if kind not in TYPES:
        raise PromptRefused(f"{where}.type", f"must be one of {', '.join(TYPES)}")
    for key in ("enum", "description"):
        _typed(row.get(key), _VARIABLE[key], f"{where}.{key}")
    choices = row.get("enum")
    if choices == []:
        raise PromptRefused(f"{where}.enum", "must hold at least one value, or nothing ever fits")
    variable = Variable(kind, UNSET, None if choices is None else tuple(choices))
    for value in choices or ():
        if not Variable(kind).fits(value):
            raise PromptRefused(f"{where}.enum", f"must hold values of the type {kind}")
    if "default" in row and not variable.fits(row["default"]):
        raise PromptRefused(f"{where}.default", f"is not a {kind} that the variable may have")
    return Variable(kind, row.get("default", UNSET), variable.choices, row.get("description"))


def _examples(given: list[Any]) -> tuple[Example, ...]:
    if len(given) > EXAMPLES:
        raise PromptRefused("examples", f"has more than {EXAMPLES} entries")
    return tuple(_example(row, f"examples[{n}]") for n, row in enumerate(given))


def _example(row: Any, where: str) -> Example:
    if not isinstance(row, Mapping):
        raise PromptRefused(where, "must be a table with user and assistant")
    _known_keys(row, where, _EXAMPLE)
    for key in _EXAMPLE:
        if not isinstance(row.get(key), str) or not row[key]:
            raise PromptRefused(f"{where}.{key}", "must be a text that is not blank")
    return Example(row["user"], row["assistant"])


def _output(given: Mapping[str, Any] | None) -> JsonSchema | None:
    if given is None:
        return None
    _known_keys(given, "output", _OUTPUT)
    for key, kind in _OUTPUT.items():
        _typed(given.get(key), kind, f"output.{key}")
    if "schema" not in given:
        raise PromptRefused("output.schema", "is missing: a JSON Schema")
    return JsonSchema(
        given.get("name", "output"), given["schema"], given.get("strict"), given.get("description")
    )


def _fenced(given: list[Any]) -> frozenset[str]:
    for n, what in enumerate(given):
        if what not in FENCED:
            raise PromptRefused(f"fenced[{n}]", f"must be one of {', '.join(FENCED)}")
    return frozenset(given)
