"""From the checked tables to the snapshot: secrets fetched, facts and time-outs resolved.

Faults found on the way join the findings; nothing here raises for what a file may hold.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path as FilePath
from typing import Any
from urllib.parse import urlsplit

from adapters.wire.call import Timeouts
from gateway.settings.load.check import DEMO_KEY, is_loopback, url_fault
from gateway.settings.load.facts import FactsBook, Known
from gateway.settings.load.findings import Findings
from gateway.settings.load.positions import Path
from gateway.settings.load.references import References, Unresolved, has_reference
from gateway.settings.model import (
    AliasTable,
    Config,
    KeyTable,
    LimitsTable,
    ProviderTable,
    TargetTable,
    TimeoutsTable,
)
from gateway.settings.money import nano_if_set
from gateway.settings.snapshot import (
    Alias,
    BreakerPolicy,
    Deployment,
    Headers,
    KeySettings,
    Limits,
    ObserveSettings,
    Provider,
    Secret,
    ServerSettings,
    StoreSettings,
    Target,
)

SIMULATOR_PATHS = {"openai-responses": "/v1", "openai-chat": "/v1", "anthropic-messages": ""}
"""What a provider's base URL has behind the host, by dialect."""
SIMULATOR_KEY = Secret("simulator")
"""The simulator takes any key, but like a real provider it wants one."""
REASONING_SILENCE = 300.0
"""Seconds that a model which reasons may stay silent, where the file says nothing."""
_UNSENDABLE = re.compile(r"^\s|\s$|[\x00-\x1f\x7f]")
"""What a header's value can't have, or loses on its way."""

_POSTGRES = ("postgresql", "postgres")


class Resolver:
    """Builds the parts of one snapshot. Relative paths count from ``base``, that of the SQLite
    file from ``store_dir``."""

    def __init__(
        self,
        config: Config,
        references: References,
        findings: Findings,
        base: FilePath,
        store_dir: FilePath,
    ) -> None:
        self._config = config
        self._references = references
        self._findings = findings
        self._base = base
        self._store_dir = store_dir

    # references; their faults are found by ``check_references``, here they stand for nothing

    def _secret(self, reference: str | None) -> Secret | None:
        if reference is None:
            return None
        try:
            return Secret(self._references.secret(reference))
        except Unresolved:
            return None

    def _text(self, text: str) -> str:
        try:
            return self._references.text(text)
        except Unresolved:
            return text

    # tables

    def server(self) -> ServerSettings:
        """``[server]``."""
        table = self._config.server
        return ServerSettings(
            host=table.host,
            port=table.port,
            max_body_mb=table.max_body_mb,
            forwarded_allow_ips=tuple(table.forwarded_allow_ips),
            root_path=table.root_path,
            cors=tuple(table.cors),
            drain_seconds=table.drain_seconds,
            pepper=self._secret(table.pepper),
            ping_seconds=table.ping_seconds,
            max_n=table.max_n,
        )

    def store(self) -> StoreSettings:
        """``[store]``; a relative SQLite path counts from the configuration's folder."""
        table = self._config.store
        path: Path = ("store", "url")
        url = self._text(table.url)
        parts = urlsplit(url)
        if parts.scheme == "sqlite":
            url = f"sqlite:///{self._sqlite_path(path, url)}"
        elif parts.scheme in _POSTGRES:
            self._check_postgres(path, table.url)
        else:
            self._findings.add(path, 'must begin with "sqlite:///" or "postgresql://"')
        return StoreSettings(
            url=url,
            durability=table.durability,
            retention=table.retention.model_dump(),
            keep_responses=table.keep_responses,
        )

    def _sqlite_path(self, path: Path, url: str) -> str:
        name = url.removeprefix("sqlite:///")
        if name == url or name in ("", ":memory:") or name.endswith("/"):
            self._findings.add(path, 'must name a file: "sqlite:///gateway.db"')
        return str(self._store_dir / name)

    def _check_postgres(self, path: Path, written: str) -> None:
        password = urlsplit(written).password
        if password is not None and not has_reference(password):
            self._findings.add(
                path, 'holds the password itself; write "postgresql://user:${VARIABLE}@host/db"'
            )
        if self._config.server.pepper is None:
            self._findings.add(
                ("server", "pepper"),
                "is required with PostgreSQL: all replicas must hash keys alike. Set it to "
                '"${SOME_VARIABLE}" with at least 32 random characters',
            )

    def observe(self) -> ObserveSettings:
        """``[observe]``."""
        table = self._config.observe
        return ObserveSettings(
            log_level=table.log_level,
            log_format=table.log_format,
            metrics_token=self._secret(table.metrics_token),
            log_content=table.log_content,
            tracing=table.tracing,
        )

    def provider(self, name: str, simulator_url: str) -> Provider:
        """``[providers.NAME]``."""
        table = self._config.providers[name]
        path: Path = ("providers", name)
        return Provider(
            name=name,
            dialect=table.dialect,
            base_url=self._base_url(path, table, simulator_url),
            api_key=self._secret(table.api_key) or (SIMULATOR_KEY if table.simulator else None),
            timeouts=merged(Timeouts(), table.timeouts),
            headers=self._headers(table.headers),
            proxy=None if table.proxy is None else self._text(table.proxy),
            ca_file=self._ca_file(path, table),
            pool=table.pool,
            anthropic_version=table.anthropic_version,
            simulator=table.simulator,
        )

    def _base_url(self, path: Path, table: ProviderTable, simulator_url: str) -> str:
        if table.simulator:
            return simulator_url.rstrip("/") + SIMULATOR_PATHS[table.dialect]
        where = (*path, "base_url")
        return self._url(where, table.base_url) if table.base_url is not None else ""

    def _headers(self, written: Mapping[str, str]) -> Headers:
        return Headers({name: self._text(value) for name, value in written.items()})

    def _url(self, path: Path, written: str) -> str:
        url = self._text(written)
        fault = None if has_reference(url) else url_fault(url)
        if fault is not None:
            self._findings.add(path, fault)
        return url.rstrip("/")

    def _ca_file(self, path: Path, table: ProviderTable) -> str | None:
        if table.ca_file is None:
            return None
        file = self._base / FilePath(table.ca_file).expanduser()
        if not file.is_file():
            self._findings.add((*path, "ca_file"), f"names {file}, which is no file")
        return str(file)

    def alias(self, name: str, providers: Mapping[str, Provider], book: FactsBook) -> Alias:
        """``[models.NAME]`` with its targets resolved."""
        table = self._config.models[name]
        targets = tuple(
            self._target(target, table, providers[target.provider], book)
            for target in table.targets
            if target.provider in providers
        )
        return Alias(
            name=name,
            targets=targets,
            strategy=table.strategy,
            commit=table.commit,
            retries=table.retries,
            max_attempts=table.max_attempts,
            deadline=table.deadline,
            retry_after_cap=table.retry_after_cap,
            report_model=table.report_model,
            breaker=BreakerPolicy(**table.breaker.model_dump()),
            kind=table.kind,
            next_on=frozenset(table.next_on),
            context=table.context,
            structured=table.structured,
            max_repairs=table.max_repairs,
            on_invalid_arguments=table.on_invalid_arguments,
            reasoning_summary=table.reasoning_summary,
            redaction=table.redaction,
            prompt=table.prompt,
            fenced=tuple(table.fenced),
        )

    def _target(
        self, target: TargetTable, alias: AliasTable, provider: Provider, book: FactsBook
    ) -> Target:
        table = self._config.providers[provider.name]
        deployment = f"{provider.name}/{target.model}"
        own = [f for f in (self._config.facts.get(deployment), target.facts) if f is not None]
        known = book.known(target.model, table, own)
        facts = book.facts(target.model, table, provider.base_url, known)
        layers = (table.timeouts, alias.timeouts, target.timeouts)
        return Target(
            deployment=Deployment(provider, target.model, facts),
            weight=target.weight,
            timeouts=merged(_base_timeouts(known), *layers),
        )

    def key(self, index: int, table: KeyTable) -> KeySettings:
        """One of ``[[keys]]``."""
        path: Path = ("keys", index)
        if table.key == DEMO_KEY:
            secret = Secret(DEMO_KEY)
        else:
            secret = self._secret(table.key) or Secret("")
        if _UNSENDABLE.search(secret.reveal()):
            self._findings.add(
                (*path, "key"),
                "has a blank at an end, a line break or a control character: no caller can send it",
            )
        if secret.reveal() == DEMO_KEY and not is_loopback(self._config.server.host):
            self._findings.add(
                (*path, "key"),
                f"is {DEMO_KEY!r}, which everybody knows, and server.host is not loopback. Make "
                "a key with `gateway keys create`, or listen on 127.0.0.1",
            )
        return KeySettings(
            name=table.name,
            key=secret,
            role=table.role,
            project=table.project,
            models=None if table.models is None else tuple(table.models),
            limits=limits(table.limits, self._config.limits.default),
            expires=table.expires,
            redaction=table.redaction,
            tools=None if table.tools is None else tuple(table.tools),
        )

    def extra(self) -> dict[str, Any]:
        """The tables that other rooms read, as plain data with references resolved."""
        names = ("runs", "redaction", "prompts", "tools", "mcp", "agents", "workflows")
        dumped = self._config.model_dump(include=set(names))
        for table, keys in (("tools", ("url", "headers")), ("mcp", ("url", "headers", "env"))):
            for entry in dumped[table].values():
                for key in keys:
                    entry[key] = self._expanded(entry[key])
        return dumped

    def _expanded(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._text(value)
        return self._headers(value) if isinstance(value, dict) else value


def merged(base: Timeouts, *layers: TimeoutsTable) -> Timeouts:
    """``base`` with what the layers say, the last one strongest."""
    values = {f.name: getattr(base, f.name) for f in fields(Timeouts)}
    for layer in layers:
        values.update(layer.model_dump(exclude_none=True))
    return Timeouts(**values)


def limits(table: LimitsTable, default: LimitsTable) -> Limits:
    """A key's limits, each from ``table`` or else from ``default``; ``0`` is a limit."""
    values = default.model_dump() | table.model_dump(exclude_none=True)
    return Limits(
        rpm=values["rpm"],
        tpm=values["tpm"],
        concurrent=values["concurrent"],
        nano_per_day=nano_if_set(values["usd_per_day"]),
        nano_per_month=nano_if_set(values["usd_per_month"]),
        nano_total=nano_if_set(values["usd_total"]),
    )


def _base_timeouts(known: Known) -> Timeouts:
    if not known.reasons:
        return Timeouts()
    return Timeouts(first_event=REASONING_SILENCE, between_events=REASONING_SILENCE)
