"""Runs in PostgreSQL."""

from __future__ import annotations

from gateway.store.books.responses import Script
from gateway.store.books.runs import RunsBook
from gateway.store.postgres.ear import Ear
from gateway.store.runs import Heard

CHANNEL = "gateway_runs"
FREE = "!"
"""Ends the notice of a run that somebody may take up now, or whose parent may be."""

_TELL = f"""SELECT pg_notify('{CHANNEL}', CAST(? AS TEXT) || ':' || id || CASE
    WHEN status IN ('queued', 'running', 'cancelling') AND lease_until IS NULL THEN '{FREE}'
    WHEN ended_at IS NOT NULL AND parent IS NOT NULL THEN '{FREE}' ELSE '' END)
    FROM runs WHERE id = ?"""  # noqa: S608


class PostgresRuns(RunsBook):
    """:class:`RunsBook` in PostgreSQL."""

    _ear: Ear
    _name: str
    """Stands for this process in its notices, which it need not hear itself."""
    _unheard = 0

    async def runs_version(self) -> int:
        if not self._ear.listening:
            self._unheard += 1
        return self._unheard

    async def hear_runs(self, heard: Heard) -> None:
        def notice(text: str) -> None:
            name, _, run_id = text.partition(":")
            if name != self._name:
                heard(run_id.removesuffix(FREE), run_id.endswith(FREE))

        await self._ear.listen(notice)

    def _tell(self, run_id: str) -> Script:
        return ((_TELL, [(self._name, run_id)]),)
