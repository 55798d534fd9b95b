"""What a provider's schema language lacks, said in words that the model reads.

Must not know any provider: each protocol's projection decides what it can't hold.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adapters.wire.json import dumps


def described(description: Any, lacking: Mapping[str, Any]) -> str:
    """``description`` with the ``lacking`` keywords of its schema behind it."""
    words = "; ".join(f"{name}: {dumps(value).decode()}" for name, value in lacking.items())
    before = f"{description}\n\n" if isinstance(description, str) and description else ""
    return f"{before}({words})"
