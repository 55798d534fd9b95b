"""Token estimates of one call's request, which is looked at only once for all targets."""

from __future__ import annotations

from collections.abc import Set

from adapters.canonical.facts import Facts
from adapters.canonical.faults import Fault
from adapters.canonical.parts import NO_EXTRAS, Text
from adapters.canonical.request import Request
from adapters.registry import DIALECTS
from gateway.policy.tokens import Estimate, Measure, measure, weigh
from gateway.policy.window import Fit, Policy, fit
from gateway.settings.snapshot import Target

UNKNOWN_OUTPUT = 4096
"""Output tokens reserved where neither the caller nor the facts name a ceiling."""

WORDS: Set[type] = frozenset({Text})
"""The kinds of parts that most requests have, shared because a stream may be open for long."""


class Counted:
    """Counts a request lazily: most calls have one target and need one estimate.

    ``size`` is the caller's body in bytes. A token is at least a byte, so a body smaller than
    the window needs no counting to be known to fit; inline media alone is bigger than it costs.
    ``kinds`` are the types of the messages' parts: most requests have nothing but text, and much
    is then known to have nothing to do. ``plain`` are those that have no stop sequences either,
    and hold their own beginning. ``most`` is what body and answer are at most, in tokens.
    """

    __slots__ = ("_measure", "kinds", "most", "plain", "request", "size")

    def __init__(self, request: Request, size: int) -> None:
        self.request = request
        self.size = size
        kinds = {type(part) for message in request.messages for part in message.parts}
        self.kinds = WORDS if kinds == WORDS else kinds
        sampling = request.sampling
        self.plain = kinds == WORDS and not request.continues and not sampling.stop
        self.most = size + (sampling.max_output_tokens or 0)
        self._measure: Measure | None = None

    def estimate(self, facts: Facts) -> Estimate:
        """The request's input tokens for a model with ``facts``."""
        if self._measure is None:
            self._measure = measure(self.request)
        return weigh(self._measure, facts)

    def output(self, facts: Facts) -> int:
        """The most output tokens that the call can make: the caller's limit, else the model's,
        for each choice."""
        sampling = self.request.sampling
        most = facts.max_output if facts.max_output is not None else UNKNOWN_OUTPUT
        asked = sampling.max_output_tokens
        return (most if asked is None else asked) * (sampling.n or 1)

    def fit(self, target: Target, policy: Policy) -> Fit:
        """The request as ``target``'s window takes it, trimmed where ``policy`` allows.

        What the caller said of it goes before ``policy``, the alias's; a provider that leaves out
        the oldest turns itself is left to it.
        Only the input and what the caller asked for count: a model's own maximum is cut by the
        provider to what is left.

        :raises Fault: ``context_overflow`` with the numbers, where it can't fit.
        """
        facts = target.deployment.facts
        if self.surely_fits(facts.window):
            return Fit(self.request, NO_EXTRAS)
        said = self.request.truncate
        if said is False:
            policy = "refuse"
        elif said and _truncates(target):
            return Fit(self.request, NO_EXTRAS)
        elif said and policy == "refuse":
            policy = "trim_history"
        return fit(self.request, facts, policy, self.request.sampling.max_output_tokens or 0)

    def surely_fits(self, window: int | None) -> bool:
        """Whether the request fits ``window`` however many tokens its bytes are."""
        return window is None or self.most <= window

    def misfit(self, target: Target, policy: Policy) -> str | None:
        """Why the request can't be made to fit ``target``'s window, in a phrase, or ``None``."""
        try:
            self.fit(target, policy)
        except Fault as fault:
            numbers = fault.data or {}
            needed = numbers["estimated_input_tokens"] + numbers["reserved_output_tokens"]
            return f"window {numbers['context_window']} < {needed} needed"
        return None


def _truncates(target: Target) -> bool:
    """Whether the target's protocol has a word for leaving out what does not fit."""
    return DIALECTS[target.deployment.provider.dialect].FIELDS["truncate"].to is not None
