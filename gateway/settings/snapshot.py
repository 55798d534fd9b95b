"""What the running gateway knows of its configuration: immutable, swapped whole on reload.

A request keeps the snapshot that it started with. Everything is resolved here: a target holds
its facts and price, an alias its time-outs, so that nobody looks anything up per call.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, fields
from typing import Any, Literal

from adapters.canonical.facts import CAPABILITIES, Facts
from adapters.canonical.parts import Dialect
from adapters.canonical.record import record
from adapters.wire.call import Timeouts


class Secret:
    """A value that no ``repr``, log or dump shows (fault kind K17)."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """The value itself; call it only where it is sent or compared."""
        return self._value

    def __repr__(self) -> str:
        return "Secret('***')"

    __str__ = __repr__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._value == self._value

    def __hash__(self) -> int:
        return hash(("Secret", self._value))


class Headers(dict[str, str]):
    """Extra headers whose values may be secret: named in a ``repr``, not shown."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"Headers({sorted(self)})"


@record(frozen=True, slots=True)
class Provider:
    """Where and how to reach one provider."""

    name: str
    dialect: Dialect
    base_url: str
    api_key: Secret | None
    timeouts: Timeouts = field(default_factory=Timeouts)
    headers: Mapping[str, str] = field(default_factory=dict)
    proxy: str | None = field(default=None, repr=False)
    ca_file: str | None = None
    pool: int = 200
    anthropic_version: str = "2023-06-01"
    simulator: bool = False


@record(frozen=True, slots=True)
class Deployment:
    """One model at one provider: a target of aliases, the thing that a breaker guards."""

    provider: Provider
    model: str
    facts: Facts
    name: str = field(init=False, repr=False, compare=False)
    """``provider/model``, as on ledger rows and metrics."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", f"{self.provider.name}/{self.model}")


@record(frozen=True, slots=True)
class Target:
    """A deployment as one alias uses it."""

    deployment: Deployment
    weight: float = 1.0
    timeouts: Timeouts = field(default_factory=Timeouts)


@record(frozen=True, slots=True)
class BreakerPolicy:
    """When a deployment is left alone: ``rate`` of failures over ``window`` seconds with at
    least ``minimum`` calls, or ``streak`` failures in a row; probed again after ``cooldown``
    seconds, which doubles up to ``max_cooldown``."""

    rate: float = 0.5
    window: float = 60.0
    minimum: int = 10
    streak: int = 5
    cooldown: float = 10.0
    max_cooldown: float = 300.0


@record(frozen=True, slots=True)
class Alias:
    """A model name that callers use, and how it is served (design sections 6 and 10)."""

    name: str
    targets: tuple[Target, ...]
    strategy: Literal["priority", "weighted", "least_latency", "cheapest"] = "priority"
    commit: Literal["first_content", "complete"] = "first_content"
    retries: int = 2
    max_attempts: int = 6
    deadline: float = 600.0
    retry_after_cap: float = 30.0
    report_model: Literal["upstream", "alias"] = "upstream"
    breaker: BreakerPolicy = field(default_factory=BreakerPolicy)
    kind: Literal["chat", "embedding"] = "chat"
    next_on: frozenset[str] = frozenset()
    context: Literal["refuse", "trim_history", "truncate_tool_results"] = "refuse"
    structured: Literal["hold", "verify"] = "hold"
    max_repairs: int = 2
    on_invalid_arguments: Literal["pass", "repair"] = "pass"
    reasoning_summary: Literal["auto", "concise", "detailed"] | None = None
    redaction: Literal["off", "mask", "reversible", "block"] | None = None
    prompt: str | None = None
    fenced: tuple[str, ...] = ()
    narrowest: int | None = field(init=False, repr=False, compare=False)
    """The smallest window of the targets, as far as known: what fits it fits everywhere."""
    common: frozenset[str] = field(init=False, repr=False, compare=False)
    """The capabilities that all targets have."""

    def __post_init__(self) -> None:
        every = [target.deployment.facts for target in self.targets]
        windows = [facts.window for facts in every if facts.window is not None]
        object.__setattr__(self, "narrowest", min(windows, default=None))
        common = frozenset.intersection(CAPABILITIES, *(facts.capabilities for facts in every))
        object.__setattr__(self, "common", common)


@record(frozen=True, slots=True)
class Limits:
    """A key's limits. ``None`` is unlimited, ``0`` lets nothing through (fault kind K05).

    ``rpm`` and ``tpm`` are per minute; budgets are nano-dollars per UTC day, month, or for ever.
    """

    rpm: int | None = None
    tpm: int | None = None
    concurrent: int | None = None
    nano_per_day: int | None = None
    nano_per_month: int | None = None
    nano_total: int | None = None

    def over(self, default: Limits) -> Limits:
        """These, and those of ``default`` where they say nothing."""
        names = (each.name for each in fields(self))
        own = ((name, getattr(self, name)) for name in names)
        return Limits(**{n: getattr(default, n) if v is None else v for n, v in own})


@record(frozen=True, slots=True)
class KeySettings:
    """A key that the file defines; it is read-only through the API."""

    name: str
    key: Secret
    role: Literal["caller", "admin"] = "caller"
    project: str = "default"
    models: tuple[str, ...] | None = None
    limits: Limits = field(default_factory=Limits)
    expires: float | None = None
    redaction: Literal["off", "mask", "reversible", "block"] | None = None
    tools: tuple[str, ...] | None = None


@record(frozen=True, slots=True)
class ServerSettings:
    """The ``[server]`` table."""

    host: str = "127.0.0.1"
    port: int = 8080
    max_body_mb: float = 32.0
    forwarded_allow_ips: tuple[str, ...] = ()
    root_path: str = ""
    cors: tuple[str, ...] = ()
    drain_seconds: float = 30.0
    pepper: Secret | None = None
    ping_seconds: float = 15.0
    max_n: int = 8


@record(frozen=True, slots=True)
class StoreSettings:
    """The ``[store]`` table; ``retention`` maps a table to days kept."""

    url: str = field(default="sqlite:///gateway.db", repr=False)
    durability: Literal["normal", "full"] = "normal"
    retention: Mapping[str, float] = field(default_factory=dict)
    keep_responses: bool = True


@record(frozen=True, slots=True)
class ObserveSettings:
    """The ``[observe]`` table."""

    log_level: str = "info"
    log_format: Literal["auto", "json", "text"] = "auto"
    metrics_token: Secret | None = None
    log_content: bool = False
    tracing: bool = False


@record(frozen=True, slots=True)
class Snapshot:
    """One whole configuration. ``hash`` is on every ledger row that it served."""

    hash: str
    server: ServerSettings
    store: StoreSettings
    observe: ObserveSettings
    providers: Mapping[str, Provider]
    aliases: Mapping[str, Alias]
    keys: tuple[KeySettings, ...]
    default_limits: Limits = field(default_factory=Limits)
    price_table: str = ""
    base_dir: str = "."
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Tables of rooms that read their own settings (``redaction prompts tools mcp agents
    workflows runs``), already shape-checked by ``settings.model``."""
