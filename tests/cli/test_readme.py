"""What the README tells a user to type does what it says, against the demo."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
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


def test_a_run_waits_for_a_person_and_goes_on(demo: str, gateway: Callable[..., Any]) -> None:
    [body] = re.findall(r"/runs -H '[^']+' -d '(\{.*?\})'\n", README, flags=re.DOTALL)
    asked = urllib.request.Request(
        f"{demo}/runs", body.encode(), {"Authorization": "Bearer demo"}, method="POST"
    )
    with urllib.request.urlopen(asked, timeout=20) as answer:
        run = json.load(answer)["id"]
    commands = re.findall(r"^\.venv/bin/gateway (runs .*?) run_…", README, flags=re.MULTILINE)
    assert [command.split()[1] for command in commands] == ["tail", "approve"]
    tail, approve = (command.split() for command in commands)
    deadline = time.monotonic() + 30
    while gateway(*approve, run).code != 0:
        assert time.monotonic() < deadline
    ran = gateway(*tail, run)
    assert ran.code == 0, ran.err
    assert "agreed" in ran.out
    assert "<- 42" in ran.out


def test_every_page_is_named() -> None:
    named = set(re.findall(r"\]\(((?:docs/)?\w[\w./-]*)\)", README))
    pages = {f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md")}
    assert not pages - named, "pages that README.md does not name"
    assert not {path for path in named if not (ROOT / path).exists()}, "pages that are not there"
