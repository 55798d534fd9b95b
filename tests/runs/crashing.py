"""A gateway in a process of its own that kills itself with SIGKILL right after one event or effect.

``python -m tests.runs.crashing CONFIG PORT EFFECTS SEQ``: ``EFFECTS`` is the file in which the
tools leave a line for everything that they do, ``SEQ`` the event after whose commit the process
dies (0: never; -N: after the N-th definition, of an agent or a plan, that it stores; -100-N: after
the N-th effect of a tool, before its result). The hooks are here, around the store and in the
tools; the product knows nothing of them.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import uvicorn

from adapters.canonical.clock import SystemClock
from gateway.app import running
from gateway.http.server import listening
from gateway.settings.load import load
from gateway.store.runs import Addition
from gateway.tools.base import ToolContext, ToolSpec
from gateway.tools.builtin import builtins
from tests.harness import ENVIRONMENT
from tests.runs.tools import Spy

EFFECT = -100
"""Less the number of an effect: to die after that one."""
ANYTHING: Mapping[str, Any] = {"type": "object"}


def worker(effects: Path, done: Callable[[], None], name: str, **spec: Any) -> Spy:
    """A tool whose every effect is a line in a file: its name and its idempotency key."""

    async def work(arguments: Mapping[str, Any], context: ToolContext) -> str:
        await asyncio.sleep(0.01)
        with effects.open("a") as file:
            file.write(f"{name} {context.idempotency_key}\n")
            file.flush()
            os.fsync(file.fileno())
        done()
        return f"{name} done"

    return Spy(ToolSpec(name=name, parameters=ANYTHING, **spec), work)


async def tick(arguments: Mapping[str, Any], context: ToolContext) -> str:
    """Says something every second, for some seconds."""
    for second in range(int(arguments.get("seconds", 3))):
        context.progress(f"second {second}", None)
        await asyncio.sleep(1)
    return "ticked"


def dying(after: int) -> Callable[[], None]:
    """What is called so often before the process is killed."""
    counted = itertools.count(1)

    def count() -> None:
        if next(counted) == after:
            os.kill(os.getpid(), signal.SIGKILL)

    return count


def die_after(state: Any, seq: int) -> None:
    """Kill the process once event ``seq`` of any run is committed, or so many definitions are."""
    store = state.store
    create, add = store.create_run, store.add_run_events

    def check(addition: Addition) -> None:
        if any(event.seq == seq for event in addition.events):
            os.kill(os.getpid(), signal.SIGKILL)

    async def create_run(birth: Any, first: Addition, *rest: Any) -> Any:
        found = await create(birth, first, *rest)
        check(first)
        return found

    async def add_run_events(addition: Addition) -> bool:
        written: bool = await add(addition)
        if written:
            check(addition)
        return written

    put, stored = store.put_agent, dying(-seq)

    async def put_agent(row: Any) -> bool:
        written: bool = await put(row)
        if written:
            stored()
        return written

    store.create_run, store.add_run_events = create_run, add_run_events
    store.put_agent = put_agent


async def serve(config: str, port: int, effects: Path, seq: int) -> None:
    def read() -> Any:
        return load(config, ENVIRONMENT)

    with listening("127.0.0.1", port) as listener:
        async with running(read(), read) as (app, state):
            done = dying(EFFECT - seq)
            tools = [
                worker(effects, done, "read", read_only=True),
                worker(effects, done, "write"),
                worker(effects, done, "mail"),
                Spy(ToolSpec(name="tick", parameters=ANYTHING, read_only=True), tick),
            ]
            state.runs.bench.tools().replace([*builtins(SystemClock()), *tools])
            die_after(state, seq)
            settings = uvicorn.Config(app, log_config=None, access_log=False, lifespan="off")
            await uvicorn.Server(settings).serve(sockets=[listener])


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4])))
