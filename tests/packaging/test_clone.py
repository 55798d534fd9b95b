"""A bare clone with python3 and make: the whole way, with the real tools and registries."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.ports import reserved_port

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.all, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project's files, without anything that was made from them."""
    folder = tmp_path_factory.mktemp("clone") / "gateway"
    made = shutil.ignore_patterns(
        ".venv", ".git", "__pycache__", "*.db*", "*_cache", "*.egg-info", ".hypothesis"
    )
    shutil.copytree(ROOT, folder, symlinks=True, ignore=made)
    return folder


def make(folder: Path, *arguments: str, seconds: float = 600) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["make", *arguments],
        cwd=folder, capture_output=True, text=True, check=False, timeout=seconds,
        env={k: v for k, v in os.environ.items() if k not in ("VIRTUAL_ENV", "MAKEFLAGS")},
    )  # fmt: skip


@pytest.fixture(scope="module")
def installed(clone: Path) -> Path:
    done = make(clone, "install")
    assert done.returncode == 0, done.stdout + done.stderr
    return clone


def test_install_puts_the_command_there(installed: Path) -> None:
    command = installed / ".venv" / "bin" / "gateway"
    shown = subprocess.run([command, "--version"], capture_output=True, text=True, check=True)
    assert shown.stdout.startswith("gateway 0")


def test_a_second_install_takes_no_time(installed: Path) -> None:
    start = time.monotonic()
    assert make(installed, "install").returncode == 0
    assert time.monotonic() - start < 5


def test_a_broken_environment_is_made_anew(installed: Path) -> None:
    python = installed / ".venv" / "bin" / "python"
    python.unlink()
    python.symlink_to("/nowhere/python3")
    assert make(installed, "install").returncode == 0
    subprocess.run([python, "-c", "import gateway, fastapi"], check=True)


@pytest.fixture
def served(installed: Path, tmp_path: Path) -> Iterator[tuple[int, Path]]:
    """``make run`` under way, with what it prints going to a file."""
    printed = tmp_path / "printed"
    with reserved_port() as port:
        with printed.open("w") as file:
            process = subprocess.Popen(
                ["make", "run", f"PORT={port}"], cwd=installed, stdout=file, stderr=file,
                start_new_session=True,
            )  # fmt: skip
        try:
            yield port, printed
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait(timeout=40)


def ask(port: int, body: dict[str, object]) -> bytes:
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/v1/chat/completions",
        json.dumps(body).encode(),
        {"Authorization": "Bearer demo", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=20) as answer:
        return answer.read()


def test_make_run_serves_the_demo(served: tuple[int, Path]) -> None:
    port, printed = served
    deadline = time.monotonic() + 60
    while "Ctrl-C" not in printed.read_text():
        assert time.monotonic() < deadline, printed.read_text()
        time.sleep(0.1)
    text = printed.read_text()
    for word in (f"http://127.0.0.1:{port}", "demo-openai", "demo-anthropic", "curl", "OpenAI("):
        assert word in text
    assert "\x1b" not in text, "only plain text in a pipe"
    message = {"role": "user", "content": "Hello"}
    for model in ("demo-openai", "demo-anthropic"):
        whole = json.loads(ask(port, {"model": model, "messages": [message]}))
        assert whole["choices"][0]["message"]["content"]
        stream = ask(port, {"model": model, "messages": [message], "stream": True})
        assert stream.endswith(b"data: [DONE]\n\n")
