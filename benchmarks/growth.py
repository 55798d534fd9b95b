"""What a million rows cost those who come after them: the same calls on an empty ledger and on a
full one, in turn, so that a busy machine is busy for both."""

from __future__ import annotations

import sqlite3
import statistics
import tempfile
from pathlib import Path

from benchmarks.bars import Figure
from benchmarks.cpu import Side, Tell, micros_of
from benchmarks.load import drive
from benchmarks.runs import run_request
from benchmarks.scenarios import Scenario, config
from benchmarks.servers import gateway, mock

ROWS = 1_000_000
BAR = 1.1
CALL = Scenario("call", "whole", "chat", "call", None, 0, 0)
RUN = Scenario("run", "burst-20", "chat", "call", None, 0, 0)
UNITS = (
    ("call", CALL.payload(CALL.alias), 800, 16),
    ("run of one turn", run_request(RUN.alias, stream=True), 120, 8),
)
"""What is measured: its name, its request, how many in a round, how many at a time."""


async def growth(rounds: int, tell: Tell) -> list[Figure]:
    """The table's lines; its ratios."""
    tell(
        f"| unit | µs, empty | µs, {ROWS:,} rows of each kind | ratio (range) | bar | |\n"
        "| --- | --: | --: | --: | --: | --- |"
    )
    with tempfile.TemporaryDirectory() as folder, mock() as upstream:
        settings = config(upstream, (CALL, RUN))
        full = settings.replace("FOLDER", f"{folder}/full")
        with gateway(full, folder) as side:  # makes the tables, and a row of each kind to copy
            for _, payload, _, _ in UNITS:
                await drive(side[1], payload, 1, 1)
        fill(Path(folder) / "full.db", ROWS)
        with (
            gateway(settings, folder) as fresh,
            gateway(full, folder) as grown,
        ):
            return [await _row(unit, fresh, grown, rounds, tell) for unit in UNITS]


async def _row(
    unit: tuple[str, bytes, int, int], fresh: Side, grown: Side, rounds: int, tell: Tell
) -> Figure:
    name, payload, number, at_once = unit
    pairs = []
    for side in (fresh, grown):
        await drive(side[1], payload, 2 * at_once, at_once)
    for _ in range(rounds):
        low = await micros_of(fresh, payload, number, at_once)
        pairs.append((low, await micros_of(grown, payload, number, at_once)))
    ratios = [high / low for low, high in pairs]
    figure = Figure(f"{name}, {ROWS:,} rows", statistics.median(ratios), BAR)
    low, high = (statistics.median(side) for side in zip(*pairs, strict=True))
    tell(
        f"| {name} | {low:.0f} | {high:.0f} | {figure.value:.2f} ({min(ratios):.2f} to "
        f"{max(ratios):.2f}) | {figure.cells} |"
    )
    return figure


def fill(path: Path, rows: int) -> None:
    """Copy the first call of a ledger, and its first run, until there are so many rows of each
    kind: calls, attempts and run events."""
    database = sqlite3.connect(path, isolation_level=None)
    database.execute("PRAGMA synchronous = OFF")
    database.execute("BEGIN")
    (request,) = database.execute("SELECT id FROM calls ORDER BY seq LIMIT 1").fetchone()
    (run,) = database.execute("SELECT id FROM runs LIMIT 1").fetchone()
    counted = database.execute("SELECT count(*) FROM run_events WHERE run_id = ?", (run,))
    runs = rows // counted.fetchone()[0]
    call = {
        "id": "'req_' || printf('%024x', i)",
        "first_id": "'att_' || printf('%024x', i)",
        "at": "at + i * 1e-6",
        "seq": "1000000 + i",
    }
    _copy(database, "calls", f"id = '{request}'", call, rows)
    _copy(database, "runs", f"id = '{run}'", {"id": "'run_' || printf('%024x', i)"}, runs)
    event = {"run_id": "'run_' || printf('%024x', i)"}
    _copy(database, "run_events", f"run_id = '{run}'", event, runs)
    database.execute("COMMIT")
    database.close()


def _copy(
    database: sqlite3.Connection, table: str, which: str, changes: dict[str, str], times: int
) -> None:
    """Copy rows of a table, with ``i`` counting the copies."""
    names = [column[1] for column in database.execute(f"PRAGMA table_info({table})")]
    values = ", ".join(changes.get(name, name) for name in names)
    database.execute(
        f"INSERT INTO {table} ({', '.join(names)}) "
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) "
        f"SELECT {values} FROM n, (SELECT * FROM {table} WHERE {which})",
        (times,),
    )
