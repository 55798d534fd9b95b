"""Every released schema becomes today's, with its rows; a newer one is refused.

``schemas/`` holds a dump of each schema before today's: a call that ended, one that was open and a
key, and something of what each schema brought. ``sqlite3 FILE .dump`` and ``pg_dump --inserts
--no-owner`` of a database of that schema. Whoever changes the schema adds the dumps of the one
before.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest

from adapters.canonical.faults import Fault
from gateway.settings.snapshot import Limits
from gateway.store import migrations as steps
from gateway.store.base import StoreError, UsageQuery
from gateway.store.migrations import Migration, migrations, pending
from gateway.store.sqlite import database
from tests.store.booking import Books
from tests.store.postgres_server import Server
from tests.store.test_idempotency import ANSWER, CLAIM

DUMPS = sorted((Path(__file__).parent / "schemas").glob("*.sql"))
COLUMNS = {
    "sqlite": """SELECT m.name AS tab, c.name AS col, c.type AS type, c."notnull" AS needed
        FROM sqlite_master AS m JOIN pragma_table_info(m.name) AS c
        WHERE m.type = 'table' ORDER BY tab, col""",
    "postgres": """SELECT table_name AS tab, column_name AS col, data_type AS type,
        is_nullable AS needed FROM information_schema.columns WHERE table_schema = 'public'
        ORDER BY tab, col""",
}
INDEXES = {
    "sqlite": "SELECT name FROM sqlite_master WHERE type = 'index' ORDER BY name",
    "postgres": "SELECT indexname AS name FROM pg_indexes WHERE schemaname = 'public' ORDER BY 1",
}

CHECKED = "SELECT name, sql FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY name"


def load_sqlite(dump: Path, url: str) -> None:
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as conn:
        conn.executescript(dump.read_text())


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_there_are_dumps_of_every_older_schema(kind: Literal["sqlite", "postgres"]) -> None:
    older = {f"{kind}-{step.number}.sql" for step in migrations(kind)[:-1]}
    assert {dump.name for dump in DUMPS if dump.name.startswith(kind)} == older


@pytest.mark.parametrize("dump", DUMPS, ids=lambda dump: dump.stem)
async def test_an_older_database_becomes_todays(dump: Path, request: pytest.FixtureRequest) -> None:
    kind = dump.stem.partition("-")[0]
    url = request.getfixturevalue(f"{kind}_url")
    if kind == "sqlite":
        load_sqlite(dump, url)
        fresh_url = url.replace("gateway.db", "fresh.db")
    else:
        server: Server = request.getfixturevalue("postgres")
        server.load(url, dump)
        fresh_url = server.database()
    async with Books(url) as old, Books(fresh_url) as fresh:
        assert await old.sql(COLUMNS[kind]) == await fresh.sql(COLUMNS[kind])
        assert await old.sql(INDEXES[kind]) == await fresh.sql(INDEXES[kind])
        if kind == "sqlite":
            assert await old.sql(CHECKED) == await fresh.sql(CHECKED)
        await old.store.expire(old.clock.at + 1000)
        (line,) = await old.store.usage(UsageQuery(by=()))
        assert (line["requests"], line["cost_nano"]) == (2, 1100), "the open one as reserved"
        assert (await old.account())["reserved_nano"] == 0
        (key,) = await old.store.keys()
        assert (key.name, key.limits) == ("old", Limits(rpm=5))
        await old.settle(await old.open(id="req_after"))
        await what_later_schemas_brought_is_there(old, int(dump.stem.partition("-")[2]))


def test_calls_and_attempts_read_as_before_where_they_are_one_row() -> None:
    """Step 9 in SQLite: calls without an attempt, with one and with several, open and ended."""
    before, (step, *_) = migrations("sqlite")[:8], migrations("sqlite")[8:]
    tables = {"requests": "seq", "attempts": "request_seq, number"}
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as conn:
        for earlier in before:
            conn.executescript(earlier.sql)
        for seq, attempts in ((3, 1), (4, 0), (7, 3), (8, 1), (9, 2)):
            made_up(conn, "requests", seq, seq=seq, status="open" if seq > 7 else "failed")
            for number in range(1, attempts + 1):
                status = "open" if seq > 7 and number == attempts else "completed"
                row = {"request_seq": seq, "number": number, "status": status}
                made_up(conn, "attempts", 10 * seq + number, usage_source="unknown", **row)
        read = [f"SELECT * FROM {table} ORDER BY {order}" for table, order in tables.items()]
        old = [conn.execute(statement) for statement in read]
        columns = [[column[0] for column in cursor.description] for cursor in old]
        known = [cursor.fetchall() for cursor in old]
        conn.executescript(step.sql)
        new = [conn.execute(statement) for statement in read]
        assert [[column[0] for column in cursor.description] for cursor in new] == columns
        assert [cursor.fetchall() for cursor in new] == known
        assert [len(rows) for rows in known] == [5, 7]


def made_up(conn: sqlite3.Connection, table: str, start: int, **given: Any) -> None:
    """Add a row in which no two columns are alike, but for what is ``given``."""
    columns = conn.execute(f"SELECT name, type FROM pragma_table_info('{table}')").fetchall()
    kinds: dict[str, Callable[[int], Any]] = {"TEXT": "t{}".format, "REAL": lambda n: n + 0.5}
    values = {
        name: given.get(name, kinds.get(kind, int)(1000 * start + place))
        for place, (name, kind) in enumerate(columns)
    }
    marks = ", ".join("?" * len(values))
    conn.execute(f"INSERT INTO {table} ({', '.join(values)}) VALUES ({marks})", [*values.values()])


RULES = {
    "sqlite": [
        "calls.status",
        "calls.first_status",
        "calls.first_usage_source",
        "later_attempts.status",
        "later_attempts.usage_source",
    ],
    "postgres": ["requests.status", "attempts.status", "attempts.usage_source"],
}


@pytest.mark.parametrize(
    ("kind", "column"), [(kind, column) for kind, columns in RULES.items() for column in columns]
)
async def test_a_rule_of_a_column_holds(
    kind: str, column: str, request: pytest.FixtureRequest
) -> None:
    table, _, name = column.partition(".")
    async with Books(request.getfixturevalue(f"{kind}_url")) as books:
        first = await books.open()
        await books.settle(first, last=False)
        await books.settle(await books.again(first))
        known = await books.sql(f"SELECT {name} AS word FROM {table}")
        assert {row["word"] for row in known} in ({"completed"}, {"provider"})
        for word, fits in (("gone", False), (known[0]["word"], True)):
            script = ((f"UPDATE {table} SET {name} = '{word}'", [()]),)
            with nullcontext() if fits else pytest.raises(Fault):
                await books.store._db.write(books.store.run_script, script, "normal")
        assert await books.sql(f"SELECT {name} AS word FROM {table}") == known


async def what_later_schemas_brought_is_there(old: Books, schema: int) -> None:
    chain = await old.store.chain("p", "resp_old")
    assert (chain is not None) == (schema >= 2)
    if chain is not None:
        (said,) = chain.last.output
        assert (said.id, said.data["content"]) == ("msg_resp_old-out", "resp_old-out")
        (item,) = await old.store.conversation_items("p", "conv_old")
        assert item.data["content"] == "old"
    answer = await old.store.claim_key(CLAIM, 0)
    assert (answer is not None and answer.body == ANSWER.body) == (schema >= 3)
    run = await old.store.run("run_old", "p1")
    assert (run is not None) == (schema >= 4)
    if run is not None:
        assert run.standing.last_seq == len(await old.store.run_events("run_old", 0, 10)) == 2
    prompts = [row.definition for row in await old.store.prompts()]
    assert prompts == ([{"system": "old"}] if schema >= 5 else [])
    seals = await old.store.seals([b"\x5e\xa1"])
    assert [seal.provider for seal in seals] == (["anthropic"] if schema >= 6 else [])


async def test_a_newer_database_is_refused_and_left_alone(books: Books) -> None:
    def newer(conn: sqlite3.Connection, entries: list[None]) -> list[None]:
        conn.execute("INSERT INTO migrations (number, name, checksum) VALUES (99, 'x', 'y')")
        return entries

    async def newer_too(conn: object, entries: list[None]) -> list[None]:
        await conn.execute("INSERT INTO migrations VALUES (99, 'x', 'y')")  # type: ignore[attr-defined]
        return entries

    apply: Callable[..., object] = newer if books.url.startswith("sqlite") else newer_too
    await books.store._db.write(apply, None, "full")
    await books.store.close()
    with pytest.raises(StoreError, match="has schema 99"):
        await Books(books.url).__aenter__()


async def test_both_databases_have_the_same_steps() -> None:
    for ours, theirs in zip(migrations("sqlite"), migrations("postgres"), strict=True):
        assert (ours.number, ours.name) == (theirs.number, theirs.name)


def test_a_released_step_never_changes() -> None:
    step = Migration(1, "ledger", "CREATE TABLE a (b);", "old checksum")
    edited = replace(step, checksum="new checksum")
    with pytest.raises(StoreError, match="released migrations never change"):
        pending((edited,), {1: "old checksum"}, "gateway.db")
    assert pending((step,), {1: "old checksum"}, "gateway.db") == ()
    assert pending((step,), {}, "gateway.db") == (step,)


async def test_a_step_that_fails_changes_nothing(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = Migration(1, "good", "CREATE TABLE one (a);", "1")
    bad = Migration(2, "bad", "CREATE TABLE two (a);\nCREATE TABLE two (a);", "2")
    monkeypatch.setattr(database, "migrations", lambda kind: (good, bad))
    with pytest.raises(StoreError, match="already exists"):
        await Books(sqlite_url).__aenter__()
    with closing(sqlite3.connect(sqlite_url.removeprefix("sqlite:///"))) as conn:
        tables = conn.execute("SELECT name FROM sqlite_master").fetchall()
        assert tables == [("migrations",)]


async def test_the_command_line_changes_no_schema_under_a_running_server(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Books(sqlite_url):
        known = migrations("sqlite")
        more = Migration(len(known) + 1, "more", "CREATE TABLE more (a);", "m")
        monkeypatch.setattr(database, "migrations", lambda kind: (*known, more))
        with pytest.raises(StoreError, match=r"Restart that gateway .* then try again"):
            await Books(sqlite_url, serving=False).__aenter__()
    monkeypatch.setattr(database, "migrations", steps.migrations)
    async with Books(sqlite_url, serving=False):
        pass
