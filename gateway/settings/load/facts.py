"""What is known of each model: the rows of ``models.toml``, then the configuration's own word.

Rows are data (fault kind K06): a new model or a changed rule is a row, never a line of code.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field, fields
from fnmatch import fnmatchcase
from typing import Any

from adapters.canonical.facts import CAPABILITIES, Facts
from adapters.canonical.record import record
from adapters.canonical.request import Sampling
from gateway.settings.load.findings import Findings
from gateway.settings.load.positions import Path
from gateway.settings.load.prices import PriceBook, own_price
from gateway.settings.load.shape import nearest
from gateway.settings.model import FactsRow, FactsTable, ProviderTable

NO_PRICES = "none"
"""A provider's ``prices`` that stands for: free or unknown, ask no table."""
SAMPLING_FIELDS = frozenset(field.name for field in fields(Sampling))
_REPLACED = (
    "family",
    "vendor",
    "window",
    "max_output",
    "min_output",
    "temperature_max",
    "one_of",
    "efforts",
    "thinking",
    "limit_name",
    "price",
)
"""Keys of which a later row's word stands alone; the others add up."""


@record(slots=True)
class Known:
    """The rows' words on one model, put together. ``stated`` are the capabilities that some
    row names, as against those that nothing forbids."""

    values: dict[str, Any] = field(default_factory=dict)
    capabilities: set[str] = field(default_factory=lambda: set(Facts("").capabilities))
    refuses: set[str] = field(default_factory=set)
    stated: set[str] = field(default_factory=set)

    def add(self, row: FactsTable) -> None:
        """Take a row over what was known before."""
        for name in _REPLACED:
            value = getattr(row, name)
            if value is not None:
                self.values[name] = value
        self.capabilities = (self.capabilities | set(row.has)) - set(row.lacks)
        self.stated = (self.stated | set(row.has)) - set(row.lacks)
        self.refuses = (self.refuses | set(row.refuses)) - set(row.accepts)

    @property
    def reasons(self) -> bool:
        """Whether the model is known to reason before it answers, and so may be silent long."""
        return "reasoning" in self.stated


class FactsBook:
    """All rows, asked once a deployment."""

    __slots__ = ("_rows", "prices")

    def __init__(self, rows: Sequence[FactsRow], prices: PriceBook) -> None:
        self._rows = tuple(rows)
        self.prices = prices

    def known(self, model: str, provider: ProviderTable, own: Iterable[FactsTable]) -> Known:
        """Everything said of ``model`` at ``provider``; ``own`` are the configuration's words,
        the last one strongest."""
        known = Known()
        for row in self._rows:
            if _fits(row, model, provider):
                known.add(row)
        for table in own:
            known.add(table)
        return known

    def facts(self, model: str, provider: ProviderTable, base_url: str, known: Known) -> Facts:
        """``known`` as frozen facts, its gaps filled from the price table."""
        values = dict(known.values)
        maker = values.pop("vendor", None)
        price = values.pop("price", None)
        if price is not None:
            values["price"] = own_price(price)
        elif provider.prices != NO_PRICES:
            quote = self.prices.quote(model, vendor=provider.prices, base_url=base_url, maker=maker)
            values["price"] = quote.price
            values.setdefault("window", quote.window)
        for name in ("one_of", "efforts"):
            if name in values:
                values[name] = tuple(tuple(v) if isinstance(v, list) else v for v in values[name])
        return Facts(
            model,
            capabilities=frozenset(known.capabilities),
            refuses=frozenset(known.refuses),
            **values,
        )


def check_words(table: FactsTable, path: Path, findings: Findings) -> None:
    """Capabilities and request fields are closed sets; a typing error in them is found here."""
    one_of = [name for group in table.one_of or () for name in group]
    for key, words, closed in (
        ("has", table.has, CAPABILITIES),
        ("lacks", table.lacks, CAPABILITIES),
        ("refuses", table.refuses, SAMPLING_FIELDS),
        ("accepts", table.accepts, SAMPLING_FIELDS),
        ("one_of", one_of, SAMPLING_FIELDS),
    ):
        for word in words:
            if word not in closed:
                known = ", ".join(sorted(closed))
                findings.add(
                    (*path, key), f"{word!r} is unknown{nearest(word, closed)} (known: {known})"
                )


def _fits(row: FactsRow, model: str, provider: ProviderTable) -> bool:
    name = model.lower().rsplit("/", 1)[-1]
    if not any(fnmatchcase(model.lower(), p) or fnmatchcase(name, p) for p in row.match):
        return False
    if row.dialects is not None and provider.dialect not in row.dialects:
        return False
    since = row.anthropic_version_from
    return since is None or (
        provider.dialect == "anthropic-messages" and provider.anthropic_version >= since
    )
