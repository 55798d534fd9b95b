"""Keys made, listed and revoked at run time; the file's own keys are read-only here."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from adapters.canonical.faults import Fault
from gateway.policy.auth import Principal, new_key
from gateway.services.state import State
from gateway.settings.bounds import LONGEST, MOST_COUNT, fit_name, fit_usd
from gateway.settings.money import NANO, nano_if_set
from gateway.settings.snapshot import Limits
from gateway.store.base import KeyRow

Name = Annotated[str, AfterValidator(fit_name)]
Count = Annotated[int, Field(strict=True, ge=0, le=MOST_COUNT)]
"""Strict: JSON's ``true`` is no 1."""
Dollars = Annotated[Decimal, AfterValidator(fit_usd)]


class LimitsRequest(BaseModel):
    """A key's limits; absent or null is unlimited, 0 lets nothing through."""

    model_config = ConfigDict(extra="forbid")

    rpm: Count | None = None
    tpm: Count | None = None
    concurrent: Count | None = None
    usd_per_day: Dollars | None = None
    usd_per_month: Dollars | None = None
    usd_total: Dollars | None = None

    def limits(self) -> Limits:
        """The same in the house's words: nano-dollars."""
        return Limits(
            rpm=self.rpm,
            tpm=self.tpm,
            concurrent=self.concurrent,
            nano_per_day=nano_if_set(self.usd_per_day),
            nano_per_month=nano_if_set(self.usd_per_month),
            nano_total=nano_if_set(self.usd_total),
        )


class KeyRequest(BaseModel):
    """The body of ``POST /admin/keys``. ``expires_in`` is seconds from now."""

    model_config = ConfigDict(extra="forbid")

    name: Name
    role: Literal["caller", "admin"] = "caller"
    project: Name = "default"
    models: list[str] | None = None
    limits: LimitsRequest = LimitsRequest()
    expires_in: float | None = Field(default=None, strict=True, gt=0, le=LONGEST)
    redaction: Literal["off", "mask", "reversible", "block"] | None = None


async def create_key(state: State, wanted: KeyRequest) -> dict[str, Any]:
    """Make and store a key; the answer is the only place where its text ever stands.

    :raises Fault: ``conflict`` if the name is taken, ``bad_request`` for a model that is not there.
    """
    if any(p.key_name == wanted.name for p in state.keyring.principals()):
        raise _taken()
    _check_models(state, wanted.models or ())
    clock = state.runtime.clock
    text = new_key()
    now = clock.wall()
    row = KeyRow(
        id=clock.new_id("key_"),
        name=wanted.name,
        digest=state.keyring.digest(text),
        role=wanted.role,
        project=wanted.project,
        created_at=now,
        models=None if wanted.models is None else tuple(wanted.models),
        limits=wanted.limits.limits(),
        expires_at=None if wanted.expires_in is None else now + wanted.expires_in,
        settings={} if wanted.redaction is None else {"redaction": wanted.redaction},
    )
    if not await state.store.add_key(row):
        raise _taken()
    await refresh_keys(state)
    return {"id": row.id, "name": row.name, "project": row.project, "role": row.role, "key": text}


def _taken() -> Fault:
    return Fault("conflict", "A key of this name exists. Revoke it first, or choose another.")


def _check_models(state: State, models: Iterable[str]) -> None:
    for number, model in enumerate(models):
        if model not in state.snapshot.aliases:
            raise Fault(
                "bad_request",
                f"models[{number}]: there is no such model. GET /v1/models lists them.",
                param=f"models[{number}]",
            )


async def list_keys(state: State) -> list[dict[str, Any]]:
    """Keys of the file and of the store, revoked ones included."""
    rows = [_file_key(p) for p in state.keyring.principals() if p.from_file]
    return rows + [
        _stored_key(row, state.keyring.default_limits) for row in await state.store.keys()
    ]


async def revoke_key(state: State, key_id: str) -> dict[str, Any]:
    """Revoke a stored key.

    :raises Fault: ``conflict`` for a key of the file, ``not_found`` for an unknown one.
    """
    if any(p.from_file and p.key_id == key_id for p in state.keyring.principals()):
        raise Fault(
            "conflict",
            "This key stands in the configuration file. Remove it there and reload.",
        )
    if not await state.store.revoke_key(key_id, state.runtime.clock.wall()):
        raise Fault("not_found", "No key of this id is open.")
    await refresh_keys(state)
    return {"id": key_id, "revoked": True}


async def refresh_keys(state: State) -> None:
    """Take the store's keys as they are now."""
    state.keyring.use_stored(await state.store.keys())


def _shown(models: Iterable[str] | None, limits: Limits) -> dict[str, Any]:
    """What a key may do, in the words that it was asked for in."""
    money = {
        "usd_per_day": limits.nano_per_day,
        "usd_per_month": limits.nano_per_month,
        "usd_total": limits.nano_total,
    }
    found: dict[str, float | None] = {
        "rpm": limits.rpm,
        "tpm": limits.tpm,
        "concurrent": limits.concurrent,
        **{name: None if amount is None else amount / NANO for name, amount in money.items()},
    }
    return {
        "models": None if models is None else sorted(models),
        "limits": {name: value for name, value in found.items() if value is not None},
    }


def _file_key(principal: Principal) -> dict[str, Any]:
    return {
        "id": principal.key_id,
        "name": principal.key_name,
        "project": principal.project,
        "role": principal.role,
        "source": "file",
        **_shown(principal.models, principal.limits),
        "created_at": None,
        "expires_at": principal.expires_at,
        "revoked_at": None,
    }


def _stored_key(row: KeyRow, default: Limits) -> dict[str, Any]:
    return {
        "id": row.id,
        "name": row.name,
        "project": row.project,
        "role": row.role,
        "source": "store",
        **_shown(row.models, row.limits.over(default)),
        "created_at": row.created_at,
        "expires_at": row.expires_at,
        "revoked_at": row.revoked_at,
    }
