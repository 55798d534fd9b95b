"""A run's events over HTTP: from any place, once each, to whoever may read them."""

from __future__ import annotations

import asyncio
import json
import socket
from pathlib import Path
from typing import Any

import pytest

from adapters.simulator import Call, Say
from gateway.runs.events import draft
from tests.harness import ADMIN, KEY, Answer, Harness, alias, gateway
from tests.runs.following import answered, begin, read, types, watch
from tests.runs.tools import slow, spy, use

SCRIPTED = alias("scripted", ("openai", "script"), retries=0)
BODY = {"agent": {"name": "helper", "model": "scripted", "tools": ["t"]}, "input": "go"}


async def ended(g: Harness) -> tuple[str, list[dict[str, Any]]]:
    use(g, spy("t"))
    g.simulator.script("script", [Call("t", "{}"), Say("done")])
    run_id = await begin(g, BODY)
    return run_id, await watch(g, run_id)


async def ask(g: Harness, path: str, **headers: str) -> tuple[int, Any]:
    own = {"authorization": f"Bearer {KEY}", **headers}
    async with g.http.get(g.url + path, headers=own) as reply:
        return reply.status, await reply.read()


async def test_every_place_gives_the_rest_and_no_more(tmp_path: Path) -> None:
    async with gateway(tmp_path, SCRIPTED) as g:
        run_id, events = await ended(g)
        for place in range(len(events)):
            assert await watch(g, run_id, after=place) == events[place:]
        last = str(len(events))
        assert (await ask(g, f"/runs/{run_id}/events", **{"last-event-id": last}))[0] == 204
        assert (await ask(g, f"/runs/{run_id}/events?starting_after={last}"))[0] == 204


async def test_the_larger_place_wins(tmp_path: Path) -> None:
    async with gateway(tmp_path, SCRIPTED) as g:
        run_id, events = await ended(g)
        for header, query in (("3", "5"), ("5", "3")):
            path = f"/runs/{run_id}/events?starting_after={query}"
            _, body = await ask(g, path, **{"last-event-id": header, "accept": "application/json"})
            assert [e["seq"] for e in json.loads(body)["data"]] == list(range(6, len(events) + 1))


@pytest.mark.parametrize("place", ["abc", "-1", "1.5", "999", "9" * 40, "٣", "1 2"])
async def test_a_place_that_is_none_is_refused(tmp_path: Path, place: str) -> None:
    async with gateway(tmp_path, SCRIPTED) as g:
        run_id, _ = await ended(g)
        status, body = await ask(g, f"/runs/{run_id}/events?starting_after={place}")
        assert status == 400, body
        if place.isascii():
            status, _ = await ask(g, f"/runs/{run_id}/events", **{"last-event-id": place})
            assert status == 400


async def test_an_empty_place_is_the_beginning(tmp_path: Path) -> None:
    async with gateway(tmp_path, SCRIPTED) as g:
        run_id, events = await ended(g)
        headers = {"last-event-id": "", "accept": "application/json"}
        _, body = await ask(g, f"/runs/{run_id}/events", **headers)
        page = json.loads(body)
        assert page["data"] == events
        assert page["has_more"] is False


async def test_a_page_of_a_run_under_way_has_more(tmp_path: Path) -> None:
    async with gateway(tmp_path, SCRIPTED) as g:
        use(g, spy("t", slow(0.5)))
        g.simulator.script("script", [Call("t", "{}"), Say("done")])
        run_id = await begin(g, BODY)
        await watch(g, run_id, until="tool.intent")
        _, body = await ask(g, f"/runs/{run_id}/events", accept="application/json")
        page = json.loads(body)
        assert page["has_more"] is True
        assert page["data"][-1]["type"] == "tool.intent"


async def test_readers_that_join_while_it_is_written_see_each_event_once(tmp_path: Path) -> None:
    long = alias("scripted", ("openai", "paced-200-5"), retries=0)
    async with gateway(tmp_path, long) as g:
        g.state.runs.bench.tools()
        run_id = await begin(g, {"agent": {"model": "scripted"}, "input": "go"})
        assert len(await watch(g, run_id, until="run.started")) == 2
        readers = []
        for n in range(10):
            readers.append(asyncio.create_task(watch(g, run_id, after=min(n, 2))))
            await asyncio.sleep(0.05)
        found = await asyncio.gather(*readers)
        whole = found[0]
        assert [event["seq"] for event in whole] == list(range(1, len(whole) + 1))
        assert all(events == whole[min(n, 2) :] for n, events in enumerate(found))
        text = "".join(e["data"]["text"] for e in whole if e["type"] == "message.delta")
        (completed,) = [e["data"]["text"] for e in whole if e["type"] == "message.completed"]
        assert text == completed
        assert types(whole).count("message.delta") < 100, "deltas are put together"


async def test_two_runs_do_not_mix(tmp_path: Path) -> None:
    long = alias("scripted", ("openai", "paced-50-5"), retries=0)
    async with gateway(tmp_path, long) as g:
        body = {"agent": {"model": "scripted"}, "input": "go"}
        ids = [await begin(g, body) for _ in range(5)]
        for run_id, events in zip(
            ids, await asyncio.gather(*(watch(g, i) for i in ids)), strict=True
        ):
            assert {event["run_id"] for event in events} == {run_id}


async def test_a_silent_stream_pings(tmp_path: Path) -> None:
    config = "[server]\nping_seconds = 0.1\n"
    async with gateway(tmp_path, SCRIPTED, config) as g:
        use(g, spy("t", slow(1)))
        g.simulator.script("script", [Call("t", "{}"), Say("done")])
        run_id = await begin(g, BODY)
        _, body = await ask(g, f"/runs/{run_id}/events")
        assert body.startswith(b": ping\n\nretry: 2000\nid: 1\n")
        assert body.count(b": ping\n\n") >= 3


@pytest.mark.parametrize("view", ["", "?format=openai", "?format=workflow-events"])
async def test_a_reader_of_a_run_that_is_deleted_meanwhile_comes_to_an_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, view: str
) -> None:
    """Whoever comes back hears that it is gone; nobody waits for what can't come any more."""
    async with gateway(tmp_path, SCRIPTED, "[server]\nping_seconds = 0.2\n") as g:
        run_id, _ = await ended(g)
        store, path = g.state.store, f"/runs/{run_id}/events{view}"
        read_on = store.run_events

        async def run_events(*asked: Any, **more: Any) -> Any:
            await store.delete_run(run_id)
            return await read_on(*asked, **more)

        monkeypatch.setattr(store, "run_events", run_events)
        async with asyncio.timeout(5):
            status, body = await ask(g, path)
        assert (status, body.count(b"data:")) == (200, 0)
        assert (await ask(g, path))[0] == 404


async def test_a_reader_that_leaves_stops_nothing_unless_it_said_so(tmp_path: Path) -> None:
    async with gateway(tmp_path, SCRIPTED) as g:
        for wish, status in (("continue", "completed"), ("cancel", "cancelled")):
            use(g, spy("t", slow(0.4)))
            g.simulator.script("script", [Call("t", "{}"), Say("done")])
            body = {**BODY, "stream": True, "on_disconnect": wish}
            headers = {"authorization": f"Bearer {KEY}"}
            async with g.http.post(f"{g.url}/runs", json=body, headers=headers) as reply:
                run_id = reply.headers["x-gateway-run"]
                async for line in reply.content:
                    if b"tool.intent" in line:
                        break
                reply.close()
            events = await watch(g, run_id)
            assert (await read(g, run_id))["status"] == status
            assert types(events)[-1] == f"run.{status}"


async def test_a_reader_that_takes_nothing_slows_nobody_and_is_let_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.http.following.PATIENCE", 0.5)
    async with gateway(tmp_path, SCRIPTED) as g:
        g.simulator.script("script", [Call("screen", "{}"), Say("done")])
        agent = {"model": "scripted", "tools": [{"name": "screen"}]}
        run_id = await begin(g, {"agent": agent, "input": "go"})
        await watch(g, run_id, until="run.waiting")
        tape = await g.state.runs.ledger.tape(run_id)
        lazy = _reader(g, run_id)
        busy = asyncio.create_task(watch(g, run_id, until="run.resumed"))
        for _ in range(24):  # more than the system itself keeps for a socket
            await tape.record([draft("message.delta", step="main/1", part=0, text="x" * 500_000)])
        (question,) = (await read(g, run_id))["interrupts"]
        await answered(g, run_id, question["id"], action="result", content="a cat")
        assert len(await busy) > 24, "others have got it all"
        async with asyncio.timeout(10):
            while len(g.state.runs.hub):
                await asyncio.sleep(0.05)
        got = await asyncio.to_thread(_all, lazy)
        assert b"run.created" in got
        assert b"run.resumed" not in got, "it was let go before the end"


def _reader(g: Harness, run_id: str) -> socket.socket:
    """A reader that asks, and then does nothing."""
    host, _, port = g.url.removeprefix("http://").partition(":")
    lazy = socket.create_connection((host, int(port)))
    head = f"GET /runs/{run_id}/events HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {KEY}"
    lazy.sendall(f"{head}\r\n\r\n".encode())
    return lazy


def _all(reader: socket.socket) -> bytes:
    found = []
    with reader:
        reader.settimeout(5)
        while data := reader.recv(65536):
            found.append(data)
    return b"".join(found)


# stream tokens


async def token_of(g: Harness, run_id: str, **body: Any) -> dict[str, Any]:
    made = await g.post(f"/runs/{run_id}/stream-tokens", body)
    assert made.status == 201, made.body
    found: dict[str, Any] = made.json()
    return found


async def test_a_token_reads_the_events_of_its_run_and_nothing_else(tmp_path: Path) -> None:
    async with gateway(tmp_path, SCRIPTED) as g:
        run_id, events = await ended(g)
        other, _ = await ended(g)
        token = (await token_of(g, run_id))["token"]
        async with g.http.get(f"{g.url}/runs/{run_id}/events?token={token}") as reply:
            assert reply.status == 200
            told = [x for x in (await reply.read()).split(b"\n") if x.startswith(b"data: ")]
            assert len(told) == len(events)
        for path in (f"/runs/{other}/events", f"/runs/{run_id}", f"/runs/{run_id}/tasks", "/runs"):
            async with g.http.get(f"{g.url}{path}?token={token}") as reply:
                assert reply.status == 401, path
        async with g.http.post(f"{g.url}/runs/{run_id}/cancel?token={token}") as reply:
            assert reply.status == 401
        bearer = {"authorization": f"Bearer {token}"}
        async with g.http.get(f"{g.url}/runs/{run_id}", headers=bearer) as reply:
            assert reply.status == 401


async def test_a_token_ends_and_is_nowhere_in_the_books(tmp_path: Path) -> None:
    async with gateway(tmp_path, SCRIPTED) as g:
        run_id, _ = await ended(g)
        made = await token_of(g, run_id, ttl_seconds=0.2)
        await asyncio.sleep(0.3)
        async with g.http.get(f"{g.url}{made['path']}") as reply:
            assert reply.status == 401
        assert (await g.post(f"/runs/{run_id}/stream-tokens", {"ttl_seconds": 901})).status == 400
        token = (await token_of(g, run_id))["token"]
    assert not _holding(tmp_path, token)


def _holding(folder: Path, text: str) -> list[Path]:
    return [file for file in folder.iterdir() if text.encode() in file.read_bytes()]


# browsers


async def test_only_listed_origins_may_read(tmp_path: Path) -> None:
    config = '[server]\ncors = ["https://app.example.com"]\n'
    async with gateway(tmp_path, SCRIPTED, config) as g:
        run_id, _ = await ended(g)
        path = f"{g.url}/runs/{run_id}/events"
        for origin, allowed in (("https://app.example.com", True), ("https://evil.example", False)):
            headers = {
                "origin": origin,
                "access-control-request-method": "GET",
                "access-control-request-headers": "authorization, last-event-id",
            }
            async with g.http.options(path, headers=headers) as reply:
                assert (reply.status == 204) is allowed
                assert reply.headers.get("access-control-allow-origin") == (
                    origin if allowed else None
                )
            own = {"origin": origin, "authorization": f"Bearer {KEY}"}
            async with g.http.get(path, headers=own) as reply:
                assert reply.headers.get("access-control-allow-origin") == (
                    origin if allowed else None
                )


async def test_no_origin_is_listed_by_default(tmp_path: Path) -> None:
    async with gateway(tmp_path, SCRIPTED) as g:
        headers = {"origin": "https://a.example", "access-control-request-method": "POST"}
        async with g.http.options(f"{g.url}/runs", headers=headers) as reply:
            assert reply.status == 405
            assert "access-control-allow-origin" not in reply.headers


# the rest of the API


async def test_runs_are_listed_filtered_and_paged(tmp_path: Path) -> None:
    async with gateway(tmp_path, SCRIPTED) as g:
        ids = [(await ended(g))[0] for _ in range(3)]
        page = (await g.get("/runs?limit=2", key=KEY)).json()
        assert [run["id"] for run in page["data"]] == [ids[2], ids[1]]
        assert page["has_more"] is True
        page = (await g.get(f"/runs?limit=2&after={page['last_id']}", key=KEY)).json()
        assert [run["id"] for run in page["data"]] == [ids[0]]
        assert (await g.get("/runs?status=failed", key=KEY)).json()["data"] == []
        assert (await g.get("/runs?agent=helper&limit=1", key=KEY)).json()["has_more"] is True
        assert (await g.get("/runs?nonsense=1", key=KEY)).status == 400


async def test_one_idempotency_key_begins_one_run(tmp_path: Path) -> None:
    async with gateway(tmp_path, SCRIPTED) as g:
        use(g, spy("t"))
        g.simulator.script("script", [Call("t", "{}"), Say("done")])
        key = {"idempotency-key": "k1"}
        answers = await asyncio.gather(*(g.post("/runs", BODY, headers=key) for _ in range(5)))
        assert {a.status for a in answers} == {201}
        assert len({a.json()["id"] for a in answers}) == 1
        other = await g.post("/runs", {**BODY, "input": "else"}, headers=key)
        assert other.status == 422
        await watch(g, answers[0].json()["id"])
        assert len(g.simulator.log.of("script")) == 2


async def test_a_run_is_deleted_only_after_its_end(tmp_path: Path) -> None:
    async with gateway(tmp_path, SCRIPTED) as g:
        use(g, spy("t", slow(30)))
        g.simulator.script("script", [Call("t", "{}"), Say("done")])
        run_id = await begin(g, BODY)
        headers = {"authorization": f"Bearer {KEY}"}
        async with g.http.delete(f"{g.url}/runs/{run_id}", headers=headers) as reply:
            assert reply.status == 409
        await g.post(f"/runs/{run_id}/cancel", {})
        await watch(g, run_id)
        async with g.http.delete(f"{g.url}/runs/{run_id}", headers=headers) as reply:
            assert reply.status == 200
        assert (await g.get(f"/runs/{run_id}", key=KEY)).status == 404


async def test_a_run_past_its_retention_is_gone(tmp_path: Path) -> None:
    async with gateway(tmp_path, SCRIPTED) as g:
        run_id, events = await ended(g)
        await g.state.store.sweep(events[-1]["at"] + 31 * 86_400, {})
        for path in ("", "/events", "/tasks"):
            assert (await g.get(f"/runs/{run_id}{path}", key=KEY)).status == 410


async def test_agents_are_kept_with_versions(tmp_path: Path) -> None:
    fixed = '[agents.fixed]\nmodel = "scripted"\ninstructions = "Fixed."\n'
    async with gateway(tmp_path, SCRIPTED, fixed) as g:
        body = {"model": "scripted", "instructions": "One."}
        assert (await put(g, "mine", body)).status == 201
        assert (await put(g, "mine", {**body, "instructions": "Two."})).json()["version"] == 2
        first = (await g.get("/agents/mine?version=1", key=KEY)).json()
        assert first["instructions"] == "One."
        assert (await g.get("/agents/mine", key=KEY)).json()["instructions"] == "Two."
        names = {a["name"]: a["source"] for a in (await g.get("/agents", key=KEY)).json()["data"]}
        assert names == {"fixed": "file", "mine": "store"}
        assert (await put(g, "fixed", body)).status == 409
        assert (await put(g, "mine", {"model": "nothing"})).status == 404
        assert (await put(g, "mine", {**body, "tools": ["nothing"]})).status == 400
        assert (await put(g, "mine", {**body, "colour": "red"})).status == 400
        g.simulator.script("script", [Say("by name")])
        run_id = await begin(g, {"agent": "mine", "input": "go"})
        await watch(g, run_id)
        assert (await read(g, run_id))["output"]["text"] == "by name"
        unknown = await g.post("/runs", {"agent": "minne", "input": "go"})
        assert unknown.status == 404
        assert "mine" in unknown.json()["error"]["message"]
        headers = {"authorization": f"Bearer {KEY}"}
        async with g.http.delete(f"{g.url}/agents/mine", headers=headers) as reply:
            assert reply.status == 200
        assert (await g.get("/agents/mine", key=KEY)).status == 404
        assert (await g.get("/agents/fixed", key=ADMIN)).status == 200


async def put(g: Harness, name: str, body: Any) -> Answer:
    headers = {"authorization": f"Bearer {KEY}"}
    async with g.http.put(f"{g.url}/agents/{name}", json=body, headers=headers) as reply:
        return Answer(reply.status, dict(reply.headers), await reply.read())


@pytest.mark.parametrize(
    "body",
    [
        {"input": "go"},
        {"agent": "a"},
        {"agent": {"model": "scripted"}, "input": ""},
        {"agent": {"model": "scripted"}, "input": []},
        {"agent": {}, "input": "go"},
        {"agent": {"model": "scripted", "max_turns": 0}, "input": "go"},
        {"agent": {"model": "scripted", "contract": ["be nice"]}, "input": "go"},
        {"agent": {"model": "scripted", "handoffs": ["nobody"]}, "input": "go"},
        {"agent": {"model": "scripted", "output_schema": {"type": 5}}, "input": "go"},
        {"agent": {"model": "scripted"}, "input": "go", "budget": {"usd": -1}},
        {"agent": {"model": "scripted"}, "input": "go", "colour": "red"},
    ],
)
async def test_a_run_that_can_not_be_is_refused_at_once(tmp_path: Path, body: Any) -> None:
    async with gateway(tmp_path, SCRIPTED) as g:
        refused = await g.post("/runs", body)
        assert refused.status == 400, refused.body
        assert (await g.get("/runs", key=KEY)).json()["data"] == []
