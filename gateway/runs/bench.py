"""What runs are worked on with: everything that a worker needs of the running gateway.

Handed in by the composition root. What can change while a run is under way (the configuration,
the keys, the tools) is asked for anew at each step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from adapters.canonical.record import record
from gateway.flow.context import Runtime
from gateway.policy.auth import Principal
from gateway.runs.arguments import Check
from gateway.runs.hub import Hub
from gateway.runs.ledger import Ledger
from gateway.structured.bounds import SchemaRefused
from gateway.structured.check import Schemas
from gateway.tools.base import Registry, matches


@record(frozen=True, slots=True)
class Bench:
    """``principal`` finds the one behind a key's id, ``None`` if the key is no more."""

    ledger: Ledger
    hub: Hub
    runtime: Callable[[], Runtime]
    tools: Callable[[], Registry]
    principal: Callable[[str], Principal | None]

    def may_use(self, key_id: str, tool: str) -> bool:
        """Whether the key, as it is now, may use a tool."""
        principal = self.principal(key_id)
        if principal is None:
            return False
        return principal.tools is None or any(matches(word, tool) for word in principal.tools)

    def check(self, schema: Mapping[str, Any], value: Any) -> list[str]:
        """What is wrong with ``value``; see :data:`gateway.runs.arguments.Check`."""
        return schema_check(self.runtime().schemas)(schema, value)


def schema_check(schemas: Schemas) -> Check:
    """The judge of JSON Schemas that keeps its compiled ones in ``schemas``."""

    def check(schema: Mapping[str, Any], value: Any) -> list[str]:
        try:
            checker = schemas.checker(schema)
        except SchemaRefused as why:
            return [f"the schema itself can't be used: {why}"]
        if not checker.affords(value):
            return ["it is too large to be checked against this schema"]
        return [] if checker.fits(value) else [str(one) for one in checker.violations(value)]

    return check
