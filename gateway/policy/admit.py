"""May this key use this alias, for this? Pure."""

from __future__ import annotations

from adapters.canonical.faults import Fault
from adapters.canonical.request import Request
from gateway.policy.auth import Principal
from gateway.settings.snapshot import Alias


def admit(principal: Principal, request: Request, alias: Alias) -> None:
    """Let the call in, or say why not.

    :raises Fault: ``forbidden`` where the key is not for this alias.
    """
    if not principal.may_use(alias.name):
        raise Fault(
            "forbidden",
            f"The key {principal.key_name!r} may not use the model {request.model!r}. "
            "Ask the operator to add it to the key's models.",
            code="model_not_allowed",
            param="model",
        )
