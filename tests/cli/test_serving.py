"""``gateway serve``, ``demo`` and ``simulate`` as processes: starting, answering, ending."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.cli.exits import Exit

START = 50.0
"""Seconds that a start may take on a busy machine; the bench holds it to 1.5."""

SIMULATED = """\
[providers.sim]
dialect = "openai-responses"
simulator = true

[models.smart]
targets = [{ provider = "sim", model = "sim-gpt" }]

[[keys]]
name = "dev"
key = "${GATEWAY_KEY}"
role = "admin"
"""


class Process:
    """A command that goes on, its outputs in files."""

    def __init__(self, folder: Path, environment: dict[str, str], *arguments: str) -> None:
        self._out, self._err = folder / "out", folder / "err"
        with self._out.open("w") as out, self._err.open("w") as err:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "gateway", *arguments],
                cwd=folder, env=environment, stdout=out, stderr=err,
            )  # fmt: skip

    @property
    def out(self) -> str:
        return self._out.read_text()

    @property
    def err(self) -> str:
        return self._err.read_text()

    def until(self, word: str, seconds: float = START) -> str:
        """Wait for ``word`` on either output; the line that has it."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            for line in (self.out + self.err).splitlines():
                if word in line:
                    return line
            time.sleep(0.02)
        raise AssertionError(f"no {word!r} within {seconds} s:\n{self.out}\n{self.err}")

    def end(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(timeout=20)


@pytest.fixture
def start(tmp_path: Path, command_environment: dict[str, str]) -> Iterator[Callable[..., Process]]:
    """Start ``gateway …`` in a folder of its own; whatever still runs at the end is killed."""
    running: list[Process] = []

    def run(*arguments: str, folder: Path = tmp_path) -> Process:
        folder.mkdir(exist_ok=True)
        running.append(Process(folder, command_environment, *arguments))
        return running[-1]

    yield run
    for one in running:
        if one.process.poll() is None:
            one.process.kill()
            one.process.wait()


@pytest.fixture
def served(start: Callable[..., Process], config: Path) -> tuple[Process, str]:
    """A gateway over the simulator, and its address."""
    config.write_text(SIMULATED)
    process = start("serve", "--port", "0")
    return process, process.until("serving on").split()[-1]


def ask(url: str, key: str, path: str = "/v1/chat/completions") -> tuple[int, dict[str, Any]]:
    """One chat call: status and body."""
    body = {"model": "smart", "messages": [{"role": "user", "content": "Hello"}]}
    request = urllib.request.Request(
        url + path,
        json.dumps(body).encode() if "chat" in path else None,
        {"Authorization": f"Bearer {key}", "Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def test_it_answers_and_ends_on_sigterm(served: tuple[Process, str]) -> None:
    process, url = served
    status, answer = ask(url, "sk-dev")
    assert status == 200
    assert answer["choices"][0]["message"]["content"] == "Hello"
    assert ask(url, "wrong")[0] == 401
    assert process.end() == Exit.OK
    assert "Traceback" not in process.err
    assert process.out == ""


def test_ctrl_c_ends_it_too(served: tuple[Process, str]) -> None:
    process, _ = served
    assert process.end(signal.SIGINT) == Exit.OK


def test_keys_made_beside_it_work_within_a_second(
    served: tuple[Process, str], gateway: Callable[..., Any]
) -> None:
    _, url = served
    key = gateway("keys", "create", "late").out.strip()
    assert eventually(lambda: ask(url, key)[0] == 200)
    gateway("keys", "revoke", "late")
    assert eventually(lambda: ask(url, key)[0] == 401)
    assert "late" in gateway("usage", "--by", "key", "--format", "csv").out


def eventually(holds: Callable[[], bool], seconds: float = 3.0) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if holds():
            return True
        time.sleep(0.05)
    return False


def test_sighup_takes_what_passes_and_refuses_the_rest(
    served: tuple[Process, str], config: Path
) -> None:
    process, url = served
    config.write_text(SIMULATED.replace("[models.smart]", "[models.fast]"))
    process.process.send_signal(signal.SIGHUP)
    assert eventually(lambda: ask(url, "sk-dev")[0] == 404)
    config.write_text(SIMULATED.replace("strategy", "stratgy") + 'rols = "x"\n')
    process.process.send_signal(signal.SIGHUP)
    process.until("keys[0].rols")
    assert ask(url, "sk-dev")[0] == 404, "the old configuration stays in force"
    config.write_text('[server]\nroot_path = "/llm"\n' + SIMULATED)
    process.process.send_signal(signal.SIGHUP)
    process.until("read at the start alone, so not changed yet: server.root_path")
    assert eventually(lambda: ask(url, "sk-dev")[0] == 200)


def test_a_reload_by_http_stands_in_the_log_too(served: tuple[Process, str]) -> None:
    process, url = served
    asked = urllib.request.Request(
        f"{url}/admin/reload", b"", {"Authorization": "Bearer sk-dev"}, method="POST"
    )
    with urllib.request.urlopen(asked, timeout=10) as answer:
        told = json.load(answer)["config_hash"]
    process.until(f"configuration {told} is in force")


@pytest.mark.parametrize("command", ["serve", "simulate"])
def test_a_taken_port_is_an_exit_code(
    command: str, config: Path, gateway: Callable[..., Any]
) -> None:
    config.write_text(SIMULATED)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        ran = gateway(command, "--port", str(port))
    assert ran.code == Exit.UNAVAILABLE
    assert ran.err == (
        f"Can't listen on 127.0.0.1:{port}: another program has this port. "
        "Stop it, or choose another: --port N\n"
    )


def test_a_second_server_on_the_same_books_is_refused(
    served: tuple[Process, str], gateway: Callable[..., Any]
) -> None:
    ran = gateway("serve", "--port", "0")
    assert ran.code == Exit.UNAVAILABLE
    assert "The store can't be used" in ran.err


def test_the_demo_says_what_to_try_and_it_works(
    start: Callable[..., Process], tmp_path: Path, command_environment: dict[str, str]
) -> None:
    folder = tmp_path / "demo"
    begun = time.monotonic()
    process = start("demo", "--port", "0", folder=folder)
    process.until("Ctrl-C")
    assert time.monotonic() - begun < START
    text = process.out
    assert text.isascii(), "nothing that a plain terminal can't show"
    for word in ("127.0.0.1", "demo", "demo-openai", "demo-anthropic"):
        assert word in text
    commands = re.findall(r"^  ((?:curl|python3)(?:.|\n)+?)\n\n", text, re.MULTILINE)
    assert len(commands) == 3
    for command in commands:
        done = subprocess.run(
            command.replace("python3", sys.executable), shell=True, cwd=folder,
            env=command_environment, capture_output=True, text=True, check=False, timeout=30,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip()
    assert done.stdout.endswith("data: [DONE]\n\n")
    assert (folder / "gateway-demo.db").exists()
    assert process.end() == Exit.OK


def test_the_simulator_on_its_own(start: Callable[..., Process]) -> None:
    process = start("simulate", "--port", "0")
    line = process.until("OpenAI Chat")
    url = next(word for word in line.split() if word.startswith("http"))
    body = {"model": "any", "messages": [{"role": "user", "content": "Hello"}]}
    request = urllib.request.Request(
        f"{url}/chat/completions",
        json.dumps(body).encode(),
        {"Content-Type": "application/json", "Authorization": "Bearer any"},
    )
    with urllib.request.urlopen(request, timeout=5) as answer:
        assert json.load(answer)["choices"]
    assert process.end() == Exit.OK


def test_what_a_server_is_made_of_is_out_of_the_collector_s_sight() -> None:
    """Collections while it is imported, and over it later, were a part of each start."""
    told = subprocess.run(
        [sys.executable, "-c", MEASURED], check=True, capture_output=True, text=True
    ).stdout
    collections, frozen, seen = map(int, told.split())
    assert collections == 0
    assert frozen > 50_000
    assert seen < 2_000


MEASURED = """
import gc
from gateway.cli.serve import load_program
before = [one["collections"] for one in gc.get_stats()]
load_program()
assert gc.isenabled()
after = [one["collections"] for one in gc.get_stats()]
print(sum(after) - sum(before), gc.get_freeze_count(), len(gc.get_objects()))
"""
