"""What every northbound dialect gives, and nothing of what any of them does.

The HTTP room calls only this: :meth:`Northbound.parse` on the way in, then either
:meth:`Northbound.encoder` for a stream or :meth:`Northbound.whole` for one body. Faults become
bodies in :mod:`gateway.northbound.errors`. Nothing here reads a clock or makes an id: both are
handed in with the :class:`Envelope`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Literal, Protocol

from adapters.canonical.completion import Completion
from adapters.canonical.events import Event, Terminal
from adapters.canonical.parts import NO_EXTRAS
from adapters.canonical.parts import Dialect as DialectName
from adapters.canonical.record import record
from adapters.canonical.request import Request
from adapters.dialects.base import Field


@record(frozen=True, slots=True)
class Limits:
    """How much one request may hold; more is a 400 that names the field.

    ``depth`` counts nested arrays and objects of the body, ``choices`` is the largest ``n``.
    """

    depth: int = 64
    choices: int = 1
    messages: int = 10_000
    tools: int = 1_000


DEFAULT_LIMITS = Limits()

MOST_TOKENS = 2**31 - 1
"""The longest answer that a request may ask for. Its price is reserved in the books, whose
numbers have 64 bits."""


@record(frozen=True, slots=True)
class Style:
    """How the caller wants the answer written; it changes no meaning and goes to no provider.

    ``include_usage``: a usage chunk at the end of a chat stream. ``legacy_calls``: the caller
    sent ``functions``, so calls are answered as ``function_call``. ``echo``: request fields
    that the answer repeats (Responses), by their wire names.
    """

    include_usage: bool = False
    legacy_calls: bool = False
    echo: Mapping[str, Any] = NO_EXTRAS


DEFAULT_STYLE = Style()


@record(frozen=True, slots=True)
class Memory:
    """What a Responses caller asks of the gateway's own store, never of a provider.

    ``previous`` is the response that this one continues, ``conversation`` the one that it joins;
    ``store`` is the caller's word or ``None``; ``items`` is the input as given, for keeping, and
    ``references`` are the ids of kept items in it. Whoever serves the dialect has to act on it or
    refuse it.
    """

    previous: str | None = None
    conversation: str | None = None
    background: bool = False
    store: bool | None = None
    items: Sequence[Mapping[str, Any]] = ()
    references: tuple[str, ...] = ()

    @property
    def continues(self) -> bool:
        """Whether the request relies on something that it does not hold itself."""
        return self.previous is not None or self.conversation is not None or bool(self.references)


@record(frozen=True, slots=True)
class Asked:
    """A caller's body, understood.

    ``dropped`` names the caller's fields that no provider will see whatever the dialect, for
    ``x-gateway-dropped`` (promise 12). ``memory`` is given by the Responses dialect only.
    """

    request: Request
    style: Style = DEFAULT_STYLE
    dropped: tuple[str, ...] = ()
    memory: Memory | None = None


@record(frozen=True, slots=True)
class Envelope:
    """What the outside of an answer needs beyond its events.

    ``id`` is the gateway's own id for this answer, with the dialect's prefix (``chatcmpl-``,
    ``resp_``, ``msg_``); used unless the provider's stays (promise 3). ``created`` is Unix
    seconds. ``alias`` is the model as the caller named it, shown when ``report_model`` is
    ``alias`` or the provider named none. ``wall`` tells the time, in Unix seconds, to dialects
    whose answers say when they were complete.
    """

    id: str
    created: int
    alias: str
    style: Style = DEFAULT_STYLE
    report_model: Literal["upstream", "alias"] = "upstream"
    wall: Callable[[], float] | None = None


class StreamEncoder(Protocol):
    """Writes one streamed answer. Sans-IO, synchronous, never raises for a valid stream.

    ``PING`` is what keeps an idle connection open in this dialect.
    """

    PING: ClassVar[bytes]

    @property
    def told(self) -> Mapping[str, Any] | None:
        """After :meth:`finish`: the whole answer as one object, in a dialect whose answers can
        be kept; ``None`` in the others."""
        ...

    def feed(self, events: list[Event]) -> bytes:
        """The SSE bytes for ``events``, the terminal never among them; may be empty."""
        ...

    def verdict(self, told: Mapping[str, Any]) -> bytes:
        """One frame with the verdict on an answer that was streamed before it was checked:
        ``valid``, ``code`` and ``errors``. Comes right before :meth:`finish`."""
        ...

    def finish(self, terminal: Terminal) -> bytes:
        """The last bytes: for ``Finished`` the dialect's proper end, for ``Failed`` one
        in-band error and nothing that could be taken for success.

        An end that could not be sent may be followed by a ``Failed`` in its place."""
        ...


class Northbound(Protocol):
    """A protocol that callers speak. Implementations are stateless values."""

    name: DialectName
    FIELDS: Mapping[str, Field]

    def parse(
        self, body: bytes, headers: Mapping[str, str], limits: Limits = DEFAULT_LIMITS
    ) -> Asked:
        """Understand a request body (already decompressed, its size already bounded).

        :param headers: the caller's headers, lower-case names; only protocol headers of the
            dialect are read, never authorisation.
        :raises Fault: ``bad_request``, ``unsupported`` or ``too_large``, with ``param``.
        """
        ...

    def encoder(self, envelope: Envelope) -> StreamEncoder:
        """A fresh encoder for one streamed answer."""
        ...

    def whole(self, completion: Completion, envelope: Envelope) -> bytes:
        """One JSON body for an answer whose terminal is ``Finished``."""
        ...
