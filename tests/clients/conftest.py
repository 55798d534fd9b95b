"""A gateway over the simulator in a thread, and the table of what the clients made of it."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.harness import alias, gateway

UPSTREAMS = {
    "openai": ("openai", "gpt-5.2"),
    "claude": ("anthropic", "claude-sonnet-4-6"),
}

EMBED = """
[models.embed]
kind = "embedding"
targets = [{ provider = "chat", model = "sim-embed" }]
"""

RESULTS: dict[str, dict[str, str]] = {}


@pytest.fixture(scope="session")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The gateway's address; its models are called after their upstreams."""
    started: queue.Queue[Any] = queue.Queue()
    stop = threading.Event()
    aliases = [alias(f"over-{name}", target) for name, target in UPSTREAMS.items()]
    aliases += [
        alias(f"hello-{name}", (p, "say-hello-there")) for name, (p, _) in UPSTREAMS.items()
    ]
    folder = tmp_path_factory.mktemp("gateway")

    async def serve() -> None:
        async with gateway(folder, *aliases, EMBED) as running:
            started.put(running.url)
            while not stop.is_set():
                await asyncio.sleep(0.05)

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    try:
        yield started.get(timeout=30)
    finally:
        stop.set()
        thread.join(timeout=30)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """An empty home: no client finds settings or keys of its own."""
    return tmp_path


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    outcome = yield
    report = outcome.get_result()  # type: ignore[attr-defined]
    params = getattr(item, "callspec", None)
    if report.when == "call" and params is not None and "client" in params.params:
        row = RESULTS.setdefault(params.params["client"].name, {})
        row[params.params["upstream"]] = "passes" if report.passed else "FAILS"


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """The table."""
    if not RESULTS:
        return
    width = max(map(len, RESULTS)) + 2
    terminalreporter.section("clients over each upstream")
    terminalreporter.write_line("client".ljust(width) + "".join(u.ljust(10) for u in UPSTREAMS))
    for name, row in sorted(RESULTS.items()):
        cells = "".join(row.get(upstream, "-").ljust(10) for upstream in UPSTREAMS)
        terminalreporter.write_line(name.ljust(width) + cells)
