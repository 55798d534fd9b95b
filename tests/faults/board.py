"""The verdicts of all faults as a table for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tests.faults.conduct import Outcome, Verdict

COLUMNS = (
    ("stream, alone", True, "alone"),
    ("with a second", True, "second"),
    ("held complete", True, "complete"),
    ("whole, alone", False, "alone"),
    ("with a second", False, "second"),
)


class Board:
    """Collects outcomes; one line a fault, in the order in which they came."""

    def __init__(self) -> None:
        self._rows: dict[str, list[Outcome]] = {}
        self._scenes: dict[str, Verdict] = {}

    def add(self, name: str, outcomes: Iterable[Outcome]) -> None:
        """Take what became of one fault."""
        self._rows.setdefault(name, []).extend(outcomes)

    def tell(self, scene: str, verdict: Verdict) -> None:
        """Take the verdict of a scene whose test has judged it."""
        self._scenes[scene] = verdict

    def lines(self) -> Iterator[str]:
        """The table, and how many calls ended in which way."""
        heads = ["fault", *(head for head, _, _ in COLUMNS), "slowest"]
        table = [heads, *(self._row(name, found) for name, found in self._rows.items())]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        for number, row in enumerate(table):
            yield "  ".join(map(str.ljust, row, widths)).rstrip()
            if number == 0:
                yield "  ".join("-" * width for width in widths)
        yield from self._told()
        counts: dict[str, int] = dict.fromkeys(("rescued", "clean error", "hang", "lie"), 0)
        for outcomes in self._rows.values():
            for outcome in outcomes:
                counts[outcome.verdict] += 1
        for verdict in self._scenes.values():
            counts[verdict] += 1
        yield ", ".join(f"{number} x {verdict}" for verdict, number in counts.items())

    def _told(self) -> Iterator[str]:
        yield ""
        width = max(map(len, self._scenes), default=0)
        for scene, verdict in self._scenes.items():
            yield f"{scene.ljust(width)}  {verdict}"
        if self._scenes:
            yield ""

    @staticmethod
    def _row(name: str, outcomes: list[Outcome]) -> list[str]:
        cells = []
        for _, stream, way in COLUMNS:
            verdicts = {o.verdict for o in outcomes if (o.case.stream, o.case.way) == (stream, way)}
            cells.append(" / ".join(sorted(verdicts)) or "-")
        slowest = max((o.seconds for o in outcomes), default=0.0)
        return [name, *cells, f"{slowest:.1f} s"]
