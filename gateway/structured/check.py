"""An answer held against the caller's own schema.

The verdict is the validator's; the words are :mod:`.explain`'s. Compiled schemas are kept,
because callers send the same ones again and again. Must not know streams or providers.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from jsonschema_rs import Draft202012Validator, ReferencingError, ValidationError

from adapters.wire.json import dumps
from gateway.structured.bounds import SchemaRefused, admit
from gateway.structured.explain import OPTIONS, Explainer, fetch_nothing
from gateway.structured.words import Violation

MAX_KEPT = 256
MAX_KEPT_BYTES = 4 * 1024 * 1024
"""Compiled schemas that are kept, and their bytes as compact JSON in all."""

MAX_CHECKS = 10_000_000
"""Schema nodes times values of an answer: at 50 ns for the dearest (a pattern), half a second."""


_UNTOLD = (ValueError, ValidationError, ReferencingError)
"""Why a failure can't be explained: nested deeper than the validator speaks of, or a part that
refers to its surroundings in a way that only the whole can resolve. The verdict stands."""


class Checker:
    """One compiled schema."""

    __slots__ = ("_explainer", "_schema", "_validator", "size", "work")

    def __init__(self, schema: Any, size: int) -> None:
        """Compile.

        :raises SchemaRefused: for a schema that is not taken; the text says why.
        """
        self._schema, self.work = admit(schema, size)
        self.size = size
        try:
            self._validator = Draft202012Validator(
                self._schema,
                retriever=fetch_nothing,
                pattern_options=OPTIONS,
                validate_formats=True,
            )
        except (ValidationError, ReferencingError, ValueError) as error:
            raise SchemaRefused(_reason(error)) from error
        self._explainer: Explainer | None = None

    def affordable(self, text: str) -> bool:
        """Whether an answer of this size can be checked in bounded time."""
        values = 1 + text.count(",") + text.count("[") + text.count("{")
        return self.work * values <= MAX_CHECKS

    def affords(self, value: Any) -> bool:
        """The same of a value that has been parsed."""
        return self.work * _values(value) <= MAX_CHECKS

    def fits(self, value: Any) -> bool:
        """Whether ``value`` is valid; one that is nested too deep to be looked at is not."""
        try:
            return self._validator.is_valid(value)
        except ValueError:
            return False

    def violations(self, value: Any) -> list[Violation]:
        """What is wrong with a ``value`` that does not fit; never empty for one."""
        if self._explainer is None:
            self._explainer = Explainer(self._schema)
        try:
            found = self._explainer.violations(value)
        except _UNTOLD:
            found = []
        return found or [Violation("", "this answer", "one that fits the JSON Schema")]


def _values(value: Any) -> int:
    """How many values there are in ``value``, itself one."""
    count, waiting = 0, [value]
    while waiting:
        one = waiting.pop()
        count += 1
        if isinstance(one, Mapping):
            waiting += one.values()
        elif isinstance(one, list | tuple):
            waiting += one
    return count


def _reason(error: Exception) -> str:
    if not isinstance(error, ValidationError):
        return str(error).splitlines()[0][:200]
    where = "/".join(str(step) for step in error.instance_path)
    return f"it is no valid JSON Schema (draft 2020-12): /{where}: {error.message[:200]}"


class Schemas:
    """The compiled schemas, the least recently used forgotten first."""

    __slots__ = ("_bytes", "_kept")

    def __init__(self) -> None:
        self._kept: OrderedDict[bytes, Checker] = OrderedDict()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._kept)

    def checker(self, schema: Mapping[str, Any]) -> Checker:
        """The compiled form of ``schema``, which may change later without harm.

        :raises SchemaRefused: for a schema that is not taken.
        """
        key = dumps(schema)
        found = self._kept.get(key)
        if found is not None:
            self._kept.move_to_end(key)
            return found
        made = self._kept[key] = Checker(schema, len(key))
        self._bytes += len(key)
        while len(self._kept) > MAX_KEPT or self._bytes > MAX_KEPT_BYTES:
            old, _ = self._kept.popitem(last=False)
            self._bytes -= len(old)
        return made
