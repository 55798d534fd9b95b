"""The body of an operator's request: read once its sender is let in, and within the bound.

The framework would read a body declared in a door's signature before it asks who sent it, and to
any length.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from fastapi import Request

from gateway.http.body import read_body
from gateway.http.deps import Admin, Gateway
from gateway.http.endpoint import MEGABYTE
from gateway.northbound.base import DEFAULT_LIMITS
from gateway.northbound.body import read_object

T = TypeVar("T")


def posted(shape: Callable[[Mapping[str, Any]], T]) -> Callable[..., Awaitable[T]]:
    """A dependency that gives the body's JSON object as ``shape`` makes it."""

    async def read(request: Request, state: Gateway, admin: Admin) -> T:
        headers = {name.lower(): value for name, value in request.headers.items()}
        limit = int(state.snapshot.server.max_body_mb * MEGABYTE)
        return shape(read_object(await read_body(request.receive, headers, limit), DEFAULT_LIMITS))

    return read
