"""What callers ask of the run doors beside bodies: which runs, how long a token lasts."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

LONGEST_TOKEN = 15 * 60
"""Seconds: a stream token lasts no longer (design section 9)."""


class Listing(BaseModel):
    """Which runs; ``after`` is the last id of the page before."""

    model_config = ConfigDict(extra="forbid")

    status: str | None = None
    agent: str | None = None
    parent: str | None = None
    limit: int = Field(default=20, ge=1, le=100)
    after: str | None = None


class TokenRequest(BaseModel):
    """How many seconds a token lasts."""

    model_config = ConfigDict(extra="forbid")

    ttl_seconds: float = Field(default=LONGEST_TOKEN, gt=0, le=LONGEST_TOKEN)
