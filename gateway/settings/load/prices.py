"""Prices and context windows from genai-prices' offline data.

The package is imported on the first look-up only: it costs about a tenth of a second, which a
configuration that states its own prices (the demo's does) never pays. Nothing here asks the
network.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

from adapters.canonical.facts import Price, Rate
from adapters.canonical.record import record
from gateway.settings.model import PriceTable, RateTable
from gateway.settings.money import dollars, nano

if TYPE_CHECKING:
    from genai_prices.types import ModelInfo, TieredPrices

OWN_TABLE = "configuration"
"""The price table's name where the file itself states the price."""


@record(frozen=True, slots=True)
class Quote:
    """What the package knows of one model; either half may be missing."""

    price: Price | None
    window: int | None


class PriceBook:
    """Answers what models cost; ``table`` names the price table that was used."""

    __slots__ = ("table",)

    def __init__(self) -> None:
        self.table = OWN_TABLE

    def quote(self, model: str, *, vendor: str | None, base_url: str, maker: str | None) -> Quote:
        """What ``model`` costs and holds.

        :param vendor: the genai-prices provider id that the operator named; then no other is
            asked. Else whoever serves ``base_url`` is asked first, then ``maker``, the provider
            id of the company that made the model, so that one behind a proxy has its price.
        """
        from genai_prices.data_snapshot import get_snapshot  # noqa: PLC0415  costs 0.1 s

        snapshot = get_snapshot()
        asked = [(vendor, None)] if vendor else [(None, base_url), (maker, None)]
        for provider_id, url in asked:
            if provider_id is None and url is None:
                continue
            try:
                _, info = snapshot.find_provider_model(model, None, provider_id, url)
            except LookupError:
                continue
            return self._quote(info)
        return Quote(None, None)

    def vendors(self) -> tuple[str, ...]:
        """The package's provider ids."""
        from genai_prices.data_snapshot import get_snapshot  # noqa: PLC0415  costs 0.1 s

        return tuple(provider.id for provider in get_snapshot().providers)

    def _quote(self, info: ModelInfo) -> Quote:
        now = datetime.now(tz=UTC)
        prices = info.get_prices(now)
        self.table = _table_name(now)
        entry = _rate(prices.input_mtok)
        if entry is None:
            return Quote(None, info.context_window)
        price = Price(
            input=entry,
            output=_rate(prices.output_mtok) or Rate(0),
            cache_read=_rate(prices.cache_read_mtok),
            cache_write=_rate(prices.cache_write_mtok),
            cache_write_1h=_rate(prices.cache_write_1h_mtok),
            date=self.table,
        )
        return Quote(_signed(price), info.context_window)


def own_price(table: PriceTable) -> Price:
    """A price as the configuration states it."""
    price = Price(
        input=_own_rate(table.input),
        output=_own_rate(table.output),
        cache_read=_optional(table.cache_read),
        cache_write=_optional(table.cache_write),
        cache_write_1h=_optional(table.cache_write_1h),
        date=OWN_TABLE,
    )
    return _signed(price)


def _signed(price: Price) -> Price:
    """``price`` with its rates written out behind the table's name: the ledger's word on what a
    row's cost was made from, whatever the configuration says later."""
    rates = ", ".join(
        f"{name} {_told(rate)}"
        for name in ("input", "output", "cache_read", "cache_write", "cache_write_1h")
        if (rate := getattr(price, name)) is not None
    )
    return replace(price, date=f"{price.date}; USD per million tokens: {rates}")


def _told(rate: Rate) -> str:
    steps = "".join(f" ({dollars(nanos)} above {start})" for start, nanos in rate.tiers)
    return dollars(rate.base) + steps


def _table_name(now: datetime) -> str:
    """The package's version and the day whose rates were taken: it holds rates that begin on a
    date, and has no date of its own."""
    from genai_prices import __version__  # noqa: PLC0415  loaded by now

    return f"genai-prices {__version__}, rates of {now.date().isoformat()}"


def _optional(table: RateTable | None) -> Rate | None:
    return None if table is None else _own_rate(table)


def _own_rate(table: RateTable) -> Rate:
    tiers = sorted((tier.above, nano(tier.usd)) for tier in table.tiers)
    return Rate(nano(table.usd), tuple(tiers))


def _rate(value: Decimal | TieredPrices | None) -> Rate | None:
    if value is None or isinstance(value, Decimal):
        return None if value is None else Rate(nano(value))
    return Rate(nano(value.base), tuple((tier.start, nano(tier.price)) for tier in value.tiers))
