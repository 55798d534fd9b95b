"""What a call carries along its path, and what it leaves behind.

A call keeps the :class:`Runtime` that it started with, so that a reload never changes a request
in flight. Plain values; the work is done elsewhere.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import field
from typing import Any, Protocol

from adapters.adapter import Adapter
from adapters.canonical.clock import Clock
from adapters.canonical.events import Event, Failed, Terminal, Usage
from adapters.canonical.facts import Facts
from adapters.canonical.parts import NO_EXTRAS
from adapters.canonical.record import record
from adapters.canonical.request import Request
from adapters.wire.call import Encoded
from gateway.flow.leases import Leases
from gateway.flow.memory import Memory
from gateway.flow.tracing import UNTRACED, Trace
from gateway.observe.metrics import Metrics
from gateway.observe.traces import NoTracer, Tracer
from gateway.policy.auth import Principal
from gateway.policy.prompts.book import Book
from gateway.policy.prompts.definition import Prompt
from gateway.policy.redaction.masking import Masking
from gateway.policy.redaction.settings import Redaction
from gateway.routing.breaker import Breakers
from gateway.routing.plan import Router
from gateway.routing.stats import Stats
from gateway.settings.snapshot import Alias, Deployment, Snapshot, Target
from gateway.store.base import RateState, Store
from gateway.structured.check import Schemas
from gateway.structured.negotiate import Asked


@record(frozen=True, slots=True, weakref_slot=True)
class Runtime:
    """The parts of the running gateway that a call needs, as of one configuration."""

    snapshot: Snapshot
    store: Store
    adapters: Mapping[str, Adapter]
    breakers: Breakers
    stats: Stats
    metrics: Metrics
    clock: Clock
    random: random.Random
    memory: Memory
    router: Router
    redaction: Redaction = field(default_factory=Redaction)
    prompts: Book = field(default_factory=Book)
    schemas: Schemas = field(default_factory=Schemas)
    tracer: Tracer = field(default_factory=NoTracer)
    leases: Leases = field(default_factory=Leases)


@record(frozen=True, slots=True)
class Call:
    """One call of a caller: who, what, since when.

    ``id`` is the request id on every answer, row and log line. ``started`` is monotonic, ``at``
    wall time, both in seconds. ``size`` is the caller's body in bytes; ``dropped`` names fields
    of it that go to no provider. ``strict`` makes a dropped field a 400. ``parent`` names the run
    or the call that this one belongs to. ``verify`` is the caller's word on how a checked answer
    is streamed, ``None`` for the alias's. ``prompt`` is what the request was made with, ``masking``
    what stands in it for personal data; ``None`` where there is none.
    """

    id: str
    principal: Principal
    request: Request
    alias: Alias
    runtime: Runtime
    started: float
    at: float
    size: int = 0
    dropped: tuple[str, ...] = ()
    strict: bool = False
    parent: str | None = None
    trace: Trace = UNTRACED
    verify: bool | None = None
    prompt: Prompt | None = None
    masking: Masking | None = None

    @property
    def proves(self) -> bool:
        """Whether the answer has to pass a schema, or its tool calls theirs."""
        request = self.request
        if request.output is not None:
            return True
        return bool(request.tools) and self.alias.on_invalid_arguments == "repair"

    @property
    def restores(self) -> Masking | None:
        """What has to be put back into the answer, if anything has."""
        return self.masking if self.masking is not None and self.masking.restores else None

    @property
    def end_user(self) -> str | None:
        """Who the caller said it is for: the provider sees a placeholder for an address, the
        books need what was said, so that a person's rows can be found and deleted."""
        said = self.request.end_user
        return said if said is None or self.masking is None else self.masking.original(said)

    @property
    def redactions(self) -> Mapping[str, int]:
        """How many values of each kind are masked, as the ledger names them."""
        return {} if self.masking is None else self.masking.ledger()

    @property
    def verifies(self) -> bool:
        """Whether a checked answer is streamed as it comes, its verdict at the end."""
        wanted = self.alias.structured == "verify" if self.verify is None else self.verify
        return wanted and self.request.stream and self.proves

    @property
    def holds(self) -> bool:
        """Whether nothing goes out before the whole answer is there."""
        if not self.request.stream or self.alias.commit == "complete":
            return True
        return self.proves and not self.verifies


@record(frozen=True, slots=True)
class Prepared:
    """A request made ready for one target, and what had to change on the way.

    ``tokens`` is the reservation: the input estimate with its error bound, plus the output's
    ceiling; ``nano`` is its price in nano-dollars. ``trimmed`` counts what was left out so that
    it fits the window. ``asked`` is how JSON was asked for, if it was. ``stops`` are the stop
    sequences at which the gateway itself ends the answer.
    """

    target: Target
    encoded: Encoded
    dropped: tuple[str, ...]
    adjusted: tuple[str, ...]
    estimated_input: int
    tokens: int
    nano: int
    trimmed: Mapping[str, int]
    asked: Asked | None = None
    stops: tuple[str, ...] = ()

    @property
    def facts(self) -> Facts:
        """The target's facts."""
        return self.target.deployment.facts


@record(frozen=True, slots=True)
class AttemptNote:
    """One try as the ``x-gateway-attempts`` header tells it: ``provider/model:outcome``."""

    deployment: str
    outcome: str

    def __str__(self) -> str:
        return f"{self.deployment}:{self.outcome}"


@record(frozen=True, slots=True)
class Head:
    """What the answer's headers say; built anew for each attempt, so that nothing of an
    abandoned one leaks."""

    attempts: tuple[AttemptNote, ...] = ()
    dropped: tuple[str, ...] = ()
    adjusted: tuple[str, ...] = ()
    trimmed: Mapping[str, int] = NO_EXTRAS
    mended: tuple[str, ...] = ()
    rates: Mapping[str, RateState] = field(default_factory=dict)


class CallSink(Protocol):
    """Where a call's events go. A :class:`adapters.canonical.stage.Sink` that is told which
    attempt speaks: whatever it sends next goes under the latest head."""

    def use(self, head: Head) -> None:
        """The attempt under way has this head."""
        ...

    async def send(self, events: list[Event]) -> None:
        """Take events, the terminal never among them."""
        ...


@record(frozen=True, slots=True)
class Outcome:
    """How a call ended, settled in the ledger and not yet told to the caller.

    ``committed``: content has gone out, so a fault must be told in-band. ``verdict`` tells of
    an answer that was streamed unproven: ``valid``, ``code``, ``errors``.
    """

    terminal: Terminal
    committed: bool
    head: Head
    usage: Usage | None = None
    deployment: Deployment | None = None
    model: str | None = None
    first_content_at: float | None = None
    cost_nano: int | None = None
    verdict: Mapping[str, Any] | None = None

    @property
    def failed(self) -> bool:
        """Whether the call ended in a fault."""
        return isinstance(self.terminal, Failed)
