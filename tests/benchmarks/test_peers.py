"""The comparison with other gateways, without installing one: who takes part is made up here."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest

from benchmarks import contest, peers
from benchmarks.contest import Entrant, Figures, complete
from benchmarks.load import drive, request
from benchmarks.mock import CHAT_WHOLE, STREAMS
from benchmarks.rivals import COMPLETE, PYPI, RIVALS, Rival, Source, alias, installed
from benchmarks.scenarios import SCENARIOS, Scenario
from benchmarks.servers import Unfit, family

ROOT = Path(__file__).parents[2]
CALL = Scenario(peers.CALL, "whole", "chat", "call", None, 32, 16)
STREAM = Scenario(peers.CHUNK, "burst-20", "chat", "chunk", None, 16, 16)
ROUTES = [("chat", "whole"), ("messages", "paced-100-10")]

RELAY = (
    "import json, runpy, sys; upstream = json.load(open('{config}')); "
    "sys.argv = ['floor', '{port}', upstream]; "
    "runpy.run_module('benchmarks.floor', run_name='__main__')"
)
THERE = Source(lambda package, home: None, lambda package, home: "1.0", "bin")


def rival(name: str, code: str = RELAY, source: Source = THERE) -> Rival:
    return Rival(
        name,
        source,
        name.lower(),
        (sys.executable, "-c", code),
        lambda upstream, port, routes: upstream,
        {"PYTHONPATH": str(ROOT)},
        model=lambda route: "burst-3" if name == "Short" and "-" in route[1] else route[1],
    )


def not_there(package: str, home: Path) -> None:
    raise Unfit(f"looking for it\nno package is called {package}")


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"FEW": 2, "MANY": 4, "REST": 0.1, "SECONDS": 0.2, "SETTLES": 0.1}.items():
        monkeypatch.setattr(contest, name, value)


@pytest.mark.usefixtures("quick")
async def test_the_broken_are_told_and_the_others_compared(tmp_path: Path) -> None:
    rivals = [
        rival("Absent", source=Source(not_there, THERE.version, "bin")),
        rival("Mute", "raise SystemExit('no configuration')"),
        rival("Relay"),
        rival("Short"),
    ]
    lines: list[str] = []
    await peers.compare(rivals, (CALL, STREAM), 1, tmp_path, lines.append)
    told = "\n".join(lines)
    assert "Absent is not compared: no package is called absent\n" in told
    assert "Mute is not compared: no configuration\n" in told
    whole, streamed = (told.partition(f"### {name}")[2] for name in ("Call", "Paced chunk"))
    assert "| Short 1.0 | 16 of 16 answers failed | | | |" in streamed
    for name, part in (("Relay 1.0", whole), ("Relay 1.0", streamed), ("Short 1.0", whole)):
        cells = part.partition(f"| {name} |")[2].partition("\n")[0].split(" | ")
        assert float(cells[0].split()[0].replace(",", "")) > 0
        # a bare relay costs less than a gateway, and a bit more or less than the floor
        assert 0.2 < float(cells[1]) < 5
        assert cells[-1] == "under |"
    assert told.endswith(
        "Under the bar: Relay, call, same dialect; Short, call, same dialect; "
        "Relay, paced chunk, same dialect.\nWithout a figure: Short, paced chunk, same dialect."
    )


def test_an_answer_needs_all_its_text_and_its_end() -> None:
    opening, delta, closing = STREAMS["/v1/chat/completions"]
    assert complete(CALL)(CHAT_WHOLE)
    assert not complete(CALL)(CHAT_WHOLE.replace(b"word word ", b"word ", 1))
    assert complete(STREAM)(opening + delta * 20 + closing)
    assert not complete(STREAM)(opening + delta * 19 + closing)
    assert not complete(STREAM)(opening + delta * 20)


SAID = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n"
FAILED = {
    "another status": b"HTTP/1.1 500 No\r\ncontent-length: 2\r\n\r\nok",
    "another body": SAID + b"\r\nno",
    "a body that breaks off": SAID + b"\r\no",
    "a stream that breaks off": b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n",
    "no length": b"HTTP/1.1 200 OK\r\n\r\nok\r\n",
    "nothing": b"",
}


async def answered(answer: bytes) -> tuple[int, int, int]:
    """Four calls by two callers of a server that hangs up after each: how many connections were
    made, how many answers came, how many failed."""
    connections = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        result = await drive(port, request("/", b""), 4, 2, complete=lambda body: body == b"ok")
    return connections, len(result.whole), result.failed


async def test_a_caller_comes_again_after_a_server_has_hung_up() -> None:
    assert await answered(SAID + b"connection: close\r\n\r\nok") == (4, 4, 0)


@pytest.mark.parametrize("answer", FAILED.values(), ids=FAILED)
async def test_what_is_no_whole_answer_has_failed(answer: bytes) -> None:
    assert (await answered(answer))[2] == 4


@pytest.fixture
def parent() -> Iterator[subprocess.Popen[str]]:
    """A process with a child; it says the child's pid."""
    code = (
        "import subprocess, sys; "
        "child = subprocess.Popen([sys.executable, '-c', 'input()'], stdin=subprocess.PIPE); "
        "print(child.pid, flush=True); input(); child.communicate(b'.'); "
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as running:
        yield running
        running.communicate(".")


def test_children_belong_to_a_server(parent: subprocess.Popen[str]) -> None:
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    assert family(parent.pid) == [parent.pid, child]


def test_ratios_are_taken_round_by_round() -> None:
    taken = {
        peers.FLOOR: [100.0, 200.0, 100.0],
        peers.OURS: [200.0, 400.0, 100.0],
        "LiteLLM": [5000.0, 9600.0, 2600.0],
        "lm-proxy": [400.0, 800.0, 200.0],
    }
    figures = Figures(taken, {"MLflow": "3 of 16 answers failed"})
    entrants = [
        Entrant(name, "1.2", lambda: nullcontext((0, 0)), lambda one: b"")
        for name in [*taken, "MLflow"]
    ]
    assert peers.table(CALL, entrants, figures)[2:] == [
        "| --- | --: | --: | --: | --: | --- |",
        "| floor 1.2 | 100 (100 to 200) | 1.0 |  |  |  |",
        "| this gateway 1.2 | 200 (100 to 400) | 2.0 |  |  |  |",
        "| LiteLLM 1.2 | 5,000 (2,600 to 9,600) | 48.0 | 25.0 (24.0 to 26.0) | 25 | ok |",
        "| lm-proxy 1.2 | 400 (200 to 800) | 4.0 | 2.0 (2.0 to 2.0) | 1 | ok |",
        "| MLflow 1.2 | 3 of 16 answers failed | | | | |",
    ]
    taken["LiteLLM"] = [4900.0, 9600.0, 2600.0]
    assert peers.under(CALL, figures) == ["LiteLLM"]


def test_what_is_installed_stays_and_what_was_interrupted_is_done_again(tmp_path: Path) -> None:
    done: list[Path] = []

    def install(package: str, home: Path) -> None:
        assert not list(home.iterdir())
        (home / "part").touch()
        done.append(home)
        if len(done) == 1:
            raise Unfit("interrupted")

    one = rival("Relay", source=Source(install, THERE.version, "bin"))
    with pytest.raises(Unfit, match="interrupted"):
        installed(one, tmp_path)
    assert [installed(one, tmp_path) for _ in range(3)] == ["1.0"] * 3
    assert done == [tmp_path / "Relay"] * 2
    assert (tmp_path / "Relay" / COMPLETE).exists()


def test_a_version_is_what_its_environment_says(tmp_path: Path) -> None:
    made = tmp_path / "lib/python3.11/site-packages/litellm-1.2.3.dist-info"
    made.mkdir(parents=True)
    (made / "METADATA").write_text("Metadata-Version: 2.1\nName: litellm\nVersion: 1.2.3\n")
    assert PYPI.version("litellm[proxy]", tmp_path) == "1.2.3"


@pytest.mark.parametrize("one", RIVALS, ids=[one.name for one in RIVALS])
def test_a_rival_is_told_the_upstream_and_its_models(one: Rival) -> None:
    upstream = "http://127.0.0.1:9"
    settings = json.dumps(one.config(upstream, 8, ROUTES))
    for dialect, model in ROUTES:
        said = settings + json.dumps(dict(one.headers(upstream, dialect)))
        assert upstream in said
        assert one.model((dialect, model)) in (f'{settings}"{model}"')
    names = {"bin": "BIN", "home": "HOME", "config": "CONFIG", "port": "8"}
    command = [part.format(**names) for part in one.command]
    assert "8" in " ".join(command) + settings
    assert command[0] in {"node", "BIN/litellm", "BIN/mlflow", "BIN/python"}


def test_every_scenario_and_bar_is_there() -> None:
    names = {one.name for one in SCENARIOS}
    assert set(peers.COMPARED) <= names
    assert {scenario for scenario, _ in peers.BARS} <= set(peers.COMPARED)
    assert {name for _, name in peers.BARS} <= {one.name for one in RIVALS}
    assert alias(("chat", "whole")) == "chat-whole"
