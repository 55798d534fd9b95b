"""What callers ask of the run doors beside bodies: which runs, how long a token lasts."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, with_config
from typing_extensions import TypedDict

from gateway.northbound.base import DEFAULT_LIMITS
from gateway.northbound.body import read_object, validated

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


@with_config(ConfigDict(extra="forbid"))
class TokenBody(TypedDict, total=False):
    """The body of ``POST /runs/{id}/stream-tokens``."""

    ttl_seconds: Annotated[float, Field(gt=0, le=LONGEST_TOKEN)]


_TOKEN = TypeAdapter(TokenBody)


def parse_token(body: bytes) -> float:
    """How many seconds a token lasts; an empty body is as long as may be.

    :raises Fault: ``bad_request`` with ``param``.
    """
    given = validated(_TOKEN, read_object(body or b"{}", DEFAULT_LIMITS))
    return float(given.get("ttl_seconds", LONGEST_TOKEN))
