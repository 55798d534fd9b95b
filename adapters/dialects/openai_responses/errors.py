"""Answers with an error status, and errors inside an answer.

OpenAI's error object carries ``code``, ``type``, ``message`` and ``param`` wherever it stands;
what they mean is decided for all providers in :mod:`adapters.wire.signs`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adapters.canonical.clock import SystemClock
from adapters.canonical.faults import Fault
from adapters.wire import errors


def of_status(status: int, headers: Mapping[str, str], body: bytes) -> Fault:
    """The fault behind an answer with an error status.

    The wall clock is read only for a ``Retry-After`` date in an answer without ``Date``.
    """
    return errors.fault(status, headers, body, SystemClock.wall())


def of_event(event: Mapping[str, Any]) -> Fault:
    """The fault behind an ``error`` event. The documented form has its fields at the top, the
    one that OpenAI sends has them in ``error``."""
    inner = event.get("error")
    flat = {n: value for n, value in event.items() if n != "type" or value != "error"}
    return errors.in_band(inner if isinstance(inner, dict | str) else flat)


def of_response(response: Mapping[str, Any]) -> Fault:
    """The fault behind a response whose status is ``failed`` or ``cancelled``."""
    error = response.get("error")
    if error is None and response.get("status") == "cancelled":
        return Fault("upstream_server", "The provider cancelled the answer.")
    return errors.in_band(error)


def malformed(what: str) -> Fault:
    """The provider broke its own protocol."""
    return Fault(
        "protocol_error",
        "The provider's answer does not follow the Responses protocol.",
        detail=what,
    )
