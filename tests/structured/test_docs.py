"""The page's numbers are the code's."""

from __future__ import annotations

from pathlib import Path

from gateway.flow.prove import MESSAGES
from gateway.http.sink import HOLD_SECONDS
from gateway.structured.bounds import MAX_BYTES, MAX_DEPTH, MAX_WORK
from gateway.structured.verdict import MAX_RAW

PAGE = (Path(__file__).parents[2] / "docs/structured-output.md").read_text(encoding="utf-8")


def test_the_bounds() -> None:
    text = " ".join(PAGE.split())
    assert f"larger than {MAX_BYTES // 1024} kB" in text
    assert f"deeper than {MAX_DEPTH} levels" in text
    assert f"more than {MAX_WORK:,} parts" in text
    assert f"up to {MAX_RAW:,} characters" in text
    assert f"pings after {HOLD_SECONDS:g} s" in text


def test_the_codes() -> None:
    assert all(f"`{code}`" in PAGE for code in MESSAGES)
