"""How many input tokens a request has, asked of the provider where it can say.

A count bills nothing, so it has no row in the ledger. Must not know HTTP.
"""

from __future__ import annotations

from adapters.canonical.faults import Fault
from adapters.canonical.record import record
from adapters.canonical.request import Request
from adapters.registry import COUNTS
from adapters.wire.json import loads
from adapters.wire.usage import count
from gateway.flow.context import Runtime
from gateway.flow.prompting import fenced, prompted
from gateway.flow.rewrite import private
from gateway.policy.auth import Principal
from gateway.policy.inject import Fence
from gateway.policy.tokens import estimate
from gateway.settings.snapshot import Alias, Target


@record(frozen=True, slots=True)
class TokenCount:
    """``estimated`` is true where no provider was asked or none could answer."""

    tokens: int
    estimated: bool


async def count_tokens(
    runtime: Runtime, principal: Principal, request: Request, alias: Alias
) -> TokenCount:
    """The count of the alias's first target that counts by itself, else our own estimate.

    :raises Fault: where the provider finds the request itself at fault, or it may not leave.
    """
    fence = Fence()
    request, prompt = await prompted(runtime, alias, request, fence)
    request, _ = await private(runtime, principal, alias, request)
    request = fenced(request, alias, prompt, fence)
    for target in alias.targets:
        if target.deployment.provider.dialect in COUNTS:
            counted = await _ask(runtime, request, target)
            if counted is not None:
                return TokenCount(counted, estimated=False)
    return TokenCount(estimate(request, alias.targets[0].deployment.facts).tokens, estimated=True)


async def _ask(runtime: Runtime, request: Request, target: Target) -> int | None:
    """The provider's own count; ``None`` where it does not answer properly."""
    deployment = target.deployment
    encoded = COUNTS[deployment.provider.dialect](request, deployment.model, deployment.facts)
    adapter = runtime.adapters[deployment.provider.name]
    try:
        fetched = await adapter.fetch(encoded.call, target.timeouts)
        body = loads(fetched.body)
    except Fault as fault:
        if fault.row.blame == "caller":
            raise
        return None
    except ValueError:
        return None
    return count(body.get("input_tokens")) if isinstance(body, dict) else None
