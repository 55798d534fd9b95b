"""The path of every embedding: the same tries, limits and books as a conversation's.

The texts stand in the call's own request, one message each, so that whatever looks at requests
(who may ask, personal data, token counts) looks at these too. Must not know HTTP.
"""

from __future__ import annotations

from dataclasses import replace

from adapters.adapter import Pumped
from adapters.canonical.embedding import EmbeddingRequest, Embeddings, Form
from adapters.canonical.events import Event, Finished, Started, UsageReported
from adapters.canonical.faults import Fault
from adapters.canonical.parts import NO_EXTRAS, Text
from adapters.canonical.request import Message, Request
from adapters.wire import embeddings
from gateway.flow.books import Books
from gateway.flow.context import Call, Outcome, Prepared
from gateway.flow.prepare import reservation
from gateway.flow.record import Try
from gateway.flow.rewrite import redacted
from gateway.flow.route import planned_for
from gateway.flow.trying import Trying
from gateway.policy.admit import admit
from gateway.policy.tokens import Estimate, estimate
from gateway.routing.plan import Ask, Plan
from gateway.settings.snapshot import Target

_WELL = Finished("stop")


def as_request(asked: EmbeddingRequest) -> Request:
    """The request that stands for ``asked`` in its call."""
    texts = tuple(
        Message("user", (Text(given),)) for given in asked.inputs if isinstance(given, str)
    )
    return Request(asked.model, texts, "openai-chat", end_user=asked.end_user)


async def embed(call: Call, asked: EmbeddingRequest) -> tuple[Outcome, Embeddings | None]:
    """Carry ``call`` to its vectors; ``None`` where the outcome is a failure.

    :raises Fault: for what is refused before any provider is asked, and is on no bill.
    :raises asyncio.CancelledError: when the caller has left; the books are closed then, too.
    """
    admit(call.principal, call.request, call.alias)
    call = await redacted(call)
    _check_tokens(call, asked)
    asked = replace(asked, inputs=_inputs(asked, call.request))
    target = call.alias.targets[0]
    tokens = _counted(call.request, asked, target).tokens
    # A window is each input's own, and only the provider knows how long an input is in it.
    planned = await planned_for(call, Ask(frozenset(), input_tokens=tokens))
    trying = _Embedding(call, planned, asked)
    outcome = await trying.run()
    return outcome, trying.answer


class _Embedding(Trying):
    """The tries of one call for vectors."""

    __slots__ = ("_asked", "answer")

    def __init__(self, call: Call, route: Plan, asked: EmbeddingRequest) -> None:
        super().__init__(call, route, Books(call, route))
        self._asked = asked
        self.answer: Embeddings | None = None

    def _prepare(self, target: Target) -> Prepared:
        deployment = target.deployment
        counted = _counted(self._call.request, self._asked, target)
        return Prepared(
            target=target,
            encoded=embeddings.encode(self._asked, deployment.model),
            dropped=(),
            adjusted=(),
            estimated_input=counted.tokens,
            tokens=counted.tokens + counted.bound,
            nano=reservation(counted, 0, deployment.facts.price),
            trimmed=NO_EXTRAS,
        )

    async def _perform(self, one: Try) -> Fault | None:
        deployment = one.prepared.target.deployment
        adapter = self._call.runtime.adapters[deployment.provider.name]
        try:
            fetched = await adapter.fetch(
                one.prepared.encoded.call, self._timeouts(one.prepared), one.marks
            )
            answer = _in_form(
                embeddings.decode(fetched.body, len(self._asked.inputs)), self._asked.form
            )
        except Fault as fault:
            fault.deployment = deployment.name
            return fault
        one.pumped = Pumped(
            _WELL,
            fetched.status,
            fetched.headers,
            fetched.sent_at,
            fetched.headers_at,
            None,
            fetched.ended_at,
        )
        one.meter.feed(_told(answer))
        self.answer = answer
        return None

    def _moved_on(self) -> None:
        """Every target is asked the same."""


def _in_form(answer: Embeddings, form: Form | None) -> Embeddings:
    """The answer in the form that the caller gets, so that a vector that has none is this try's
    failure and not the caller's.

    :raises Fault: ``protocol_error``.
    """
    vectors = tuple(embeddings.in_form(vector, form or "float") for vector in answer.vectors)
    return replace(answer, vectors=vectors)


def _told(answer: Embeddings) -> list[Event]:
    """What the books need to hear of an answer."""
    usage = [] if answer.usage is None else [UsageReported(answer.usage)]
    return [Started(None, answer.model), *usage, _WELL]


def _check_tokens(call: Call, asked: EmbeddingRequest) -> None:
    """Refuse token arrays where personal data is looked for: nobody can read them.

    :raises Fault: ``bad_request``.
    """
    mode = call.runtime.redaction.mode_for(call.principal.redaction, call.alias)
    if mode != "off" and not all(isinstance(given, str) for given in asked.inputs):
        raise Fault(
            "bad_request",
            "input: this gateway looks for personal data, which it can't do in arrays of tokens. "
            "Send texts.",
            param="input",
        )


def _inputs(asked: EmbeddingRequest, request: Request) -> tuple[str | tuple[int, ...], ...]:
    """The inputs with their texts as the request has them now."""
    texts = iter(
        part.text
        for message in request.messages
        for part in message.parts
        if isinstance(part, Text)
    )
    return tuple(next(texts) if isinstance(given, str) else given for given in asked.inputs)


def _counted(request: Request, asked: EmbeddingRequest, target: Target) -> Estimate:
    """Tokens of all inputs: arrays are counted, texts estimated."""
    given = sum(len(tokens) for tokens in asked.inputs if not isinstance(tokens, str))
    guessed = estimate(request, target.deployment.facts)
    return Estimate(guessed.tokens + given, guessed.bound)
