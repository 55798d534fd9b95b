"""A request made ready for one target: fitted, encoded, priced.

The one place where the constraint table meets a request, on every path: first try, retry,
failover, repair (fault kind K06). Pure.
"""

from __future__ import annotations

from adapters.canonical.facts import Price, constrain
from adapters.canonical.faults import Fault
from adapters.canonical.pairing import check_results
from adapters.canonical.request import Request
from adapters.registry import DIALECTS
from gateway.flow.context import Prepared
from gateway.flow.count import Counted
from gateway.policy.tokens import Estimate
from gateway.settings.snapshot import Target

MILLION = 1_000_000


def prepare(request: Request, counted: Counted, target: Target, *, strict: bool) -> Prepared:
    """Make ``request`` ready for ``target``.

    :raises Fault: ``bad_request`` or ``unsupported`` for what can't be sent there;
        under ``strict`` also for what would have to be dropped.
    """
    deployment = target.deployment
    facts = deployment.facts
    check_results(request)
    fitted = constrain(request, facts)
    dialect = DIALECTS[deployment.provider.dialect]
    encoded = dialect.encode(fitted.request, deployment.model, facts)
    dropped = (*fitted.dropped, *encoded.dropped)
    if strict and dropped:
        raise Fault(
            "unsupported",
            f"{deployment.name} can't carry {', '.join(dropped)}, and x-gateway-strict forbids "
            "to leave anything out. Remove the fields, or send the request without that header.",
            param=dropped[0],
        )
    estimate = counted.estimate(facts)
    output = counted.output(facts)
    return Prepared(
        target=target,
        encoded=encoded,
        dropped=dropped,
        adjusted=(*fitted.adjusted, *encoded.adjusted),
        estimated_input=estimate.tokens,
        tokens=estimate.tokens + estimate.bound + output,
        nano=reservation(estimate, output, facts.price),
    )


def reservation(counted: Estimate, output: int, price: Price | None) -> int:
    """Nano-dollars to reserve, rounded up; an unknown price reserves nothing.

    Cache writes cost more than plain input, so the dearest input rate is taken.
    """
    if price is None:
        return 0
    prompt = counted.tokens + counted.bound
    rates = (price.input, price.cache_write, price.cache_write_1h)
    dearest = max(rate.at(prompt) for rate in rates if rate is not None)
    return -(-(prompt * dearest + output * price.output.at(prompt)) // MILLION)
