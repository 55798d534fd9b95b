"""Money: whole nano-dollars inside, dollars as exact text or decimals at the edges."""

from __future__ import annotations

from decimal import Decimal

NANO = 1_000_000_000
"""Nano-dollars in a dollar."""


def nano(usd: Decimal) -> int:
    """US dollars as whole nano-dollars."""
    return int((usd * NANO).to_integral_value())


def nano_if_set(usd: Decimal | None) -> int | None:
    """The same for a limit that may be unset: ``None`` stays ``None``."""
    return None if usd is None else nano(usd)


def dollars(amount: int) -> str:
    """Nano-dollars as dollars, exactly and without trailing zeros: ``0.000125``."""
    whole, rest = divmod(abs(amount), NANO)
    sign = "-" if amount < 0 else ""
    return f"{sign}{whole}.{rest:09d}".rstrip("0").rstrip(".")
