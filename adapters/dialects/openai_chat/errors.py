"""Failures of chat servers: error statuses, errors inside an answer, and broken answers.

What a code or a text means is decided for all providers in :mod:`adapters.wire.signs`.
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


def in_answer(value: Mapping[str, Any], event: str) -> Fault | None:
    """The fault that a chunk or body tells of, under status 200, or ``None``.

    Servers put it in ``error`` beside or instead of the choices, send the error object bare as
    an ``event: error``, or mark it ``"object": "error"``.
    """
    error = value.get("error")
    if error is not None:
        return errors.in_band(error)
    if event == "error" or value.get("object") == "error":
        return errors.in_band(value)
    return None


def malformed(what: str) -> Fault:
    """The provider broke its own protocol; ``what`` is for the logs."""
    return Fault(
        "protocol_error",
        "The provider's answer does not follow the chat completions protocol.",
        detail=what,
    )


def truncated() -> Fault:
    """The answer ended without saying why, so it is not known to be whole."""
    return Fault("stream_truncated", "The provider's answer ended without a finish_reason.")


def ended_by(raw_reason: str, kind: str) -> Fault:
    """The provider itself says, in ``finish_reason``, that it failed."""
    return Fault(kind, "The provider ended the answer with an error.", upstream_code=raw_reason)
