"""What every dialect gives, and nothing of what any of them does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Protocol

from adapters.canonical.completion import Completion
from adapters.canonical.events import Event, TextRun
from adapters.canonical.facts import Facts
from adapters.canonical.faults import Fault
from adapters.canonical.parts import Dialect as DialectName
from adapters.canonical.record import record
from adapters.canonical.request import Request
from adapters.wire.call import Encoded
from adapters.wire.sse import Frame


@record(frozen=True, slots=True)
class Field:
    """How one field of the canonical request fares in a protocol.

    ``mapped``: ``to`` names the wire field. ``refused``: a 400 that names it, because leaving
    it out would change what the caller gets. ``dropped``: left out and named in
    ``x-gateway-dropped``. ``note`` is one sentence for the mapping page.
    """

    state: Literal["mapped", "refused", "dropped"]
    to: str | None = None
    note: str = ""


class Decoder(Protocol):
    """Decodes one answer. Sans-IO; never raises for what a provider may send: a fault in the
    stream is a ``Failed`` event."""

    @property
    def skims(self) -> bool:
        """Whether :meth:`skim` ever finds anything."""
        ...

    def skim(self, data: bytes, at: int) -> TextRun | None:
        """What stands at ``at`` in the stream's bytes, the start of an SSE event, if that is
        text in frames that need no decoding; everything else has to be fed frame by frame."""
        ...

    def feed(self, frame: Frame) -> list[Event]:
        """The events of one SSE frame. After the terminal, nothing more comes."""
        ...

    def close(self) -> list[Event]:
        """End of file: nothing if the terminal was seen (a chat stream's ``finish_reason`` is
        released here if ``[DONE]`` did not come), else ``Failed(stream_truncated)``."""
        ...

    def body(self, data: bytes) -> list[Event]:
        """All events of a whole JSON body, terminal included; equal in meaning to the stream."""
        ...

    def answer(self, data: bytes) -> Completion | list[Event]:
        """A whole JSON body for whoever looks at no single event: an ordinary answer (a text, its
        counts, a good end) comes as the fold of its events at once, any other as :meth:`body`."""
        ...


class Dialect(Protocol):
    """A protocol that some providers speak."""

    name: DialectName
    FIELDS: Mapping[str, Field]

    def encode(self, request: Request, model: str, facts: Facts) -> Encoded:
        """The provider's own request for ``model``; ``request`` already passed ``constrain``.

        :raises Fault: ``unsupported`` or ``bad_request`` with ``param`` for what the protocol
            can't carry and must not lose.
        """
        ...

    def decoder(self, *, verbatim: bool = False, skims: bool = False) -> Decoder:
        """A fresh decoder; with ``verbatim`` each list of events starts with the frame.

        :param skims: with ``verbatim``: text that is only passed on may come as ``TextRun``. A
            dialect may leave that alone.
        """
        ...

    def error(self, status: int, headers: Mapping[str, str], body: bytes) -> Fault:
        """The fault behind an answer with an error status; ``body`` is bounded, maybe no JSON."""
        ...

    def auth(self, api_key: str) -> Mapping[str, str]:
        """The headers that carry the provider's key."""
        ...
