"""What the README tells a user to type does what it says, against the demo."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
PAGE_ADDRESS = "http://127.0.0.1:8080"


def blocks(language: str) -> list[str]:
    """The README's code blocks of a language."""
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


@pytest.fixture
def demo(tmp_path: Path, command_environment: dict[str, str]) -> Iterator[str]:
    """A running demo's address; its books are in ``tmp_path``."""
    said = tmp_path / "said"
    with said.open("w") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "gateway", "demo", "--port", "0"],
            cwd=tmp_path, env=command_environment, stdout=out, stderr=subprocess.STDOUT,
        )  # fmt: skip
    try:
        yield address(said)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=20)


def address(said: Path) -> str:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if found := re.search(r"address +(http://\S+)", said.read_text()):
            return found[1]
        time.sleep(0.02)
    raise AssertionError(said.read_text())


def test_the_first_calls_and_then_the_books(
    demo: str, tmp_path: Path, gateway: Callable[..., Any], command_environment: dict[str, str]
) -> None:
    script = "".join(blocks("python")).replace(PAGE_ADDRESS, demo)
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path,
        env={**command_environment, "PYTHONIOENCODING": "utf-8"},
        capture_output=True, encoding="utf-8", check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Hello!" in done.stdout
    assert "rain" in done.stdout

    usage = next(line for line in README.splitlines() if line.startswith(".venv/bin/gateway usage"))
    ran = gateway(*usage.split()[1:])
    assert ran.code == 0, ran.err
    assert "sim-claude" in ran.out, ran.err
