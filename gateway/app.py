"""The composition root: settings -> services -> ASGI app -> a server that ends well.

Everything that lives longer than a request is made here, owned here and closed here.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version

from adapters.adapter import Adapter
from adapters.canonical.clock import Clock, SystemClock
from adapters.canonical.faults import Fault
from adapters.registry import Endpoint, build_adapter
from gateway.flow.context import Runtime
from gateway.flow.leases import EVERY as LEASES_EVERY
from gateway.flow.memory import Memory
from gateway.http.middleware import App
from gateway.http.routes import build
from gateway.http.server import Server, listening
from gateway.observe.lag import sample_lag
from gateway.observe.logs import Logs
from gateway.observe.metrics import Metrics
from gateway.observe.tracer import tracer
from gateway.policy.auth import Keyring
from gateway.policy.check import check as check_policy
from gateway.policy.prompts.settings import filed
from gateway.policy.redaction.settings import redaction
from gateway.routing.breaker import Breakers
from gateway.routing.plan import Router
from gateway.routing.stats import Stats
from gateway.services.agents import check_agents
from gateway.services.background import settle
from gateway.services.idempotency import Idempotency
from gateway.services.keys import refresh_keys
from gateway.services.prompts import check as check_prompts
from gateway.services.prompts import refresh_prompts
from gateway.services.replaced import Replaced
from gateway.services.runs import Runs
from gateway.services.state import State
from gateway.services.tracing import check_tracing
from gateway.services.workflows import Workflows, check_workflows
from gateway.settings.problems import ConfigError, Problem
from gateway.settings.snapshot import Provider, Snapshot
from gateway.store import connect, pepper
from gateway.store.retention import DAYS
from gateway.tools.registry import Toolbox
from gateway.tools.registry import check as check_tools
from gateway.tools.registry import secrets as tool_secrets

log = logging.getLogger("gateway.server")

WATCH_EVERY = 0.5
"""Seconds between looks for keys and prompts that another process made or changed."""

SWEEP_FIRST = 60.0
"""Seconds from the start to the first sweep: who is restarted often keeps no more than others."""

SWEEP_EVERY = 3600.0


def check(snapshot: Snapshot) -> list[Problem]:
    """What the rooms find wrong with a configuration that has the right shape."""
    return [
        *_check_providers(snapshot),
        *check_tracing(snapshot.observe),
        *check_policy(snapshot),
        *check_prompts(snapshot),
        *check_agents(snapshot),
        *check_workflows(snapshot),
        *check_tools(snapshot),
    ]


def _check_providers(snapshot: Snapshot) -> Iterator[Problem]:
    """Each adapter is made once as it would be for serving: it looks into the CA file, at the
    proxy's URL and at the headers' values. It opens nothing."""
    for provider in snapshot.providers.values():
        try:
            _adapter(provider, SystemClock())
        except ValueError as error:
            reason = str(error).removeprefix(f"provider {provider.name!r}: ")
            yield Problem(f"providers.{provider.name}", reason)


async def serve(
    snapshot: Snapshot,
    *,
    reload: Callable[[], Snapshot],
    announce: Callable[[Snapshot, str], None] = lambda snapshot, url: None,
) -> int:
    """Serve until SIGTERM or SIGINT; a second one ends the process at once.

    :param reload: reads the configuration again; raises :class:`ConfigError`.
    :param announce: told the configuration and the address once requests are answered.
    :returns: the process's exit code.
    :raises OSError: where the port is taken. :raises StoreError: where the store is unusable.
    """
    with listening(snapshot.server.host, snapshot.server.port) as listener:
        async with running(snapshot, reload) as (app, state):
            del snapshot  # from here a reload may replace it, and what it says has to go then
            _settle_memory()
            host, port = listener.getsockname()[:2]
            shown = f"[{host}]" if ":" in host else host
            url = f"http://{shown}:{port}"
            await Server(app, state).run(listener, lambda: announce(state.snapshot, url))
    return 0


def _settle_memory() -> None:
    """Take what start-up made out of the collector's sight, and let it look less often: it stays
    to the end, and a request makes almost no cycles (measured: 180 of 760 microseconds of CPU a
    call)."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


@contextlib.asynccontextmanager
async def running(
    snapshot: Snapshot,
    reload: Callable[[], Snapshot] | None = None,
    *,
    clock: Clock | None = None,
) -> AsyncIterator[tuple[App, State]]:
    """The whole gateway without a server: the ASGI app and its state, closed on leaving."""
    clock = SystemClock() if clock is None else clock
    observe = snapshot.observe
    metrics = Metrics(_version())
    logs = Logs(
        level=observe.log_level,
        style=observe.log_format,
        content=observe.log_content,
        on_drop=metrics.line_dropped,
    )
    logs.install()
    store = connect(snapshot.store, committed=metrics.committed)
    spans = tracer(enabled=observe.tracing, version=_version())
    try:
        await store.open()
        breakers, stats = Breakers(), Stats()
        chance = random.Random()  # noqa: S311 - spreads retries, guards nothing
        runtime = Runtime(
            snapshot=snapshot,
            store=store,
            adapters={},
            breakers=breakers,
            stats=stats,
            metrics=metrics,
            clock=clock,
            random=chance,
            memory=Memory(clock.monotonic),
            router=Router(breakers, stats, chance.random),
            tracer=spans,
        )
        parts = _Parts(runtime, logs, reload)
        del snapshot, observe, runtime  # a reload replaces them, and then nobody may hold them
        async with parts.upkeep():
            yield build(parts.state), parts.state
    finally:
        await store.close()
        await asyncio.to_thread(spans.close)  # waits a little for a collector
        logs.close()


class _Parts:
    """What the running gateway is made of, and how it changes on reload."""

    def __init__(self, runtime: Runtime, logs: Logs, reload: Callable[[], Snapshot] | None) -> None:
        self._read = reload
        self._logs = logs
        self._clock = clock = runtime.clock
        self._replaced = Replaced(clock.monotonic)
        self._providers: dict[str, Provider] = {}
        snapshot, store, metrics = runtime.snapshot, runtime.store, runtime.metrics
        keyring = Keyring(pepper(snapshot.store, snapshot.server.pepper))
        metrics.watch_queue("log", logs.depth)
        metrics.watch_queue("store", store.depth)
        breakers = runtime.breakers
        metrics.watch_breakers(lambda: breakers.states(clock.monotonic()))
        idempotency = Idempotency(
            store, clock, self._days_of_answers, lambda: self.state.snapshot.store.keep_responses
        )
        self._tools = Toolbox(clock)
        runs = Runs(store, clock, keyring, lambda: self.state.runtime, lambda: self._tools.registry)
        runs.supervisor.on_let_go = lambda birth: settle(store, birth.id, clock)
        self.state = State(
            runtime,
            keyring,
            store,
            logs,
            self.reload,
            int(clock.wall()),
            idempotency,
            runs,
            Workflows(runs),
        )
        self._use(snapshot)

    def _days_of_answers(self) -> float:
        return self.state.snapshot.store.retention.get("idempotency", DAYS["idempotency"])

    def _use(self, snapshot: Snapshot) -> None:
        """Swap ``snapshot`` in whole. Providers that did not change keep their sockets."""
        old = self.state.runtime
        adapters: dict[str, Adapter] = {}
        for name, provider in snapshot.providers.items():
            kept = old.adapters.get(name)
            if kept is not None and self._providers.get(name) == provider:
                adapters[name] = kept
            else:
                adapters[name] = _adapter(provider, self._clock)
        unused = [a for name, a in old.adapters.items() if adapters.get(name) is not a]
        self._providers = dict(snapshot.providers)
        deployments = {
            target.deployment.name: target.deployment
            for alias in snapshot.aliases.values()
            for target in alias.targets
        }
        old.breakers.retain(deployments)
        old.stats.retain(deployments)
        old.metrics.know(
            list(snapshot.aliases),
            [(found.provider.name, found.model) for found in deployments.values()],
        )
        for text in self._secrets(snapshot):
            self._logs.register(text)
        doors = self._tools.use(snapshot)
        self.state.runs.use(snapshot)
        self.state.workflows.use(snapshot)
        self.state.keyring.use_file(snapshot.keys, snapshot.default_limits)
        old.prompts.use_files(filed(snapshot))
        self.state.runtime = replace(
            old,
            snapshot=snapshot,
            adapters=adapters,
            router=Router(old.breakers, old.stats, old.random.random),
            redaction=redaction(snapshot),
        )
        if snapshot is not old.snapshot:
            self._replaced.add(old, [*unused, *doors], self._secrets(old.snapshot))

    def _secrets(self, snapshot: Snapshot) -> list[str]:
        """What no log line may show while ``snapshot`` is in force."""
        secrets = [provider.api_key for provider in snapshot.providers.values()]
        secrets += [key.key for key in snapshot.keys]
        secrets += [snapshot.server.pepper, snapshot.observe.metrics_token]
        secrets += [self.state.started_with["server.pepper"]]
        own = [secret.reveal() for secret in secrets if secret is not None]
        return [*own, *tool_secrets(snapshot)]

    async def reload(self) -> Snapshot:
        """Read the configuration again and use it.

        :raises Fault: ``conflict`` with every problem, and the old one stays in force.
        """
        if self._read is None:
            raise Fault("conflict", "This gateway was started without a configuration file.")
        try:
            snapshot = self._read()
            problems = check(snapshot)
            if problems:
                raise ConfigError(problems)
        except ConfigError as error:
            raise Fault(
                "conflict",
                f"The new configuration does not pass; the old one stays. {error}",
                code="config_invalid",
            ) from error
        self._use(snapshot)
        await refresh_keys(self.state)
        log.info("configuration %s is in force", snapshot.hash)
        return snapshot

    @contextlib.asynccontextmanager
    async def upkeep(self) -> AsyncIterator[None]:
        """The gateway's own tasks, all in one group, ended before the store closes."""
        await refresh_keys(self.state)
        await refresh_prompts(self.state)
        metrics = self.state.runtime.metrics
        try:
            async with asyncio.TaskGroup() as group:
                self._tools.start(group)
                tasks = [
                    group.create_task(sample_lag(self._clock, metrics.lag)),
                    group.create_task(self._watch(self.state.store.keys_version, refresh_keys)),
                    group.create_task(
                        self._watch(self.state.store.prompts_version, refresh_prompts)
                    ),
                    group.create_task(self._sweep()),
                    group.create_task(self._keep_leases()),
                    group.create_task(self.state.runs.supervisor.serve()),
                ]
                yield
                await self.state.idempotency.close()
                for task in tasks:
                    task.cancel()
                await asyncio.wait(tasks)
                await self._tools.close()
        finally:
            for adapter in self.state.runtime.adapters.values():
                await adapter.close()
            await self._replaced.close()

    async def _keep_leases(self) -> None:
        """Renew what is under way here, settle what died elsewhere, close what nobody needs."""
        leases, store = self.state.runtime.leases, self.state.store
        while True:
            await asyncio.sleep(LEASES_EVERY)
            with contextlib.suppress(Fault):  # the store's absence shows at /readyz
                await leases.keep(store, self._clock.wall())
            if await self._replaced.close_unneeded():
                now = self._secrets(self.state.snapshot)
                self._logs.know([*now, *self._replaced.secrets])

    async def _watch(
        self, version: Callable[[], Awaitable[int]], refresh: Callable[[State], Awaitable[None]]
    ) -> None:
        """Notice what another process, the command line perhaps, changed in the store."""
        seen = -1
        while True:
            with contextlib.suppress(Fault):  # the store's absence shows at /readyz
                found = await version()
                if found != seen:
                    await refresh(self.state)
                    seen = found
            await asyncio.sleep(WATCH_EVERY)

    async def _sweep(self) -> None:
        """Retention: soon after the start, then every hour."""
        pause = SWEEP_FIRST
        while True:
            await asyncio.sleep(pause)
            pause = SWEEP_EVERY
            with contextlib.suppress(Fault):  # told by the store; tried again in an hour
                retention = self.state.snapshot.store.retention
                await self.state.store.sweep(self._clock.wall(), retention)


def _adapter(provider: Provider, clock: Clock) -> Adapter:
    headers = dict(provider.headers)
    if provider.dialect == "anthropic-messages":
        headers["anthropic-version"] = provider.anthropic_version
    endpoint = Endpoint(
        name=provider.name,
        dialect=provider.dialect,
        base_url=provider.base_url,
        api_key=None if provider.api_key is None else provider.api_key.reveal(),
        headers=headers,
        proxy=provider.proxy,
        ca_file=provider.ca_file,
        pool_size=provider.pool,
    )
    return build_adapter(endpoint, clock)


def _version() -> str:
    try:
        return version("llm-gateway")
    except PackageNotFoundError:
        return "0+unknown"
