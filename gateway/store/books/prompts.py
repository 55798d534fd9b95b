"""Prompts made at run time; every write is a script of :mod:`gateway.store.books.responses`.

Always written in full: a version that someone was told of is still there after a power cut.
"""

from __future__ import annotations

from gateway.store import prompts as kept
from gateway.store import statements as s
from gateway.store.books import Apply, Database
from gateway.store.books.responses import Script
from gateway.store.prompts import PromptLabel, PromptRow
from gateway.store.sql import columns, insert

VERSION = "prompts_version"
"""The counter that grows with every change."""

_ADD = f"{insert('prompts', kept.PROMPT)} ON CONFLICT (name, version) DO NOTHING"
_ALL = f"SELECT {columns(kept.PROMPT)} FROM prompts ORDER BY name, version"  # noqa: S608
_LABELS = f"SELECT {columns(kept.LABEL)} FROM prompt_labels ORDER BY name, label"  # noqa: S608
_SET = """INSERT INTO prompt_labels (name, label, version)
    SELECT name, CAST(? AS TEXT), version FROM prompts WHERE name = ? AND version = ?
    ON CONFLICT (name, label) DO UPDATE SET version = excluded.version"""
_DROP = "DELETE FROM prompt_labels WHERE name = ? AND label = ?"
_CHANGED = (s.COUNT, [(VERSION,)])


class PromptsBook:
    """See :class:`gateway.store.prompts.PromptBook`."""

    _db: Database

    run_script: Apply
    """Takes a :data:`Script`."""

    async def add_prompt(self, row: PromptRow) -> bool:
        return await self._change(((_ADD, [kept.prompt_values(row)]), _CHANGED))

    async def prompts(self) -> list[PromptRow]:
        return [kept.prompt_row(row) for row in await self._db.read(_ALL)]

    async def prompt_labels(self) -> list[PromptLabel]:
        return [PromptLabel(**row) for row in await self._db.read(_LABELS)]

    async def set_prompt_label(self, label: PromptLabel) -> bool:
        values = (label.label, label.name, label.version)
        return await self._change(((_SET, [values]), _CHANGED))

    async def drop_prompt_label(self, name: str, label: str) -> bool:
        return await self._change(((_DROP, [(name, label)]), _CHANGED))

    async def prompts_version(self) -> int:
        (row,) = await self._db.read(s.COUNTER, (VERSION,))
        return int(row["value"])

    async def _change(self, script: Script) -> bool:
        met: bool = await self._db.write(self.run_script, script, "full")
        return met
