"""The command as a person or a script runs it: a process, its exit code, its two outputs."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from gateway.settings.snapshot import Limits, StoreSettings
from gateway.store import connect
from gateway.store.base import AttemptRow, Opening, RequestEnd, RequestRow, Settlement

ROOT = Path(__file__).parents[2]

CONFIG = """\
[providers.local]
dialect = "openai-chat"
base_url = "http://127.0.0.1:9/v1"
prices = "none"

[models.smart]
targets = [{ provider = "local", model = "in-house" }]

[[keys]]
name = "dev"
key = "${GATEWAY_KEY}"
"""


@dataclass(frozen=True)
class Ran:
    """One finished command."""

    code: int
    out: str
    err: str


Gateway = Callable[..., Ran]


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A sound configuration in a folder of its own."""
    file = tmp_path / "gateway.toml"
    file.write_text(CONFIG)
    return file


@pytest.fixture
def command_environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "GATEWAY_KEY": "sk-dev", "COLUMNS": "100"}


@pytest.fixture
def gateway(config: Path, command_environment: dict[str, str]) -> Gateway:
    """Run ``gateway …`` in the configuration's folder, its outputs piped."""

    def run(*arguments: str, **environment: str) -> Ran:
        done = subprocess.run(
            [sys.executable, "-m", "gateway", *arguments],
            cwd=config.parent, env={**command_environment, **environment},
            capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip
        return Ran(done.returncode, done.stdout, done.stderr)

    return run


@dataclass(frozen=True)
class Call:
    """A call that was made and paid for."""

    key: str
    at: float
    cost_nano: int
    model: str = "in-house"


@pytest.fixture
def booked(config: Path) -> Callable[..., None]:
    """Write calls into the books of the configuration."""

    def book(*calls: Call) -> None:
        asyncio.run(_book(f"sqlite:///{config.parent}/gateway.db", calls))

    return book


async def _book(url: str, calls: tuple[Call, ...]) -> None:
    store = connect(StoreSettings(url=url))
    await store.open()
    for number, call in enumerate(calls):
        request = RequestRow(
            id=f"req_{number}", at=call.at, project="default", key_id=f"key_{call.key}",
            key_name=call.key, alias="smart", origin="openai-chat", stream=False, config_hash="h",
        )  # fmt: skip
        attempt = AttemptRow(
            id=f"att_{number}", request_id=request.id, number=1, kind="first", at=call.at,
            provider="local", model=call.model, dialect="openai-chat", estimated_input=1,
            reserved_tokens=1, reserved_nano=0, price_table="",
        )  # fmt: skip
        opening = Opening(request, attempt, request.key_id, Limits(), call.at + 60)
        await store.open_attempt(opening)
        settled = Settlement(
            attempt.id, request.id, call.at + 1, "completed", "provider",
            input_tokens=10, output_tokens=20, cost_nano=call.cost_nano,
        )  # fmt: skip
        await store.settle_attempt(settled._replace(request=RequestEnd("completed", 200)))
    await store.close()


@pytest.fixture
def call() -> type[Call]:
    return Call
