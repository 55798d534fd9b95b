"""What a run has used, what it may use, and when one meets the other. Pure arithmetic."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

from adapters.canonical.record import record
from gateway.runs.spec import Budget
from gateway.settings.money import NANO, dollars, nano

THRESHOLDS = (0.5, 0.8)
"""Shares of a budget at which subscribers are told."""


@record(frozen=True, slots=True)
class Used:
    """Sums over a run, its child runs included. ``seconds`` is time at work; unknown prices
    count as nothing, and ``unpriced`` says how many turns had none."""

    input_tokens: int = 0
    output_tokens: int = 0
    nano: int = 0
    tool_calls: int = 0
    turns: int = 0
    seconds: float = 0.0
    unpriced: int = 0

    def plus(self, usage: Mapping[str, Any] | None, nano: int | None) -> Used:
        """With the tokens and the price of a turn or of a child run, and with that one's calls."""
        usage = usage or {}
        return replace(
            self,
            input_tokens=self.input_tokens + (usage.get("input_tokens") or 0),
            output_tokens=self.output_tokens + (usage.get("output_tokens") or 0),
            nano=self.nano + (nano or 0),
            tool_calls=self.tool_calls + (usage.get("tool_calls") or 0),
            unpriced=self.unpriced + (1 if nano is None else 0),
        )

    def shown(self) -> dict[str, Any]:
        """As events and bodies tell it; dollars as exact text."""
        return {
            "turns": self.turns,
            "tool_calls": self.tool_calls,
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "total_tokens": self.input_tokens + self.output_tokens,
            "cost_nano": self.nano,
            "cost_usd": dollars(self.nano),
            "unpriced_turns": self.unpriced,
            "seconds": round(self.seconds, 3),
        }


@record(frozen=True, slots=True)
class Gauge:
    """One budget and how much of it is used, both in the unit of its name."""

    which: str
    used: float
    limit: float

    @property
    def share(self) -> float:
        """The used share; a budget of nothing is used up from the start."""
        return self.used / self.limit if self.limit > 0 else 1.0

    @property
    def exhausted(self) -> bool:
        """Whether nothing is left."""
        return self.used >= self.limit


def gauges(budget: Budget, used: Used) -> Iterator[Gauge]:
    """A gauge for each budget that is set."""
    rows: tuple[tuple[str, float, float | None], ...] = (
        ("usd", used.nano, budget.nano),
        ("tokens", used.input_tokens + used.output_tokens, budget.tokens),
        ("tool_calls", used.tool_calls, budget.tool_calls),
        ("seconds", used.seconds, budget.seconds),
    )
    for which, amount, limit in rows:
        if limit is not None:
            scale = NANO if which == "usd" else 1
            yield Gauge(which, amount / scale, limit / scale)


def threshold(gauge: Gauge, told: frozenset[tuple[str, float]]) -> float | None:
    """The highest threshold that ``gauge`` has reached, if it is news."""
    reached = [share for share in THRESHOLDS if gauge.share >= share]
    if not reached or (gauge.which, reached[-1]) in told:
        return None
    return reached[-1]


MOST = 2**63 - 1
"""What a budget grows to, however often it is topped up: the ledger keeps 64 bits."""


def more(budget: Budget, added: Mapping[str, Any]) -> Budget:
    """``budget`` grown by ``added`` (dollars as text or number); the unlimited stays so."""

    def grown(old: float | None, by: Any) -> Any:
        return old if old is None or by is None else min(old + by, MOST)

    usd = added.get("usd")
    return Budget(
        nano=grown(budget.nano, None if usd is None else nano(Decimal(str(usd)))),
        tokens=grown(budget.tokens, added.get("tokens")),
        tool_calls=grown(budget.tool_calls, added.get("tool_calls")),
        seconds=grown(budget.seconds, added.get("seconds")),
    )


def rest(budget: Budget, used: Used) -> Budget:
    """What is left of ``budget``."""

    def left(limit: float | None, amount: float) -> Any:
        return None if limit is None else max(0, limit - amount)

    return Budget(
        nano=left(budget.nano, used.nano),
        tokens=left(budget.tokens, used.input_tokens + used.output_tokens),
        tool_calls=left(budget.tool_calls, used.tool_calls),
        seconds=left(budget.seconds, used.seconds),
    )


def least(one: Budget, other: Budget) -> Budget:
    """The stricter of two budgets, field by field."""

    def lower(a: float | None, b: float | None) -> Any:
        return b if a is None else a if b is None else min(a, b)

    return Budget(
        nano=lower(one.nano, other.nano),
        tokens=lower(one.tokens, other.tokens),
        tool_calls=lower(one.tool_calls, other.tool_calls),
        seconds=lower(one.seconds, other.seconds),
    )
