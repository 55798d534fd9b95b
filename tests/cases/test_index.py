"""INDEX.md names a test, or the later issue, for every case; and the tests exist."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROW = re.compile(r"^\| ([A-Z]\d\d) \| (?:`([^`]+)`|issue \[(\w+)\]) \|$", re.MULTILINE)
ROWS = ROW.findall((ROOT / "tests/cases/INDEX.md").read_text())


def test_there_are_fifty_five() -> None:
    ids = [case for case, _, _ in ROWS]
    assert len(ids) == len(set(ids)) == 55


def test_every_recorded_case_has_a_row() -> None:
    shared = Path(os.environ.get("GATEWAY_SHARED", ROOT.parent / "shared"))
    cases = shared / "cases/cases.jsonl"
    if not cases.exists():
        pytest.skip("the shared cases are not here; the count of rows carries the point")
    ids = {json.loads(line)["id"] for line in cases.read_text().splitlines()}
    assert ids == {case for case, _, _ in ROWS}


@pytest.mark.parametrize(("case", "place"), [(c, p) for c, p, _ in ROWS if p])
def test_the_test_exists(case: str, place: str) -> None:
    path, _, name = place.partition("::")
    if path.endswith("/*"):
        assert list((ROOT / path[:-2]).glob("test_*.py")), place
        return
    text = (ROOT / path).read_text()
    assert name in ("", "*") or re.search(rf"def {re.escape(name)}\(", text), place
