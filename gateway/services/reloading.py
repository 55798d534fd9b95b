"""What a reload does not change: settings that are read at the start alone.

They are told by name, so that nobody believes in a change that has not happened (fault kind K08).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gateway.settings.snapshot import Snapshot

READ_AT_START: Mapping[str, tuple[str, ...]] = {
    "server": ("host", "port", "forwarded_allow_ips", "root_path", "pepper"),
    "store": ("url", "durability"),
    "observe": ("log_level", "log_format", "log_content", "tracing"),
}
"""By table. Whatever is not here is in force as soon as a reload has passed."""


def read_at_start(snapshot: Snapshot) -> dict[str, Any]:
    """Their values by name (``server.port``)."""
    return {
        f"{table}.{name}": getattr(getattr(snapshot, table), name)
        for table, names in READ_AT_START.items()
        for name in names
    }


def at_next_start(started_with: Mapping[str, Any], now: Snapshot) -> list[str]:
    """The settings that the file has changed since the start, and that wait for the next one."""
    return [name for name, value in read_at_start(now).items() if value != started_with[name]]
