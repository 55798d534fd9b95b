"""From the model that a caller names to the alias that serves it."""

from __future__ import annotations

import difflib

from adapters.canonical.faults import Fault
from gateway.policy.auth import Principal
from gateway.settings.snapshot import Alias, Snapshot


def visible(snapshot: Snapshot, principal: Principal) -> list[Alias]:
    """The aliases that the key may use, in the configuration's order."""
    return [alias for name, alias in snapshot.aliases.items() if principal.may_use(name)]


def resolve(snapshot: Snapshot, principal: Principal, model: str, kind: str = "chat") -> Alias:
    """The alias behind ``model``.

    :param kind: what the endpoint serves: ``chat`` or ``embedding``.
    :raises Fault: ``unknown_model`` with the nearest name that the key may use.
    """
    alias = snapshot.aliases.get(model)
    if alias is not None and alias.kind == kind:
        return alias
    names = [known.name for known in visible(snapshot, principal) if known.kind == kind]
    near = difflib.get_close_matches(model[:200], names, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise Fault(
        "unknown_model",
        f"There is no {kind} model of this name here.{hint} GET /v1/models lists them.",
        param="model",
    )
