"""Money: whole nano-dollars inside, dollars as exact text or decimals at the edges."""

from __future__ import annotations

from decimal import Decimal
from typing import overload

NANO = 1_000_000_000
"""Nano-dollars in a dollar."""


@overload
def nano(usd: Decimal) -> int: ...
@overload
def nano(usd: Decimal | None) -> int | None: ...
def nano(usd: Decimal | None) -> int | None:
    """US dollars as whole nano-dollars; ``None`` stays ``None``."""
    return None if usd is None else int((usd * NANO).to_integral_value())


def dollars(amount: int) -> str:
    """Nano-dollars as dollars, exactly and without trailing zeros: ``0.000125``."""
    whole, rest = divmod(abs(amount), NANO)
    sign = "-" if amount < 0 else ""
    return f"{sign}{whole}.{rest:09d}".rstrip("0").rstrip(".")
