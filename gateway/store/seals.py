"""Who made which sealed reasoning, over restarts and replicas: digests and names, no content.

Must not know what a seal looks like, nor who may see it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

SEAL = ["digest", "provider", "family", "at"]
"""Columns, in the order in which they are written."""


class Seal(NamedTuple):
    """A seal by its digest, and its maker: a provider, with a model of a family."""

    digest: bytes
    provider: str
    family: str


class SealBook(Protocol):
    """The part of the store that knows the makers of seals."""

    async def keep_seals(self, seals: Sequence[Seal], at: float) -> None:
        """Write down who made ``seals``, at least one; known ones are kept longer.

        :param at: Unix seconds, from which their retention counts.
        """
        ...

    async def seals(self, digests: Sequence[bytes]) -> Sequence[Seal]:
        """Those of ``digests`` that are known."""
        ...
