"""Token estimates of one call's request, each family's made at most once."""

from __future__ import annotations

from adapters.canonical.facts import Facts
from adapters.canonical.request import Request
from gateway.policy.tokens import Estimate, estimate
from gateway.settings.snapshot import Target

UNKNOWN_OUTPUT = 4096
"""Output tokens reserved where neither the caller nor the facts name a ceiling."""


class Counted:
    """Counts a request lazily: most calls have one target and need one estimate.

    ``size`` is the caller's body in bytes. A token is at least a byte, so a body smaller than
    the window needs no counting to be known to fit; inline media alone is bigger than it costs.
    """

    __slots__ = ("_by_family", "_request", "_size")

    def __init__(self, request: Request, size: int) -> None:
        self._request = request
        self._size = size
        self._by_family: dict[str, Estimate] = {}

    def estimate(self, facts: Facts) -> Estimate:
        """The request's input tokens for a model with ``facts``."""
        found = self._by_family.get(facts.family)
        if found is None:
            found = self._by_family[facts.family] = estimate(self._request, facts)
        return found

    def output(self, facts: Facts) -> int:
        """The most output tokens that the call can make: the caller's limit, else the model's."""
        asked = self._request.sampling.max_output_tokens
        if asked is not None:
            return asked
        return facts.max_output if facts.max_output is not None else UNKNOWN_OUTPUT

    def misfit(self, target: Target) -> str | None:
        """Why the request can't fit ``target``'s window, or ``None``.

        Only the input and what the caller asked for count: a model's own maximum is cut by the
        provider to what is left. The estimate's error bound is given to the request's favour:
        what may fit is tried.
        """
        facts = target.deployment.facts
        if facts.window is None:
            return None
        asked = self._request.sampling.max_output_tokens or 0
        if self._size + asked <= facts.window:
            return None
        counted = self.estimate(facts)
        needed = counted.tokens - counted.bound + asked
        return None if needed <= facts.window else f"window {facts.window} < {needed} needed"
