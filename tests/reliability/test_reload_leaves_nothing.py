"""After a reload, and the calls that began before it, nothing of the old configuration is left:
no alias, no provider, no key (fault kind K19)."""

from __future__ import annotations

import gc
import re
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from gateway import app
from gateway.services import replaced
from gateway.settings.snapshot import Alias
from tests import harness
from tests.harness import ADMIN, Harness, alias, gateway

CONFIG = """
[observe]
log_level = "error"

[agents.helper]
model = "turning"
instructions = "${MARK}"
tools = ["look_up"]

[workflows.once]
output = { from = "/nodes/only" }
[workflows.once.nodes.only]
kind = "agent"
agent = "helper"
prompt = "${MARK}"

[tools.look_up]
kind = "http"
description = "Looks up."
url = "https://tools.example/${MARK}"
headers = { authorization = "Bearer ${KEY_TOOL}" }
"""
NAME = "turning"
"""An alias that no other page has."""


def mark(turn: int | str) -> str:
    """What stands in every secret of one configuration, and in what its agents are told."""
    return f"of-configuration-{turn}-"


def environment(turn: int) -> dict[str, str]:
    """What the file reads at one turn."""
    keys = ("KEY_OPENAI", "KEY_ANTHROPIC", "KEY_CHAT", "KEY_TOOL", "CALLER")
    return {key: f"{key}-{mark(turn)}{'x' * 20}" for key in keys} | {
        "ADMIN": ADMIN,
        "MARK": mark(turn),
    }


def everything() -> Iterator[tuple[Any, Any]]:
    """What is in memory, each with what holds it; what the test itself holds left out."""
    pending = [(None, found) for found in gc.get_objects()]
    seen = {id(pending)}
    while pending:
        holder, found = pending.pop()
        yield holder, found
        if isinstance(found, FrameType) and found.f_code.co_filename == __file__:
            continue
        for inside in gc.get_referents(found):
            if not gc.is_tracked(inside) and id(inside) not in seen:
                seen.add(id(inside))
                pending.append((found, inside))


def left(turns: str) -> list[str]:
    """What is still there of the configurations of ``turns``, a class of a regular expression."""
    gc.collect()
    marked = re.compile(mark(turns))
    found = []
    for holder, one in everything():
        text = one.decode("latin-1") if isinstance(one, bytes | bytearray) else one
        if isinstance(text, str) and marked.search(text):
            found.append(f"{text[:60]!r} in a {type(holder).__qualname__}: {str(holder)[:120]}")
    return found


def aliases() -> list[Alias]:
    """All there are of this page's own."""
    return [one for one in gc.get_objects() if type(one) is Alias and one.name == NAME]


class Turning:
    """A gateway whose secrets are other ones at each turn."""

    def __init__(self, g: Harness, secrets: dict[str, str]) -> None:
        self.g, self.turn, self._secrets = g, 0, secrets

    async def reload(self) -> None:
        """The next turn is in force."""
        self.turn += 1
        self._secrets.update(environment(self.turn))
        answer = await self.g.post("/admin/reload", {}, key=ADMIN)
        assert answer.status == 200, answer.body

    async def use(self) -> None:
        """Ask for all that is made of a configuration when it is first needed."""
        key = self._secrets["CALLER"]
        for model in (NAME, "m-claude", "m-chat"):
            body = {"model": model, "messages": [{"role": "user", "content": "hi"}]}
            answer = await self.g.post("/v1/chat/completions", body, key=key)
            assert answer.status == 200, answer.body
        assert b"workflow:once" in (await self.g.get("/v1/models", key=key)).body
        assert b"helper" in (await self.g.get("/agents", key=key)).body


@pytest.fixture
async def turning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Turning]:
    monkeypatch.setattr(app, "LEASES_EVERY", 0.02)
    monkeypatch.setattr(replaced, "AT_LEAST", 0.1)
    secrets = environment(0)
    monkeypatch.setattr(harness, "ENVIRONMENT", secrets)
    slow = alias("slow", ("openai", "paced-20-50"))
    async with gateway(tmp_path, alias(NAME, ("openai", "echo")), slow, CONFIG) as g:
        yield Turning(g, secrets)


@pytest.fixture
def settled() -> Iterator[None]:
    """As ``serve`` has it: the collector does not look at what start-up made, so what a reload
    replaces has to go by itself."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


async def test_nothing_of_a_replaced_configuration_is_left(
    turning: Turning, settled: None, eventually: Callable[..., Any]
) -> None:
    for _ in range(3):
        await turning.use()
        await turning.reload()
    await turning.use()
    turning.g.simulator.log.clear()
    await eventually(lambda: not left("[0-2]"))
    gc.unfreeze()
    assert left("[0-2]") == []
    assert aliases() == [turning.g.state.snapshot.aliases[NAME]]
    assert left("3"), "a look that finds nothing proves nothing"


async def test_a_call_under_way_keeps_its_own_over_several_reloads(
    turning: Turning, settled: None, eventually: Callable[..., Any]
) -> None:
    """It began with what two reloads have replaced since; that goes when it has ended."""
    g, old = turning.g, turning.g.state.runtime.adapters["openai"]
    body = {"model": "slow", "messages": [{"role": "user", "content": "hi"}], "stream": True}
    headers = {"authorization": f"Bearer {environment(0)['CALLER']}"}
    async with g.http.post(g.url + "/v1/chat/completions", json=body, headers=headers) as stream:
        await stream.content.readany()
        for _ in range(2):
            await turning.reload()
            await turning.use()
        assert old.busy
        assert g.state.runtime.adapters["openai"] is not old
        assert (await stream.read()).endswith(b"data: [DONE]\n\n")
    del old, headers, stream
    g.simulator.log.clear()
    await eventually(lambda: not left("[01]"))


async def test_a_replaced_key_stays_out_of_the_log_until_it_is_gone(
    turning: Turning, eventually: Callable[..., Any]
) -> None:
    key = environment(0)["KEY_OPENAI"]
    scrubber = turning.g.state.logs.scrubber
    await turning.reload()
    assert key not in scrubber.scrub(key), "a call under way may still stumble over it"
    await eventually(lambda: key in scrubber.scrub(key))
    assert environment(1)["KEY_OPENAI"] not in scrubber.scrub(environment(1)["KEY_OPENAI"])
