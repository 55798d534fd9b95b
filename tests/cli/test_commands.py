"""The command line as scripts rely on it: exit codes, plain outputs, help that teaches."""

from __future__ import annotations

import argparse
import csv
import io
import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gateway.cli.exits import MEANINGS, Exit
from gateway.cli.main import parser
from gateway.cli.periods import shown

Gateway = Callable[..., object]
COMMANDS = (
    ("serve",), ("demo",), ("check",), ("simulate",), ("usage",), ("backup",), ("keys",),
    ("keys", "create"), ("keys", "list"), ("keys", "revoke"), ("runs",),
)  # fmt: skip


def helps(of: argparse.ArgumentParser, name: str) -> Iterator[tuple[str, str]]:
    """The help of a command and of every command below it."""
    yield name, of.format_help()
    for action in of._actions:
        if isinstance(action, argparse._SubParsersAction):
            for word, below in action.choices.items():
                yield from helps(below, f"{name} {word}")


class TestHelp:
    """``--help`` teaches, and costs nothing."""

    def test_it_names_every_command_and_exit_code(self, gateway: Gateway) -> None:
        ran = gateway("--help")
        assert ran.code == Exit.OK
        for command in ("serve", "demo", "check", "simulate", "keys", "usage", "backup"):
            assert re.search(rf"^    {command} ", ran.out, re.MULTILINE)
        for code, meaning in MEANINGS.items():
            assert re.search(rf"^  {code.value} +{re.escape(meaning)}$", ran.out, re.MULTILINE)

    @pytest.mark.parametrize("command", [c for c in COMMANDS if len(c) == 1])
    def test_every_command_has_examples_that_parse(
        self, command: tuple[str, ...], capsys: pytest.CaptureFixture[str]
    ) -> None:
        with pytest.raises(SystemExit) as ended:
            parser().parse_args([*command, "--help"])
        assert ended.value.code == 0
        shown = capsys.readouterr().out
        examples = re.findall(r"^  (?:KEY=\$\()?gateway ([^\n&>]+)", shown, re.MULTILINE)
        assert examples
        for example in examples:
            words = re.split(r"\s{3,}", example)[0].rstrip(")").replace("$(date +%F", "x").split()
            parser().parse_args(words)

    def test_it_fits_a_terminal_of_eighty_columns(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("COLUMNS", "80")
        wide = [
            f"{command}: {line}"
            for command, text in helps(parser(), "gateway")
            for line in text.splitlines()
            if len(line) > 80
        ]
        assert not wide, "\n".join(wide)

    def test_no_command_at_all_is_a_question_for_help(self, gateway: Gateway) -> None:
        for family in ((), ("keys",), ("runs",)):
            ran = gateway(*family)
            assert ran.code == Exit.USAGE
            assert ran.err == gateway(*family, "--help").out

    def test_it_loads_nothing_that_serving_needs(self) -> None:
        heavy = "pydantic fastapi uvicorn aiohttp httpx asyncio genai_prices uvloop"
        code = (
            "import sys; from gateway.cli.main import parser; parser().format_help();"
            f"print([m for m in '{heavy}'.split() if m in sys.modules])"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )
        assert done.stdout.strip() == "[]"


class TestExitCodes:
    """Scripts branch on them."""

    def test_their_numbers_never_change(self) -> None:
        assert {code.name: code.value for code in Exit} == {
            "OK": 0, "FAILED": 1, "USAGE": 2, "CONFIG": 3, "UNAVAILABLE": 4, "INTERRUPTED": 130,
        }  # fmt: skip

    @pytest.mark.parametrize(
        "arguments",
        [
            (),
            ("serv",),
            ("serve", "--port", "80x"),
            ("serve", "--port", "65536"),
            ("usage", "--by", "colour"),
            ("usage", "--since", "yesterday"),
            ("keys", "create"),
            ("keys", "create", "a", "--rpm", "-1"),
            ("keys", "create", "a", "--usd-per-day", "nan"),
            ("keys", "create", "a", "--usd-per-day", "1e-30"),
            ("keys", "create", "a", "--usd-total", "1e9000"),
            ("runs", "list", "--status", "nonsense"),
            ("backup",),
        ],
    )
    def test_a_wrong_command_line(self, gateway: Gateway, arguments: tuple[str, ...]) -> None:
        ran = gateway(*arguments)
        assert ran.code == Exit.USAGE
        assert "usage: gateway" in ran.err
        assert ran.out == ""

    @pytest.mark.parametrize(
        "arguments",
        [("serve",), ("check",), ("usage",), ("keys", "list"), ("backup", "x.db")],
    )
    def test_a_configuration_that_does_not_pass(
        self, gateway: Gateway, config: Path, arguments: tuple[str, ...]
    ) -> None:
        config.write_text(config.read_text() + 'rols = "x"\nlimits = { rpm = -1 }\n')
        ran = gateway(*arguments)
        assert ran.code == Exit.CONFIG
        assert "gateway.toml:12: keys[0].rols: is no known key; did you mean 'role'?" in ran.err
        assert "gateway.toml:13: keys[0].limits.rpm: must be 0 or more" in ran.err
        assert ran.out == ""

    def test_no_configuration(self, gateway: Gateway) -> None:
        ran = gateway("serve", "--config", "nowhere.toml")
        assert ran.code == Exit.CONFIG
        assert "gateway demo" in ran.err

    def test_a_store_that_can_not_be_used(self, gateway: Gateway, config: Path) -> None:
        config.write_text('[store]\nurl = "sqlite:////proc/none/gateway.db"\n' + config.read_text())
        ran = gateway("usage")
        assert ran.code == Exit.UNAVAILABLE
        assert "The store can't be used" in ran.err


class TestConfig:
    """Where the configuration is looked for."""

    def test_the_folder_the_variable_and_the_argument(
        self, gateway: Gateway, config: Path, tmp_path: Path
    ) -> None:
        assert gateway("check").code == Exit.OK
        config.rename(tmp_path / "other.toml")
        assert gateway("check").code == Exit.CONFIG
        assert gateway("check", GATEWAY_CONFIG="other.toml").code == Exit.OK
        assert gateway("check", "--config", "other.toml").code == Exit.OK

    @pytest.mark.parametrize(
        ("setting", "word"),
        [
            ('ca_file = "gateway.toml"', "PEM"),
            ('proxy = "nope"', "proxy must be an http"),
            ('proxy = "socks5://127.0.0.1:1"', "proxy must be an http"),
            ('headers = { X-Team = "a\\nb" }', "control character"),
        ],
    )
    def test_a_provider_that_could_not_be_reached_so(
        self, gateway: Gateway, config: Path, setting: str, word: str
    ) -> None:
        """What only the transport can judge is found by ``check``, and before the port opens."""
        text = config.read_text()
        config.write_text(text.replace('prices = "none"', f'prices = "none"\n{setting}'))
        for command in (("check",), ("serve", "--port", "0")):
            ran = gateway(*command)
            assert ran.code == Exit.CONFIG, ran.err
            assert "providers.local: " in ran.err
            assert word in ran.err
            assert "Traceback" not in ran.err

    def test_what_no_price_is_known_of(self, gateway: Gateway, config: Path) -> None:
        """A budget can't hold what it does not count: that is said before anyone relies on it."""
        ran = gateway("check")
        assert ran.code == Exit.OK
        assert "note: no price is known of local/in-house: its calls count as free" in ran.out
        price = '[facts."local/in-house".price]\ninput = 1\noutput = 2\n'
        config.write_text(config.read_text() + price)
        assert "note:" not in gateway("check").out
        assert (
            "note:"
            not in gateway(
                "check", "--config", str(Path(__file__).parents[2] / "config" / "demo.toml")
            ).out
        )

    def test_a_file_without_keys_or_models(self, gateway: Gateway, config: Path) -> None:
        """Sound, but nobody can call it: that is said, with what to do."""
        assert "gateway keys create" not in gateway("check").out
        config.write_text("")
        ran = gateway("check")
        assert ran.code == Exit.OK
        assert "note: no key is in the file" in ran.out
        assert "gateway keys create NAME" in ran.out
        assert "note: no model is in the file" in ran.out

    def test_check_in_json(self, gateway: Gateway, config: Path) -> None:
        ran = gateway("check", "--format", "json")
        assert json.loads(ran.out) == []
        config.write_text("[servr]\n")
        ran = gateway("check", "--format", "json")
        assert ran.code == Exit.CONFIG
        (problem,) = json.loads(ran.out)
        assert (problem["line"], problem["where"]) == (1, "servr")


class TestKeys:
    """A key's text is shown once; what is kept is its digest."""

    def test_only_the_key_goes_to_standard_output(self, gateway: Gateway, config: Path) -> None:
        ran = gateway("keys", "create", "alice")
        assert ran.code == Exit.OK
        key = ran.out.strip()
        assert re.fullmatch(r"sk-\S{40,}", key)
        assert key not in ran.err
        kept = b"".join(p.read_bytes() for p in config.parent.iterdir())
        assert key.encode() not in kept

    def test_limits_and_models(self, gateway: Gateway) -> None:
        ran = gateway(
            "keys", "create", "bob", "--models", "smart", "--rpm", "0", "--usd-per-day", "0.10",
            "--role", "admin", "--project", "team", "--expires", "2099-01-31",
        )  # fmt: skip
        assert ran.code == Exit.OK
        rows = json.loads(gateway("keys", "list", "--format", "json").out)
        (row,) = [row for row in rows if row["name"] == "bob"]
        assert row["limits"] == "0 rpm, 0.1 $/day"
        assert (row["models"], row["role"], row["project"]) == ("smart", "admin", "team")
        assert row["expires"] == "2099-01-31 00:00:00"

    def test_the_list_shows_the_limits_that_hold(self, gateway: Gateway, config: Path) -> None:
        """What a key does not say is as in ``[limits.default]``, there and in the list."""
        config.write_text(config.read_text() + "[limits.default]\nrpm = 10\ntpm = 7\n")
        gateway("keys", "create", "zoe", "--tpm", "5")
        rows = json.loads(gateway("keys", "list", "--format", "json").out)
        assert {row["name"]: row["limits"] for row in rows} == {
            "dev": "10 rpm, 7 tpm", "zoe": "10 rpm, 5 tpm",
        }  # fmt: skip

    def test_a_model_that_is_not_configured(self, gateway: Gateway) -> None:
        ran = gateway("keys", "create", "bob", "--models", "smrt")
        assert ran.code == Exit.FAILED
        assert "it has: smart" in ran.err

    @pytest.mark.parametrize("name", ["alice", "dev"])
    def test_names_are_taken_once(self, gateway: Gateway, name: str) -> None:
        gateway("keys", "create", "alice")
        ran = gateway("keys", "create", name)
        assert ran.code == Exit.FAILED
        assert f"A key called {name} exists" in ran.err

    def test_revoked_by_name_and_by_id(self, gateway: Gateway) -> None:
        for name in ("a", "b"):
            gateway("keys", "create", name)
        rows = {r["name"]: r for r in json.loads(gateway("keys", "list", "--format", "json").out)}
        assert gateway("keys", "revoke", "a").code == Exit.OK
        assert gateway("keys", "revoke", rows["b"]["id"]).code == Exit.OK
        rows = {r["name"]: r for r in json.loads(gateway("keys", "list", "--format", "json").out)}
        assert rows["a"]["state"] == rows["b"]["state"] == "revoked"
        ran = gateway("keys", "revoke", "a")
        assert ran.code == Exit.FAILED
        assert "No open key" in ran.err

    def test_a_key_of_the_file_is_the_files_own(self, gateway: Gateway) -> None:
        ran = gateway("keys", "revoke", "dev")
        assert ran.code == Exit.FAILED
        assert "configuration file" in ran.err


class TestUsage:
    """The bill, in three forms."""

    def test_a_period_that_ends_before_it_begins(self, gateway: Gateway) -> None:
        ran = gateway("usage", "--since", "2026-11-30", "--until", "2026-11-01")
        assert (ran.code, ran.out) == (Exit.FAILED, "")
        assert "--until lies before --since" in ran.err

    def test_csv_json_and_table_say_the_same(
        self, gateway: Gateway, booked: Callable[..., None], call: Callable[..., object]
    ) -> None:
        now = time.time()
        booked(call("a", now, 1), call("a", now, 2_000_000_000), call("b", now, 500_000_000))
        rows = list(
            csv.DictReader(io.StringIO(gateway("usage", "--by", "key", "--format", "csv").out))
        )
        assert [(r["key"], r["requests"], r["cost_usd"]) for r in rows] == [
            ("a", "2", "2.000000001"), ("b", "1", "0.5"),
        ]  # fmt: skip
        listed = json.loads(gateway("usage", "--by", "key", "--format", "json").out)
        assert [(r["key"], r["cost_usd"]) for r in listed] == [("a", "2.000000001"), ("b", "0.5")]
        head, *lines = gateway("usage", "--by", "key").out.splitlines()
        assert head.split()[0] == "key"
        assert "cost_usd" in head.split()
        assert len(lines) == 2
        assert "2.000000001" in lines[0].split()

    def test_since_and_by_day(
        self, gateway: Gateway, booked: Callable[..., None], call: Callable[..., object]
    ) -> None:
        now = time.time()
        booked(call("a", now - 10 * 86_400, 1), call("a", now, 2))
        rows = json.loads(gateway("usage", "--by", "day,model", "--format", "json").out)
        assert len(rows) == 2
        rows = json.loads(gateway("usage", "--by", "day", "--since", "3d", "--format", "json").out)
        assert [row["requests"] for row in rows] == [1]

    def test_nothing_used(self, gateway: Gateway) -> None:
        ran = gateway("usage")
        assert ran.code == Exit.OK
        assert "Nothing was used" in ran.err
        assert json.loads(gateway("usage", "--format", "json").out) == []


class TestBackup:
    """A copy that is never half one, and never over another."""

    def test_the_copy_holds_the_books(self, gateway: Gateway, config: Path) -> None:
        gateway("keys", "create", "alice")
        assert gateway("backup", "copy.db").code == Exit.OK
        config.write_text('[store]\nurl = "sqlite:///copy.db"\n' + config.read_text())
        names = [r["name"] for r in json.loads(gateway("keys", "list", "--format", "json").out)]
        assert names == ["dev", "alice"]

    def test_a_folder_that_is_not_there(self, gateway: Gateway) -> None:
        ran = gateway("backup", "nowhere/copy.db")
        assert (ran.code, ran.err) == (Exit.FAILED, "There is no folder nowhere to copy to.\n")

    def test_it_never_overwrites(self, gateway: Gateway, config: Path) -> None:
        (config.parent / "copy.db").write_text("precious")
        ran = gateway("backup", "copy.db")
        assert ran.code == Exit.FAILED
        assert ran.err.startswith("copy.db exists already")
        assert (config.parent / "copy.db").read_text() == "precious"


def test_a_reader_that_leaves_is_no_fault(
    config: Path, command_environment: dict[str, str]
) -> None:
    """``gateway … | head -1`` ends in silence."""
    done = subprocess.run(
        f"{sys.executable} -m gateway simulate --list | head -1",
        shell=True, cwd=config.parent, env=command_environment,
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.stderr == ""


def test_what_is_piped_has_no_colour(gateway: Gateway) -> None:
    for arguments in (("--help",), ("keys", "list"), ("usage",), ("simulate", "--list")):
        ran = gateway(*arguments, FORCE_COLOR="1", TERM="xterm-256color")
        assert "\x1b" not in ran.out + ran.err


class TestNamesOfKeys:
    """What a key is called is typed again, to revoke it: so it can be read, typed and kept."""

    @pytest.mark.parametrize("name", ["", " ", "x" * 101, "a\nb", "\x1b[31mred", "a\udcff"])
    def test_what_nobody_can_type(self, gateway: Gateway, name: str) -> None:
        for arguments in ((name,), ("fine", "--project", name)):
            ran = gateway("keys", "create", *arguments)
            assert ran.code == Exit.USAGE
            assert "printable characters" in ran.err
        assert "fine" not in gateway("keys", "list").out

    def test_no_models_at_all_is_no_choice(self, gateway: Gateway) -> None:
        ran = gateway("keys", "create", "bob", "--models", ",")
        assert ran.code == Exit.USAGE
        assert "at least one model" in ran.err


class TestExpiry:
    """One key with a year that no calendar has ended ``keys list`` for good."""

    @pytest.mark.parametrize(
        "when", ["0d", "2020-01-01", "99999999d", "999999999999w", "9999-12-31"]
    )
    def test_within_the_next_hundred_years(self, gateway: Gateway, when: str) -> None:
        ran = gateway("keys", "create", "bob", "--expires", when)
        assert ran.code == Exit.USAGE
        assert "within the next hundred years" in ran.err

    def test_a_span_that_no_number_holds(self, gateway: Gateway) -> None:
        for arguments in (("keys", "create", "bob", "--expires"), ("usage", "--since")):
            ran = gateway(*arguments, "9" * 400 + "d")
            assert ran.code == Exit.USAGE
            assert "is no moment" in ran.err

    @pytest.mark.parametrize("seconds", [1e13, -1e13, 1e300])
    def test_what_stands_in_the_books_is_shown(self, seconds: float) -> None:
        assert shown(seconds) == f"{seconds:.0f} s"


@pytest.mark.parametrize("host", ["no-such-host.invalid", "a b", "x" * 300])
def test_a_host_that_nobody_finds(gateway: Gateway, host: str) -> None:
    for arguments in (("serve",), ("simulate", "--port", "0")):
        ran = gateway(*arguments, "--host", host)
        assert ran.code == Exit.UNAVAILABLE
        assert "finds no address of that name" in ran.err
        assert "Traceback" not in ran.err
        assert "never awaited" not in ran.err


def test_an_empty_host_is_not_every_interface(gateway: Gateway) -> None:
    ran = gateway("serve", "--host", "")
    assert ran.code == Exit.CONFIG
    assert "server.host" in ran.err


@pytest.mark.parametrize("style", ["table", "json", "csv"])
def test_a_full_disk_is_told_not_traced(
    config: Path, command_environment: dict[str, str], style: str
) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "gateway", "keys", "list", "--format", style],
            cwd=config.parent, env=command_environment,
            stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=60,
        )  # fmt: skip
    assert done.returncode == Exit.FAILED
    assert done.stderr.startswith("The result can't be written: No space left on device.")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("number", ["-1", "x", "1.5", "9" * 20, "9" * 5_000])
@pytest.mark.parametrize("arguments", [("list", "--limit"), ("tail", "run_1", "--after")], ids=str)
def test_numbers_that_the_books_do_not_know(
    gateway: Gateway, arguments: tuple[str, ...], number: str
) -> None:
    ran = gateway("runs", *arguments[:-1], f"{arguments[-1]}={number}")
    assert ran.code == Exit.USAGE
    assert "is no whole number from 0 to" in ran.err
