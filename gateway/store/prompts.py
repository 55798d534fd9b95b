"""Prompts made at run time: what the rest of the house may ask of the book.

A version never changes and is never deleted; a label names one version and can be moved. Must
not know what a definition means.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from adapters.canonical.record import record
from adapters.wire.json import dumps, loads

PROMPT = ["name", "version", "hash", "at", "definition"]
LABEL = ["name", "label", "version"]
"""Columns, in the order in which they are written."""


@record(frozen=True, slots=True)
class PromptRow:
    """One version; ``at`` is when it was made, in Unix seconds."""

    name: str
    version: int
    hash: str
    at: float
    definition: Mapping[str, Any]


class PromptLabel(NamedTuple):
    """``label`` of ``name`` means ``version``."""

    name: str
    label: str
    version: int


class PromptBook(Protocol):
    """The part of the store that keeps prompts."""

    async def add_prompt(self, row: PromptRow) -> bool:
        """Write a new version; false where it is there already, and then nothing is written."""
        ...

    async def prompts(self) -> list[PromptRow]:
        """All versions, by name and number."""
        ...

    async def prompt_labels(self) -> list[PromptLabel]:
        """All labels."""
        ...

    async def set_prompt_label(self, label: PromptLabel) -> bool:
        """Let the label mean a version; false where there is no such version."""
        ...

    async def drop_prompt_label(self, name: str, label: str) -> bool:
        """Delete a label; false where there is none."""
        ...

    async def prompts_version(self) -> int:
        """Grows with every change of the above, by whichever process."""
        ...


def prompt_values(row: PromptRow) -> tuple[Any, ...]:
    """The values of :data:`PROMPT`."""
    return (row.name, row.version, row.hash, row.at, dumps(row.definition).decode())


def prompt_row(row: Mapping[str, Any]) -> PromptRow:
    """From a row of :data:`PROMPT`."""
    return PromptRow(**{**row, "definition": loads(row["definition"])})
