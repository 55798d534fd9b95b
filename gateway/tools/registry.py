"""All tools of the gateway: read from the settings, kept over reloads, closed at the end.

:func:`check` says what is wrong with a configuration, :class:`Toolbox` owns what tools need
(threads, connections, MCP servers), :func:`allowed` is a key's permission. Must not know runs.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import field, replace
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

from adapters.canonical.clock import Clock, SystemClock
from adapters.canonical.record import record
from gateway.policy.auth import Principal
from gateway.settings.problems import Problem
from gateway.settings.rooms import McpTable, ToolTable
from gateway.settings.snapshot import Snapshot
from gateway.tools import guard
from gateway.tools.base import Registry, Tool, matches
from gateway.tools.builtin import builtins
from gateway.tools.configured import build, installed, offered
from gateway.tools.function import BadTool
from gateway.tools.mcp.configured import server_settings
from gateway.tools.mcp.server import Server
from gateway.tools.mcp.settings import ServerSettings
from gateway.tools.shop import Closing, Shop
from gateway.tools.threads import Threads

GRACE = 30.0
"""Seconds that calls under way get when a reload takes their MCP server away."""
HANDOFF = "transfer_to_"
"""How the tools begin by which agents hand over; no other tool may."""
_SECRET_NAME = re.compile(r"auth|cookie|credential|key|passw|secret|token", re.I)


def allowed(principal: Principal, name: str) -> bool:
    """Whether the key's runs may use the tool ``name``. A key without a list may use all; an
    entry of the list is a name, or a beginning and ``*``."""
    return principal.tools is None or any(matches(word, name) for word in principal.tools)


def check(snapshot: Snapshot) -> list[Problem]:
    """What is wrong with ``[tools]`` and ``[mcp]``, and with the tools that packages offer. Imports
    functions; connects to nothing."""
    return _read(snapshot, Shop(Threads(), snapshot.base_dir, [])).problems


def known(snapshot: Snapshot) -> Registry:
    """The tools of a configuration for whoever proves what relies on them, before anything is
    served. Of MCP servers only the names' beginnings are known; nothing can be called."""
    found = _read(snapshot, Shop(Threads(), snapshot.base_dir, []))
    tools = [*builtins(SystemClock()), *(one.tool for one in found.tools.values())]
    return Registry(tools, [_Away(f"{name}__") for name in found.servers])


@record(frozen=True, slots=True)
class _Away:
    """An MCP server that nobody has asked."""

    prefix: str

    def tools(self) -> Mapping[str, Tool]:
        """None are known."""
        return {}

    async def ready(self) -> None:
        """Nothing is waited for."""


def secrets(snapshot: Snapshot) -> list[str]:
    """The values of headers and variables that are secrets by their names, for the log's filter;
    of ``Bearer abc`` both the whole and ``abc``."""
    found = []
    for table in (*_tables(snapshot, "tools").values(), *_tables(snapshot, "mcp").values()):
        for name, value in {**table.get("headers", {}), **table.get("env", {})}.items():
            if _SECRET_NAME.search(name):
                found += [value, value.rpartition(" ")[2]]
    return found


class Toolbox:
    """The tools of the running gateway. ``registry`` is one object for its whole life.

    Call :meth:`use` with each snapshot, :meth:`start` once inside the task group that shall own
    the MCP servers, and :meth:`close` before that group ends.
    """

    __slots__ = (
        "_built",
        "_clock",
        "_group",
        "_resolver",
        "_servers",
        "_threads",
        "registry",
    )

    def __init__(
        self, clock: Clock | None = None, resolver: guard.Resolver = guard.system_resolver
    ) -> None:
        self._clock: Clock = SystemClock() if clock is None else clock
        self._resolver = resolver
        self._threads = Threads()
        self._built: dict[str, _Built] = {}
        self._servers: dict[str, tuple[McpTable, Server]] = {}
        self._group: asyncio.TaskGroup | None = None
        self.registry = Registry(builtins(self._clock))

    def use(self, snapshot: Snapshot) -> list[Closing]:
        """Offer the tools of ``snapshot``, which has passed :func:`check`; one with a problem is
        left out. Tools and servers whose tables did not change keep their connections.

        :returns: what the tools that went had opened, to be closed when it is not ``busy``.
        """
        shop = Shop(self._threads, snapshot.base_dir, [], self._resolver)
        found = _read(snapshot, shop, self._built)
        gone = [one for name, one in self._built.items() if found.tools.get(name) is not one]
        self._built = found.tools
        before = self._servers
        self._servers = {
            name: before[name]
            if name in before and before[name][0] == table
            else (table, Server(settings))
            for name, (table, settings) in found.servers.items()
        }
        tools = [*builtins(self._clock), *(one.tool for one in found.tools.values())]
        self.registry.replace(tools, _of(self._servers))
        if self._group is not None:
            self._exchange(self._group, _of(before))
        return [each for one in gone for each in one.opened]

    def _exchange(self, group: asyncio.TaskGroup, before: list[Server]) -> None:
        now = _of(self._servers)
        for server in now:
            if not any(server is old for old in before):
                group.create_task(server.run())
        for server in before:
            if not any(server is kept for kept in now):
                group.create_task(server.close(GRACE))

    def start(self, group: asyncio.TaskGroup) -> None:
        """Connect to the MCP servers, in tasks of ``group``: now, and after each reload."""
        self._group = group
        for server in _of(self._servers):
            group.create_task(server.run())

    async def close(self) -> None:
        """End the MCP servers and close all connections. Calls under way are cut off: whoever made
        them has been told to stop before."""
        self._group = None
        await asyncio.gather(*(server.close() for server in _of(self._servers)))
        opened = [each for one in self._built.values() for each in one.opened]
        await asyncio.gather(*(each.close() for each in opened))


def _of(servers: Mapping[str, tuple[McpTable, Server]]) -> list[Server]:
    return [server for _, server in servers.values()]


# reading


class _Built(NamedTuple):
    """A tool with the table that it was made from, and what it has opened."""

    table: ToolTable
    tool: Tool
    opened: list[Closing]


@record(slots=True)
class _Found:
    """What a configuration has: tools and servers by name, each with its table."""

    tools: dict[str, _Built] = field(default_factory=dict)
    servers: dict[str, tuple[McpTable, ServerSettings]] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)


def _read(
    snapshot: Snapshot, shop: Shop, before: Mapping[str, _Built] = MappingProxyType({})
) -> _Found:
    """Read both tables; what can't be a tool is a problem, and the rest goes on."""
    found = _Found()
    tables = {name: ToolTable(**raw) for name, raw in _tables(snapshot, "tools").items()}
    servers = {name: McpTable(**raw) for name, raw in _tables(snapshot, "mcp").items()}
    for name, table, make in _wanted(tables):
        old = before.get(name)
        try:
            _check_name(name, servers)
            if old is not None and old.table == table:
                found.tools[name] = old
            else:
                own = replace(shop, opened=[])
                found.tools[name] = _Built(table, make(own), own.opened)
        except BadTool as fault:
            found.problems.append(Problem(f"tools.{name}", str(fault)))
    for name, server_table in servers.items():
        try:
            found.servers[name] = server_table, server_settings(name, server_table, shop)
        except BadTool as fault:
            found.problems.append(Problem(f"mcp.{name}", str(fault)))
    return found


def _wanted(
    tables: Mapping[str, ToolTable],
) -> Iterator[tuple[str, ToolTable, Callable[[Shop], Tool]]]:
    """The tools of the file, then those that packages offer and the file does not speak of."""
    for name, table in tables.items():
        yield name, table, partial(build, name, table)
    for point in installed(tables):
        yield point.name, ToolTable(kind="python"), partial(offered, point)


def _check_name(name: str, servers: Collection[str]) -> None:
    """A name means one tool only.

    :raises BadTool: for one that could mean another.
    """
    if name in BUILTIN:
        raise BadTool("has the name of a tool that is always there; choose another")
    if name.startswith(HANDOFF):
        raise BadTool(f"must not begin with {HANDOFF}, by which agents hand over")
    for server in servers:
        if name.startswith(f"{server}__"):
            raise BadTool(f"must not begin with {server}__, as the tools of mcp.{server} do")


BUILTIN: frozenset[str] = frozenset(tool.spec.name for tool in builtins(SystemClock()))


def _tables(snapshot: Snapshot, name: str) -> Mapping[str, Mapping[str, Any]]:
    tables: Mapping[str, Mapping[str, Any]] = snapshot.extra.get(name, {})
    return tables
