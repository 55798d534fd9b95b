"""A character that a database can't keep, U+0000 in PostgreSQL, is no outage of the books: what
holds one is not found, or kept with another in its place."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.store.postgres.telling import told
from tests.harness import ADMIN, KEY, Harness, gateway

NUL = "a\0b"


@pytest.fixture
async def g(tmp_path: Path, url: str) -> AsyncIterator[Harness]:
    (tmp_path / "pepper").write_text("a pepper that is long enough for all of this")
    pepper = f'[server]\npepper = "file:{tmp_path / "pepper"}"\n'
    async with gateway(tmp_path, pepper, store=url) as running:
        yield running


@pytest.mark.parametrize(
    "path",
    [
        "/runs/%00",
        "/runs/%00/events",
        "/v1/responses/%00",
        "/v1/conversations/%00",
        "/plans/%00",
        "/agents/%00",
        "/admin/requests/%00",
    ],
)
async def test_an_id_that_nobody_has_is_not_found(
    g: Harness, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    answer = await g.get(path, key=ADMIN if "admin" in path else KEY)
    assert answer.status == 404, answer.body
    assert [r for r in caplog.records if r.levelno >= logging.WARNING] == []


async def test_a_call_is_answered_and_in_the_books(
    g: Harness, caplog: pytest.LogCaptureFixture
) -> None:
    said = {"model": "m-chat", "messages": [{"role": "user", "content": NUL}]}
    answer = await g.post("/v1/chat/completions", {**said, "user": NUL})
    assert answer.status == 200, answer.body
    row = await g.explain(answer)
    assert (row["status"], len(row["attempts"])) == ("completed", 1)
    for body in ({"previous_response_id": NUL}, {"conversation": NUL}):
        answer = await g.post("/v1/responses", {"model": "m-chat", "input": "hi", **body})
        assert answer.status in (400, 404), answer.body
    headers = {"authorization": f"Bearer {ADMIN}"}
    async with g.http.delete(g.url + "/admin/data?end_user=a%00b", headers=headers) as reply:
        assert (reply.status, (await reply.json())["deleted"]) == (200, 1)
    assert [r for r in caplog.records if r.levelno >= logging.WARNING] == []


def test_what_can_be_kept_is_kept() -> None:
    kept = [1, None, b"\0", 1.5, "é🙂", ["x", ("y",)]]
    assert told(kept) == [1, None, b"\0", 1.5, "é🙂", ["x", ["y"]]]
    assert told(["\0", "\ud800"]) == ["\ufffd", "?"]
