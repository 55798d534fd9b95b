"""A request made ready for one target: fitted, encoded, priced.

The one place where the constraint table meets a request, on every path: first try, retry,
failover, repair (fault kind K06). Pure.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace

from adapters.canonical.facts import Fitted, Price, constrain
from adapters.canonical.faults import Fault
from adapters.canonical.pairing import PAIRED, check_results
from adapters.canonical.parts import NO_EXTRAS, Thinking
from adapters.canonical.request import Request
from adapters.registry import DIALECTS
from adapters.wire.names import caller_name
from gateway.flow.context import Prepared
from gateway.flow.count import Counted
from gateway.flow.seals import Makers
from gateway.flow.stops import own_stops
from gateway.flow.summary import summarised
from gateway.policy.tokens import Estimate
from gateway.policy.tokens import estimate as measured
from gateway.settings.snapshot import Alias, Deployment, Target
from gateway.structured.negotiate import negotiate

MILLION = 1_000_000
NONE: tuple[str, ...] = ()


def prepare(
    counted: Counted,
    target: Target,
    alias: Alias,
    *,
    makers: Makers,
    strict: bool,
    verify: bool = False,
) -> Prepared:
    """Make the counted request ready for ``target``.

    :param alias: says what may be trimmed where the window is too small.
    :param makers: whose sealed reasoning ``target`` may be given.
    :param verify: a JSON answer goes to the caller as it comes.
    :raises Fault: ``bad_request`` or ``unsupported`` for what can't be sent there,
        ``context_overflow`` for what can't be made to fit; under ``strict`` also for
        what would have to be dropped.
    """
    deployment, facts = target.deployment, target.deployment.facts
    request, trimmed = counted.request, NO_EXTRAS
    if not counted.surely_fits(facts.window):
        request, trimmed = counted.fit(target, alias.context)
    sent, added, stops = request, NONE, NONE
    if not counted.plain or alias.reasoning_summary is not None:
        sent, added, stops = _meant(request, counted.kinds, target, alias, makers)
    fitted = constrain(sent, facts)
    dialect = DIALECTS[deployment.provider.dialect]
    asked = negotiate(fitted.request, dialect.name, facts, as_it_comes=verify)
    sent = fitted.request if asked is None else asked.request
    encoded = dialect.encode(sent, deployment.model, facts)
    if added:
        encoded = replace(encoded, injected=(*added, *encoded.injected))
    dropped, adjusted = encoded.dropped, encoded.adjusted
    if asked is not None:
        adjusted = (*asked.adjusted, *adjusted)
    if fitted.dropped or fitted.adjusted:
        refused, clamped = _as_called(request, fitted)
        dropped, adjusted = (*refused, *dropped), (*clamped, *adjusted)
    if strict and dropped:
        raise _lossy(deployment, dropped)
    estimate = measured(request, facts) if trimmed else counted.estimate(facts)
    output = counted.output(facts)
    tokens = estimate.tokens + estimate.bound + output
    nano = reservation(estimate, output, facts.price)
    return Prepared(
        target, encoded, dropped, adjusted, estimate.tokens, tokens, nano, trimmed, asked, stops
    )


def _meant(
    request: Request, kinds: Set[type], target: Target, alias: Alias, makers: Makers
) -> tuple[Request, tuple[str, ...], tuple[str, ...]]:
    """``request`` as it is meant for ``target``, what was added to it, and the stop sequences that
    the gateway watches for itself. Few need any of that: those with more than text, with stop
    sequences, or without their own beginning; and all of an alias that wants reasoning summarised.

    :raises Fault: as :func:`_check_history` does.
    """
    deployment = target.deployment
    if request.continues or not kinds.isdisjoint(PAIRED):
        _check_history(request, deployment)
    if Thinking in kinds:
        request = makers.bound(request, alias, target)
    request, added = summarised(request, alias, target)
    request, stops = own_stops(request, deployment)
    return request, added, stops


def _as_called(request: Request, fitted: Fitted) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What was dropped and adjusted, as the caller wrote it."""

    def called(field: str) -> str:
        limit = request.sampling.limit_name if field == "max_output_tokens" else None
        return limit or caller_name(request.origin, field)

    notes = (note.partition("=") for note in fitted.adjusted)
    adjusted = tuple(f"{called(field)}={change}" for field, _, change in notes)
    return tuple(map(called, fitted.dropped)), adjusted


def _lossy(deployment: Deployment, dropped: tuple[str, ...]) -> Fault:
    return Fault(
        "unsupported",
        f"{deployment.name} can't carry {', '.join(dropped)}, and x-gateway-strict forbids to "
        "leave anything out. Remove the fields, or send the request without that header.",
        param=dropped[0],
    )


def _check_history(request: Request, deployment: Deployment) -> None:
    """Calls and results belong together, unless the provider holds what came before.

    :raises Fault: ``bad_request``, or ``unsupported`` where another protocol's provider does.
    """
    if not request.continues:
        check_results(request)
    elif deployment.provider.dialect != request.origin:
        raise Fault(
            "unsupported",
            f"The request continues a conversation that a provider of {request.origin} keeps; "
            f"{deployment.name} does not know it. Send the whole conversation.",
            code="thread_unsupported_request",
        )


def reservation(counted: Estimate, output: int, price: Price | None) -> int:
    """Nano-dollars to reserve, rounded up; an unknown price reserves nothing.

    Cache writes cost more than plain input, so the dearest input rate is taken.
    """
    if price is None:
        return 0
    prompt = counted.tokens + counted.bound
    dearest = price.input.at(prompt)
    for rate in (price.cache_write, price.cache_write_1h):
        if rate is not None:
            dearest = max(dearest, rate.at(prompt))
    return -(-(prompt * dearest + output * price.output.at(prompt)) // MILLION)
