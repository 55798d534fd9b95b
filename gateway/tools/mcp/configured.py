"""From ``[mcp.NAME]`` to a server's settings, and what may be wrong with a table."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from gateway.settings.rooms import McpTable
from gateway.tools import guard
from gateway.tools.function import BadTool
from gateway.tools.mcp.settings import Program, Remote, ServerSettings
from gateway.tools.shop import Shop, ca_path, checked_header, guarded

NAME = re.compile(r"(?!.*__)[A-Za-z0-9_-]{1,32}(?<!_)")
"""Short enough to leave room for a tool's name, and without what ends it there."""
_PIN = re.compile(r"[0-9a-f]{64}")
_PROTOCOL_HEADERS = frozenset({"accept", "content-type", "last-event-id"})
_OF_A_PROGRAM = ("args", "env", "show_stderr")
_OF_A_REMOTE = ("headers", "allow_private", "ca_file")


def server_settings(name: str, table: McpTable, shop: Shop) -> ServerSettings:
    """The settings of one server; nothing is connected to or started.

    :raises BadTool: with the key inside the table and what to change.
    """
    if NAME.fullmatch(name) is None:
        raise BadTool("must be named with letters, digits, _ and -, at most 32, without __")
    if (table.url is None) == (table.command is None):
        raise BadTool("needs either url or command")
    _check_tools(table)
    place = _remote(table, shop) if table.command is None else _program(table, shop)
    return ServerSettings(
        name=name,
        place=place,
        offered=None if table.tools is None else frozenset(table.tools),
        pins=dict(table.pins),
        timeout=table.timeout,
        output_cap=table.max_output,
        idempotent=frozenset(table.idempotent),
        policy=table.policy,
    )


def _check_tools(table: McpTable) -> None:
    for tool, pin in table.pins.items():
        if _PIN.fullmatch(pin) is None:
            raise BadTool(
                f"pins: {tool} must be a hash of 64 hexadecimal digits, as the log has it"
            )
    if table.tools is None:
        return
    strangers = sorted({*table.idempotent, *table.pins} - set(table.tools))
    if strangers:
        raise BadTool(f"{strangers[0]!r} is in idempotent or pins, but not in tools")


def _remote(table: McpTable, shop: Shop) -> Remote:
    _refuse(table, _OF_A_PROGRAM, "url")
    url = table.url or ""
    try:
        guard.place(url)
    except guard.Refused as refusal:
        raise BadTool(f"url: {refusal}") from refusal
    for header in table.headers:
        lower = checked_header(header).lower()
        if lower in _PROTOCOL_HEADERS or lower.startswith("mcp-"):
            raise BadTool(f"headers: {header} belongs to the protocol")
    watch = guarded(table.allow_private, None, shop)
    return Remote(url, dict(table.headers), watch, ca_path(table.ca_file, shop.base_dir))


def _program(table: McpTable, shop: Shop) -> Program:
    _refuse(table, _OF_A_REMOTE, "command")
    command = table.command or ""
    here = Path(shop.base_dir) / command
    # Not resolved: an environment's python is a link, and is another one at its end.
    found = str(here.absolute()) if "/" in command and here.is_file() else shutil.which(command)
    if found is None:
        raise BadTool(f"command: {command!r} is no program that can be found")
    return Program(
        command=found,
        args=tuple(table.args),
        env=dict(table.env),
        folder=shop.base_dir,
        show_stderr=table.show_stderr,
    )


def _refuse(table: McpTable, names: tuple[str, ...], kind: str) -> None:
    """Keys that would say nothing."""
    for name in names:
        if getattr(table, name) != McpTable.model_fields[name].default:
            raise BadTool(f"has {name}, which a server with {kind} does not take")
