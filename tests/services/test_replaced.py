"""What reloads have replaced: closed when no call can need it, in the order of the reloads."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.services import replaced
from gateway.services.replaced import Replaced


class Runtime:
    """As much of one as matters here."""

    def __init__(self, deadline: float) -> None:
        alias = type("Alias", (), {"deadline": deadline})
        self.snapshot = type("Snapshot", (), {"aliases": {"one": alias}})


class Connections:
    def __init__(self) -> None:
        self.busy = self.closed = False

    async def close(self) -> None:
        self.closed = True


@pytest.fixture
def clock() -> list[float]:
    return [0.0]


@pytest.fixture
def gone(clock: list[float]) -> Replaced:
    return Replaced(lambda: clock[0])


async def closed(gone: Replaced, *all_of_them: Connections) -> list[bool]:
    await gone.close_unneeded()
    return [each.closed for each in all_of_them]


async def test_what_no_call_holds_is_closed_at_once(gone: Replaced, clock: list[float]) -> None:
    runtime: Any = Runtime(deadline=600)
    one = Connections()
    gone.add(runtime, [one], [])
    assert await closed(gone, one) == [False]
    del runtime
    assert await closed(gone, one) == [True]


async def test_what_is_held_by_accident_is_closed_after_the_longest_call(
    gone: Replaced, clock: list[float]
) -> None:
    runtime: Any = Runtime(deadline=30)
    one = Connections()
    gone.add(runtime, [one], [])
    clock[0] = 29
    assert await closed(gone, one) == [False]
    clock[0] = 30
    assert await closed(gone, one) == [True]


async def test_nobody_who_waits_for_an_answer_is_cut_off(gone: Replaced) -> None:
    runtime: Any = Runtime(deadline=30)
    answering, idle = Connections(), Connections()
    answering.busy = True
    gone.add(runtime, [answering, idle], [])
    del runtime
    assert await closed(gone, answering, idle) == [False, True]
    answering.busy = False
    assert await closed(gone, answering, idle) == [True, True]


async def test_a_call_that_began_two_reloads_ago_may_need_what_the_second_replaced(
    gone: Replaced,
) -> None:
    first: Any = Runtime(deadline=600)
    second: Any = Runtime(deadline=600)
    shared = Connections()
    gone.add(first, [], [])
    gone.add(second, [shared], [])
    del second
    assert await closed(gone, shared) == [False], "the first configuration had it, too"
    del first
    assert await closed(gone, shared) == [True]


async def test_secrets_stay_known_for_a_while(gone: Replaced, clock: list[float]) -> None:
    runtime: Any = Runtime(deadline=1)
    gone.add(runtime, [], ["old"])
    del runtime
    clock[0] = replaced.AT_LEAST - 1
    assert not await gone.close_unneeded()
    assert gone.secrets == ["old"]
    clock[0] = replaced.AT_LEAST
    assert await gone.close_unneeded()
    assert gone.secrets == []


async def test_the_end_of_the_gateway_closes_all(gone: Replaced) -> None:
    runtimes: list[Any] = [Runtime(600), Runtime(600)]
    every = [Connections(), Connections()]
    for runtime, one in zip(runtimes, every, strict=True):
        one.busy = True
        gone.add(runtime, [one], [])
    await gone.close()
    assert [one.closed for one in every] == [True, True]
