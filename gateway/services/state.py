"""The running gateway as its endpoints see it.

One object, made by :mod:`gateway.app` and handed to every endpoint: nothing is global, so two
gateways can live in one process.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field
from typing import Any, Protocol

from adapters.canonical.faults import Fault
from adapters.canonical.record import record
from gateway.flow.context import Runtime
from gateway.observe.logs import Logs
from gateway.policy.auth import Keyring
from gateway.services.idempotency import Idempotency
from gateway.services.reloading import read_at_start
from gateway.services.runs import Runs
from gateway.services.workflows import Workflows
from gateway.settings.snapshot import Snapshot
from gateway.store.base import Store


class Stoppable(Protocol):
    """A request in flight that can be told to end with a fault."""

    def stop(self, fault: Fault) -> None:
        """End now: in-band if content has gone out, else as an error answer."""
        ...


@record(slots=True)
class State:
    """``runtime`` is swapped whole on reload; a request keeps the one that it started with.

    ``reload`` reads the configuration again and swaps it in, or raises with what is wrong.
    ``started_at`` (Unix seconds) is when the models came into being, as far as callers see.
    ``idempotency`` knows the calls under an ``Idempotency-Key``, ``runs`` the agents at work,
    ``workflows`` the graphs that can be run. ``live`` holds the requests in flight, for the drain
    at the end. ``started_with`` are the settings that a reload leaves as they were at the start.
    """

    runtime: Runtime
    keyring: Keyring
    store: Store
    logs: Logs
    reload: Callable[[], Awaitable[Snapshot]]
    started_at: int
    idempotency: Idempotency
    runs: Runs
    workflows: Workflows
    live: set[Stoppable] = field(default_factory=set)
    draining: bool = False
    started_with: Mapping[str, Any] = field(init=False)

    def __post_init__(self) -> None:
        self.started_with = read_at_start(self.runtime.snapshot)

    @property
    def snapshot(self) -> Snapshot:
        """The configuration in force."""
        return self.runtime.snapshot
