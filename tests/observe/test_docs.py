"""The logs page names every field of a call's line."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

from gateway.observe.lines import LONGEST_TEXT, Access
from gateway.observe.scrub import SHORTEST
from gateway.observe.writer import BOUND

PAGE = (Path(__file__).parents[2] / "docs" / "logs.md").read_text()


def test_every_field_has_its_row() -> None:
    rows = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", PAGE, re.MULTILINE)
    documented = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert documented == {"at", "level", *(field.name for field in fields(Access))}


def test_numbers() -> None:
    assert f"{LONGEST_TEXT} characters" in PAGE
    assert f"buffer of {BOUND:,}" in PAGE
    assert SHORTEST == 6
    assert "shorter than six characters" in PAGE
