"""What a reload does not change: settings that are read at the start alone.

They are told by name, so that nobody believes in a change that has not happened (fault kind K08).
"""

from __future__ import annotations

from collections.abc import Mapping

from gateway.settings.snapshot import Snapshot

READ_AT_START: Mapping[str, tuple[str, ...]] = {
    "server": ("host", "port", "forwarded_allow_ips", "root_path", "pepper"),
    "store": ("url", "durability"),
    "observe": ("log_level", "log_format", "log_content", "tracing"),
}
"""By table. Whatever is not here is in force as soon as a reload has passed."""


def at_next_start(started: Snapshot, now: Snapshot) -> list[str]:
    """The settings (``server.port``) that the file has changed since the start, and that wait
    for the next one."""
    return [
        f"{table}.{name}"
        for table, names in READ_AT_START.items()
        for name in names
        if getattr(getattr(started, table), name) != getattr(getattr(now, table), name)
    ]
