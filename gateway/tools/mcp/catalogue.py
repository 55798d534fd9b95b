"""Which of a server's tools are offered, by which names, and whether they are still the ones that
were pinned. Pure; must not know the SDK or connections.
"""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from adapters.canonical.record import record
from gateway.structured.bounds import SchemaRefused
from gateway.structured.check import Schemas
from gateway.tools.base import Policy, ToolSpec
from gateway.tools.mcp.settings import ServerSettings

log = logging.getLogger("gateway.tools")

MOST_TOOLS = 500
"""Of one server; further ones are not offered."""
MOST_PINS = 2000
"""Of one server while this process runs: one that makes up new names must not fill the memory."""
MOST_DESCRIPTION = 10_000
LONGEST_NAME = 64
_ODD = re.compile(r"[^A-Za-z0-9_-]")


@record(frozen=True, slots=True)
class Described:
    """A tool as its server describes it."""

    name: str
    description: str
    parameters: Mapping[str, Any]


class Catalogue:
    """The tools of one server, and the definitions that they are held to.

    The first definition that is seen of a tool is its pin, unless the configuration has one; the
    pins outlive reconnections, since a server could change its tools by dropping the line.
    """

    __slots__ = ("_pins", "_schemas", "_settings", "specs")

    def __init__(self, settings: ServerSettings) -> None:
        self._settings = settings
        self._pins = dict(settings.pins)
        self._schemas = Schemas()
        self.specs: Mapping[str, tuple[str, ToolSpec]] = {}
        """By our name: the server's name, and what models are told."""

    def learn(self, described: Iterable[Described]) -> None:
        """Take a list of tools in place of the last one; what can't be offered is left out."""
        found: dict[str, tuple[str, ToolSpec]] = {}
        for tool in described:
            offered = self._settings.offered
            if offered is not None and tool.name not in offered:
                continue
            spec = self._spec(tool)
            why = self._objection(spec) if spec.name not in found else "its name is taken"
            if len(found) >= MOST_TOOLS:
                why = f"the server has more than {MOST_TOOLS} tools"
            if len(self._pins) >= MOST_PINS and tool.name not in self._pins:
                why = f"the server has shown more than {MOST_PINS} different tools"
            if why is not None:
                log.warning(
                    "mcp %s: tool %r is not offered: %s", self._settings.name, tool.name, why
                )
                continue
            found[spec.name] = tool.name, self._held_to_its_pin(tool.name, spec)
        self.specs = found

    def _spec(self, tool: Described) -> ToolSpec:
        settings = self._settings
        return ToolSpec(
            name=our_name(settings.prefix, tool.name),
            description=tool.description[:MOST_DESCRIPTION],
            parameters=tool.parameters,
            kind="mcp",
            idempotent=tool.name in settings.idempotent,
            timeout=settings.timeout,
            output_cap=settings.output_cap,
            policy=settings.policy,
        )

    def _objection(self, spec: ToolSpec) -> str | None:
        if spec.parameters.get("type") != "object":
            return "its schema is not one of an object"
        try:
            self._schemas.checker(spec.parameters)
        except SchemaRefused as error:
            return str(error)
        return None

    def _held_to_its_pin(self, name: str, spec: ToolSpec) -> ToolSpec:
        pin = self._pins.setdefault(name, spec.schema_hash)
        if pin == spec.schema_hash:
            return spec
        log.warning(
            "mcp %s: tool %r is not the one that was pinned; each call needs approval now. If the "
            'change is right, write pins = { %s = "%s" }',
            self._settings.name, name, name, spec.schema_hash,
        )  # fmt: skip
        policy: Policy = "deny" if spec.policy == "deny" else "approve"
        return replace(spec, policy=policy, changed=True)


def our_name(prefix: str, name: str) -> str:
    """The name by which models know a server's tool: what they take in names, and no more than 64
    characters. A name that had to be cut ends in a piece of its hash, so that two stay two."""
    plain = prefix + _ODD.sub("_", name)
    if len(plain) <= LONGEST_NAME:
        return plain
    mark = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{plain[: LONGEST_NAME - 9]}_{mark}"
