"""What goes away: on request, by retention; and what a reload changes, and what it does not."""

from __future__ import annotations

import asyncio
import re
import sqlite3
import time
from pathlib import Path
from typing import Any

import pytest

from gateway import app
from gateway.services.reloading import READ_AT_START
from tests.harness import ADMIN, KEY, KEYS, PROVIDERS, Harness, alias, gateway

QUIET = '[observe]\nlog_level = "error"\n'


async def chat(g: Harness, user: str, text: str, key: str = KEY, **headers: str) -> Any:
    body = {"model": "m-openai", "messages": [{"role": "user", "content": text}], "user": user}
    answer = await g.post("/v1/chat/completions", body, key=key, headers=headers)
    assert answer.status == 200, answer.body
    return answer


async def respond(g: Harness, user: str, text: str, key: str = KEY) -> str:
    body = {"model": "m-openai", "input": text, "user": user, "store": True}
    answer = await g.post("/v1/responses", body, key=key)
    assert answer.status == 200, answer.body
    return str(answer.json()["id"])


async def delete(g: Harness, query: str) -> Any:
    headers = {"authorization": f"Bearer {ADMIN}"}
    async with g.http.delete(f"{g.url}/admin/data{query}", headers=headers) as reply:
        return reply.status, await reply.json()


async def test_an_end_user_is_forgotten(g: Harness, books: Any) -> None:
    """Calls, kept responses, kept answers; the sums stay."""
    for user in ("ann", "bob"):
        kept = await respond(g, user, f"secret of {user}")
        await chat(g, user, f"secret of {user}", **{"idempotency-key": f"key-{user}"})
        assert (await g.get(f"/v1/responses/{kept}", key=KEY)).status == 200
    before = (await g.get("/admin/usage?by=alias")).json()["usage"]
    status, answer = await delete(g, "?end_user=ann")
    assert status == 200
    assert answer["deleted"] >= 3
    users = [row["end_user"] for row in books.rows("SELECT end_user FROM requests")]
    assert users == ["bob", "bob"]
    assert len(books.rows("SELECT * FROM responses")) == 1
    assert len(books.rows("SELECT * FROM idempotency")) == 1
    assert (await g.get("/admin/usage?by=alias")).json()["usage"] == before
    again = await chat(g, "ann", "secret of ann", **{"idempotency-key": "key-ann"})
    assert "idempotent-replayed" not in again.headers


async def test_a_project_is_forgotten(g: Harness, books: Any, make_key: Any) -> None:
    other = await make_key(project="other")
    for key in (KEY, other):
        await respond(g, "ann", "hi", key)
        await chat(g, "ann", "hi", key, **{"idempotency-key": "k"})
    status, answer = await delete(g, "?project=other")
    assert status == 200
    assert answer["deleted"] >= 3
    for table in ("requests", "responses", "idempotency", "rollups"):
        projects = {row["project"] for row in books.rows(f"SELECT project FROM {table}")}
        assert projects == {"default"}, table
    assert (await chat(g, "ann", "hi", other)).status == 200, "its key still opens"


async def test_an_end_user_within_a_project(g: Harness, books: Any, make_key: Any) -> None:
    other = await make_key(project="other")
    for key in (KEY, other):
        await chat(g, "ann", "hi", key)
        await chat(g, "bob", "hi", key)
    await delete(g, "?project=other&end_user=ann")
    rows = books.rows("SELECT project, end_user FROM requests ORDER BY seq")
    left = [(row["project"], row["end_user"]) for row in rows]
    assert left == [("default", "ann"), ("default", "bob"), ("other", "bob")]


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("", "end_user"),
        ("?end_user=", "end_user"),
        ("?project=", "project"),
        ("?everything=1", "everything"),
        ("?project=default&end_user=", "end_user"),
        ("?project=default&enduser=ann", "enduser"),
        ("?project=default&end_user=ann&end_user=bob", "end_user"),
    ],
)
async def test_nobody_named_is_nobody_deleted(
    g: Harness, books: Any, query: str, named: str
) -> None:
    """Nor is a whole project where a name is left empty, or its word is misspelt."""
    await chat(g, "ann", "hi")
    status, answer = await delete(g, query)
    assert (status, answer["error"]["param"]) == (400, named)
    assert named in answer["error"]["message"]
    assert books.rows("SELECT * FROM requests")


async def test_the_sweep_runs_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, eventually: Any
) -> None:
    """A minute after the start, then every hour; here, soon. Days are the settings' own."""
    monkeypatch.setattr(app, "SWEEP_FIRST", 0.05)
    monkeypatch.setattr(app, "SWEEP_EVERY", 0.2)
    days = "[store.retention]\nrequests = 10\nrollups = 20\n"
    async with gateway(tmp_path, QUIET, days) as g:
        for user in ("old", "new"):
            await chat(g, user, "hi", **{"idempotency-key": user})
        connection = sqlite3.connect(tmp_path / "gateway.db", timeout=5)
        past = time.time() - 11 * 86_400
        connection.execute("UPDATE calls SET at = ? WHERE end_user = 'old'", (past,))
        connection.execute("UPDATE idempotency SET at = ?", (past,))
        connection.commit()

        def users() -> list[str]:
            return [row[0] for row in connection.execute("SELECT end_user FROM requests")]

        await eventually(lambda: users() == ["new"])
        kept = "SELECT count(*) FROM idempotency"
        await eventually(lambda: connection.execute(kept).fetchone() == (0,))
        assert connection.execute("SELECT sum(requests) FROM rollups").fetchone() == (2,)
        connection.close()


def rewrite(tmp_path: Path, old: str, new: str) -> None:
    config = tmp_path / "gateway.toml"
    text = config.read_text()
    assert old in text
    config.write_text(text.replace(old, new))


async def reload(g: Harness) -> Any:
    return await g.post("/admin/reload", {}, key=ADMIN)


async def test_a_reload_leaves_what_is_in_flight_alone(tmp_path: Path) -> None:
    """A stream keeps its configuration, provider and socket; the next call has the new one."""
    slow = alias("moving", ("openai", "paced-20-50"))
    async with gateway(tmp_path, slow, QUIET) as g:
        body = {"model": "moving", "messages": [{"role": "user", "content": "a"}], "stream": True}
        headers = {"authorization": f"Bearer {KEY}"}
        async with g.http.post(
            g.url + "/v1/chat/completions", json=body, headers=headers
        ) as stream:
            await stream.content.readany()
            first = g.state.snapshot.hash
            rewrite(tmp_path, "paced-20-50", "echo+after")
            rewrite(tmp_path, "[providers.openai]", "[providers.openai]\npool = 3")
            answer = await reload(g)
            assert answer.status == 200
            assert answer.json()["config_hash"] == g.state.snapshot.hash != first
            assert (await g.chat("moving")).json()["model"] == "echo+after"
            assert (await stream.read()).endswith(b"data: [DONE]\n\n")
        assert g.simulator.log.of("paced-20-50")[0].finished is not None
        hashes = {row["config_hash"] for row in await rows(tmp_path)}
        assert hashes == {first, g.state.snapshot.hash}


async def rows(tmp_path: Path) -> list[dict[str, Any]]:
    connection = sqlite3.connect(tmp_path / "gateway.db", timeout=5)
    connection.row_factory = sqlite3.Row
    try:
        return [dict(row) for row in connection.execute("SELECT * FROM requests")]
    finally:
        connection.close()


async def test_what_a_reload_can_not_change_is_named(tmp_path: Path) -> None:
    """Nobody shall believe in a change that has not happened."""
    async with gateway(tmp_path, QUIET) as g:
        assert (await reload(g)).json()["at_next_start"] == []
        rewrite(tmp_path, QUIET, '[observe]\nlog_level = "debug"\nmetrics_token = "${CALLER}"\n')
        rewrite(
            tmp_path, "[store]", "[server]\nport = 1234\nmax_n = 3\n[store]\nretention.runs = 5"
        )
        waiting = ["server.port", "observe.log_level"]
        assert (await reload(g)).json()["at_next_start"] == waiting
        assert (await reload(g)).json()["at_next_start"] == waiting, "still, and not only once"
        assert (await g.chat("m-openai", n=4)).status == 400, "what may change has changed"


def test_the_page_lists_what_is_read_at_the_start() -> None:
    page = (Path(__file__).parents[2] / "docs" / "configuration.md").read_text()
    (told,) = re.findall(r"read at the start alone: (.*?)\. If", page, re.DOTALL)
    names = [f"{table}.{name}" for table, names in READ_AT_START.items() for name in names]
    assert re.findall(r"`([\w.]+)`", told) == names


async def test_a_reload_that_does_not_pass_is_refused_with_its_errors(tmp_path: Path) -> None:
    async with gateway(tmp_path, alias("one", ("openai", "echo")), QUIET) as g:
        before = g.state.snapshot
        text = (tmp_path / "gateway.toml").read_text()
        for wrong, told in (
            (text.replace("targets", "tragets"), "targets"),
            (text.replace('provider = "openai"', 'provider = "opnai"'), "openai"),
            (text + "\nthis is no TOML", "TOML"),
        ):
            (tmp_path / "gateway.toml").write_text(wrong)
            answer = await reload(g)
            assert answer.status == 409, told
            error = answer.json()["error"]
            assert error["code"] == "config_invalid"
            assert told.lower() in error["message"].lower()
            assert g.state.snapshot is before
            assert (await g.chat("one")).status == 200
        (tmp_path / "gateway.toml").write_text(text)
        assert (await reload(g)).status == 200


async def test_a_reload_changes_keys_and_forgets_old_deployments(tmp_path: Path) -> None:
    async with gateway(tmp_path, alias("one", ("openai", "echo+old")), QUIET) as g:
        assert (await g.chat("one")).status == 200
        rewrite(tmp_path, "echo+old", "echo+new")
        rewrite(tmp_path, 'key = "${CALLER}"', 'key = "${KEY_CHAT}"')
        assert (await reload(g)).status == 200
        assert (await g.chat("one")).status == 401
        listed = (await g.get("/admin/deployments")).json()["deployments"]
        names = {row["deployment"] for row in listed}
        assert "openai/echo+new" in names
        assert "openai/echo+old" not in names


async def test_what_a_reload_replaced_is_closed_when_nobody_needs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, eventually: Any
) -> None:
    """Its sockets do not pile up, reload after reload."""
    monkeypatch.setattr(app, "LEASES_EVERY", 0.05)
    one = alias("one", ("openai", "echo"))
    books = f'[store]\nurl = "sqlite:///{tmp_path / "gateway.db"}"\n'
    async with gateway(tmp_path, config=books + QUIET + PROVIDERS + one + KEYS) as g:
        assert (await g.chat("one")).status == 200
        held = g.state.runtime  # as a call under way does
        assert g.simulator.connections == 1
        rewrite(tmp_path, "[providers.openai]", "[providers.openai]\npool = 3")
        assert (await reload(g)).status == 200
        assert g.state.runtime.adapters["openai"] is not held.adapters["openai"]
        await asyncio.sleep(0.2)
        assert g.simulator.connections == 1, "a call that began before could still need it"
        del held
        await eventually(lambda: g.simulator.connections == 0)
        assert (await g.chat("one")).status == 200
