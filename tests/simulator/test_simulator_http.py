"""The HTTP server, its log, and what happens when a client leaves."""

import asyncio
import time

import aiohttp
import pytest

from adapters.simulator import Answer, Call, Frame, Raw, Reply, Say, Think, Wait, running
from adapters.simulator.log import MAX_BYTES, Attempt, Line, Log

HEADERS = {"authorization": "Bearer sk-test"}


def chat(model: str, text: str = "hi", **more: object) -> dict[str, object]:
    return {"model": model, "messages": [{"role": "user", "content": text}], **more}


@pytest.fixture
async def http():
    async with aiohttp.ClientSession(headers=HEADERS) as session:
        yield session


async def ask(http, sim, body, **more):
    async with http.post(sim.url + "/v1/chat/completions", json=body, **more) as answer:
        return answer.status, await answer.json()


async def raw(sim, data: bytes, seconds: float = 1.0) -> bytes:
    host, port = sim.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(data)
    seen = b""
    try:
        async with asyncio.timeout(seconds):
            while got := await reader.read(65536):
                seen += got
    except (TimeoutError, ConnectionError):
        pass
    writer.close()
    return seen


# ---------------------------------------------------------------- the log


async def test_integers_keep_their_size(http, sim):
    big = 2**70
    tool = {"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}
    body = chat("sim-tool", f'add {{"n": {big}}}', tools=[tool], seed=big)
    status, answer = await ask(http, sim, body)
    (call,) = answer["choices"][0]["message"]["tool_calls"]
    assert (status, call["function"]["arguments"]) == (200, f'{{"n":{big}}}')
    assert sim.log[-1].body["seed"] == big
    messages = {
        "model": "claude-sonnet-4-6+sim-tool",
        "max_tokens": 100,
        "messages": body["messages"],
        "tools": [{"name": "add", "input_schema": {"type": "object"}}],
    }
    headers = {"x-api-key": "k", "anthropic-version": "2023-06-01"}
    async with http.post(sim.url + "/v1/messages", json=messages, headers=headers) as answer:
        assert f'"input":{{"n":{big}}}'.encode() in await answer.read()


async def test_the_log_has_what_came_and_when(http, sim):
    before = time.monotonic()
    body = chat("echo")
    await ask(http, sim, body, headers={"x-mine": "1"})
    await ask(http, sim, body)
    seen, _ = sim.log
    assert (seen.number, seen.method, seen.path) == (1, "POST", "/v1/chat/completions")
    assert (seen.model, seen.body, seen.status) == ("echo", body, 200)
    assert seen.headers["x-mine"] == "1"
    assert before <= seen.at <= seen.first_frame <= seen.finished <= time.monotonic()
    assert (seen.disconnected, seen.closed, seen.refused) == (None, None, None)
    assert not seen.socket_closed
    await http.close()
    async with asyncio.timeout(2):
        while sim.connections:
            await asyncio.sleep(0.01)
    assert seen.socket_closed
    assert seen.disconnected is None


async def test_a_kept_connection_carries_many_requests(http, sim):
    for _ in range(3):
        await ask(http, sim, chat("echo"))
    assert {attempt.connection for attempt in sim.log} == {1}


async def test_a_client_that_leaves_a_stream_is_seen_at_once(sim):
    async with aiohttp.ClientSession(headers=HEADERS) as http:
        answer = await http.post(
            sim.url + "/v1/chat/completions", json=chat("paced-1000-10", stream=True)
        )
        await answer.content.readany()
        answer.close()
        left = time.monotonic()
    seen = sim.log[-1]
    async with asyncio.timeout(2):
        await seen.ended.wait()
    assert 0 < seen.disconnected - left < 2
    assert seen.finished is None
    assert seen.socket_closed
    assert seen.frames < 100


@pytest.mark.parametrize("model", ["fault-no-response", "fault-slow-headers-60", "paced-100-100"])
async def test_a_client_that_leaves_before_the_head_is_seen_too(sim, model):
    async with aiohttp.ClientSession(headers=HEADERS) as http:
        with pytest.raises(asyncio.TimeoutError):
            await ask(http, sim, chat(model), timeout=aiohttp.ClientTimeout(total=0.1))
    async with asyncio.timeout(2):
        await sim.log[-1].ended.wait()
    assert sim.log[-1].disconnected is not None


async def test_a_break_by_the_simulator_is_no_disconnect(http, sim):
    for model in ("fault-cut-after-1", "fault-reset-before-headers"):
        with pytest.raises(aiohttp.ClientError):
            await ask(http, sim, chat(model))
        async with asyncio.timeout(2):
            await sim.log[-1].ended.wait()
        assert (sim.log[-1].finished, sim.log[-1].disconnected) == (None, None)
        assert sim.log[-1].socket_closed


async def test_waiting_for_attempts(http, sim):
    async def later() -> None:
        await asyncio.sleep(0.02)
        await ask(http, sim, chat("b"))

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(later())
        attempt = await sim.log.wait_for(1, model="b")
        assert attempt.model == "b"
        assert (await sim.log.wait_for(1)) is attempt
    with pytest.raises(TimeoutError):
        await sim.log.wait_for(1, model="a", seconds=0.01)


async def test_the_log_is_bounded(http):
    async with running(keep=3) as sim:
        for number in range(5):
            await ask(http, sim, chat(f"m{number}"))
        assert [attempt.model for attempt in sim.log] == ["m2", "m3", "m4"]
        assert sim.log.total == 5
        sim.reset()
        assert (len(sim.log), sim.log.total) == (0, 5)


def test_the_log_is_bounded_by_bytes_too():
    log = Log()
    big = b"x" * (MAX_BYTES // 2)
    for number in range(4):
        log.add(Attempt(number, "POST", "/", {}, big, None, "m", Line(1)))
    assert [attempt.number for attempt in log] == [2, 3]
    log.add(Attempt(4, "POST", "/", {}, big * 3, None, "m", Line(1)))
    assert [attempt.number for attempt in log] == [4]


async def test_the_end_of_the_block_ends_all_connections():
    async with aiohttp.ClientSession(headers=HEADERS) as http:
        async with running() as sim:
            answer = await http.post(
                sim.url + "/v1/chat/completions", json=chat("fault-stall-after-1", stream=True)
            )
            start = time.monotonic()
        assert time.monotonic() - start < 10
        assert sim.connections == 0
        with pytest.raises(aiohttp.ClientError):
            await answer.read()
        with pytest.raises(aiohttp.ClientError):
            await ask(http, sim, chat("echo"))


async def test_many_at_once(http, sim):
    answers = await asyncio.gather(*(ask(http, sim, chat("echo", str(n))) for n in range(200)))
    texts = [answer["choices"][0]["message"]["content"] for _, answer in answers]
    assert texts == [str(n) for n in range(200)]
    assert len({answer["id"] for _, answer in answers}) == 200


# ---------------------------------------------------------------- the protocol


async def test_chunked_requests_and_expect(http, sim):
    async def parts():
        yield b'{"model":"echo","messages":'
        yield b'[{"role":"user","content":"in parts"}]}'

    async with http.post(sim.url + "/v1/chat/completions", data=parts()) as answer:
        assert (await answer.json())["choices"][0]["message"]["content"] == "in parts"
    async with http.post(
        sim.url + "/v1/chat/completions", json=chat("echo"), expect100=True
    ) as answer:
        assert answer.status == 200


@pytest.mark.parametrize(
    "data",
    [
        b"nonsense\r\n\r\n",
        b"GET / HTTP/1.0\r\n\r\n",
        b"POST / HTTP/1.1\r\ncontent-length: -1\r\n\r\n",
        b"POST / HTTP/1.1\r\ncontent-length: 99999999999\r\n\r\n",
        b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nxyz\r\n",
        b"GET / HTTP/1.1\r\nx: " + b"y" * 70_000,
    ],
)
async def test_what_is_no_http_is_a_400_and_a_closed_socket(sim, data):
    seen = await raw(sim, data)
    assert seen.startswith(b"HTTP/1.1 400")
    assert len(sim.log) == 0


async def test_a_client_that_says_nothing_costs_nothing(sim):
    assert await raw(sim, b"POST /v1/chat", seconds=0.1) == b""
    assert len(sim.log) == 0


# ---------------------------------------------------------------- scripts


async def test_a_script_by_calls(http, sim):
    sim.script(
        "m",
        [
            "fault-status-503-retry-after-1",
            Say("one"),
            [Think("hm"), Call("f", '{"a":1}', id="call_9")],
            Answer((Say("cut"),), stop="length"),
            Reply(418, {"content-type": "text/plain"}, (Frame("body", b"{}"),)),
            "recite",
        ],
    )
    assert (await ask(http, sim, chat("m")))[0] == 503
    assert (await ask(http, sim, chat("m")))[1]["choices"][0]["message"]["content"] == "one"
    message = (await ask(http, sim, chat("m")))[1]["choices"][0]["message"]
    assert message["reasoning_content"] == "hm"
    assert message["tool_calls"][0]["id"] == "call_9"
    assert (await ask(http, sim, chat("m")))[1]["choices"][0]["finish_reason"] == "length"
    async with http.post(sim.url + "/v1/chat/completions", json=chat("m")) as answer:
        assert answer.status == 418
    recited = (await ask(http, sim, chat("m")))[1]["choices"][0]["message"]["content"]
    assert recited == "user: hi"
    status, body = await ask(http, sim, chat("m"))
    assert (status, body["error"]["code"]) == (500, "script_exhausted")


async def test_a_script_by_turns_repeats_itself(http, sim):
    sim.script("m", [Say("first"), Say("second")], by="turn")
    for _ in range(2):
        message = (await ask(http, sim, chat("m")))[1]["choices"][0]["message"]
        assert message["content"] == "first"
    body = chat("m")
    body["messages"] = [
        *body["messages"],
        {"role": "assistant", "content": "first"},
        {"role": "user", "content": "go on"},
    ]
    assert (await ask(http, sim, body))[1]["choices"][0]["message"]["content"] == "second"


async def test_a_script_of_exact_bytes(http, sim):
    steps = (Frame("open", b"data: {"), Wait(0.01), Frame("delta", b'"a":1}\n\n'), Raw(b""))
    sim.script("m", [Reply(200, {"content-type": "text/event-stream"}, steps, stream=True)])
    async with http.post(sim.url + "/v1/chat/completions", json=chat("m", stream=True)) as answer:
        assert await answer.read() == b'data: {"a":1}\n\n'
