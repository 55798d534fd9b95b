"""How the process ends and begins: drain, in-band errors, the second signal, keys after a crash."""

from __future__ import annotations

import asyncio
import json
import signal
import time
from typing import Any

import aiohttp

from tests.harness import KEY, alias

TABLES = (
    "[server]\ndrain_seconds = 1.5\n",
    alias("short", ("openai", "paced-10-60")),
    alias("long", ("openai", "paced-1000-60")),
    alias("held", ("openai", "paced-1000-60+held"), commit="complete"),
    alias("quick", ("openai", "echo")),
    alias("slow", ("openai", "fault-slow-headers-1.2")),
)


def body(model: str, *, stream: bool = True) -> dict[str, Any]:
    messages = [{"role": "user", "content": "one two three"}]
    return {"model": model, "messages": messages, "stream": stream}


async def test_what_is_in_flight_is_finished(
    served: Any, http: aiohttp.ClientSession, eventually: Any
) -> None:
    """SIGTERM: not ready any more, still answering; then it ends by itself, at once."""
    served.write(*TABLES)
    await served.start()
    async with served.post(http, body("short")) as stream:
        whole = asyncio.create_task(read(served.post(http, body("slow", stream=False))))
        await stream.content.readany()
        await served.simulator.log.wait_for(2)
        assert (await served.get(http, "/readyz"))[0] == 200
        served.signal(signal.SIGTERM)
        await eventually(lambda: status_is(served, http, "/readyz", 503))
        assert (await served.get(http, "/healthz"))[0] == 200
        assert (await stream.read()).endswith(b"data: [DONE]\n\n")
    status, answer = await whole
    assert status == 200
    assert json.loads(answer)["choices"][0]["finish_reason"] == "stop"
    assert await served.ended() == 0
    rows = served.rows("SELECT status FROM requests")
    assert [row["status"] for row in rows] == ["completed", "completed"]
    assert not [line for line in served.errors if "Traceback" in line or "frames" in line]


async def test_what_takes_too_long_ends_in_band(served: Any, http: aiohttp.ClientSession) -> None:
    """After `drain_seconds`: an error event in a stream, a plain 503 before the first byte."""
    served.write(*TABLES)
    await served.start()
    async with served.post(http, body("long")) as stream:
        await stream.content.readany()
        held = asyncio.create_task(read(served.post(http, body("held"))))
        whole = asyncio.create_task(read(served.post(http, body("long", stream=False))))
        await served.simulator.log.wait_for(3)
        served.signal(signal.SIGTERM)
        began = time.monotonic()
        told = await stream.read()
    assert 1.0 < time.monotonic() - began < 10
    assert b"shutting_down" in told
    assert b"[DONE]" not in told
    for status, answer in (await held, await whole):
        assert status == 503
        assert json.loads(answer)["error"]["code"] == "shutting_down"
    assert await served.ended() == 0
    rows = served.rows("SELECT r.status, a.status AS attempt FROM requests AS r"
                       " JOIN attempts AS a ON a.request_seq = r.seq ORDER BY r.seq")  # fmt: skip
    assert [row["status"] for row in rows] == ["partial", "cancelled", "cancelled"]
    assert [row["attempt"] for row in rows] == ["partial", "cancelled", "cancelled"]
    assert not served.rows("SELECT * FROM accounts WHERE reserved_nano != 0 OR in_flight != 0")


async def test_a_request_that_is_still_coming_in_is_answered_too(served: Any) -> None:
    """Its body is not whole when the time is over: it hears so, in the protocol's own words."""
    served.write(*TABLES)
    await served.start()
    port = int(served.url.rpartition(":")[2])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = f"authorization: Bearer {KEY}\r\ncontent-length: 1000\r\n\r\n"
    writer.write(f"POST /v1/messages HTTP/1.1\r\nhost: x\r\n{head}{{".encode())
    await writer.drain()
    await asyncio.sleep(0.2)
    served.signal(signal.SIGTERM)
    answer = await asyncio.wait_for(reader.read(), 10)
    writer.close()
    assert answer.startswith(b"HTTP/1.1 503 ")
    error = json.loads(answer.partition(b"\r\n\r\n")[2])["error"]
    assert (error["type"], error["code"]) == ("overloaded_error", "shutting_down")
    assert await served.ended() == 0
    assert not [line for line in served.errors if '"level":"error"' in line]


async def test_a_second_signal_ends_at_once(served: Any, http: aiohttp.ClientSession) -> None:
    served.write(TABLES[0].replace("1.5", "60"), *TABLES[1:])
    await served.start()
    async with served.post(http, body("long")) as stream:
        await stream.content.readany()
        served.signal(signal.SIGTERM)
        await asyncio.sleep(0.3)
        served.signal(signal.SIGTERM)
        assert await served.ended(5) == 128 + signal.SIGTERM
    assert [row["status"] for row in served.rows("SELECT status FROM requests")] == ["open"]
    await served.start()
    assert [row["status"] for row in served.rows("SELECT status FROM requests")] == ["interrupted"]


async def test_a_crash_frees_the_key_of_the_call_that_it_met(
    served: Any, http: aiohttp.ClientSession
) -> None:
    """And loses no answer that was told: that of a finished call is told again."""
    served.write(*TABLES)
    await served.start()
    done = {"idempotency-key": "done"}
    async with served.post(http, body("quick", stream=False), **done) as reply:
        first = await reply.read()
    met = {"idempotency-key": "met"}
    async with served.post(http, body("long"), **met) as stream:
        await stream.content.readany()
        await served.kill()
    await served.start()
    async with served.post(http, body("quick", stream=False), **done) as reply:
        assert reply.headers["idempotent-replayed"] == "true"
        assert await reply.read() == first
    async with served.post(http, body("long"), **met) as stream:
        assert stream.status == 200
        assert "idempotent-replayed" not in stream.headers
        await stream.content.readany()
    statuses = [row["status"] for row in served.rows("SELECT status FROM requests ORDER BY seq")]
    assert statuses[:2] == ["completed", "interrupted"]
    assert len(served.simulator.log) == 3


async def test_a_backup_while_running(
    served: Any, http: aiohttp.ClientSession, eventually: Any
) -> None:
    """Taken under load it is a whole and sound set of books."""
    served.write(*TABLES)
    await served.start()
    calls = 0

    async def call() -> None:
        nonlocal calls
        while True:
            async with served.post(http, body("quick", stream=False)) as reply:
                assert reply.status == 200
            calls += 1

    load = [asyncio.create_task(call()) for _ in range(4)]
    await asyncio.sleep(0.3)
    before = calls
    code, _, error = await served.command("backup", "copy.db")
    assert code == 0, error
    for task in load:
        task.cancel()
    await asyncio.gather(*load, return_exceptions=True)
    copy = type(served)(served.folder / "elsewhere", served.simulator)
    copy.folder.mkdir()
    (served.folder / "copy.db").rename(copy.folder / "gateway.db")
    (rows,) = copy.rows("SELECT count(*) AS n FROM requests WHERE status = 'completed'")
    assert rows["n"] >= before > 0
    assert copy.rows("PRAGMA integrity_check") == [{"integrity_check": "ok"}]
    copy.write(*TABLES)
    (served.folder / "gateway.db.pepper").rename(copy.folder / "gateway.db.pepper")
    try:
        await copy.start()
        assert not copy.rows("SELECT * FROM requests WHERE status = 'open'")
        async with copy.post(http, body("quick", stream=False)) as reply:
            assert reply.status == 200
    finally:
        await copy.kill()


async def read(calling: Any) -> tuple[int, bytes]:
    """Status and body of a call."""
    async with calling as reply:
        return reply.status, await reply.read()


async def status_is(served: Any, http: aiohttp.ClientSession, path: str, wanted: int) -> bool:
    status, _ = await served.get(http, path)
    return bool(status == wanted)
