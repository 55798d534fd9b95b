"""Who is calling: from a bearer key to a principal.

Keys are never kept: the keyring holds HMAC-SHA256 digests under the server's pepper, and a
look-up by digest reveals nothing through its timing, since the digest of a guess is random to
whoever lacks the pepper. Must not know HTTP beyond header names.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Literal

from adapters.canonical.faults import Fault
from adapters.canonical.record import record
from gateway.settings.snapshot import KeySettings, Limits
from gateway.store.base import KeyRow

Role = Literal["caller", "admin"]


@record(frozen=True, slots=True)
class Principal:
    """Who a request acts for. The project is the tenant; the key may rotate under it."""

    key_id: str
    key_name: str
    project: str
    role: Role
    models: frozenset[str] | None = None
    limits: Limits = field(default_factory=Limits)
    expires_at: float | None = None
    redaction: str | None = None
    tools: frozenset[str] | None = None
    from_file: bool = False

    def may_use(self, alias: str) -> bool:
        """Whether the key may call ``alias``."""
        return self.models is None or alias in self.models


def new_key() -> str:
    """A fresh key with 256 bits of randomness; it is shown once and never stored."""
    return "sk-gw-" + secrets.token_urlsafe(32)


def bearer(headers: Mapping[str, str]) -> str | None:
    """The key a caller presents: ``Authorization: Bearer`` or ``x-api-key`` (lower-cased
    header names); ``None`` if there is none."""
    authorization = headers.get("authorization", "")
    scheme, _, value = authorization.partition(" ")
    if scheme.lower() == "bearer" and value.strip():
        return value.strip()
    return headers.get("x-api-key") or None


class Keyring:
    """Every key that opens a door, by digest. Replaced piecewise: file keys on reload, stored
    keys whenever the store's key version moves."""

    __slots__ = ("_file", "_peppered", "_stored", "default_limits")

    def __init__(self, pepper: bytes, default_limits: Limits | None = None) -> None:
        self._peppered = hmac.new(pepper, digestmod="sha256")
        self._file: dict[bytes, Principal] = {}
        self._stored: dict[bytes, Principal] = {}
        self.default_limits = default_limits if default_limits is not None else Limits()

    def use_file(self, keys: Iterable[KeySettings], default_limits: Limits) -> None:
        """Take the keys of a configuration."""
        self.default_limits = default_limits
        self._file = {
            self.digest(key.key.reveal()): _from_settings(key, default_limits) for key in keys
        }

    def use_stored(self, rows: Iterable[KeyRow]) -> None:
        """Take the keys of the store; revoked ones open nothing."""
        self._stored = {
            row.digest: _from_row(row, self.default_limits)
            for row in rows
            if row.revoked_at is None
        }

    def digest(self, key: str) -> bytes:
        """What is stored in a key's place: its HMAC-SHA256 under this ring's pepper.

        ``hmac.digest`` would let other threads run meanwhile, for however short a key; getting
        the turn back from the store's writer took longer than all the rest of this.
        """
        told = self._peppered.copy()
        told.update(key.encode("utf-8", "surrogatepass"))
        return told.digest()

    def presented(self, headers: Mapping[str, str]) -> bytes | None:
        """The :meth:`digest` of the key that a caller presents."""
        key = bearer(headers)
        return None if key is None else self.digest(key)

    def authenticate(self, headers: Mapping[str, str], now: float) -> Principal:
        """The principal behind the presented key; raises as :meth:`principal` does."""
        return self.principal(self.presented(headers), now)

    def principal(self, presented: bytes | None, now: float) -> Principal:
        """The principal behind a key that was :meth:`presented`.

        :raises Fault: ``unauthenticated`` without a key, with a wrong or an expired one.
        """
        if presented is None:
            raise Fault(
                "unauthenticated",
                "No API key was sent. Send it as 'Authorization: Bearer KEY' or 'x-api-key: KEY'.",
                code="missing_api_key",
            )
        principal = self._file.get(presented) or self._stored.get(presented)
        if principal is None:
            raise Fault(
                "unauthenticated",
                "This API key is not known here, or has been revoked. Ask the operator for a key.",
                code="invalid_api_key",
            )
        if principal.expires_at is not None and principal.expires_at <= now:
            raise Fault(
                "unauthenticated",
                "This API key has expired. Ask the operator for a new one.",
                code="expired_api_key",
            )
        return principal

    def principals(self) -> list[Principal]:
        """Every principal that could call now."""
        return [*self._file.values(), *self._stored.values()]


def file_key_id(name: str) -> str:
    """The id of a key that the configuration file defines."""
    return f"file:{name}"


def _from_settings(key: KeySettings, default: Limits) -> Principal:
    return Principal(
        key_id=file_key_id(key.name),
        key_name=key.name,
        project=key.project,
        role=key.role,
        models=None if key.models is None else frozenset(key.models),
        limits=key.limits.over(default),
        expires_at=key.expires,
        redaction=key.redaction,
        tools=None if key.tools is None else frozenset(key.tools),
        from_file=True,
    )


def _from_row(row: KeyRow, default: Limits) -> Principal:
    tools = row.settings.get("tools")
    return Principal(
        key_id=row.id,
        key_name=row.name,
        project=row.project,
        role=row.role,
        models=None if row.models is None else frozenset(row.models),
        limits=row.limits.over(default),
        expires_at=row.expires_at,
        redaction=row.settings.get("redaction"),
        tools=None if tools is None else frozenset(tools),
    )
