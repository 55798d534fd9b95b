"""The page on the simulator lists exactly what it understands."""

import re
from pathlib import Path

from adapters.simulator import CATALOGUE
from adapters.simulator.answers import DIRT

PAGE = (Path(__file__).parents[2] / "docs" / "simulator.md").read_text()


def test_the_tables_are_the_catalogue():
    listed = re.findall(r"^\| `([^`]+)` \| (.+) \|$", PAGE, flags=re.M)
    rows = [row for row in listed if not row[1].startswith("`")]
    assert sorted(rows) == sorted((entry.name, entry.meaning) for entry in CATALOGUE)


def test_every_dirt_is_named():
    sentence = re.search(r"^DIRT is one of (.+)\.$", PAGE, flags=re.M)
    assert sentence is not None
    assert re.findall(r"`([^`]+)`", sentence[1]) == list(DIRT)
