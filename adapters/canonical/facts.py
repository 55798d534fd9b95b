"""What is known about a model, as data; and the one place where a request is made to fit it.

Never branch on a provider's name: add a field here and a row in ``config/models.toml``
(fault kind K06). :func:`constrain` runs just before every dispatch, first try or failover.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import field, replace
from itertools import chain
from typing import NamedTuple

from adapters.canonical.parts import Media
from adapters.canonical.record import record
from adapters.canonical.request import FunctionTool, JsonObject, JsonSchema, Request

CAPABILITIES = frozenset(
    {
        "tools",
        "parallel_tools",
        "images",
        "files",
        "audio",
        "streaming",
        "json_schema",
        "json_object",
        "reasoning",
        "adaptive_thinking",
        "prefill",
        "stop",
        "logprobs",
        "seed",
        "penalties",
        "logit_bias",
        "n",
        "mid_system",
        "schema_limits",
    }
)
"""The closed set of capability names. ``mid_system``: a system message may stand amid the turns;
``schema_limits``: schemas that are enforced strictly may hold limits, such as ``maximum``."""


SAMPLING_NEEDS = {
    "seed": "seed",
    "frequency_penalty": "penalties",
    "presence_penalty": "penalties",
    "logit_bias": "logit_bias",
}
"""Sampling fields that are hints: dropped and named where the model lacks the capability."""


@record(frozen=True, slots=True)
class Rate:
    """Nano-dollars per million tokens, with steps at input sizes: ``(from_tokens, rate)``."""

    base: int
    tiers: tuple[tuple[int, int], ...] = ()

    def at(self, prompt_tokens: int) -> int:
        """The rate for a call whose whole input is ``prompt_tokens``."""
        rate = self.base
        for start, price in self.tiers:
            if prompt_tokens > start:
                rate = price
        return rate


@record(frozen=True, slots=True)
class Price:
    """A model's rates; ``None`` means that the table does not know that class.

    ``date`` names the price table (its version and day) and writes the rates out, for the ledger.
    """

    input: Rate
    output: Rate
    cache_read: Rate | None = None
    cache_write: Rate | None = None
    cache_write_1h: Rate | None = None
    date: str = ""


@record(frozen=True, slots=True)
class Facts:
    """One model's facts. ``None`` is "not known"; what is not known forbids nothing.

    ``refuses``: request fields that the model answers with a 400 (``temperature``, ``top_p``,
    ``top_k``, ``stop`` …), dropped and named. ``one_of``: fields of which at most one may be
    sent, in order of preference. ``min_output``: the least ``max_output_tokens`` accepted.
    ``efforts``: accepted reasoning efforts, empty for any. ``thinking``: how reasoning is asked
    for on Anthropic: ``manual`` (a token budget), ``adaptive``, or ``none``. ``limit_name``: what
    a chat server calls the output limit (``max_tokens`` or ``max_completion_tokens``); unset, it
    is called what the caller called it.
    """

    model: str
    family: str = "unknown"
    window: int | None = None
    max_output: int | None = None
    capabilities: frozenset[str] = CAPABILITIES - {"logprobs", "audio", "n", "prefill"}
    temperature_max: float | None = None
    refuses: frozenset[str] = frozenset()
    one_of: tuple[tuple[str, ...], ...] = ()
    min_output: int | None = None
    efforts: tuple[str, ...] = ()
    thinking: str = "manual"
    limit_name: str | None = None
    price: Price | None = None
    unheard: tuple[str, ...] = field(init=False, repr=False, compare=False)
    """The sampling fields that are no more than hints, and that the model can't take."""

    def __post_init__(self) -> None:
        unheard = (name for name, need in SAMPLING_NEEDS.items() if not self.can(need))
        object.__setattr__(self, "unheard", tuple(unheard))

    def can(self, capability: str) -> bool:
        """Whether the model has ``capability``."""
        return capability in self.capabilities


class Fitted(NamedTuple):
    """A request that the model accepts, and what had to change: for header and ledger."""

    request: Request
    dropped: tuple[str, ...]
    adjusted: tuple[str, ...]


MEDIA_NEEDS = {"image": "images", "file": "files", "audio": "audio"}
"""What a model has to be able to read."""


def constrain(request: Request, facts: Facts) -> Fitted:
    """Fit ``request`` to ``facts``: ranges clamped, refused fields dropped, each named.

    Names in the result are canonical field names; the wire's own names are the dialects'
    matter. Pure; the request that came in is untouched.
    """
    dropped: list[str] = []
    adjusted: list[str] = []
    sampling = request.sampling
    changes: dict[str, object] = {}
    for name in facts.refuses:
        if getattr(sampling, name, None) not in (None, ()):
            changes[name] = () if name == "stop" else None
            dropped.append(name)
    for name in facts.unheard:
        if getattr(sampling, name) is not None:
            changes[name] = None
            dropped.append(name)
    for group in facts.one_of:
        present = [n for n in group if getattr(sampling, n) is not None and n not in changes]
        for name in present[1:]:
            changes[name] = None
            dropped.append(name)
    value, most = sampling.temperature, facts.temperature_max
    if value is not None and most is not None and "temperature" not in changes:
        _clamp("temperature", value, None, most, changes, adjusted)
    limit = sampling.max_output_tokens
    if limit is not None and "max_output_tokens" not in changes:
        _clamp("max_output_tokens", limit, facts.min_output, facts.max_output, changes, adjusted)
    if not changes:
        return Fitted(request, (), ())
    fitted = replace(request, sampling=replace(sampling, **changes))  # type: ignore[arg-type]
    return Fitted(fitted, tuple(sorted(dropped)), tuple(adjusted))


def _clamp(
    name: str,
    value: float,
    low: float | None,
    high: float | None,
    changes: dict[str, object],
    adjusted: list[str],
) -> None:
    """Bring a number into the model's range; a change is named ``field=from->to``."""
    fitted = value
    if low is not None and fitted < low:
        fitted = low
    if high is not None and fitted > high:
        fitted = high
    if fitted != value:
        changes[name] = fitted
        adjusted.append(f"{name}={value:g}->{fitted:g}")


def needs(request: Request, kinds: Set[type]) -> frozenset[str]:
    """The capabilities without which the request makes no sense (design section 6).

    A missing native schema is no obstacle (section 7), so schemas are not listed.

    :param kinds: the types of the messages' parts.
    """
    wanted: frozenset[str] = frozenset()
    if request.tools and any(isinstance(tool, FunctionTool) for tool in request.tools):
        wanted |= {"tools"}
    if request.stream:
        wanted |= {"streaming"}
    if request.sampling.logprobs:
        wanted |= {"logprobs"}
    if Media in kinds:
        parts = chain.from_iterable(message.parts for message in request.messages)
        wanted |= {MEDIA_NEEDS[part.kind] for part in parts if isinstance(part, Media)}
    return wanted


def schema_tier(request: Request, facts: Facts) -> str:
    """How an asked-for JSON answer is obtained: ``none native object instructions``."""
    match request.output:
        case None:
            return "none"
        case JsonSchema() if facts.can("json_schema"):
            return "native"
        case JsonSchema() | JsonObject() if facts.can("json_object"):
            return "object"
        case _:
            return "instructions"
