"""What an attempt used and cost: pure arithmetic, every token once, nothing made up."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.adapter import Pumped
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
from adapters.canonical.facts import Facts, Price, Rate
from adapters.canonical.faults import Fault
from adapters.canonical.parts import Text, Thinking, ToolCall
from adapters.wire.call import Encoded, Timeouts, WireCall
from gateway.flow import record
from gateway.flow.books import LEASE_MARGIN, Books
from gateway.flow.context import Prepared
from gateway.flow.gate import Gate
from gateway.flow.leases import Leases
from gateway.flow.meter import Meter
from gateway.flow.record import (
    Try,
    _some_stages,
    _stages,
    cost,
    settlement,
    status_of,
    told_name,
)
from gateway.flow.tracing import UNTRACED
from gateway.observe.traces import NoTracer
from gateway.routing.plan import Plan
from gateway.settings.snapshot import Deployment, Limits, Provider, Target
from gateway.store.base import AttemptRow, Opening, Rates, RequestEnd, RequestRow, Settlement

PROVIDER = Provider("up", "anthropic-messages", "http://127.0.0.1:1", None)

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


def test_the_steps_of_a_price_go_by_the_largest_of_several_prompts() -> None:
    """Two of 150,000 tokens are none of 300,000."""
    summed = Usage(input=300_000, output=0, largest=150_000)
    assert cost(summed, PRICE) == 300_000 * 3_000
    assert cost(replace(summed, largest=200_001), PRICE) == 300_000 * 6_000
    assert cost(replace(summed, largest=None), PRICE) == 300_000 * 6_000


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


# --------------------------------------------------------------------------- rows


def test_every_word_of_a_row_stands_in_its_place() -> None:
    """Rows are filled by position, and each field here has a value that no other has."""
    usage = Usage(input=10, cache_read=3, cache_write=2, output=40, reasoning=7, invalid=True)
    meter = metered(Started("r", "gpt-said"), *SAID, UsageReported(usage), DONE)
    gate = Gate(hold_all=False)
    gate.feed(list(SAID))
    wire = WireCall("/path", b"{}", False)
    ready = Prepared(
        target=Target(Deployment(PROVIDER, "gpt", Facts("gpt", price=PRICE))),
        encoded=Encoded(wire, injected=("injected",)),
        dropped=("dropped",),
        adjusted=("adjusted",),
        estimated_input=50,
        tokens=60,
        nano=70,
        trimmed={"turns": 5},
    )
    one = Try("att_1", 4, "retry", "up/gpt", ready, meter, gate, {"opened": 0.25, "sent": 0.5})
    one.pumped = Pumped(DONE, 201, {"x-request-id": "theirs"}, 0.5, 0.75, 1.0, 1.5)
    one.pause = 9.0
    call: Any = SimpleNamespace(
        id="req_1",
        started=0.125,
        masking=object(),
        redactions={"email": 6},
        runtime=SimpleNamespace(clock=SimpleNamespace(wall=lambda: 99.0)),
    )
    first, fault = Fault("stream_truncated", "cut"), Fault("rate_limited", "later")
    nano = cost(Usage(input=50, output=3, invalid=True), PRICE)
    assert nano is not None
    told = settlement(call, one, fault, (first,), 2.0, last=True)
    assert told == Settlement(
        attempt_id="att_1",
        request_id="req_1",
        ended_at=99.0,
        status="partial",
        usage_source="estimated",
        input_tokens=50,
        output_tokens=3,
        cost_nano=nano,
        overrun_nano=nano - 70,
        usage_invalid=True,
        ttft_ms=750.0,
        total_ms=1750.0,
        finish_reason="stop",
        fault="rate_limited",
        fault_message="later",
        upstream_status=201,
        upstream_request_id="theirs",
        model_reported="gpt-said",
        dropped='["dropped"]',
        adjusted='["adjusted"]',
        injected='["injected"]',
        timings='{"sent":250.000,"headers":250.000,"first_event":250.000,"ended":500.000}',
        counts='{"trimmed_turns":5,"email":6}',
        request=RequestEnd(
            status="partial",
            http_status=429,
            fault="rate_limited",
            first_cause="stream_truncated",
            attempts=4,
            timings='{"total":1875.000}',
        ),
        pause=9.0,
    )
    meter.usage = replace(usage, invalid=False)
    told = settlement(call, one, None, (), 2.0, last=False)
    numbers = (told.input_tokens, told.output_tokens, told.cache_read_tokens)
    assert (*numbers, told.cache_write_tokens, told.reasoning_tokens) == (15, 40, 3, 2, 7)
    assert (told.status, told.usage_source, told.request) == ("completed", "provider", None)


moments = st.floats(0, 10**6, allow_nan=False)


@given(
    st.lists(moments, min_size=2, max_size=2),
    st.none() | st.tuples(st.none() | moments, st.none() | moments, moments),
)
def test_the_stages_are_told_in_their_order_and_are_the_whole_time(
    marked: list[float], pumped: tuple[float | None, float | None, float] | None
) -> None:
    marks = dict(zip(["opened", "reserved"], marked, strict=True))
    points, came = dict(marks), None
    if pumped is not None:
        came = Pumped(DONE, 200, {}, None, *pumped)
        named = zip(["headers", "first_event", "ended"], pumped, strict=True)
        points |= {name: at for name, at in named if at is not None}
    stages = json.loads(_stages(marks, came))
    ordered = sorted(points, key=points.__getitem__)
    assert [*stages] == ordered[1:]
    for before, name in pairwise(ordered):
        assert stages[name] == pytest.approx((points[name] - points[before]) * 1000, abs=0.0005001)


places = st.integers(0, 5)


@given(st.lists(moments, min_size=6, max_size=6, unique=True), places, places)
def test_the_stages_of_most_calls_are_told_as_those_of_any(
    times: list[float], one: int, other: int
) -> None:
    times.sort()
    times[one], times[other] = times[other], times[one]
    *marked, headers, first, ended = times
    marks = dict(zip(["opened", "reserved", "sent"], marked, strict=True))
    came = Pumped(DONE, 200, {}, marks["sent"], headers, first, ended)
    assert _stages(marks, came) == _some_stages(marks, came)


async def test_every_word_of_an_opening_stands_in_its_place() -> None:
    """As above: the call's row, the attempt's, and what is held for it."""
    given: list[Any] = []

    class Kept:
        async def open_attempt(self, words: Any) -> Rates:
            given.append(words)
            return {}

    limits = Limits(rpm=1)
    call: Any = SimpleNamespace(
        id="req_1",
        at=98.0,
        principal=SimpleNamespace(key_id="key", key_name="name", project="project", limits=limits),
        alias=SimpleNamespace(name="smart"),
        request=SimpleNamespace(origin="openai-chat", stream=True, prompt=None),
        prompt=SimpleNamespace(reference="prompt@1", hash="of the prompt"),
        end_user="user",
        parent="run_1",
        trace=UNTRACED,
        holds=False,
        runtime=SimpleNamespace(
            clock=SimpleNamespace(
                monotonic=lambda: 1.0, wall=lambda: 99.0, new_id=lambda prefix: prefix + "1"
            ),
            snapshot=SimpleNamespace(hash="of the configuration"),
            tracer=NoTracer(),
            store=Kept(),
            leases=Leases(),
        ),
    )
    facts = Facts("gpt", price=replace(PRICE, date="today"))
    target = Target(Deployment(PROVIDER, "gpt", facts), timeouts=Timeouts(total=300.0))
    wire = WireCall("/path", b"{}", False)
    ready = Prepared(target, Encoded(wire), (), (), 50, 60, 70, {})
    plan = Plan((), ({"deployment": "up/gpt"},))
    await Books(call, plan).open("first", 2, ready)
    request, row = (
        RequestRow(
            id="req_1",
            at=98.0,
            project="project",
            key_id="key",
            key_name="name",
            alias="smart",
            origin="openai-chat",
            stream=True,
            config_hash="of the configuration",
            end_user="user",
            parent="run_1",
            prompt="prompt@1",
            prompt_hash="of the prompt",
            trace_id=None,
            route='[{"deployment":"up/gpt"}]',
        ),
        AttemptRow(
            id="att_1",
            request_id="req_1",
            number=2,
            kind="first",
            at=99.0,
            provider="up",
            model="gpt",
            dialect="anthropic-messages",
            estimated_input=50,
            reserved_tokens=60,
            reserved_nano=70,
            price_table="today",
        ),
    )
    lease = 99.0 + 300.0 + LEASE_MARGIN
    assert given == [Opening(request, row, key_id="key", limits=limits, lease_until=lease)]


# --------------------------------------------------------------------------- what was consumed


def prepared(price: Price | None = PRICE, estimated_input: int = 50) -> Any:
    target = Target(Deployment(PROVIDER, "gpt", Facts("gpt", price=price)))
    return SimpleNamespace(target=target, estimated_input=estimated_input)


def consumed(*seen: Any) -> Any:
    usage, source, nano = record.consumed(*seen)
    return SimpleNamespace(usage=usage, source=source, nano=nano)


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


def test_output_without_input_is_no_whole_bill() -> None:
    """What was not told of the input is estimated: it is not free."""
    told = UsageReported(Usage(output=9, reasoning=4))
    found = consumed(prepared(), metered(*SAID, told, DONE), None)
    assert (found.source, found.usage) == ("estimated", Usage(input=50, output=9, reasoning=4))
    part = UsageReported(Usage(cache_read=20, output=9))
    assert consumed(prepared(), metered(part, DONE), None).usage.prompt == 50


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
        (SAID, Fault("cancelled", ""), True, "partial"),
        (SAID, Fault("stream_truncated", ""), True, "partial"),
        (SAID, Fault("stream_truncated", ""), False, "failed"),
        (SAID, Fault("cancelled", ""), False, "cancelled"),
        ((), Fault("cancelled", ""), False, "cancelled"),
        ((Failed(Fault("upstream_server", "")),), Fault("upstream_server", ""), False, "failed"),
    ],
)
def test_partial_is_what_the_caller_has_seen_a_part_of(
    events: tuple[Event, ...], fault: Fault, committed: bool, status: str
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
