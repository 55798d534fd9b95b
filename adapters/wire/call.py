"""A call to a provider and the head of its reply, as plain values."""

from __future__ import annotations

from collections.abc import Mapping

from adapters.canonical.parts import NO_EXTRAS
from adapters.canonical.record import record


@record(frozen=True, slots=True)
class Timeouts:
    """Seconds; design section 6. Pings and comments reset none of them."""

    connect: float = 5.0
    first_event: float = 120.0
    between_events: float = 120.0
    total: float = 600.0


@record(frozen=True, slots=True)
class WireCall:
    """One HTTP request, ready to be sent. ``path`` is appended to the provider's base URL.

    ``headers`` never hold credentials: the adapter adds those.
    """

    path: str
    body: bytes
    stream: bool
    headers: Mapping[str, str] = NO_EXTRAS
    method: str = "POST"


@record(frozen=True, slots=True)
class Encoded:
    """What a dialect made of a request.

    ``dropped``: caller fields that this protocol can't carry, by their names on the caller's
    wire where known. ``injected``: values that the protocol demands and the caller did not
    give, as ``name=value``. ``adjusted``: values brought into range, as ``name=from->to``.
    """

    call: WireCall
    dropped: tuple[str, ...] = ()
    injected: tuple[str, ...] = ()
    adjusted: tuple[str, ...] = ()
