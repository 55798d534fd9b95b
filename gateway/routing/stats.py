"""How long each deployment takes to its first content: what ``least_latency`` goes by.

Must not know aliases or strategies.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

WEIGHT = 0.2
"""The share of the newest sample in the moving average."""

STALE = 300.0
"""Seconds without a sample after which a deployment is unknown again and gets a new chance."""

FAILED = 60.0
"""Seconds that a try without any content counts as: slow, yet forgotten like any sample."""


class Stats:
    """Moving averages by deployment name; bounded like :class:`Breakers`, by ``retain``."""

    __slots__ = ("_latency",)

    def __init__(self) -> None:
        self._latency: dict[str, tuple[float, float]] = {}

    def observe(self, name: str, now: float, seconds: float | None) -> None:
        """Take the time to first content of one try; ``None`` where none came."""
        sample = FAILED if seconds is None else seconds
        known = self._latency.get(name)
        if known is not None:
            average, at = known
            if now - at <= STALE:
                sample = average + WEIGHT * (sample - average)
        self._latency[name] = sample, now

    def latency(self, name: str, now: float) -> float | None:
        """The average in seconds, or ``None`` if there is no fresh sample."""
        known = self._latency.get(name)
        return None if known is None or now - known[1] > STALE else known[0]

    def retain(self, names: Collection[str]) -> None:
        """Forget every deployment that is not in ``names``."""
        self._latency = {name: value for name, value in self._latency.items() if name in names}

    def snapshot(self, now: float) -> Mapping[str, float]:
        """Fresh averages by deployment name."""
        found = ((name, self.latency(name, now)) for name in self._latency)
        return {name: seconds for name, seconds in found if seconds is not None}
