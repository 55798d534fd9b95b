"""What an operator watches: bounded metrics that tell the truth, scraped by a real Prometheus."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import pytest

from tests.harness import KEY, Harness
from tests.ports import reserved_port

INVENTED = 10_000
PIPES = 10


async def series(g: Harness) -> set[str]:
    """Every series of the exposition, without its value."""
    lines = (await g.get("/metrics")).body.decode().splitlines()
    return {line.rpartition(" ")[0] for line in lines if line and not line.startswith("#")}


async def sample(g: Harness, name: str) -> float:
    """The sum of a metric's samples."""
    lines = (await g.get("/metrics")).body.decode().splitlines()
    return sum(float(line.split()[-1]) for line in lines if re.match(rf"{name}(\{{|\s)", line))


async def test_ten_thousand_invented_models_make_no_series(g: Harness) -> None:
    """Neither do paths, users, or anything else that a caller can make up."""
    for model in ("m-openai", "failing"):
        await g.chat(model)
        await g.chat(model, stream=True)
    await g.chat("nobody-knows-this")
    before = await series(g)
    address = urlsplit(g.url)

    async def pipe(number: int) -> None:
        reader, writer = await asyncio.open_connection(address.hostname, address.port)
        for start in range(0, INVENTED // PIPES, 50):
            for n in range(start, start + 50):
                writer.write(invented(f"{number}-{n}"))
            await writer.drain()
            for _ in range(50):
                head = await reader.readuntil(b"\r\n\r\n")
                assert b" 404 " in head.split(b"\r\n")[0]
                length = re.search(rb"content-length: (\d+)", head.lower())
                assert length is not None
                await reader.readexactly(int(length[1]))
        writer.close()

    await asyncio.gather(*(pipe(number) for number in range(PIPES)))
    assert await series(g) == before


def invented(name: str) -> bytes:
    """One request for a model that nobody has."""
    body = json.dumps(
        {"model": f"invented-{name}", "messages": [{"role": "user", "content": "a"}], "user": name}
    ).encode()
    head = (
        f"POST /v1/chat/completions?q={name} HTTP/1.1\r\nhost: x\r\n"
        f"authorization: Bearer {KEY}\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


async def test_the_store_is_watched(g: Harness) -> None:
    """Groups, their time, and how many entries wait."""
    for _ in range(3):
        assert (await g.chat("m-openai")).status == 200
    assert await sample(g, "gateway_store_commit_seconds_count") >= 6
    assert await sample(g, "gateway_store_group_size_sum") >= 6
    assert 'gateway_queue_depth{queue="store"} 0.0' in await series_lines(g)
    assert 'gateway_queue_depth{queue="log"}' in str(await series(g))


async def series_lines(g: Harness) -> list[str]:
    return (await g.get("/metrics")).body.decode().splitlines()


async def test_counters_and_ledger_agree(g: Harness, books: Any) -> None:
    """Calls, attempts and money are the same sums in both."""
    await asyncio.gather(
        *(g.chat("priced", max_tokens=100, stream=n % 2 == 0) for n in range(6)),
        *(g.chat("failing") for _ in range(3)),
        g.chat("m-claude"),
    )
    (row,) = books.rows("SELECT count(*) AS n, sum(charged_nano) AS nano FROM attempts")
    (calls,) = books.rows("SELECT count(*) AS n FROM requests")
    assert await sample(g, "gateway_attempts_total") == row["n"] == g.simulator.log.total
    assert await sample(g, "gateway_requests_total") == calls["n"]
    assert await sample(g, "gateway_cost_nano_dollars_total") == row["nano"] > 0
    assert await sample(g, "gateway_requests_in_flight") == 0


async def test_in_flight_is_seen_and_goes_away(g: Harness, chat_body: Any, eventually: Any) -> None:
    headers = {"authorization": f"Bearer {KEY}"}
    async with g.http.post(
        g.url + "/v1/chat/completions", data=chat_body("slow"), headers=headers
    ) as reply:
        await reply.content.readany()
        assert 'gateway_requests_in_flight{alias="slow"} 1.0' in await series_lines(g)
    await eventually(lambda: not g.state.live)
    assert 'gateway_requests_in_flight{alias="slow"} 0.0' in await series_lines(g)


@pytest.mark.all
async def test_promtool_likes_a_live_exposition(g: Harness) -> None:
    for model in ("m-openai", "priced", "failing"):
        await g.chat(model, stream=True)
    promtool = shutil.which("promtool")
    assert promtool is not None, "install Debian's package prometheus, which holds promtool"
    text = (await g.get("/metrics")).body
    checked = await asyncio.to_thread(
        subprocess.run, [promtool, "check", "metrics"], input=text, capture_output=True, timeout=30
    )
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, b"", b"")


@pytest.mark.all
async def test_a_real_prometheus_scrapes_it(g: Harness, tmp_path: Path) -> None:
    """Debian's own, with one job: the target is up, and a query finds the calls."""
    prometheus = shutil.which("prometheus")
    assert prometheus is not None, "install Debian's package prometheus"
    for _ in range(3):
        await g.chat("m-openai")
    config = tmp_path / "prometheus.yml"
    config.write_text(
        "global: { scrape_interval: 1s }\n"
        "scrape_configs: [ { job_name: gateway, static_configs: [ { targets: ["
        f" '{g.url.removeprefix('http://')}' ] }} ] }} ]\n"
    )
    with reserved_port() as port:
        address = f"127.0.0.1:{port}"
        process = await asyncio.create_subprocess_exec(
            prometheus,
            f"--config.file={config}",
            f"--storage.tsdb.path={tmp_path / 'tsdb'}",
            f"--web.listen-address={address}",
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            found = await asyncio.wait_for(scraped(g.http, f"http://{address}"), 60)
        finally:
            process.terminate()
            await process.wait()
    assert found["up"] == "1"
    assert float(found['sum(gateway_requests_total{alias="m-openai",status="200"})']) == 3


async def scraped(http: aiohttp.ClientSession, url: str) -> dict[str, str]:
    """The answers to the test's questions, once Prometheus has them all."""
    questions = ("up", 'sum(gateway_requests_total{alias="m-openai",status="200"})')
    found: dict[str, str] = {}
    while len(found) < len(questions):
        await asyncio.sleep(0.3)
        for question in questions:
            try:
                async with http.get(f"{url}/api/v1/query", params={"query": question}) as reply:
                    result = (await reply.json())["data"]["result"]
            except (aiohttp.ClientError, KeyError):
                continue
            if result and result[0]["value"][1] != "0":
                found[question] = result[0]["value"][1]
    return found
