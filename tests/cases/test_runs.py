"""Cases of runs, with the inputs that they were reported with (areas G, C, T)."""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from adapters.simulator import Call, Say
from tests.harness import KEY, Answer, Harness, alias, gateway
from tests.runs.following import answered, begin, data, idle, read, types, watch
from tests.runs.tools import Spy, spy, use

SCRIPTED = alias("scripted", ("openai", "script"), retries=0)
PACED = alias("paced", ("openai", "paced-120-20"), retries=0)
OTHERS = '[[keys]]\nname = "other"\nkey = "${KEY_CHAT}"\nproject = "others"\n'
OTHER = "sk-provider-chat"


def asked(*tools: str, **agent: Any) -> dict[str, Any]:
    return {"agent": {"model": "scripted", "tools": list(tools), **agent}, "input": "go"}


async def questions(g: Harness, run_id: str) -> dict[str, str]:
    """The open questions of a run that waits: by tool, their ids."""
    await watch(g, run_id, until="run.waiting", after=await _before_waiting(g, run_id))
    return {one["tool"]: one["id"] for one in (await read(g, run_id))["interrupts"]}


async def _before_waiting(g: Harness, run_id: str) -> int:
    run = await read(g, run_id)
    return int(run["last_seq"]) - 1 if run["status"] == "waiting" else int(run["last_seq"])


def outputs(g: Harness, turn: int) -> list[tuple[str, str]]:
    """What the provider was told of the calls' results before a turn."""
    items = g.simulator.log.of("script")[turn - 1].body["input"]
    return [(i["call_id"], i["output"]) for i in items if i["type"] == "function_call_output"]


# T07: replay is strictly after the place, of this run alone, and checked before it is read


async def test_a_reader_that_comes_back_has_each_event_of_its_run_once_T07(tmp_path: Path) -> None:
    async with gateway(tmp_path, PACED, OTHERS) as g:
        body = {"agent": {"model": "paced"}, "input": "go"}
        mine = await begin(g, body)
        theirs = (await g.post("/runs", body, key=OTHER)).json()["id"]
        first = []
        async with g.http.get(
            f"{g.url}/runs/{mine}/events", headers={"authorization": f"Bearer {KEY}"}
        ) as reply:
            async for line in reply.content:
                first += [int(line[4:])] if line.startswith(b"id: ") else []
                if first and first[-1] == 12:
                    break  # dropped in the middle, while it is written
        two = await asyncio.gather(*(watch(g, mine, after=12) for _ in range(2)))
        assert two[0] == two[1], "two readers at once"
        assert first + [event["seq"] for event in two[0]] == list(range(1, len(two[0]) + 13))
        assert {event["run_id"] for event in two[0]} == {mine}
        assert types(two[0]).count("message.delta") > 1, "however many a busy machine puts together"
        last = len(two[0]) + 12
        refused = {
            (mine, "abc"): 400,
            (mine, "-1"): 400,
            (mine, str(last + 1)): 400,
            (mine, str(last)): 204,
            (mine, ""): 200,
            (theirs, "12"): 404,
            (theirs, "abc"): 404,  # whose run it is comes first
        }
        for (run_id, place), status in refused.items():
            headers = {"authorization": f"Bearer {KEY}", "last-event-id": place}
            async with g.http.get(f"{g.url}/runs/{run_id}/events", headers=headers) as reply:
                assert reply.status == status, (run_id, place)
        await g.state.store.sweep(two[0][-1]["at"] + 31 * 86_400, {})
        assert (await g.get(f"/runs/{mine}/events?starting_after=12", key=KEY)).status == 410


# C05: work has an owner, and ends


async def test_work_is_never_collected_and_ends_when_it_is_told_C05(tmp_path: Path) -> None:
    released = asyncio.Event()

    async def stubborn(arguments: Any, context: Any) -> str:
        while not released.is_set():
            try:
                await released.wait()
            except BaseException:
                continue
        return "too late"

    async with gateway(tmp_path, SCRIPTED) as g:
        g.state.runs.supervisor.grace = 0.2
        use(g, spy("mail"), spy("stubborn", stubborn))
        for _ in range(20):
            g.simulator.script("script", [Call("mail", "{}"), Say("done")])
            run_id = await begin(g, asked("mail", tool_policy={"mail": "approve"}))
            (question,) = (await questions(g, run_id)).values()
            await answered(g, run_id, question, action="approve")
            gc.collect()
            assert types(await watch(g, run_id))[-1] == "run.completed"
        g.simulator.script("script", [Call("stubborn", "{}"), Say("never")])
        run_id = await begin(g, asked("stubborn"))
        await watch(g, run_id, until="tool.intent")
        path = f"/runs/{run_id}/cancel"
        twice = await asyncio.gather(g.post(path, {}), g.post(path, {}))
        assert [answer.status for answer in twice] == [200, 200]
        try:
            events = await watch(g, run_id, seconds=5)
        finally:
            released.set()
        assert types(events)[-1] == "run.cancelled"
        await idle(g)
        await asyncio.sleep(0.1)
        assert await watch(g, run_id) == events, "what came late is not heard"


# G01: what was done is not done again


async def test_resuming_repeats_nothing_G01(tmp_path: Path) -> None:
    async with gateway(tmp_path, SCRIPTED) as g:
        first, second, third = use_all(g, "count", "mail", "post")
        script = [Call("count", "{}"), Call("mail", "{}"), Call("post", "{}"), Say("done")]
        g.simulator.script("script", script)
        policy = {"mail": "approve", "post": "approve"}
        run_id = await begin(g, asked("count", "mail", "post", tool_policy=policy))
        await answered(g, run_id, (await questions(g, run_id))["mail"], action="deny")
        await watch(g, run_id, until="run.waiting", after=(await read(g, run_id))["last_seq"] - 1)
        await answered(g, run_id, (await questions(g, run_id))["post"], action="approve")
        assert types(await watch(g, run_id))[-1] == "run.completed"
        assert [len(one.calls) for one in (first, second, third)] == [1, 0, 1]
        assert len(g.simulator.log.of("script")) == 4, "no turn more than without the questions"


async def test_a_dead_process_s_calls_are_not_repeated_G01(tmp_path: Path) -> None:
    """Between two calls, and between an effect and its record: another process goes on."""
    done = asyncio.Event()

    async def paid(arguments: Any, context: Any) -> str:
        done.set()
        await asyncio.sleep(60)  # the effect is there, its record is not
        return "never told"

    async with gateway(tmp_path, SCRIPTED) as g:
        count, pay = spy("count"), spy("pay", paid)
        use(g, count, pay)
        g.simulator.script("script", [Call("count", "{}"), Call("pay", "{}"), Say("done")])
        run_id = await begin(g, asked("count", "pay"))
        await done.wait()
        g.state.runs.supervisor._work[run_id].cancel()
        waiting = (await watch(g, run_id, until="run.waiting"))[-1]
        assert waiting["data"]["for"] == "in_doubt"
        assert (len(count.calls), len(pay.calls)) == (1, 1)
        assert pay.keys == [f"{run_id}:{(await read(g, run_id))['interrupts'][0]['call_id']}"]
        assert len(g.simulator.log.of("script")) == 2


def use_all(g: Harness, *names: str) -> list[Spy]:
    found = [spy(name) for name in names]
    use(g, *found)
    return found


# G02: each call of a turn has its own answer, and the turn after has one result for each


CALLS = [Call("read", "{}", id="c1"), Call("clean", "{}", id="c2"), Call("mail", "{}", id="c3")]
POLICY = {"clean": "approve", "mail": "approve"}


@pytest.mark.parametrize("order", [("clean", "mail"), ("mail", "clean"), ("both",)])
@pytest.mark.parametrize("restart", [False, True])
async def test_siblings_are_answered_each_by_itself_G02(
    tmp_path: Path, order: tuple[str, ...], restart: bool
) -> None:
    said = {
        "clean": {"action": "approve"},
        "mail": {"action": "deny", "reason": "not to him"},
    }
    async with gateway(tmp_path, SCRIPTED) as g:
        read_, clean, mail = use_all(g, "read", "clean", "mail")
        g.simulator.script("script", [CALLS, Say("done")])
        run_id = await begin(g, asked("read", "clean", "mail", tool_policy=POLICY))
        asks = await questions(g, run_id)
        assert set(asks) == {"clean", "mail"}
        if order == ("both",):
            await asyncio.gather(*(answered(g, run_id, asks[name], **said[name]) for name in said))
        else:
            await answered(g, run_id, asks[order[0]], **said[order[0]])
            await watch(
                g, run_id, until="run.waiting", after=(await read(g, run_id))["last_seq"] - 1
            )
            assert len(g.simulator.log.of("script")) == 1, "the turn waits for the other"
            if restart:  # as another process would find it
                await g.state.runs.supervisor.drain(1)
                g.state.runs.supervisor._draining = False
            await answered(g, run_id, asks[order[1]], **said[order[1]])
        assert types(await watch(g, run_id))[-1] == "run.completed"
        assert [len(one.calls) for one in (read_, clean, mail)] == [1, 1, 0]
        told = outputs(g, 2)
        assert [call_id for call_id, _ in told] == ["c1", "c2", "c3"], "in the model's order"
        assert [text for _, text in told][:2] == ["read done", "clean done"]
        assert "not to him" in told[2][1]
        assert len(g.simulator.log.of("script")) == 2


# G03: a decision is made once


async def test_the_first_decision_counts_and_only_where_it_belongs_G03(tmp_path: Path) -> None:
    async with gateway(tmp_path, SCRIPTED, OTHERS) as g:
        (mail,) = use_all(g, "mail")

        async def waiting(**agent: Any) -> tuple[str, str]:
            g.simulator.script("script", [Call("mail", '{"to": "ann"}'), Say("done")])
            run_id = await begin(g, asked("mail", tool_policy={"mail": "approve"}, **agent))
            (question,) = (await questions(g, run_id)).values()
            return run_id, question

        async def say(run_id: str, question: str, **body: Any) -> Answer:
            return await answered(g, run_id, question, **body)

        run_id, question = await waiting()
        many = [say(run_id, question, action="approve") for _ in range(20)]
        assert Counter(a.status for a in await asyncio.gather(*many)) == {200: 20}
        await watch(g, run_id)
        assert len(mail.calls) == 1
        assert (await say(run_id, question, action="approve")).status == 200, "the same, later"
        assert (await say(run_id, question, action="deny")).status == 409

        run_id, question = await waiting()
        both = [say(run_id, question, action=action) for action in ("approve", "deny")]
        assert Counter(a.status for a in await asyncio.gather(*both)) == {200: 1, 409: 1}
        await watch(g, run_id)

        run_id, question = await waiting()
        changed = await say(run_id, question, action="approve", arguments_hash="0" * 64)
        assert changed.status == 409
        path = f"/runs/{run_id}/interrupts/{question}"
        assert (await g.post(path, {"action": "approve"}, key=OTHER)).status == 404
        await g.post(f"/runs/{run_id}/cancel", {})
        await watch(g, run_id)
        assert (await say(run_id, question, action="approve")).status == 409, "after a cancel"

        run_id, question = await waiting(approvals={"expires_in": 1})
        expired = await watch(g, run_id)
        assert [d["reason"] for d in data(expired, "approval.expired")] == ["time"]
        assert (await say(run_id, question, action="approve")).status == 409, "after its time"
