"""What is known of one MCP server before it is spoken to. Must not know the protocol."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from adapters.canonical.record import record
from gateway.tools.base import Policy
from gateway.tools.guard import Guard


@record(frozen=True, slots=True)
class Remote:
    """A server that speaks streamable HTTP."""

    url: str = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    guard: Guard
    ca_file: str | None = None


@record(frozen=True, slots=True)
class Program:
    """A server that is started here and speaks over its standard input and output.

    ``env`` comes on top of the few variables that any program needs; the gateway's own
    environment, with its keys, is not handed on.
    """

    command: str
    args: tuple[str, ...]
    env: Mapping[str, str] = field(repr=False)
    folder: str = "."
    show_stderr: bool = False


@record(frozen=True, slots=True)
class ServerSettings:
    """One ``[mcp.NAME]``.

    ``offered`` are the tools to offer by the server's names, ``None`` for all; ``pins`` their
    hashes. ``timeout`` is in seconds, ``output_cap`` in characters.
    """

    name: str
    place: Remote | Program
    offered: frozenset[str] | None = None
    pins: Mapping[str, str] = field(default_factory=dict)
    timeout: float = 30.0
    output_cap: int = 50_000
    idempotent: frozenset[str] = frozenset()
    policy: Policy | None = None

    @property
    def prefix(self) -> str:
        """What the names of its tools begin with."""
        return f"{self.name}__"
