"""The one auth dependency. Deny by default: a door without it is open on purpose, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from fastapi import Depends, Query, Request

from adapters.canonical.faults import Fault
from gateway.policy.auth import Principal, Role
from gateway.services.state import State

OPEN = frozenset(
    {
        *(("GET", path) for path in ("/", "/healthz", "/readyz", "/metrics")),
        *(("HEAD", path) for path in ("/", "/healthz", "/readyz")),
    }
)
"""What answers without a key; ``/metrics`` only on loopback or with its own token."""


Version = Annotated[int | None, Query(ge=1, le=2**31 - 1)]
"""Which version of something, by default the newest."""


def state_of(request: Request) -> State:
    """The gateway that serves this request."""
    state: State = request.app.state.gateway
    return state


LISTS = frozenset({"include", "include[]"})
"""Parameters of a query that clients repeat. The others are read once: of two values of one,
either could be what was meant."""


def once(request: Request) -> None:
    """Refuse a parameter that is there twice.

    :raises Fault: ``bad_request`` with ``param``.
    """
    seen = set[str]()
    for name, _ in request.query_params.multi_items():
        if name in seen and name not in LISTS:
            told = name if name.isascii() and name.isidentifier() else None
            text = f"The query has {told or 'a parameter'} more than once; it is read once."
            raise Fault("bad_request", text, param=told)
        seen.add(name)


def _principal(role: Role) -> Callable[[Request], Principal]:
    def authenticate(request: Request) -> Principal:
        state = state_of(request)
        headers = {name.lower(): value for name, value in request.headers.items()}
        principal = state.keyring.authenticate(headers, state.runtime.clock.wall())
        if role == "admin" and principal.role != "admin":
            raise Fault(
                "forbidden",
                f"The key {principal.key_name!r} is a caller's key; this path needs an admin key.",
                code="admin_only",
            )
        once(request)
        return principal

    return authenticate


Gateway = Annotated[State, Depends(state_of)]
Caller = Annotated[Principal, Depends(_principal("caller"))]
Admin = Annotated[Principal, Depends(_principal("admin"))]
