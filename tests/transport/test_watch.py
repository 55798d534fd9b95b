"""The timer: names, priorities, laziness, and whose cancellation it is."""

from __future__ import annotations

import asyncio

import pytest

from adapters.canonical.faults import Fault
from adapters.transport.watch import Watch


async def waiting(watch: Watch, seconds: float = 5.0) -> None:
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        watch.claim()
        raise
    finally:
        watch.close()


PHASES = {
    "pool": ("connect", False),
    "connect": ("connect", False),
    "upload": ("first_event", False),
    "first_event": ("first_event", None),
    "between_events": ("between_events", None),
}


@pytest.mark.parametrize(("phase", "told"), PHASES.items())
async def test_a_phase_that_takes_too_long_is_told_by_the_name_of_its_setting(phase, told):
    watch = Watch(60)
    watch.expect(phase, 0.01)
    with pytest.raises(Fault) as caught:
        await waiting(watch)
    fault = caught.value
    assert (fault.kind, fault.phase, fault.billed) == ("upstream_timeout", *told)
    assert "0.01 s" in fault.message


async def test_a_full_pool_has_its_own_code():
    watch = Watch(60)
    watch.expect("pool", 0.01)
    with pytest.raises(Fault) as caught:
        await waiting(watch)
    assert caught.value.code == "connection_pool_full"


async def test_total_ends_a_phase_that_has_time_left():
    watch = Watch(0.02)
    watch.expect("first_event", 5)
    with pytest.raises(Fault) as caught:
        await waiting(watch)
    assert caught.value.phase == "total"
    assert "0.02 s" in caught.value.message


async def test_a_later_limit_replaces_an_earlier_one_and_the_other_way_round():
    watch = Watch(60)
    watch.expect("connect", 0.01)
    watch.expect("first_event", 60)
    await asyncio.sleep(0.03)
    watch.expect("between_events", 0.01)
    with pytest.raises(Fault) as caught:
        await waiting(watch)
    assert caught.value.phase == "between_events"


async def test_a_thousand_steps_arm_one_timer(monkeypatch):
    loop = asyncio.get_running_loop()
    armed = []
    call_at = loop.call_at
    monkeypatch.setattr(loop, "call_at", lambda *a, **k: armed.append(a) or call_at(*a, **k))
    watch = Watch(600)
    watch.expect("connect", 5)
    for _ in range(1000):
        watch.expect("between_events", 120)
        watch.pause()
        watch.resume()
    watch.close()
    assert len(armed) == 1


async def test_paused_time_counts_for_no_limit():
    watch = Watch(0.5)
    watch.expect("between_events", 0.3)
    watch.pause()
    await asyncio.sleep(0.6)
    watch.resume()
    await asyncio.sleep(0.005)  # both limits have most of their time left
    with pytest.raises(Fault) as caught:
        await waiting(watch)
    assert caught.value.phase == "between_events"


async def test_after_close_nothing_fires():
    watch = Watch(0.01)
    watch.expect("connect", 0.01)
    watch.close()
    watch.expect("first_event", 0.01)
    watch.pause()
    watch.resume()
    await asyncio.sleep(0.03)


async def work(started: asyncio.Future[Watch], seconds: float) -> None:
    watch = Watch(60)
    watch.expect("connect", seconds)
    started.set_result(watch)
    await waiting(watch)


async def test_a_cancellation_from_outside_is_not_claimed():
    started: asyncio.Future[Watch] = asyncio.get_running_loop().create_future()
    task = asyncio.ensure_future(work(started, 60))
    await started
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize("order", ["timer first", "cancel first"])
async def test_a_cancellation_in_the_same_turn_as_the_timer_stays_a_cancellation(order):
    loop = asyncio.get_running_loop()
    started: asyncio.Future[Watch] = loop.create_future()
    task = asyncio.ensure_future(work(started, 60))
    watch = await started
    watch._due = 0.0  # passed
    first, second = (watch._fire, task.cancel)[:: 1 if order == "timer first" else -1]
    first()
    second()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_claimed_time_out_leaves_no_cancellation_behind():
    watch = Watch(60)
    watch.expect("connect", 0.01)
    with pytest.raises(Fault):
        await waiting(watch)
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0
    await asyncio.sleep(0)
