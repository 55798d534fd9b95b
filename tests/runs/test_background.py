"""Background responses: begun, polled, followed from any place, cancelled, continued; on every
upstream, and over a restart."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Any

import openai
import pytest

from adapters.canonical.faults import Fault
from adapters.canonical.grammar import check as check_grammar
from adapters.simulator import Call, Say, Think
from gateway.northbound.runs.call_answer import CallAnswer
from gateway.services.background import settle
from tests.harness import KEY, Harness, alias, gateway
from tests.runs.following import data, idle, read, watch

UPSTREAMS = {
    "m-responses": ("openai", "script"),
    "m-messages": ("anthropic", "script"),
    "m-completions": ("chat", "script"),
}
ALIASES = [alias(name, target, retries=0) for name, target in UPSTREAMS.items()]
SPOKEN = [(Think("Let me see."), Say("Here it is."), Call("look", '{"n": 1}'))]
LOOK = {"type": "function", "name": "look", "parameters": {"type": "object"}}


def client(g: Harness) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=f"{g.url}/v1", api_key=KEY, max_retries=0)


async def done(sdk: openai.AsyncOpenAI, response_id: str) -> Any:
    async with asyncio.timeout(15):
        while True:
            found = await sdk.responses.retrieve(response_id)
            if found.status not in ("queued", "in_progress"):
                return found
            await asyncio.sleep(0.02)


@pytest.mark.parametrize("model", UPSTREAMS)
async def test_begun_polled_and_read_again_from_every_place(tmp_path: Path, model: str) -> None:
    async with gateway(tmp_path, *ALIASES) as g, client(g) as sdk:
        g.simulator.script("script", SPOKEN)
        begun = await sdk.responses.create(
            model=model, input="go", background=True, tools=[LOOK], metadata={"a": "b"}
        )
        assert begun.status in ("queued", "in_progress", "completed")
        assert begun.background is True
        found = await done(sdk, begun.id)
        assert (found.id, found.status, found.background) == (begun.id, "completed", True)
        assert found.output_text == "Here it is."
        calls = [item for item in found.output if item.type == "function_call"]
        assert [(call.name, call.arguments) for call in calls] == [("look", '{"n": 1}')]
        assert found.metadata == {"a": "b"}
        assert found.usage is not None
        told = [e async for e in await sdk.responses.retrieve(begun.id, stream=True)]
        assert [event.sequence_number for event in told] == list(range(len(told)))
        assert told[0].type == "response.created"
        assert told[-1].type == "response.completed"
        assert told[-1].response == found, "a stream and a poll say the same"
        run = (await g.get(f"/runs/{found.id.replace('resp_', 'run_')}", key=KEY)).json()
        assert found.completed_at == int(run["ended_at"]), "whenever it is read"
        assert told[0].response.completed_at is None
        for place in range(len(told) - 1):
            rest = await sdk.responses.retrieve(begun.id, stream=True, starting_after=place)
            assert [event async for event in rest] == told[place + 1 :]


async def test_a_stream_that_was_lost_is_taken_up(tmp_path: Path) -> None:
    paced = alias("paced", ("anthropic", "paced-60-20"), retries=0)
    async with gateway(tmp_path, paced) as g, client(g) as sdk:
        stream = await sdk.responses.create(model="paced", input="go", background=True, stream=True)
        seen = []
        async for event in stream:
            seen.append(event)
            if event.type == "response.output_text.delta":
                break
        await stream.close()
        response_id = seen[0].response.id
        rest = await sdk.responses.retrieve(
            response_id, stream=True, starting_after=seen[-1].sequence_number
        )
        seen += [event async for event in rest]
        assert [event.sequence_number for event in seen] == list(range(len(seen)))
        text = "".join(e.delta for e in seen if e.type == "response.output_text.delta")
        assert text == seen[-1].response.output_text
        assert len(g.simulator.log) == 1, "replay is reading"


async def test_it_survives_a_restart(tmp_path: Path) -> None:
    async with gateway(tmp_path, *ALIASES) as g, client(g) as sdk:
        g.simulator.script("script", SPOKEN)
        begun = await sdk.responses.create(model="m-messages", input="go", background=True)
        before = await done(sdk, begun.id)
        told = [e async for e in await sdk.responses.retrieve(begun.id, stream=True)]
    async with gateway(tmp_path, *ALIASES) as g, client(g) as sdk:
        assert await sdk.responses.retrieve(begun.id) == before
        again = await sdk.responses.retrieve(begun.id, stream=True)
        assert [event async for event in again] == told
        assert len(g.simulator.log) == 0


async def test_a_cancel_ends_it_and_is_idempotent(tmp_path: Path) -> None:
    paced = alias("paced", ("openai", "paced-2000-20"), retries=0)
    async with gateway(tmp_path, paced) as g, client(g) as sdk:
        begun = await sdk.responses.create(model="paced", input="go", background=True)
        attempt = await g.simulator.log.wait_for(1)
        with pytest.raises(openai.ConflictError) as refused:
            await sdk.responses.delete(begun.id)
        assert refused.value.body["message"].startswith("The response is still being made.")
        for _ in range(2):
            cancelled = await sdk.responses.cancel(begun.id)
            assert cancelled.status == "cancelled"
        await asyncio.wait_for(attempt.ended.wait(), 2)
        assert attempt.disconnected is not None
        assert (await sdk.responses.retrieve(begun.id)).status == "cancelled"
        with pytest.raises(openai.NotFoundError):
            await sdk.responses.cancel("resp_unknown")


async def test_it_can_be_continued_while_it_is_being_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its worker and who continues it both find that nobody has kept it yet."""
    async with gateway(tmp_path, *ALIASES) as g, client(g) as sdk:
        g.simulator.script("script", [Say("first"), Say("second")])
        store, looks = g.state.store, 0
        chain, keep = store.chain, store.keep_response
        both_looked, kept = asyncio.Event(), asyncio.Event()

        async def look(*asked: Any) -> Any:
            nonlocal looks
            found = await chain(*asked)
            looks += found is None
            if found is None and looks == 1:
                await both_looked.wait()
            elif found is None and looks == 2:
                both_looked.set()
                await kept.wait()
            return found

        async def keep_response(*given: Any) -> None:
            await keep(*given)
            kept.set()

        monkeypatch.setattr(store, "chain", look)
        monkeypatch.setattr(store, "keep_response", keep_response)
        begun = await sdk.responses.create(model="m-responses", input="one", background=True)
        await watch(g, begun.id.replace("resp_", "run_"))
        second = await sdk.responses.create(
            model="m-responses", input="two", previous_response_id=begun.id
        )
        assert looks == 2
        assert second.output_text == "second"
        await sdk.responses.delete(begun.id)


async def test_another_replica_may_keep_it_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with gateway(tmp_path, *ALIASES) as g, client(g) as sdk:
        g.simulator.script("script", [Say("first")])
        begun = await sdk.responses.create(model="m-responses", input="one", background=True)
        await done(sdk, begun.id)
        await idle(g)
        store, keep = g.state.store, g.state.store.keep_response

        async def beaten(*given: Any) -> None:
            if others:
                await keep(*given)
            raise Fault("store_unavailable", "a row of this id is there")

        monkeypatch.setattr(store, "keep_response", beaten)
        for others in (False, True):
            await store.drop_response("default", begun.id)
            with contextlib.nullcontext() if others else pytest.raises(Fault):
                await settle(store, begun.id.replace("resp_", "run_"), g.state.runtime.clock)
        assert await store.chain("default", begun.id) is not None


async def test_it_can_be_continued_and_deleted(tmp_path: Path) -> None:
    async with gateway(tmp_path, *ALIASES) as g, client(g) as sdk:
        g.simulator.script("script", [Say("first"), Say("second")])
        begun = await sdk.responses.create(model="m-responses", input="one", background=True)
        await done(sdk, begun.id)
        second = await sdk.responses.create(
            model="m-responses", input="two", previous_response_id=begun.id
        )
        assert second.output_text == "second"
        asked = str(g.simulator.log[-1].body["input"])
        assert asked.index("one") < asked.index("first") < asked.index("two")
        items = await sdk.responses.input_items.list(begun.id)
        assert len(items.data) == 1
        await sdk.responses.delete(begun.id)
        with pytest.raises(openai.NotFoundError):
            await sdk.responses.retrieve(begun.id)


async def test_while_it_is_made_it_can_be_looked_at_but_not_continued(tmp_path: Path) -> None:
    paced = alias("paced", ("openai", "paced-40-20"), retries=0)
    async with gateway(tmp_path, paced, *ALIASES) as g, client(g) as sdk:
        g.simulator.script("script", [Say("before")])
        first = await sdk.responses.create(model="m-responses", input="one")
        begun = await sdk.responses.create(
            model="paced", input="two", previous_response_id=first.id, background=True
        )
        items = (await sdk.responses.input_items.list(begun.id, order="asc")).data
        assert [item.content[0].text for item in items] == ["one", "before", "two"]
        with pytest.raises(openai.ConflictError) as refused:
            await sdk.responses.create(model="paced", input="x", previous_response_id=begun.id)
        assert refused.value.param == "previous_response_id"
        told = [e async for e in await sdk.responses.retrieve(begun.id, stream=True)]
        last = told[-1].sequence_number
        rest = await sdk.responses.retrieve(begun.id, stream=True, starting_after=last)
        assert [event async for event in rest] == []
        with pytest.raises(openai.BadRequestError):
            await sdk.responses.retrieve(begun.id, stream=True, starting_after=last + 1)
        await done(sdk, begun.id)
        assert (await sdk.responses.input_items.list(begun.id, order="asc")).data == items


async def test_a_failure_is_told_and_a_wish_that_can_not_be(tmp_path: Path) -> None:
    down = alias("down", ("openai", "fault-status-500"), retries=0)
    async with gateway(tmp_path, down) as g, client(g) as sdk:
        begun = await sdk.responses.create(model="down", input="go", background=True)
        found = await done(sdk, begun.id)
        assert found.status == "failed"
        assert found.error is not None
        with pytest.raises(openai.APIError, match="provider failed"):
            _ = [e async for e in await sdk.responses.retrieve(begun.id, stream=True)]
        with pytest.raises(openai.BadRequestError):
            await sdk.responses.create(model="down", input="go", background=True, store=False)
        with pytest.raises(openai.BadRequestError):
            await sdk.responses.cancel(
                (await sdk.responses.create(model="m-openai", input="go")).id
            )


async def test_the_projection_keeps_the_grammar_even_over_a_crash(tmp_path: Path) -> None:
    async with gateway(tmp_path, *ALIASES) as g, client(g) as sdk:
        g.simulator.script("script", SPOKEN)
        begun = await sdk.responses.create(model="m-messages", input="go", background=True)
        await done(sdk, begun.id)
        events = await watch(g, begun.id.replace("resp_", "run_"))
        place = next(n for n, e in enumerate(events) if e["type"] == "message.delta") + 1
        recovered = {"type": "run.recovered", "data": {}}
        started = next(e for e in events if e["type"] == "model.started")
        rest = events[events.index(started) :]
        for tape in (events, [*events[:place], recovered, *rest]):
            view = CallAnswer()
            told = [one for event in tape for one in view.feed(event)]
            assert view.terminal is not None
            starts = [n for n, one in enumerate(told) if type(one).__name__ == "Started"]
            check_grammar([one for n, one in enumerate(told) if n not in starts[1:]]
                          + [view.terminal])  # fmt: skip
        assert (await read(g, begun.id.replace("resp_", "run_")))["status"] == "completed"
        assert data(events, "model.finished")[0]["finish_reason"] == "tool_calls"
