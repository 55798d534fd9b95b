"""One model turn: asked through ``flow.complete`` like any other call, and written down.

Each attempt is a row of the ledger of requests, under the run's id; the run's events tell of
them. Must not know what the answer leads to.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from adapters.canonical.events import Failed, Finished
from adapters.canonical.faults import Fault
from adapters.canonical.parts import Part, Refusal, Text, ToolCall
from adapters.canonical.plain import plain
from adapters.canonical.request import Message, Request
from adapters.wire.json import dumps
from gateway.flow.complete import complete
from gateway.flow.context import Call, Head, Outcome
from gateway.policy.auth import Principal
from gateway.runs.asking import turn_request
from gateway.runs.bench import Bench
from gateway.runs.deltas import DeltaSink
from gateway.runs.events import Draft, draft
from gateway.runs.ledger import Lost, Tape, patiently
from gateway.runs.state import Run
from gateway.settings.snapshot import Alias

log = logging.getLogger("gateway.runs")

PASSING = frozenset({"rate_limited", "store_unavailable"})
"""What passes by itself: the key's rate limit is met, or the books can't be written."""
MAX_WAITS = 8
"""How often a turn waits for that before it fails."""
LONGEST_WAIT = 60.0
"""Seconds of one such wait."""

UNANSWERED = frozenset({"ok", "streaming"})
"""Outcomes of an attempt that are no failure."""
UNFIT = frozenset({"output_unparsable", "output_invalid", "output_truncated"})


class Used(NamedTuple):
    """What a turn used; a price that is not known is ``None``."""

    usage: dict[str, Any]
    cost_nano: int | None


class Turn:
    """A turn under way."""

    def __init__(self, bench: Bench, tape: Tape, key_id: str, step: str) -> None:
        thread = tape.run.threads[step.rpartition("/")[0]]
        self.step = step
        self.request_ids: list[str] = []
        self._bench = bench
        self._tape = tape
        self._key_id = key_id
        self._agent = thread.agent or None
        self._attempt = thread.tries
        self._started = 0.0
        self._seen = 0
        self._unfit = 0
        self._told: list[Draft] = []
        self._sink = self._new_sink()

    async def make(self) -> None:
        """Ask, and write down what came of it.

        :raises Lost: the claim is lost.
        :raises Fault: ``store_unavailable``.
        """
        outcome: Outcome | None = None
        for wait in range(MAX_WAITS + 1):
            request = await self._begun()
            if request is None:
                break
            outcome = await self._ask(request)
            fault = outcome.terminal.fault if isinstance(outcome.terminal, Failed) else None
            if fault is None or fault.kind not in PASSING or outcome.committed:
                break
            if wait == MAX_WAITS:
                break
            delay = min(fault.retry_after or 1.0, LONGEST_WAIT)
            await self._tape.record([self._failed(fault, retry_after=delay)])
            await asyncio.sleep(delay)
        if outcome is not None:
            await self._end(outcome)

    async def cut(self) -> Draft:
        """The event of a turn that was stopped: what it had said so far."""
        await self._sink.close()
        spoken = [part for part in self._sink.completion().parts if not isinstance(part, ToolCall)]
        return self._finished(spoken, "cut", await self._usage(None), None)

    # asking

    async def _begun(self) -> Request | None:
        """Write down that the model is asked, and for what; ``None`` where a cancel came first."""
        self._attempt += 1
        self._seen = self._unfit = 0
        self._started = self._bench.ledger.clock.monotonic()
        self._sink = self._new_sink()
        run = self._tape.run
        request_id = self._bench.ledger.clock.new_id("req_")
        self.request_ids.append(request_id)
        request = turn_request(run, run.threads[self.step.rpartition("/")[0]])
        told = {"model": request.model, "attempt": self._attempt, "request_id": request_id}
        started = self._event("model.started", **told)
        begun = await self._tape.record(lambda now: [started] if now.status == "running" else [])
        return request if begun else None

    async def _ask(self, request: Request) -> Outcome:
        try:
            call = self._call(self.request_ids[-1], request, self._principal())
            return await complete(call, self._sink)
        except Fault as fault:
            return Outcome(Failed(fault), committed=False, head=Head())
        finally:
            await self._sink.close()
            await self._sink.flush()

    def _call(self, request_id: str, request: Request, principal: Principal) -> Call:
        runtime = self._bench.runtime()
        return Call(
            id=request_id,
            principal=principal,
            request=replace(request, stream=True),
            alias=self._alias(request.model),
            runtime=runtime,
            started=self._started,
            at=runtime.clock.wall(),
            size=len(dumps(plain(request))),
            parent=self._tape.run.id,
        )

    def _alias(self, model: str) -> Alias:
        alias = self._bench.runtime().snapshot.aliases.get(model)
        if alias is None or alias.kind != "chat":
            raise Fault("unknown_model", f"There is no chat model {model!r} here any more.")
        run = self._tape.run
        if run.spec.call is not None or self._agent is None:
            return alias
        policy = run.spec.find(self._agent).context
        return alias if policy is None else replace(alias, context=policy)

    def _principal(self) -> Principal:
        principal = self._bench.principal(self._key_id)
        if principal is None:
            raise Fault("forbidden", "The key that started this run has been revoked.")
        return principal

    # the attempts, as they come

    def _new_sink(self) -> DeltaSink:
        return DeltaSink(
            self.step,
            self._agent,
            self._write_deltas,
            lambda: self._tape.commit_seconds,
            self._on_head,
        )

    async def _write_deltas(self, drafts: Iterable[Draft]) -> None:
        """Deltas may be lost without harm: whoever can't write will hear it at the end, and the
        call in between has to be carried to its end and paid."""
        told, self._told = self._told, []
        try:
            await self._tape.record([*told, *drafts])
        except (Lost, Fault) as error:
            log.warning("run %s: deltas were not written: %r", self._tape.run.id, error)

    def _on_head(self, head: Head) -> None:
        """Note the attempts that have failed since the last head, to be told with the next
        events: who follows the run need not know of a failure sooner than of what came of it."""
        for place in range(self._seen, len(head.attempts)):
            note = head.attempts[place]
            if note.outcome in UNANSWERED:
                continue
            self._seen = place + 1
            error = {"kind": note.outcome}
            event = self._event("model.attempt_failed", error=error, deployment=note.deployment)
            self._told.append(event)
            if note.outcome in UNFIT:
                self._unfit += 1
                told = {"errors": [note.outcome], "attempt": self._unfit}
                self._told.append(self._event("schema.invalid", **told))
            if place + 1 < len(head.attempts):
                self._failover(note.deployment, head.attempts[place + 1].deployment)

    def _failover(self, before: str, after: str) -> None:
        if before != after:
            self._told.append(self._event("model.failover", from_=before, to=after))

    # the end

    async def _end(self, outcome: Outcome) -> None:
        self._on_head(outcome.head)
        told, self._told = self._told, []
        if outcome.head.trimmed:
            told.append(self._event("context.trimmed", counts=dict(outcome.head.trimmed)))
        terminal = outcome.terminal
        if isinstance(terminal, Failed):
            await self._tape.record([*told, *await self._gave_up(terminal.fault)])
        else:
            used = await self._usage(outcome)
            await self._tape.record(
                lambda run: [*told, *self._answered(outcome, terminal, used, run)]
            )

    async def _gave_up(self, fault: Fault) -> list[Draft]:
        if fault.kind == "budget_exceeded":
            return [await self._out_of_money(fault)]
        told = []
        if fault.kind in UNFIT:
            errors = (fault.data or {}).get("errors", [fault.kind])
            told.append(self._event("schema.gave_up", errors=errors))
        used = await self._usage(None)
        return [*told, self._failed(fault, final=True, usage=used.usage, cost_nano=used.cost_nano)]

    async def _out_of_money(self, fault: Fault) -> Draft:
        """The key's own budget is used up: to the run it is like its own."""
        run = self._tape.run
        told: dict[str, Any] = {"which": "key", "used": 0, "limit": 0}
        if run.spec.on_budget == "wait":
            told["interrupt_id"] = f"budget_{run.seq + 1}"
        return self._event("budget.exhausted", **told)

    def _answered(self, outcome: Outcome, terminal: Finished, used: Used, run: Run) -> list[Draft]:
        """The turn's end in ``run`` as it is then: another conversation may just have taken an
        id that this one's calls have, too."""
        parts = unique_calls(self._sink.completion().parts, run.calls)
        told: list[Draft] = []
        if outcome.head.mended or self._unfit:
            changes = list(outcome.head.mended) or ["asked again"]
            told.append(self._event("schema.repaired", changes=changes))
        spoken = [part for part in parts if isinstance(part, Text | Refusal)]
        text = "".join(part.text for part in spoken)
        if text:
            told.append(self._event("message.completed", text=text, parts=plain(spoken)))
        told.append(self._finished(parts, terminal.reason, used, outcome))
        if run.spec.call is None:
            told += [
                self._event("tool.requested", call_id=p.call_id, tool=p.name, arguments=p.arguments)
                for p in parts
                if isinstance(p, ToolCall)
            ]
        return told

    def _finished(
        self, parts: Iterable[Part], reason: str, used: Used, outcome: Outcome | None
    ) -> Draft:
        return self._event(
            "model.finished",
            message=plain(Message("assistant", tuple(parts))),
            finish_reason=reason,
            usage=used.usage,
            cost_nano=used.cost_nano,
            **({} if outcome is None else self._about(outcome)),
        )

    def _about(self, outcome: Outcome) -> dict[str, Any]:
        told: dict[str, Any] = {}
        if outcome.model is not None:
            told["model"] = outcome.model
        if outcome.deployment is not None:
            told["deployment"] = outcome.deployment.name
        if outcome.first_content_at is not None:
            told["ttft_ms"] = round((outcome.first_content_at - self._started) * 1000, 3)
        return told

    async def _usage(self, outcome: Outcome | None) -> Used:
        """What all attempts of the turn used, from their rows, and what the last one reported."""
        ledger = self._bench.ledger
        sums = await patiently(ledger.clock, lambda: ledger.store.calls_usage(self.request_ids))
        usage: dict[str, Any] = {
            "input_tokens": sums.input_tokens,
            "output_tokens": sums.output_tokens,
        }
        if outcome is None:
            return Used(usage, sums.cost_nano)
        if outcome.usage is not None:
            usage["reported"] = plain(replace(outcome.usage, raw=None))
        unpriced = outcome.cost_nano is None and not sums.cost_nano
        return Used(usage, None if unpriced else sums.cost_nano)

    def _failed(self, fault: Fault, **more: Any) -> Draft:
        error = {"kind": fault.kind, "message": fault.message}
        if fault.deployment is not None:
            more["deployment"] = fault.deployment
        return self._event("model.attempt_failed", error=error, **more)

    def _event(self, type: str, **data: Any) -> Draft:
        return draft(type, step=self.step, agent=self._agent, **data)


def unique_calls(parts: Iterable[Part], known: Mapping[str, object]) -> tuple[Part, ...]:
    """``parts`` with call ids that are unique in the run: some servers count from 0 each turn."""
    seen = set(known)
    found: list[Part] = []
    for part in parts:
        if isinstance(part, ToolCall):
            call_id, number = part.call_id, 2
            while call_id in seen:
                call_id, number = f"{part.call_id}-{number}", number + 1
            seen.add(call_id)
            part = part if call_id == part.call_id else replace(part, call_id=call_id)
        found.append(part)
    return tuple(found)
