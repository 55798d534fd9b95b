"""Every door of runs, knocked at wrongly: the code, the envelope, the field that is named."""

from __future__ import annotations

import asyncio
import json
import socket
from pathlib import Path
from typing import Any

import pytest

from adapters.simulator import Call, Say
from gateway.runs.events import draft
from tests.harness import KEY, Answer, Harness, alias, gateway
from tests.runs.following import begin, data, read, types, watch
from tests.runs.tools import slow, spy, use

SCRIPTED = alias("scripted", ("openai", "script"), retries=0)
AGENT = {"name": "helper", "model": "scripted"}
BODY = {"agent": AGENT, "input": "go"}
OTHERS = '[[keys]]\nname = "other"\nkey = "${KEY_CHAT}"\nproject = "others"\n'
OTHER = "sk-provider-chat"


def agent(**fields: Any) -> dict[str, Any]:
    return {"agent": {**AGENT, **fields}, "input": "go"}


async def ended(g: Harness, key: str = KEY) -> str:
    answer = await g.post("/runs", BODY, key=key)
    await g.state.runs.ended(answer.json()["id"])
    return str(answer.json()["id"])


def refusal(answer: Answer) -> tuple[int, str | None]:
    """The status, and what is to be changed."""
    error = answer.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    return answer.status, error["param"]


@pytest.mark.parametrize(
    ("body", "param"),
    [
        (agent(max_turns=0), "agent.max_turns"),
        (agent(tool_policy={"t": "maybe"}), "agent.tool_policy.t"),
        ({**BODY, "input": [{"role": "alien", "content": "x"}]}, "input[0].role"),
        ({**BODY, "budget": {"usd": "NaN"}}, "budget.usd"),
        ({**BODY, "budget": {"hours": 1}}, "budget.hours"),
    ],
)
async def test_a_wrong_field_is_named_where_it_stands(
    tmp_path: Path, body: Any, param: str
) -> None:
    async with gateway(tmp_path, SCRIPTED) as g:
        answer = await g.post("/runs", body)
        assert refusal(answer) == (400, param)
        assert "must be a string;" not in answer.json()["error"]["message"]


async def test_null_is_left_out_and_nothing_is_no_budget(tmp_path: Path) -> None:
    names = (
        "budget",
        "on_budget",
        "on_disconnect",
        "metadata",
        "previous_run_id",
        "user",
        "stream",
    )
    async with gateway(tmp_path, SCRIPTED) as g:
        g.simulator.script("script", [Say("done")])
        run_id = await begin(g, {**BODY, **dict.fromkeys(names)})
        await watch(g, run_id)
        run = await read(g, run_id)
        assert (run["status"], run["metadata"], run["user"]) == ("completed", {}, None)
        run_id = await begin(g, {**BODY, "budget": {"seconds": 0}})
        await watch(g, run_id)
        run = await read(g, run_id)
        assert (run["status"], run["reason"]) == ("incomplete", "deadline")


async def test_the_list_has_closed_filters_and_a_cursor_of_one_s_own(tmp_path: Path) -> None:
    async with gateway(tmp_path, SCRIPTED, OTHERS) as g:
        g.simulator.script("script", [Say("done")] * 2)
        mine, theirs = await ended(g), await ended(g, OTHER)
        for query, param in {
            "status=done": "status",
            "limit=0": "limit",
            "after=run_nothing": "after",
            f"after={theirs}": "after",
            "after=": "after",
            "colour=red": "colour",
        }.items():
            assert refusal(await g.get(f"/runs?{query}", key=KEY)) == (400, param)
        page = (await g.get("/runs?status=completed", key=KEY)).json()
        assert [run["id"] for run in page["data"]] == [mine]
        assert (await g.get(f"/runs?after={mine}", key=KEY)).json()["data"] == []


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "", None),
        ("GET", "/tasks", None),
        ("GET", "/events", None),
        ("GET", "/events?format=openai", None),
        ("POST", "/cancel", None),
        ("POST", "/pause", None),
        ("POST", "/resume", None),
        ("POST", "/interrupts/approval_c1", {"action": "approve"}),
        ("POST", "/budget", {"usd": 1}),
        ("POST", "/fork?from=1", {}),
        ("POST", "/stream-tokens", None),
        ("DELETE", "", None),
    ],
)
async def test_a_run_of_others_is_not_there(
    tmp_path: Path, method: str, path: str, body: Any
) -> None:
    async with gateway(tmp_path, SCRIPTED, OTHERS) as g:
        g.simulator.script("script", [Say("done")])
        theirs = await ended(g, OTHER)
        headers = {"authorization": f"Bearer {KEY}"}
        url = f"{g.url}/runs/{theirs}{path}"
        async with g.http.request(method, url, json=body, headers=headers) as reply:
            assert reply.status == 404
            assert (await reply.json())["error"]["code"] == "not_found"
        continued = await g.post("/runs", {**BODY, "previous_run_id": theirs})
        assert refusal(continued) == (404, "previous_run_id")


@pytest.mark.parametrize("key", ["", "x" * 256, "a\tb"])
async def test_a_key_that_is_none_is_refused_at_every_door(tmp_path: Path, key: str) -> None:
    async with gateway(tmp_path, SCRIPTED) as g:
        for path in (
            "/runs",
            "/runs/run_x/cancel",
            "/runs/run_x/budget",
            "/runs/run_x/fork?from=1",
        ):
            answer = await g.post(path, BODY, headers={"idempotency-key": key})
            assert refusal(answer) == (400, "Idempotency-Key")


async def test_one_key_is_one_command_and_another_body_is_refused(tmp_path: Path) -> None:
    async with gateway(tmp_path, SCRIPTED) as g:
        use(g, spy("mail", slow(30)))  # under way until it is cancelled
        g.simulator.script("script", [Call("mail", "{}", id="c1"), Say("done")])
        run_id = await begin(g, agent(tools=["mail"], tool_policy={"mail": "approve"}))
        await watch(g, run_id, until="run.waiting")
        for number, (path, body, other) in enumerate(
            [
                ("budget", {"usd": 1}, {"usd": 2}),
                ("pause", {}, {"x": 1}),
                ("resume", {}, {"x": 1}),
                ("fork?from=2", {}, {"model": "m-claude"}),
                ("interrupts/approval_c1", {"action": "approve"}, {"action": "deny"}),
                ("cancel", {}, {"x": 1}),
            ]
        ):
            key = {"idempotency-key": f"key {number}"}
            path = f"/runs/{run_id}/{path}"
            said = await asyncio.gather(*(g.post(path, body, headers=key) for _ in range(5)))
            assert len({(one.status, one.body) for one in said}) == 1, path
            assert said[0].status in (200, 201), said[0].body
            refused = await g.post(path, other, headers=key)
            assert refused.status == 422
            assert refused.json()["error"]["code"] == "idempotency_mismatch"
        events = await watch(g, run_id)
        assert types(events).count("budget.topped_up") == 1
        assert types(events).count("approval.granted") == 1
        assert len((await g.get("/runs", key=KEY)).json()["data"]) == 2, "one fork"


@pytest.mark.parametrize("body", [b"", b'{"ttl_seconds": 60}'])
async def test_a_token_is_asked_for_in_any_content_type(tmp_path: Path, body: bytes) -> None:
    async with gateway(tmp_path, SCRIPTED) as g:
        g.simulator.script("script", [Say("done")])
        run_id = await ended(g)
        path, form = f"/runs/{run_id}/stream-tokens", "application/x-www-form-urlencoded"
        made = await g.post(path, body, headers={"content-type": form})
        assert made.status == 201, made.body
        for wrong in ({"ttl_seconds": 0}, {"ttl_seconds": 901}):
            assert refusal(await g.post(path, wrong)) == (400, "ttl_seconds")
        assert refusal(await g.post(path, {"hours": 1})) == (400, "hours")
        assert refusal(await g.post(path, b"{")) == (400, None)


@pytest.mark.parametrize("view", ["openai", "workflow-events"])
async def test_a_view_has_places_too(tmp_path: Path, view: str) -> None:
    """A browser that follows it must be told to stop, and one that is ahead, that it is."""
    async with gateway(tmp_path, SCRIPTED) as g:
        g.simulator.script("script", [Say("one two three")])
        run_id = await ended(g)
        path = f"/runs/{run_id}/events?format={view}"
        whole = (await g.get(path, key=KEY)).body
        ids = [int(line[4:]) for line in whole.splitlines() if line.startswith(b"id: ")]
        assert ids == list(range(1, len(ids) + 1))
        rest = (await g.get(f"{path}&starting_after={ids[-2]}", key=KEY)).body
        assert rest.endswith(whole[whole.index(b"id: %d\n" % ids[-1]) :])
        assert rest.count(b"id: ") == 1
        assert (await g.get(f"{path}&starting_after={ids[-1]}", key=KEY)).status == 204
        ahead = await g.get(f"{path}&starting_after={ids[-1] + 1}", key=KEY)
        assert refusal(ahead) == (400, "starting_after")


async def test_nothing_is_no_top_up(tmp_path: Path) -> None:
    async with gateway(tmp_path, SCRIPTED) as g:
        use(g, spy("mail"))
        g.simulator.script("script", [Call("mail", "{}"), Say("done")])
        run_id = await begin(g, agent(tools=["mail"], tool_policy={"mail": "approve"}))
        await watch(g, run_id, until="run.waiting")
        for body in ({}, {"usd": 0}, {"usd": 0, "tokens": 0}, {"usd": None}):
            assert (await g.post(f"/runs/{run_id}/budget", body)).status == 400
        assert (await g.post(f"/runs/{run_id}/budget", {"usd": 0, "tokens": 5})).status == 200


async def test_a_child_is_kept_while_its_parent_may_need_it(tmp_path: Path) -> None:
    async with gateway(tmp_path, SCRIPTED) as g:
        use(g, spy("mail"))
        turns = [Call("agent_child", '{"input": "x"}'), Say("child done"), Call("mail", "{}")]
        g.simulator.script("script", [*turns, Say("done")])
        parent = agent(tools=["agent:child", "mail"], tool_policy={"mail": "approve"})
        body = {**parent, "agents": [{"name": "child", "model": "scripted"}]}
        run_id = await begin(g, body)
        await watch(g, run_id, until="approval.requested")
        (child,) = (await g.get(f"/runs?parent={run_id}", key=KEY)).json()["data"]
        headers = {"authorization": f"Bearer {KEY}"}
        url = f"{g.url}/runs/{child['id']}"
        async with g.http.delete(url, headers=headers) as reply:
            assert reply.status == 409
            assert run_id in (await reply.json())["error"]["message"]
        await g.post(f"/runs/{run_id}/cancel", {})
        await watch(g, run_id)
        async with g.http.delete(url, headers=headers) as reply:
            assert reply.status == 200


async def test_a_reader_that_is_let_go_has_left_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes nothing any more, and had said that the run is for nobody else."""
    monkeypatch.setattr("gateway.http.following.PATIENCE", 0.5)
    async with gateway(tmp_path, SCRIPTED) as g:
        g.simulator.script("script", [Call("screen", "{}"), Say("done")])
        body = {**agent(tools=[{"name": "screen"}]), "stream": True, "on_disconnect": "cancel"}
        host, _, port = g.url.removeprefix("http://").partition(":")
        told = json.dumps(body)
        with socket.create_connection((host, int(port))) as lazy:
            head = f"POST /runs HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {KEY}\r\n"
            lazy.sendall(f"{head}content-length: {len(told)}\r\n\r\n{told}".encode())
            async with asyncio.timeout(10):
                while not (runs := (await g.get("/runs?status=waiting", key=KEY)).json()["data"]):
                    await asyncio.sleep(0.02)
            run_id = runs[0]["id"]
            tape = await g.state.runs.ledger.tape(run_id)
            text = "x" * 500_000
            for _ in range(24):  # more than the system itself keeps for a socket
                await tape.record([draft("message.delta", step="main/1", part=0, text=text)])
            row = await g.state.runs.ended(run_id)
            assert row.standing.status == "cancelled"


async def test_places_are_told_as_callers_see_them(tmp_path: Path) -> None:
    """Behind a proxy that keeps a prefix in the path."""
    async with gateway(tmp_path, SCRIPTED, '[server]\nroot_path = "/ai"\n') as g:
        g.simulator.script("script", [Say("done")] * 2)
        made = await g.post("/ai/runs", BODY)
        run_id = made.json()["id"]
        assert made.headers["location"] == f"/ai/runs/{run_id}"
        await g.state.runs.ended(run_id)
        key = {"idempotency-key": "kept with its place"}
        forked = await g.post(f"/ai/runs/{run_id}/fork?from=1", {}, headers=key)
        assert forked.headers["location"] == f"/ai/runs/{forked.json()['id']}"
        token = (await g.post(f"/ai/runs/{run_id}/stream-tokens", {})).json()
        assert (await g.get(token["path"], key=None)).status == 200


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"action": "approve", "arguments": {"to": "bob"}}, "arguments"),
        ({"action": "deny", "content": "no"}, "content"),
        ({"action": "stop", "budget": {"usd": 1}}, "budget"),
        ({"action": "edit"}, "arguments"),
        ({"action": "result"}, "action"),
        ({"action": "agree"}, "action"),
    ],
)
async def test_an_answer_says_nothing_that_nobody_hears(
    tmp_path: Path, body: Any, param: str
) -> None:
    """Whoever approves with other arguments means to edit."""
    async with gateway(tmp_path, SCRIPTED) as g:
        use(g, spy("mail"))
        g.simulator.script("script", [Call("mail", '{"to": "ann"}', id="c1"), Say("done")])
        run_id = await begin(g, agent(tools=["mail"], tool_policy={"mail": "approve"}))
        await watch(g, run_id, until="run.waiting")
        body = {**body, "content": "x"} if body == {"action": "result"} else body
        answer = await g.post(f"/runs/{run_id}/interrupts/approval_c1", body)
        assert refusal(answer) == (400, param)
        assert (await read(g, run_id))["status"] == "waiting"


@pytest.mark.parametrize("call_id", ["functions.mail:0", "a/b", "a b?c#d%2F", "é", "x" * 300])
async def test_a_question_can_be_answered_whatever_the_call_is_called(
    tmp_path: Path, call_id: str
) -> None:
    chat = alias("scripted", ("chat", "script"), retries=0)
    async with gateway(tmp_path, chat) as g:
        use(g, spy("mail"))
        g.simulator.script("script", [Call("mail", "{}", id=call_id), Say("done")])
        run_id = await begin(g, agent(tools=["mail"], tool_policy={"mail": "approve"}))
        (asked,) = data(await watch(g, run_id, until="run.waiting"), "approval.requested")
        path = f"/runs/{run_id}/interrupts/{asked['interrupt_id']}"
        assert (await g.post(path, {"action": "approve"})).status == 200
        assert types(await watch(g, run_id))[-1] == "run.completed"
        assert asked["call_id"] == call_id


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        ("application/json", "application/json"),
        ("text/event-stream", "text/event-stream"),
        ("application/json, text/event-stream", "text/event-stream"),
        ("*/*", "text/event-stream"),
    ],
)
async def test_who_takes_a_stream_gets_one(tmp_path: Path, accept: str, kind: str) -> None:
    async with gateway(tmp_path, SCRIPTED) as g:
        g.simulator.script("script", [Say("done")])
        run_id = await ended(g)
        headers = {"authorization": f"Bearer {KEY}", "accept": accept}
        async with g.http.get(f"{g.url}/runs/{run_id}/events", headers=headers) as reply:
            assert reply.headers["content-type"].partition(";")[0] == kind
