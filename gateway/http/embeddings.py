"""``POST /v1/embeddings``: one body in, one body out."""

from __future__ import annotations

import asyncio

from adapters.canonical.embedding import EmbeddingRequest
from adapters.canonical.events import Failed
from adapters.canonical.faults import Fault
from gateway.flow.context import Call
from gateway.flow.embed import as_request, embed
from gateway.flow.tracing import begin
from gateway.http.ending import Ending
from gateway.http.endpoint import MEGABYTE, Endpoint, is_strict
from gateway.http.exchange import Exchange
from gateway.http.headers import head_lines
from gateway.northbound.embeddings import parse, write
from gateway.services.aliases import resolve
from gateway.services.state import State


class Embeddings(Endpoint):
    """The endpoint for vectors."""

    def __init__(self, state: State) -> None:
        super().__init__(state, "openai-chat")

    async def _serve(self, exchange: Exchange) -> None:
        runtime = self._state.runtime
        started, at = runtime.clock.monotonic(), runtime.clock.wall()
        principal = self._caller(exchange, at)
        limit = int(runtime.snapshot.server.max_body_mb * MEGABYTE)
        body = await exchange.read(limit)
        asked, dropped = parse(body)
        alias = resolve(runtime.snapshot, principal, asked.model, "embedding")
        call = Call(
            id=exchange.id,
            principal=principal,
            request=as_request(asked),
            alias=alias,
            runtime=runtime,
            started=started,
            at=at,
            size=len(body),
            dropped=dropped,
            strict=is_strict(exchange.headers, dropped),
            trace=begin(runtime.tracer, exchange.headers, alias, exchange.id),
        )
        exchange.watch()
        ending = Ending(self._state, exchange, call)
        try:
            await self._answer(exchange, call, asked, ending)
        finally:
            ending.tell()

    async def _answer(
        self, exchange: Exchange, call: Call, asked: EmbeddingRequest, ending: Ending
    ) -> None:
        try:
            outcome, answer = await embed(call, asked)
            ending.outcome = outcome
            head = head_lines(outcome.head)
            if isinstance(outcome.terminal, Failed) or answer is None:
                assert isinstance(outcome.terminal, Failed)
                await exchange.fail(outcome.terminal.fault, head)
                return
            data = write(answer, asked, call.alias.report_model)
        except Fault as fault:
            ending.fault = fault
            await exchange.fail(fault)
        except asyncio.CancelledError:
            ending.fault = exchange.stopped()
            if ending.fault is not None:
                await exchange.fail(ending.fault)
        else:
            await exchange.answer(200, data, head)
