"""The ``[redaction]`` table as the policy room uses it: the scanner, and the mode by default."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from difflib import get_close_matches
from typing import Any, Literal

from adapters.canonical.record import record
from gateway.policy.redaction.masking import LITERAL
from gateway.policy.redaction.own import PatternRefused, own_rule
from gateway.policy.redaction.rule import Finder
from gateway.policy.redaction.scan import BUILT_IN, KINDS, Scanner
from gateway.settings.problems import Problem
from gateway.settings.snapshot import Alias, Snapshot

Mode = Literal["off", "mask", "reversible", "block"]
MODES: tuple[Mode, ...] = ("off", "mask", "reversible", "block")


@record(frozen=True, slots=True)
class Redaction:
    """What one configuration masks. ``mode`` holds where neither key nor alias says."""

    scanner: Scanner = field(default_factory=Scanner)
    mode: Mode = "off"

    def mode_for(self, key: str | None, alias: Alias) -> Mode:
        """The key's own mode, else the alias's, else the table's.

        :raises ValueError: for a mode that does not exist: nothing may be sent then.
        """
        said = key if key is not None else alias.redaction
        for mode in MODES:
            if said == mode:
                return mode
        if said is not None:
            raise ValueError("unknown redaction mode")
        return self.mode


def redaction(snapshot: Snapshot) -> Redaction:
    """The redaction of a configuration that :func:`check` has nothing against."""
    table: Mapping[str, Any] = snapshot.extra.get("redaction", {})
    own = [own_rule(row["kind"], row["pattern"]) for row in table.get("patterns", ())]
    wanted = table.get("kinds")
    rules: list[Finder] = [*own, *BUILT_IN]
    if wanted is not None:
        rules = [rule for rule in rules if rule.kind in wanted]
    return Redaction(Scanner(rules), table.get("mode", "off"))


def check(snapshot: Snapshot) -> list[Problem]:
    """Patterns that can't be used, and kinds that do not exist."""
    table: Mapping[str, Any] = snapshot.extra.get("redaction", {})
    problems: list[Problem] = []
    for index, row in enumerate(table.get("patterns", ())):
        where = f"redaction.patterns[{index}]"
        if row["kind"] == LITERAL:
            problems.append(Problem(f"{where}.kind", f"{LITERAL} has a meaning of its own"))
        try:
            own_rule(row["kind"], row["pattern"])
        except PatternRefused as refused:
            problems.append(Problem(f"{where}.pattern", str(refused)))
    known = [*KINDS, *(row["kind"] for row in table.get("patterns", ()))]
    for index, kind in enumerate(table.get("kinds") or ()):
        if kind not in known:
            near = get_close_matches(kind, known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            message = f"{kind!r} is no kind{hint} (known: {', '.join(dict.fromkeys(known))})"
            problems.append(Problem(f"redaction.kinds[{index}]", message))
    return problems
