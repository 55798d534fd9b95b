"""The bench itself, on a handful of calls: it measures, judges and ends as it says."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks import __main__ as report
from benchmarks import prices
from benchmarks.bars import Figure
from benchmarks.prices import FEATURES
from benchmarks.scenarios import MORE, SCENARIOS, config
from gateway.settings.load import Overrides, load

FEW = replace(SCENARIOS[0], calls=32, bar=0.01)


def test_it_tells_of_calls_and_of_the_ledger(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(report, "SCENARIOS", (FEW,))
    monkeypatch.setattr(prices, "CALL", FEW)
    monkeypatch.setattr(prices, "SHARE_BAR", 100.0)
    monkeypatch.setattr(sys, "argv", ["benchmarks", "--rounds", "1"])
    assert report.main() == 0
    told = capsys.readouterr().out.splitlines()
    (row,) = (line for line in told if line.startswith("| call, same dialect | call | "))
    assert row.endswith(" | 0.01 | over |")
    (share,) = (line for line in told if line.startswith("| the ledger's thread | "))
    assert 1 < float(share.split(" | ")[2].split()[0]) < 90
    assert share.endswith(" | 100 | ok |")
    assert told[-1].startswith("Bars held: 1 of 2. Over: call, same dialect (")


@pytest.mark.parametrize(
    ("value", "options", "status"),
    [(2.0, [], 0), (2.0, ["--strict"], 1), (1.0, ["--strict"], 0)],
    ids=["over", "over, strict", "held, strict"],
)
def test_figures_are_judged_where_strict(
    value: float, options: list[str], status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def table(*_: Any) -> list[Figure]:
        return [Figure("call", value, 1.7)]

    monkeypatch.setattr(report, "table", table)
    monkeypatch.setattr(sys, "argv", ["benchmarks", "--only", "call", *options])
    assert report.main() == status


def test_a_name_that_no_scenario_has_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["benchmarks", "--only", "nothing"])
    with pytest.raises(SystemExit, match="no scenario's name contains 'nothing'"):
        report.main()


@pytest.mark.parametrize("chosen", [chosen for _, chosen in FEATURES], ids=[n for n, _ in FEATURES])
def test_what_is_switched_on_is_a_sound_configuration(
    chosen: dict[str, str], tmp_path: Path
) -> None:
    path = tmp_path / "gateway.toml"
    text = config("http://127.0.0.1:9", SCENARIOS + MORE, **chosen)
    path.write_text(text.replace("PORT", "0").replace("FOLDER", str(tmp_path / "gateway")))
    (key,) = load(path, {"UPSTREAM_KEY": "u", "BENCH_KEY": "b"}, Overrides()).keys
    is_limited = [getattr(key.limits, name) is not None for name in ("rpm", "nano_per_day")]
    limits = chosen.get("limits", "rpm, usd_per_day")
    assert is_limited == [name in limits for name in ("rpm", "usd_per_day")]


def test_scenarios_have_names_of_their_own() -> None:
    names = [scenario.name for scenario in SCENARIOS + MORE]
    assert len(set(names)) == len(names)
