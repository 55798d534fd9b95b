"""The shape of the configuration file: every table and key that it may have.

Only the shape: what must fit together across tables is :mod:`gateway.settings.load`'s matter.
The defaults here are the ones that ``config/gateway.toml`` and the documentation show; a test
holds them equal.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from gateway.settings.rooms import (
    AgentTable,
    McpTable,
    PromptsTable,
    RedactionMode,
    RedactionTable,
    RunsTable,
    ToolTable,
    WorkflowTable,
)
from gateway.settings.scalars import (
    AtLeastOne,
    Count,
    Days,
    Host,
    Instant,
    Megabytes,
    Name,
    NotNegative,
    Positive,
    Reference,
    Seconds,
    SecretReference,
    Share,
    Table,
    Usd,
)


class ServerTable(Table):
    """How the gateway listens."""

    host: Host = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = 8080
    max_body_mb: Megabytes = 32.0
    forwarded_allow_ips: list[str] = []
    root_path: Annotated[str, Field(pattern=r"^(/[^/\s]+)*$")] = ""
    cors: list[str] = []
    drain_seconds: NotNegative = 30.0
    pepper: SecretReference | None = None
    ping_seconds: Seconds = 15.0
    max_n: AtLeastOne = 8


class RetentionTable(Table):
    """Days that the rows of each table are kept: ``0`` keeps nothing past the next sweep,
    ``inf`` keeps all. ``requests`` are single calls, ``rollups`` the daily sums; ``responses``
    and ``conversations`` count from their last use; ``idempotency`` are the answers that an
    ``Idempotency-Key`` finds again; ``seals`` are who made which sealed reasoning; ``runs`` count
    from their end, ``run_stubs`` are what then says that there was one."""

    requests: Days = 90.0
    rollups: Days = 800.0
    responses: Days = 30.0
    conversations: Days = 90.0
    idempotency: Days = 1.0
    seals: Days = 90.0
    runs: Days = 30.0
    run_stubs: Days = 365.0


class StoreTable(Table):
    """Where the books are kept."""

    url: Reference = "sqlite:///gateway.db"
    durability: Literal["normal", "full"] = "normal"
    keep_responses: bool = True
    retention: RetentionTable = RetentionTable()


class ObserveTable(Table):
    """Logs, metrics and traces."""

    log_level: Literal["debug", "info", "warning", "error"] = "info"
    log_format: Literal["auto", "json", "text"] = "auto"
    log_content: bool = False
    tracing: bool = False
    metrics_token: SecretReference | None = None


class TimeoutsTable(Table):
    """Seconds. What is left out here is inherited: an alias takes its provider's."""

    connect: Seconds | None = None
    first_event: Seconds | None = None
    between_events: Seconds | None = None
    total: Seconds | None = None


class ProviderTable(Table):
    """One provider: where it is, which protocol it speaks, how to get in."""

    dialect: Literal["openai-responses", "anthropic-messages", "openai-chat"]
    base_url: Reference | None = None
    simulator: bool = False
    api_key: SecretReference | None = None
    headers: dict[str, Reference] = {}
    timeouts: TimeoutsTable = TimeoutsTable()
    proxy: Reference | None = None
    ca_file: str | None = None
    pool: AtLeastOne = 200
    anthropic_version: Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$")] = "2023-06-01"
    prices: str | None = None


class TierTable(Table):
    """A dearer (or cheaper) rate for calls whose whole input is above a size."""

    above: AtLeastOne
    usd: Usd


class RateTable(Table):
    """US dollars per million tokens; a plain number is a rate without tiers."""

    usd: Usd
    tiers: list[TierTable] = []


def _rate(value: object) -> object:
    return value if isinstance(value, dict | RateTable) else {"usd": value}


Rate = Annotated[RateTable, BeforeValidator(_rate)]


class PriceTable(Table):
    """What a model costs, US dollars per million tokens of each class."""

    input: Rate
    output: Rate
    cache_read: Rate | None = None
    cache_write: Rate | None = None
    cache_write_1h: Rate | None = None


class FactsTable(Table):
    """What is known of a model. Every key overrides what the shipped table says; ``has`` and
    ``lacks`` add and remove capabilities, ``refuses`` and ``accepts`` request fields."""

    family: str | None = None
    vendor: str | None = None
    window: AtLeastOne | None = None
    max_output: AtLeastOne | None = None
    min_output: AtLeastOne | None = None
    temperature_max: Positive | None = None
    has: list[str] = []
    lacks: list[str] = []
    refuses: list[str] = []
    accepts: list[str] = []
    one_of: list[list[str]] | None = None
    efforts: list[str] | None = None
    thinking: Literal["manual", "adaptive", "none"] | None = None
    limit_name: Literal["max_tokens", "max_completion_tokens"] | None = None
    price: PriceTable | None = None


class FactsRow(FactsTable):
    """A row of ``models.toml``: facts for all models whose name fits one of ``match``
    (``*`` and ``?`` as in a shell), where the other conditions hold too."""

    match: Annotated[list[str], Field(min_length=1)]
    dialects: list[str] | None = None
    anthropic_version_from: str | None = None


class FactsFile(Table):
    """The whole of ``models.toml``: rows in order, a later one over an earlier one."""

    model: list[FactsRow] = []


class TargetTable(Table):
    """One model at one provider, as an alias uses it."""

    provider: str
    model: Annotated[str, Field(min_length=1, max_length=200)]
    weight: NotNegative = 1.0
    timeouts: TimeoutsTable = TimeoutsTable()
    facts: FactsTable | None = None


class BreakerTable(Table):
    """When a deployment is left alone, and for how long."""

    rate: Share = 0.5
    window: Seconds = 60.0
    minimum: AtLeastOne = 10
    streak: AtLeastOne = 5
    cooldown: Seconds = 10.0
    max_cooldown: Seconds = 300.0


NextOn = Literal["content_filtered", "output_unparsable", "output_invalid", "output_truncated"]


class AliasTable(Table):
    """A model name that callers use, and how it is served."""

    targets: Annotated[list[TargetTable], Field(min_length=1)]
    kind: Literal["chat", "embedding"] = "chat"
    strategy: Literal["priority", "weighted", "least_latency", "cheapest"] = "priority"
    commit: Literal["first_content", "complete"] = "first_content"
    retries: Count = 2
    max_attempts: AtLeastOne = 6
    deadline: Seconds = 600.0
    retry_after_cap: NotNegative = 30.0
    timeouts: TimeoutsTable = TimeoutsTable()
    breaker: BreakerTable = BreakerTable()
    next_on: list[NextOn] = []
    report_model: Literal["upstream", "alias"] = "upstream"
    context: Literal["refuse", "trim_history", "truncate_tool_results"] = "refuse"
    structured: Literal["hold", "verify"] = "hold"
    max_repairs: Count = 2
    on_invalid_arguments: Literal["pass", "repair"] = "pass"
    reasoning_summary: Literal["auto", "concise", "detailed"] | None = None
    redaction: RedactionMode | None = None
    prompt: str | None = None
    fenced: list[Literal["variables", "tool_results"]] = []


class LimitsTable(Table):
    """A key's limits. Left out is unlimited, ``0`` lets nothing through."""

    rpm: Count | None = None
    tpm: Count | None = None
    concurrent: Count | None = None
    usd_per_day: Usd | None = None
    usd_per_month: Usd | None = None
    usd_total: Usd | None = None


class DefaultsTable(Table):
    """``[limits.default]``: what a key has whose own ``limits`` say nothing."""

    default: LimitsTable = LimitsTable()


class KeyTable(Table):
    """A key that callers or administrators show."""

    name: Name
    key: SecretReference
    role: Literal["caller", "admin"] = "caller"
    project: Name = "default"
    models: list[str] | None = None
    limits: LimitsTable = LimitsTable()
    expires: Instant | None = None
    redaction: RedactionMode | None = None
    tools: list[str] | None = None


class Config(Table):
    """The whole file."""

    server: ServerTable = ServerTable()
    store: StoreTable = StoreTable()
    observe: ObserveTable = ObserveTable()
    providers: dict[Name, ProviderTable] = {}
    models: dict[Name, AliasTable] = {}
    facts: dict[str, FactsTable] = {}
    keys: list[KeyTable] = []
    limits: DefaultsTable = DefaultsTable()
    runs: RunsTable = RunsTable()
    redaction: RedactionTable = RedactionTable()
    prompts: PromptsTable = PromptsTable()
    tools: dict[Name, ToolTable] = {}
    mcp: dict[Name, McpTable] = {}
    agents: dict[Name, AgentTable] = {}
    workflows: dict[Name, WorkflowTable] = {}
