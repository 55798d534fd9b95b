"""Recall and precision on a set that another hand wrote before it saw the patterns.

``redaction_set.jsonl``: one object a line, ``text`` and its ``spans`` (``start end kind``); a line
without spans is a negative. A labelled value is found if a span of its kind covers all of it; a
span that we report is right if it meets a value of its kind. Run with ``-s`` to read the tables.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from gateway.policy.redaction.scan import Scanner

SET = Path(__file__).with_name("redaction_set.jsonl")
RECALL, PRECISION = 0.95, 0.98


def lines() -> list[dict[str, Any]]:
    return [json.loads(line) for line in SET.read_text("utf-8").splitlines() if line.strip()]


def test_the_set_is_big_enough_and_half_negative() -> None:
    found = lines()
    negatives = [line for line in found if not line["spans"]]
    assert len(found) >= 500
    assert 0.4 <= len(negatives) / len(found) <= 0.65
    assert {line["lang"] for line in found} >= {"en", "zh", "code"}


class Tally:
    """Values found and missed, and spans right and wrong, by kind."""

    def __init__(self) -> None:
        self.labelled: Counter[str] = Counter()
        self.found: Counter[str] = Counter()
        self.reported: Counter[str] = Counter()
        self.right: Counter[str] = Counter()

    def add(self, line: dict[str, Any], scanner: Scanner) -> None:
        labels = [(one["start"], one["end"], one["kind"]) for one in line["spans"]]
        spans = [(span.start, span.end, span.kind.lower()) for span in scanner.find(line["text"])]
        for start, end, kind in labels:
            self.labelled[kind] += 1
            self.found[kind] += any(k == kind and s <= start and end <= e for s, e, k in spans)
        for start, end, kind in spans:
            self.reported[kind] += 1
            self.right[kind] += any(k == kind and s < end and start < e for s, e, k in labels)

    def table(self) -> str:
        rows = [f"{'kind':8} {'labelled':>8} {'recall':>7} {'reported':>8} {'precision':>9}"]
        for kind in [*sorted(self.labelled | self.reported), None]:
            counts = [
                sum(counter.values()) if kind is None else counter[kind]
                for counter in (self.labelled, self.found, self.reported, self.right)
            ]
            recall, precision = counts[1] / max(counts[0], 1), counts[3] / max(counts[2], 1)
            name = "all" if kind is None else kind
            rows.append(f"{name:8} {counts[0]:8} {recall:7.3f} {counts[2]:8} {precision:9.3f}")
        return "\n".join(rows)


def test_recall_and_precision(capsys: pytest.CaptureFixture[str]) -> None:
    scanner, tally = Scanner(), Tally()
    for line in lines():
        tally.add(line, scanner)
    with capsys.disabled():
        print("\n" + tally.table())
    assert tally.found.total() / tally.labelled.total() >= RECALL
    assert tally.right.total() / tally.reported.total() >= PRECISION
