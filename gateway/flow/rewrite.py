"""What a call's request becomes before it is routed: its prompt put in, personal data masked,
data from outside marked.

The rewritten request is the call's request from here on, for every attempt and every re-ask. What
was masked travels beside it in ``Call.masking`` and dies with the call. Masking fails closed.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace

from adapters.canonical.faults import Fault
from adapters.canonical.parts import Text
from adapters.canonical.request import JsonSchema, Request
from adapters.wire.json import dumps
from gateway.flow.context import Call, Runtime
from gateway.flow.prompting import fenced, prompted
from gateway.policy.auth import Principal
from gateway.policy.inject import Fence
from gateway.policy.redaction.masking import Masking
from gateway.policy.redaction.request import masked, masked_again
from gateway.policy.tokens import text_length
from gateway.settings.snapshot import Alias

log = logging.getLogger("gateway.flow")

BIG = 1 << 18
"""Characters from which on a request is looked at in a thread."""


def is_sent_as_is(call: Call) -> bool:
    """Whether :func:`rewritten` has nothing to do, as with most calls."""
    alias = call.alias
    if call.request.prompt is not None or alias.prompt is not None or alias.fenced:
        return False
    said = alias.redaction if call.principal.redaction is None else call.principal.redaction
    return (call.runtime.redaction.mode if said is None else said) == "off"


async def rewritten(call: Call) -> Call:
    """``call`` as it may be sent. The prompt comes first, so that its variables are masked like
    everything else; the marks come last, so that nothing takes them for a secret.

    :raises Fault: as :func:`prompted` and :func:`private` do.
    """
    fence = Fence()
    request, prompt = await prompted(call.runtime, call.alias, call.request, fence)
    if prompt is not None:
        call = replace(call, request=request, prompt=prompt, size=call.size + _size(request))
    call = await redacted(call)
    request = fenced(call.request, call.alias, call.prompt, fence)
    return call if request is call.request else replace(call, request=request)


def _size(request: Request) -> int:
    """Bytes that a prompt can have added, rather too many than too few."""
    texts = [part.text for part in request.instructions]
    texts += [p.text for m in request.messages for p in m.parts if isinstance(p, Text)]
    schema = request.output.schema if isinstance(request.output, JsonSchema) else {}
    return sum(len(text.encode("utf-8", "replace")) for text in texts) + len(dumps(schema))


async def redacted(call: Call) -> Call:
    """``call`` with its request masked, where its key, its alias or the configuration wants it.

    :raises Fault: as :func:`private` does.
    """
    request, masking = await private(call.runtime, call.principal, call.alias, call.request)
    if request is call.request or masking is None:
        return call
    grown = sum(masking.counts.values()) * max(map(len, masking.originals))
    return replace(call, request=request, masking=masking, size=call.size + grown)


async def private(
    runtime: Runtime, principal: Principal, alias: Alias, request: Request
) -> tuple[Request, Masking | None]:
    """``request`` as it may leave, and what was masked in it.

    :raises Fault: ``bad_request`` naming the kinds, under ``block``; ``internal`` where
        anything fails: then nothing is sent.
    """
    try:
        mode = runtime.redaction.mode_for(principal.redaction, alias)
        if mode == "off":
            return request, None
        masking = Masking(runtime.redaction.scanner, reversible=mode == "reversible")
        new = await _masked(masking, request)
    except Exception as error:  # fails closed: what was not looked at is not sent
        raise Fault(
            "internal",
            "The request could not be checked for personal data, so it was not sent.",
            code="redaction_failed",
            detail=type(error).__name__,
        ) from error
    if mode == "block" and masking.counts:
        raise _blocked(masking.kinds)
    return new, masking


async def _masked(masking: Masking, request: Request) -> Request:
    """In a thread where there is much to look at, so that nobody else waits."""
    length = sum(text_length(part) for message in request.messages for part in message.parts)
    if length < BIG:
        return masked(masking, request)
    return await asyncio.to_thread(masked, masking, request)


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


def _blocked(kinds: list[str]) -> Fault:
    return Fault(
        "bad_request",
        f"The request holds personal data or secrets of these kinds: {', '.join(kinds)}. They may "
        "not be sent to this model. Take them out, or use a model or key that masks them.",
        code="redaction_blocked",
        data={"kinds": kinds},
    )
