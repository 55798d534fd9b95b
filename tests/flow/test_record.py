"""What an attempt used and cost: pure arithmetic, every token once, nothing made up."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.canonical.events import (
    Event,
    Failed,
    Finished,
    PartAnnotated,
    PartEnded,
    PartStarted,
    Started,
    TextDelta,
    ThinkingDelta,
    Usage,
    UsageReported,
)
from adapters.canonical.facts import Price, Rate
from adapters.canonical.faults import Fault
from adapters.canonical.parts import Text, Thinking, ToolCall
from gateway.flow.meter import Meter
from gateway.flow.record import consumed, cost, status_of, told_name

DOLLAR = 1_000_000_000
"""One dollar a million tokens, as a rate."""

PRICE = Price(
    input=Rate(3 * DOLLAR, tiers=((200_000, 6 * DOLLAR),)),
    output=Rate(15 * DOLLAR, tiers=((200_000, 22 * DOLLAR),)),
    cache_read=Rate(DOLLAR // 2),
    cache_write=Rate(4 * DOLLAR),
    cache_write_1h=Rate(8 * DOLLAR),
)


@pytest.mark.parametrize(
    ("usage", "nano"),
    [
        (Usage(), 0),
        (Usage(input=0, output=0), 0),
        (Usage(input=1000), 3000 * 1000),
        (Usage(input=1000, output=10), (3000 + 150) * 1000),
        (Usage(input=0, cache_read=1000, output=0), 500 * 1000),
        (Usage(input=0, cache_write=1000, output=0), 4000 * 1000),
        (Usage(input=0, cache_write=1000, cache_write_1h=400, output=0), (2400 + 3200) * 1000),
        (Usage(input=10, output=20, reasoning=15), (30 + 300) * 1000),
        # a tier is of the whole input, cached or not, and begins after its border
        (Usage(input=200_000, output=0), 600_000 * 1000),
        (Usage(input=200_001, output=0), 200_001 * 6 * 1000),
        (Usage(input=1, cache_read=200_000, output=10), (6 + 100_000 + 220) * 1000),
    ],
)
def test_each_class_is_charged_once(usage: Usage, nano: int) -> None:
    assert cost(usage, PRICE) == nano


def test_a_class_without_a_rate_is_charged_as_input() -> None:
    """Never forgotten: one that the table does not know is no free one."""
    plain = Price(input=Rate(DOLLAR), output=Rate(2 * DOLLAR))
    assert cost(Usage(input=1, cache_read=10, cache_write=100, output=0), plain) == 111 * 1000
    hour = Usage(input=0, cache_write=10, cache_write_1h=10, output=0)
    assert cost(hour, replace(plain, cache_write=Rate(4 * DOLLAR))) == 40 * 1000


def test_an_unknown_price_is_no_price_of_nothing() -> None:
    assert cost(Usage(input=1, output=1), None) is None


def test_half_a_nano_dollar_is_rounded_up() -> None:
    cents = Price(input=Rate(500_000), output=Rate(499_999))
    assert cost(Usage(input=1, output=0), cents) == 1
    assert cost(Usage(input=0, output=1), cents) == 0


numbers = st.none() | st.integers(0, 10**9)


@given(st.builds(Usage, numbers, numbers, numbers, numbers))
def test_no_usage_lowers_a_bill(usage: Usage) -> None:
    nano = cost(usage, PRICE)
    assert nano is not None
    assert nano >= 0


# --------------------------------------------------------------------------- what was consumed


def prepared(price: Price | None = PRICE, estimated_input: int = 50) -> Any:
    return SimpleNamespace(facts=SimpleNamespace(price=price), estimated_input=estimated_input)


def metered(*events: Event) -> Meter:
    meter = Meter(lambda: 1.0)
    assert meter.feed(list(events)) == list(events), "a meter changes nothing"
    return meter


SAID = (PartStarted(0, Text("")), TextDelta(0, "twelve bytes"))
DONE = Finished("stop")


def test_a_proven_end_takes_the_provider_s_numbers() -> None:
    usage = Usage(input=7, output=9)
    found = consumed(prepared(), metered(*SAID, UsageReported(usage), DONE), None)
    assert (found.usage, found.source) == (usage, "provider")
    assert found.nano == cost(usage, PRICE)


@pytest.mark.parametrize(
    "usage",
    [None, Usage(input=7), Usage(input=7, output=9, invalid=True)],
    ids=["none", "without output", "refused"],
)
def test_without_usable_numbers_what_was_seen_is_estimated(usage: Usage | None) -> None:
    told = () if usage is None else (UsageReported(usage),)
    found = consumed(prepared(), metered(*SAID, *told, DONE), None)
    assert found.source == "estimated"
    assert found.usage.output == 3
    believed = usage is not None and not usage.invalid
    assert found.usage.input == (7 if believed else 50)


def test_a_cut_takes_what_was_reported_and_what_was_seen_since() -> None:
    """Messages tell the input at the start, and one token of output."""
    fault = Fault("stream_truncated", "cut")
    told = UsageReported(Usage(input=7, cache_read=100, output=1))
    found = consumed(prepared(), metered(told, *SAID), fault)
    assert (found.source, found.usage) == ("estimated", Usage(input=7, cache_read=100, output=3))
    late = UsageReported(Usage(input=7, output=40))
    assert consumed(prepared(), metered(*SAID, late), fault).usage.output == 40


@pytest.mark.parametrize(
    ("fault", "free"),
    [
        (Fault("upstream_server", "", upstream_status=500), True),
        (Fault("bad_request", "", upstream_status=400), True),
        (Fault("connect_failed", ""), True),
        (Fault("upstream_timeout", "", phase="connect", billed=False), True),
        (Fault("upstream_timeout", "", phase="first_event"), False),
        (Fault("stream_truncated", "", upstream_status=200), False),
        (Fault("protocol_error", "", upstream_status=200), False),
        (Fault("cancelled", ""), False),
    ],
    ids=lambda value: value.kind if isinstance(value, Fault) else None,
)
def test_what_did_no_work_costs_nothing(fault: Fault, free: bool) -> None:
    found = consumed(prepared(), metered(), fault)
    if free:
        assert (found.usage, found.source, found.nano) == (Usage(), "unknown", 0)
    else:
        assert (found.usage.input, found.usage.output, found.source) == (50, 0, "estimated")
    # whatever came, or was reported, has been worked for
    assert consumed(prepared(), metered(*SAID), fault).source == "estimated"
    told = metered(UsageReported(Usage(input=7, output=0)))
    assert consumed(prepared(), told, fault).usage.input == 7


# --------------------------------------------------------------------------- what was seen


def test_a_meter_counts_bytes_and_the_first_content() -> None:
    times = iter([5.0, 6.0])
    meter = Meter(lambda: next(times))
    told: list[str] = []
    meter.on_first_content = lambda: told.append("now")
    meter.feed([Started(None, "the-model"), PartStarted(0, Text("")), TextDelta(0, "")])
    assert (meter.first_content, told) == (None, [])
    meter.feed([ThinkingDelta(0, "é")])
    meter.feed([TextDelta(0, "abc"), PartStarted(1, ToolCall("c1", "add", ""))])
    assert (meter.first_content, told, meter.model) == (5.0, ["now"], "the-model")
    assert meter.output_bytes == 2 + 3 + 3


class Seen:
    """A stage that looks on."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def feed(self, events: list[Event]) -> list[Event]:
        self.events += events
        return events


@pytest.mark.parametrize(
    "waking",
    [
        PartStarted(1, Thinking("")),
        PartStarted(1, ToolCall("c1", "add", "")),
        PartAnnotated(0, "signature", "sig"),
    ],
    ids=["thinking", "call", "seal"],
)
def test_who_looks_at_reasoning_is_called_with_the_first_of_it(waking: Event) -> None:
    meter, made = Meter(lambda: 0.0), [Seen(), Seen()]
    ways: list[str] = []
    meter.on_reasoning = lambda: ways.append("made") or made  # type: ignore[func-returns-value]
    plain = [Started(None, "m"), *SAID, PartEnded(0), UsageReported(Usage())]
    meter.feed(list(plain))
    assert ways == []
    first, rest = [TextDelta(0, "x"), waking], [ThinkingDelta(1, "y"), waking, DONE]
    meter.feed(first)
    meter.feed(rest)
    assert (ways, made[0].events) == (["made"], [*first, *rest])
    assert made[1].events == made[0].events


@pytest.mark.parametrize(
    ("events", "fault", "committed", "status"),
    [
        ((*SAID, DONE), None, True, "completed"),
        (SAID, Fault("cancelled", ""), True, "partial"),
        (SAID, Fault("stream_truncated", ""), True, "partial"),
        (SAID, Fault("stream_truncated", ""), False, "failed"),
        (SAID, Fault("cancelled", ""), False, "cancelled"),
        ((), Fault("cancelled", ""), False, "cancelled"),
        ((Failed(Fault("upstream_server", "")),), Fault("upstream_server", ""), False, "failed"),
    ],
)
def test_partial_is_what_the_caller_has_seen_a_part_of(
    events: tuple[Event, ...], fault: Fault | None, committed: bool, status: str
) -> None:
    assert status_of(fault, metered(*events), committed=committed) == status


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("top_k", "top_k"),
        ("messages[3].content[0].cache_control", "messages[3].content[0].cache_control"),
        ("sk-secret", "(unnamed)"),
        ("My Secret", "(unnamed)"),
        ("a" * 41, "(unnamed)"),
        ("", "(unnamed)"),
    ],
)
def test_only_plain_wire_names_are_kept(name: str, told: str) -> None:
    assert told_name(name) == told
