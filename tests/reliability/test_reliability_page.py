"""``docs/reliability.md`` says what the code does, wherever it states a table."""

from __future__ import annotations

import re
from pathlib import Path

from adapters.canonical.faults import KINDS
from adapters.wire.call import Timeouts
from gateway.http.headers import RATES
from gateway.northbound.errors import WORDS
from gateway.services.idempotency import PASSING
from gateway.services.recording import KEPT_BYTES
from gateway.settings.model import AliasTable, RetentionTable, ServerTable

PAGE = (Path(__file__).parents[2] / "docs" / "reliability.md").read_text()


def table(heading: str, number: int = 0) -> list[list[str]]:
    """The cells of the ``number``-th table below a heading, without its two head lines."""
    section = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    found = re.findall(r"(?:^\|.*\|\n)+", section, re.MULTILINE)[number]
    rows = [[cell.strip(" `") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
            for line in found.splitlines()]  # fmt: skip
    return rows[2:]


def test_every_kind_of_fault_is_there() -> None:
    stated = {kind: (blame, int(status), code) for kind, blame, status, code, _ in table("Faults")}
    actual = {kind: (row.blame, row.status, WORDS[kind].code) for kind, row in KINDS.items()}
    assert stated == actual
    assert list(stated) == list(KINDS), "in the order of the code"


def test_time_outs_have_their_defaults() -> None:
    defaults = Timeouts()
    stated = {name: float(default.split()[0]) for name, default, *_ in table("Time-outs")}
    assert stated == {name: getattr(defaults, name) for name in stated}
    assert set(stated) == set(Timeouts.__slots__)
    assert f"({AliasTable.model_fields['deadline'].default:.0f} s)" in PAGE


def test_commit_values() -> None:
    stated = [row[0].split("`")[0] for row in table("The commit point", 1)]
    assert stated == ["first_content", "complete"]
    assert AliasTable.model_fields["commit"].default == "first_content"


def test_rate_limit_headers() -> None:
    names = {name for row in table("Limits") for name in re.findall(r"x-ratelimit-[\w-]+", row[0])}
    kinds = ("limit", "remaining", "reset")
    assert names == {f"x-ratelimit-{kind}-{name}" for kind in kinds for name in RATES}


def test_what_idempotency_keeps() -> None:
    section = PAGE.split("\n## Idempotency\n")[1].split("\n## ")[0]
    told = re.search(r"in-band, and ([\d, \n]+)\.", section)
    assert told is not None
    assert {int(n) for n in re.findall(r"\d+", told[1])} == {s for s in PASSING if s < 499}
    assert f"above {KEPT_BYTES // (1024 * 1024)} MiB" in section
    days = RetentionTable.model_fields["idempotency"].default
    assert f"`store.retention.idempotency` days ({days:.0f})" in section


def test_drain_seconds() -> None:
    assert (
        f"`server.drain_seconds`** ({ServerTable.model_fields['drain_seconds'].default:.0f})"
        in PAGE
    )
