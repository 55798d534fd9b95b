"""One tool call: intent, effect, result, each committed before the next begins.

The intent carries an idempotency key that is the same on every try, and the tool is given it; so
a crash between intent and result can be told from one before or after. Must not know why the
call is made.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any, Protocol

from adapters.canonical.parts import Media, Text
from adapters.canonical.plain import plain
from gateway.runs.arguments import Refused, read
from gateway.runs.asking import CHILDREN
from gateway.runs.bench import Bench
from gateway.runs.ending import said
from gateway.runs.events import Draft, draft
from gateway.runs.judge import Case, approval, find_tool
from gateway.runs.ledger import Tape
from gateway.runs.shares import may_begin
from gateway.runs.state import Call, Run
from gateway.tools.base import Tool, ToolContext, ToolOutcome, ToolSpec
from gateway.tools.caps import capped_outcome

log = logging.getLogger("gateway.runs")

PROGRESS_EVERY = 0.5
"""Seconds between two events of a tool's progress; the newest word counts."""


class Children(Protocol):
    """Whoever carries out child runs."""

    async def attend(self, tape: Tape, call: Call, tool: ToolSpec) -> list[Draft]:
        """Start or take up the child run that ``call`` is, and tell what came of it: its result,
        or that it waits; nothing where it was let go."""
        ...

    async def cancel(self, run_id: str) -> None:
        """Ask for the end of a child run, if it is there and has not ended."""
        ...

    async def end(self, call: Call) -> Draft:
        """Cancel the child run of ``call`` and see it to its end; the call's result."""
        ...


class ToolCalls:
    """The tool calls of one run."""

    def __init__(self, bench: Bench, tape: Tape, key_id: str, project: str) -> None:
        self._bench = bench
        self._tape = tape
        self._key_id = key_id
        self._project = project

    async def make(self, call_id: str, children: Children) -> None:
        """Make the call, or settle why it can't be made.

        :raises Lost: the claim is lost.
        :raises Fault: ``store_unavailable``.
        """
        call = self._tape.run.calls[call_id]
        pinned = find_tool(self._tape.run, call)
        if pinned is not None and pinned.kind in CHILDREN:
            await self._tape.record(await children.attend(self._tape, call, pinned))
            return
        tool = self._bench.tools().get(call.name)
        obstacle = self._obstacle(call, pinned, tool)
        if obstacle is not None:
            await self._tape.record(obstacle)
        elif tool is not None:
            await self._do(call, tool)

    def _obstacle(
        self, call: Call, pinned: ToolSpec | None, tool: Tool | None
    ) -> list[Draft] | None:
        """What keeps the call from being made now, though it could when it was judged."""
        if tool is None:
            return [_failed(call, "unknown_tool", f"The tool {call.name} is not to be had now.")]
        if not self._bench.may_use(self._key_id, call.name):
            text = "The key that started this run may not use this tool."
            told = {"call_id": call.call_id, "reason": "policy", "content": said(text)}
            return [_about(call, "tool.skipped", **told)]
        agreed = call.approved or (None if pinned is None else pinned.schema_hash)
        if agreed != tool.spec.schema_hash:
            return self._changed(call, tool.spec)
        try:
            read(call.arguments, tool.spec.parameters, self._bench.check)
        except Refused as refused:
            return [_failed(call, "invalid_arguments", str(refused))]
        return None

    def _changed(self, call: Call, tool: ToolSpec) -> list[Draft]:
        """The tool is not the one that was offered or agreed to: a person has to agree anew."""
        run = self._tape.run
        drafts: list[Draft] = []
        if call.interrupt is not None:
            told = {"interrupt_id": call.interrupt, "call_id": call.call_id}
            drafts.append(_about(call, "approval.expired", **told, reason="schema_changed"))
        thread = run.threads[call.step.rpartition("/")[0]]
        agent = run.spec.find(call.agent)
        now = self._bench.ledger.clock.wall()
        case = Case(run, thread, call, agent, now, self._bench.check)
        try:
            return [*drafts, approval(case, tool)]
        except Refused as refused:
            return [*drafts, _failed(call, "invalid_arguments", str(refused))]

    async def _do(self, call: Call, tool: Tool) -> None:
        spec, run = tool.spec, self._tape.run
        arguments = read(call.arguments, spec.parameters, self._bench.check)
        told = intent(run, call, arguments, spec)
        if not await self._tape.record(lambda now: [told] if may_begin(now, call.call_id) else []):
            return
        progress = _Progress(self._tape, call)
        loop = asyncio.get_running_loop()
        context = ToolContext(
            idempotency_key=f"{run.id}:{call.call_id}",
            run_id=run.id,
            call_id=call.call_id,
            project=self._project,
            deadline=loop.time() + spec.timeout,
            progress=progress.tell,
        )
        try:
            result = await _outcome(call, tool, arguments, context)
        finally:
            await progress.close()
        # A tool that would not stop in time has been given up, and its call has a result.
        await self._tape.record(
            lambda now: [result] if now.calls[call.call_id].phase == "running" else []
        )


async def _outcome(
    call: Call, tool: Tool, arguments: Mapping[str, Any], context: ToolContext
) -> Draft:
    """Call the tool, whatever it does, and tell what came of it."""
    spec = tool.spec
    try:
        async with asyncio.timeout(spec.timeout):
            outcome = await tool.call(arguments, context)
    except TimeoutError:
        return _failed(call, "timeout", f"The tool gave no result within {spec.timeout:g} s.")
    except Exception as error:
        log.warning("tool %s raised %s", spec.name, type(error).__name__, exc_info=error)
        return _failed(call, "raised", "The tool failed with an error of its own.")
    return result(call, outcome, spec.output_cap)


def result(call: Call, outcome: ToolOutcome, cap: int) -> Draft:
    """The event of a call that came back."""
    kept = capped_outcome(outcome, cap)
    told: dict[str, Any] = {"call_id": call.call_id, "content": plain(kept.content)}
    if _length(outcome.content) > cap:
        told["truncated"] = True
    if outcome.is_error:
        return _about(call, "tool.failed", kind="error", **told)
    if outcome.structured is not None and "truncated" not in told:
        told["structured"] = outcome.structured
    return _about(call, "tool.completed", **told)


def _length(content: tuple[Text | Media, ...]) -> int:
    return sum(len(part.text) for part in content if isinstance(part, Text))


def intent(
    run: Run, call: Call, arguments: Mapping[str, Any], tool: ToolSpec, child: str | None = None
) -> Draft:
    """The event that stands before the effect."""
    return _about(
        call,
        "tool.intent",
        call_id=call.call_id,
        tool=call.name,
        arguments=dict(arguments),
        idempotency_key=f"{run.id}:{call.call_id}",
        schema_hash=tool.schema_hash,
        attempt=call.tries + 1,
        **({} if child is None else {"child_run_id": child}),
    )


def _failed(call: Call, kind: str, text: str) -> Draft:
    return _about(call, "tool.failed", call_id=call.call_id, kind=kind, content=said(text))


def _about(call: Call, type: str, **data: Any) -> Draft:
    return draft(type, step=call.step, agent=call.agent, **data)


class _Progress:
    """A tool's word on its work, told at most every :data:`PROGRESS_EVERY` seconds."""

    def __init__(self, tape: Tape, call: Call) -> None:
        self._tape = tape
        self._call = call
        self._latest: tuple[str, float | None] | None = None
        self._teller: asyncio.Task[None] | None = None

    def tell(self, message: str, done: float | None = None) -> None:
        """Called by the tool, in the event loop."""
        self._latest = (message[:1_000], done)
        if self._teller is None:
            self._teller = asyncio.get_running_loop().create_task(self._tell())

    async def close(self) -> None:
        """The tool is done; what was not told is not told any more."""
        if self._teller is not None:
            self._teller.cancel()
            await asyncio.wait([self._teller])
            if not self._teller.cancelled():
                self._teller.exception()  # whoever writes next meets the same

    async def _tell(self) -> None:
        while self._latest is not None:
            (message, done), self._latest = self._latest, None
            told: dict[str, Any] = {"call_id": self._call.call_id, "message": message}
            if done is not None:
                told["done"] = done
            await self._tape.record([_about(self._call, "tool.progress", **told)])
            await asyncio.sleep(PROGRESS_EVERY)
        self._teller = None
