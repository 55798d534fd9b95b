"""What a call's request becomes before it is routed: personal data masked. Fails closed.

The masked request is the call's request from here on, for every attempt and every re-ask; what
was masked travels beside it in ``Call.masking`` and dies with the call.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace

from adapters.canonical.faults import Fault
from adapters.canonical.request import Request
from gateway.flow.context import Call
from gateway.policy.redaction.masking import Masking
from gateway.policy.redaction.request import masked, masked_again

log = logging.getLogger("gateway.flow")

BIG = 1 << 18
"""Bytes of a body from which on it is looked at in a thread, so that nobody else waits."""


async def redacted(call: Call) -> Call:
    """``call`` as its key, its alias or the configuration wants personal data treated.

    :raises Fault: ``bad_request`` naming the kinds, under ``block``; ``internal`` where
        anything fails: then nothing is sent.
    """
    try:
        mode = call.runtime.redaction.mode_for(call.principal.redaction, call.alias)
        if mode == "off":
            return call
        masking = Masking(call.runtime.redaction.scanner, reversible=mode == "reversible")
        if call.size < BIG:
            request = masked(masking, call.request)
        else:
            request = await asyncio.to_thread(masked, masking, call.request)
    except Exception as error:  # fails closed: what was not looked at is not sent
        raise _failed(error) from error
    if mode == "block" and masking.counts:
        raise _blocked(masking.kinds)
    if request is call.request:
        return call
    grown = sum(map(len, masking.originals))
    return replace(call, request=request, masking=masking, size=call.size + grown)


def reasked(call: Call, request: Request) -> Request | None:
    """A re-ask, whose new turns hold restored values, as it may leave: masked like the rest.
    ``None`` where that fails: then it is not asked, and what was wrong with the answer stands."""
    if call.masking is None:
        return request
    try:
        return masked_again(call.masking, request, len(call.request.messages))
    except Exception as error:  # noqa: BLE001 - fails closed: the re-ask is not sent
        log.error("a re-ask could not be masked: %s", type(error).__name__)
        return None


def _failed(error: Exception) -> Fault:
    return Fault(
        "internal",
        "The request could not be checked for personal data, so it was not sent.",
        code="redaction_failed",
        detail=type(error).__name__,
    )


def _blocked(kinds: list[str]) -> Fault:
    return Fault(
        "bad_request",
        f"The request holds personal data or secrets of these kinds: {', '.join(kinds)}. They may "
        "not be sent to this model. Take them out, or use a model or key that masks them.",
        code="redaction_blocked",
        data={"kinds": kinds},
    )
