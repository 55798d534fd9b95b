"""A recording: every reader gets every byte, and memory stays bounded."""

from __future__ import annotations

import asyncio

import pytest

from adapters.canonical.faults import Fault
from gateway.services.recording import AHEAD_BYTES, KEPT_BYTES, Head, Reader, Recording

PIECE = b"x" * 65_536
MANY = 2 * KEPT_BYTES // len(PIECE)


async def nothing(last: bytes) -> None:
    pass


async def drain(reader: Reader) -> int:
    size = 0
    while (frame := await reader.next()) is not None:
        size += len(frame.data)
    return size


async def write_all(recording: Recording) -> None:
    recording.start(Head(200, {}))
    for _ in range(MANY):
        await recording.write(PIECE, more=True)
    await recording.write(b"", more=False)


async def test_readers_at_their_own_pace() -> None:
    recording = Recording(nothing)
    early, late = recording.read(), recording.read()
    recording.start(Head(200, {}))
    await recording.write(b"a", more=True)
    assert (await early.next()) == (b"a", True)
    await recording.write(b"b", more=False)
    assert (await early.next()) == (b"b", False)
    assert await early.next() is None
    assert await drain(late) == 2
    assert await drain(recording.read()) == 2, "also one that comes when all is over"


async def test_a_long_answer_waits_for_its_slowest_reader() -> None:
    recording = Recording(nothing)
    slow = recording.read()
    writing = asyncio.create_task(write_all(recording))
    await asyncio.sleep(0.05)
    assert not writing.done()
    held = sum(len(frame.data) for frame in recording._frames)
    assert held <= KEPT_BYTES + AHEAD_BYTES
    assert await drain(slow) == MANY * len(PIECE)
    await writing


async def test_a_long_answer_can_not_be_joined() -> None:
    recording = Recording(nothing)
    reader = recording.read()
    writing = asyncio.create_task(write_all(recording))
    assert await drain(reader) == MANY * len(PIECE)
    await writing
    assert not recording.whole
    with pytest.raises(Fault) as raised:
        recording.read()
    assert raised.value.kind == "conflict"


async def test_a_writer_is_freed_when_its_readers_leave() -> None:
    recording = Recording(nothing)
    reader = recording.read()
    writing = asyncio.create_task(write_all(recording))
    await asyncio.sleep(0.05)
    reader.close()
    await asyncio.wait_for(writing, 5)
    assert recording.left.is_set()


async def test_the_end_is_told_only_after_it_is_put_away() -> None:
    put_away = asyncio.Event()

    async def keep(last: bytes) -> None:
        assert last == b"end"
        await put_away.wait()

    recording = Recording(keep)
    reader = recording.read()
    recording.start(Head(200, {}))
    writing = asyncio.create_task(recording.write(b"end", more=False))
    reading = asyncio.create_task(reader.next())
    await asyncio.sleep(0.02)
    assert not reading.done()
    put_away.set()
    assert await reading == (b"end", False)
    await writing


async def test_a_fault_reaches_all_readers_and_the_first_one_stands() -> None:
    recording = Recording(nothing)
    reader = recording.read()
    recording.refuse(Fault("internal", "first"))
    recording.refuse(Fault("cancelled", "second"))
    for reading in (reader.head(), reader.next(), recording.read().next()):
        with pytest.raises(Fault, match="first"):
            await reading


async def test_leaving_after_the_end_gives_nothing_up() -> None:
    recording = Recording(nothing)
    reader = recording.read()
    recording.start(Head(200, {}))
    await recording.write(b"", more=False)
    reader.close()
    reader.close()
    assert not recording.left.is_set()
