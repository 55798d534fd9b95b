"""Each fault, seen as raw bytes by a client that trusts nothing."""

import asyncio
import gzip
import json
import re
import time
import zlib
from email.utils import parsedate_to_datetime

import pytest

from adapters.simulator import CATALOGUE, Simulator

CHAT, RESPONSES, MESSAGES = "/v1/chat/completions", "/v1/responses", "/v1/messages"
PATHS = [CHAT, RESPONSES, MESSAGES]
TEXT = "one two three four five six seven eight nine ten"


def body(path: str, model: str, *, stream: bool, **more: object) -> dict[str, object]:
    asked: dict[str, object] = {"model": model, "stream": stream, **more}
    if path == RESPONSES:
        return {**asked, "input": TEXT}
    if path == MESSAGES:
        asked["max_tokens"] = 1024
    return {**asked, "messages": [{"role": "user", "content": TEXT}]}


class Seen:
    """What came back, as far as it came."""

    def __init__(self, data: bytes, how: str) -> None:
        self.data = data
        self.how = how  # "closed", "reset" or "silent"
        self.head, _, self.rest = data.partition(b"\r\n\r\n")

    @property
    def status(self) -> int:
        return int(self.head.split(b" ")[1])

    @property
    def headers(self) -> dict[str, str]:
        lines = self.head.decode("latin-1").split("\r\n")[1:]
        return dict(line.split(": ", 1) for line in lines)

    @property
    def body(self) -> bytes:
        if self.headers.get("transfer-encoding") != "chunked":
            return self.rest
        out, rest = b"", self.rest
        while rest:
            size, _, rest = rest.partition(b"\r\n")
            length = int(size, 16)
            out += rest[:length]
            rest = rest[length + 2 :]
        return out

    @property
    def complete(self) -> bool:
        """Whether HTTP itself says that all has come."""
        if self.headers.get("transfer-encoding") == "chunked":
            return self.rest.endswith(b"0\r\n\r\n")
        return len(self.rest) == int(self.headers["content-length"])


async def post(
    sim: Simulator,
    path: str,
    asked: dict[str, object],
    *,
    seconds: float = 0.5,
    limit: int = 1 << 22,
) -> Seen:
    """Send, and read until the other side closes, resets, or says nothing for ``seconds``."""
    host, port = sim.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    data = json.dumps(asked).encode()
    writer.write(
        b"POST %b HTTP/1.1\r\nhost: x\r\nauthorization: Bearer sk-test\r\n"
        b"anthropic-version: 2023-06-01\r\nconnection: close\r\n"
        b"content-type: application/json\r\ncontent-length: %d\r\n\r\n%b"
        % (path.encode(), len(data), data)
    )
    seen, how = b"", "closed"
    try:
        while len(seen) < limit:
            async with asyncio.timeout(seconds):
                got = await reader.read(1 << 20)
            if not got:
                break
            seen += got
    except TimeoutError:
        how = "silent"
    except ConnectionError:
        how = "reset"
    writer.close()
    return Seen(seen, how)


def deltas(path: str, data: bytes) -> int:
    mark = {
        CHAT: rb'"delta":\{"content":"(?!")',
        RESPONSES: rb"event: response.output_text.delta",
        MESSAGES: rb"event: content_block_delta",
    }[path]
    return len(re.findall(mark, data))


TERMINAL = {
    CHAT: b'"finish_reason":"stop"',
    RESPONSES: b"response.completed",
    MESSAGES: b"end_turn",
}


# ---------------------------------------------------------------- status errors


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 429, 500, 503, 529])
async def test_status(sim, path, status):
    seen = await post(sim, path, body(path, f"fault-status-{status}", stream=True))
    error = json.loads(seen.body)["error"]
    assert seen.status == status
    assert error["message"]
    assert error["type"]
    assert ("param" in error) == (path != MESSAGES)
    assert "retry-after" not in seen.headers


async def test_retry_after_in_seconds_as_a_date_and_as_nonsense(sim):
    seen = await post(sim, CHAT, body(CHAT, "fault-status-429-retry-after-2", stream=False))
    assert seen.headers["retry-after"] == "2"
    seen = await post(sim, CHAT, body(CHAT, "fault-status-503-retry-date-30", stream=False))
    when = parsedate_to_datetime(seen.headers["retry-after"]).timestamp()
    assert 25 < when - time.time() < 31
    seen = await post(sim, CHAT, body(CHAT, "fault-status-429-retry-hint-soon", stream=False))
    assert seen.headers["retry-after"] == "soon"


async def test_errors_with_a_name(sim):
    seen = await post(sim, CHAT, body(CHAT, "fault-context-overflow", stream=False))
    assert (seen.status, json.loads(seen.body)["error"]["code"]) == (400, "context_length_exceeded")
    seen = await post(sim, MESSAGES, body(MESSAGES, "fault-context-overflow", stream=False))
    assert b"prompt is too long" in seen.body
    seen = await post(sim, CHAT, body(CHAT, "fault-content-filter", stream=False))
    assert json.loads(seen.body)["error"]["code"] == "content_filter"
    seen = await post(sim, MESSAGES, body(MESSAGES, "fault-out-of-credit", stream=False))
    assert (seen.status, b"credit balance" in seen.body) == (400, True)
    seen = await post(sim, CHAT, body(CHAT, "fault-out-of-credit", stream=False))
    assert (seen.status, b"insufficient_quota" in seen.body) == (429, True)
    seen = await post(sim, CHAT, body(CHAT, "fault-leaks-key", stream=False))
    assert b"sk-test" in seen.body


async def test_no_prefill_and_unsupported_refuse_only_what_they_name(sim):
    asked = body(CHAT, "fault-no-prefill", stream=False)
    assert (await post(sim, CHAT, asked)).status == 200
    asked["messages"] = [*asked["messages"], {"role": "assistant", "content": "So"}]
    assert (await post(sim, CHAT, asked)).status == 400
    asked = body(CHAT, "fault-unsupported-temperature", stream=False)
    assert (await post(sim, CHAT, asked)).status == 200
    seen = await post(sim, CHAT, {**asked, "temperature": 0.5})
    assert json.loads(seen.body)["error"]["param"] == "temperature"


# ---------------------------------------------------------------- gates


async def statuses(sim: Simulator, model: str, count: int) -> list[int]:
    return [(await post(sim, CHAT, body(CHAT, model, stream=False))).status for _ in range(count)]


async def test_gates(sim):
    assert await statuses(sim, "fault-once-500", 3) == [500, 200, 200]
    assert await statuses(sim, "fault-n-2-503", 3) == [503, 503, 200]
    assert await statuses(sim, "fault-flap-2", 5) == [503, 503, 200, 200, 503]
    assert await statuses(sim, "fault-flap-1-2-429", 4) == [429, 200, 200, 429]
    assert await statuses(sim, "fault-every-2-500", 4) == [200, 500, 200, 500]
    assert await statuses(sim, "fault-for-2-500", 2) == [500, 500]
    async with asyncio.timeout(20):
        while await statuses(sim, "fault-for-2-500", 1) == [500]:
            await asyncio.sleep(0.2)
    assert await statuses(sim, "fault-for-2-500", 1) == [200]
    assert set(await statuses(sim, "fault-chance-50-500", 20)) == {200, 500}


async def test_a_gate_before_a_fault_on_the_wire(sim):
    asked = body(CHAT, "fault-once-cut-after-2", stream=True)
    assert not (await post(sim, CHAT, asked)).complete
    assert (await post(sim, CHAT, asked)).complete


@pytest.mark.parametrize("model", ["fault-nonsense", "fault-once-nonsense"])
async def test_a_misspelt_fault_is_refused(sim, model):
    seen = await post(sim, CHAT, body(CHAT, model, stream=False))
    assert seen.status == 404
    assert b"not a fault" in seen.body


# ---------------------------------------------------------------- in the stream


@pytest.mark.parametrize("path", PATHS)
async def test_cut_reset_and_stall_come_after_so_many_deltas(sim, path):
    for fault, how in (("cut", "closed"), ("reset", "reset"), ("stall", "silent")):
        seen = await post(sim, path, body(path, f"echo+fault-{fault}-after-3", stream=True))
        assert (seen.how, seen.complete) == (how, False)
        assert deltas(path, seen.data) == 3
        assert TERMINAL[path] not in seen.data


@pytest.mark.parametrize("path", PATHS)
async def test_cut_reset_and_stall_of_a_whole_body(sim, path):
    for fault, how in (("cut", "closed"), ("reset", "reset"), ("stall", "silent")):
        seen = await post(sim, path, body(path, f"echo+fault-{fault}-after-3", stream=False))
        assert (seen.how, seen.complete) == (how, False)
        assert seen.body


@pytest.mark.parametrize("path", PATHS)
async def test_heartbeats_are_all_that_comes(sim, path):
    seen = await post(sim, path, body(path, "fault-heartbeat-only", stream=True), limit=60)
    async with asyncio.timeout(5):
        await sim.log[-1].ended.wait()
    assert b"ping" in seen.body or b": keep-alive" in seen.body
    assert b"delta" not in seen.body
    assert sim.log[-1].disconnected is not None


@pytest.mark.parametrize("path", PATHS)
async def test_the_end_is_missing_doubled_or_followed(sim, path):
    ending = TERMINAL[path]
    done = {CHAT: b"[DONE]", RESPONSES: b"\n\n", MESSAGES: b"message_stop"}[path]
    plain = await post(sim, path, body(path, "echo", stream=True))
    assert plain.body.count(ending) >= 1
    seen = await post(sim, path, body(path, "echo+fault-no-done", stream=True))
    assert seen.complete
    assert ending in seen.body
    assert done not in seen.body or path == RESPONSES
    seen = await post(sim, path, body(path, "echo+fault-no-terminal", stream=True))
    assert seen.complete
    assert ending not in seen.body
    assert deltas(path, seen.body) == 10
    seen = await post(sim, path, body(path, "echo+fault-two-terminals", stream=True))
    assert seen.body.count(ending) == 2 * plain.body.count(ending)
    seen = await post(sim, path, body(path, "echo+fault-delta-after-terminal", stream=True))
    assert seen.body.rfind(b"one") > seen.body.find(ending)


@pytest.mark.parametrize("path", PATHS)
async def test_errors_inside_a_stream(sim, path):
    seen = await post(sim, path, body(path, "echo+fault-error-midstream-3", stream=True))
    assert (seen.status, seen.complete) == (200, True)
    assert deltas(path, seen.body) == 3
    assert b"Overloaded" in seen.body
    assert TERMINAL[path] not in seen.body
    if path == RESPONSES:
        assert b"response.failed" in seen.body
        numbers = [int(n) for n in re.findall(rb'"sequence_number":(\d+)', seen.body)]
        assert numbers == list(range(len(numbers)))
    seen = await post(sim, path, body(path, "fault-error-first", stream=True))
    assert (seen.status, deltas(path, seen.body)) == (200, 0)
    assert b"Overloaded" in seen.body


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("stream", [True, False])
async def test_broken_content(sim, path, stream):
    seen = await post(sim, path, body(path, "echo+fault-malformed-after-3", stream=stream))
    assert seen.complete
    payloads = [line[5:] for line in seen.body.split(b"\n") if line.startswith(b"data:")]
    broken = 0
    for payload in payloads if stream else [seen.body]:
        if payload.strip() != b"[DONE]":
            try:
                json.loads(payload)
            except ValueError:
                broken += 1
    assert broken == 1
    seen = await post(sim, path, body(path, "echo+fault-invalid-utf8", stream=stream))
    with pytest.raises(UnicodeDecodeError):
        seen.body.decode()


# ---------------------------------------------------------------- instead of an answer


@pytest.mark.parametrize("stream", [True, False])
async def test_bodies_that_are_no_answer(sim, stream):
    def ask(model: str) -> dict[str, object]:
        return body(CHAT, model, stream=stream)

    seen = await post(sim, CHAT, ask("fault-error-under-200"))
    assert (seen.status, "error" in json.loads(seen.body)) == (200, True)
    seen = await post(sim, CHAT, ask("fault-html-200"))
    assert seen.headers["content-type"].startswith("text/html")
    assert (await post(sim, CHAT, ask("fault-html-502"))).status == 502
    seen = await post(sim, CHAT, ask("fault-redirect"))
    assert (seen.status, "location" in seen.headers) == (302, True)
    seen = await post(sim, CHAT, ask("echo+fault-wrong-content-type"))
    assert (seen.headers["content-type"], b"one" in seen.body) == ("text/plain", True)
    seen = await post(sim, CHAT, ask("fault-empty-body"))
    assert (seen.status, seen.body, seen.complete) == (200, b"", True)
    seen = await post(sim, CHAT, ask("fault-truncated-body"))
    assert (seen.complete, seen.how) == (False, "closed")
    seen = await post(sim, CHAT, ask("fault-gzip-garbage"))
    assert seen.headers["content-encoding"] == "gzip"
    with pytest.raises(zlib.error):
        gzip.decompress(seen.body)


async def test_half_a_json_in_proper_http(sim):
    seen = await post(sim, CHAT, body(CHAT, "echo+fault-half-json", stream=False))
    assert seen.complete
    with pytest.raises(json.JSONDecodeError):
        json.loads(seen.body)


async def test_sizes_beyond_all_reason(sim):
    seen = await post(
        sim, CHAT, body(CHAT, "echo+fault-oversized-event-2", stream=True), limit=1 << 23
    )
    assert max(len(line) for line in seen.body.split(b"\n")) > 2 << 20
    seen = await post(sim, CHAT, body(CHAT, "fault-huge-error-3", stream=False), limit=1 << 23)
    assert (seen.status, len(seen.body), seen.complete) == (500, 3 << 20, True)


@pytest.mark.parametrize(
    ("model", "how"),
    [
        ("fault-reset-before-headers", "reset"),
        ("fault-close-before-headers", "closed"),
        ("fault-no-response", "silent"),
    ],
)
async def test_no_answer_at_all(sim, model, how):
    seen = await post(sim, CHAT, body(CHAT, model, stream=True))
    assert (seen.data, seen.how) == (b"", how)
    assert sim.log[-1].status is None


async def test_heads_that_do_not_end(sim):
    seen = await post(sim, CHAT, body(CHAT, "fault-endless-header", stream=True), limit=1 << 20)
    assert b"\r\n\r\n" not in seen.data
    seen = await post(sim, CHAT, body(CHAT, "fault-loris", stream=True), seconds=0.2)
    assert seen.data == b"H"


async def test_slowness(sim):
    async def lasts(model: str, stream: bool) -> float:
        start = time.monotonic()
        seen = await post(sim, CHAT, body(CHAT, model, stream=stream), seconds=3)
        assert seen.complete
        return time.monotonic() - start

    assert 0.2 <= await lasts("echo+fault-slow-headers-0.2", False) < 2
    assert 0.2 <= await lasts("echo+fault-slow-first-event-0.2", True) < 2
    assert 0.2 <= await lasts("echo+fault-slow-first-token-0.2", True) < 2
    assert 0.2 <= await lasts("paced-10-20", True) < 2
    assert 0.2 <= await lasts("paced-10-20", False) < 2
    assert await lasts("burst-500", True) < 2


# ---------------------------------------------------------------- odd, but right


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "word", ["sse-crlf", "sse-cr", "sse-no-space", "sse-comments", "sse-bom", "sse-split"]
)
async def test_framings_carry_the_same_data(sim, path, word):
    def data(seen: Seen) -> list[bytes]:
        assert seen.complete
        lines = re.split(rb"\r\n|\n|\r", seen.body.removeprefix(b"\xef\xbb\xbf"))
        return [
            re.sub(rb'"(id|item_id|created|created_at|completed_at)":("[^"]*"|\d+)', b"", line)
            for line in lines
            if line.startswith(b"data:")
        ]

    plain = await post(sim, path, body(path, "sim", stream=True))
    odd = await post(sim, path, body(path, f"sim+{word}", stream=True))
    assert plain.body != odd.body
    expected = [line.replace(b"data: ", b"data:") for line in data(plain)]
    told = [
        line.replace(b"data: ", b"data:").replace(f"sim+{word}".encode(), b"sim")
        for line in data(odd)
    ]
    assert told == expected


async def test_one_byte_writes_are_still_the_answer(sim):
    for stream in (True, False):
        seen = await post(sim, CHAT, body(CHAT, "echo+fault-one-byte-writes", stream=stream))
        assert seen.complete
        assert b"three" in seen.body


async def test_close_idle_ends_a_sound_answer(sim):
    for stream in (True, False):
        seen = await post(sim, CHAT, body(CHAT, "echo+fault-close-idle", stream=stream))
        assert (seen.complete, seen.how) == (True, "closed")


async def test_usage_that_lies(sim):
    for fault, value in (("negative", b":-1000000"), ("text", b':"12"'), ("huge", b":9999999999")):
        seen = await post(sim, CHAT, body(CHAT, f"fault-usage-{fault}", stream=False))
        assert b'"prompt_tokens"' + value in seen.body
    seen = await post(sim, CHAT, body(CHAT, "fault-usage-missing", stream=False))
    assert b"prompt_tokens" not in seen.body


async def test_endings(sim):
    async def stop(model: str) -> object:
        seen = await post(sim, MESSAGES, body(MESSAGES, model, stream=False))
        return json.loads(seen.body)["stop_reason"]

    assert await stop("fault-length-cut") == "max_tokens"
    assert await stop("fault-pause-turn") == "pause_turn"
    assert await stop("fault-window-full") == "model_context_window_exceeded"
    assert await stop("fault-filtered") == "refusal"
    assert await stop("fault-unknown-reason") == "brand_new_reason"
    seen = await post(sim, RESPONSES, body(RESPONSES, "fault-only-reasoning", stream=False))
    answer = json.loads(seen.body)
    assert answer["incomplete_details"] == {"reason": "max_output_tokens"}
    assert [item["type"] for item in answer["output"]] == ["reasoning"]


async def test_ids_and_late_arguments(sim):
    function = {"name": "add", "parameters": {"type": "object", "properties": {"a": {}}}}
    tools = [{"type": "function", "function": function}]
    asked = body(CHAT, "parallel-2+fault-duplicate-ids", stream=False, tools=tools)
    calls = json.loads((await post(sim, CHAT, asked)).body)["choices"][0]["message"]["tool_calls"]
    assert [call["id"] for call in calls] == ["call_duplicate"] * 2
    asked = body(
        RESPONSES,
        "sim-tool+fault-late-arguments",
        stream=True,
        tools=[{"type": "function", **function}],
    )
    seen = await post(sim, RESPONSES, asked)
    assert b"arguments.delta" not in seen.body
    assert b"arguments.done" in seen.body
    seen = await post(sim, CHAT, body(CHAT, "echo+fault-changing-ids", stream=True))
    ids = re.findall(rb'"id":"([^"]+)"', seen.body)
    assert len(set(ids)) == len(ids) > 5


@pytest.mark.parametrize("path", PATHS)
async def test_every_word_of_the_catalogue_answers_or_breaks_as_a_bounded_reply(sim, path):
    """No word may crash the simulator: each gives bytes, silence, or a closed socket."""
    values = {
        "DIRT": "fence", "STATUS": "500", "SECONDS": "0.01", "MS": "1", "KB": "1", "MB": "1",
        "TEXT": "x", "FAULT": "500", "N": "2", "M": "2",
    }  # fmt: skip
    for entry in CATALOGUE:
        name = re.sub(r"[A-Z]+", lambda found: values[found[0]], re.sub(r"[\[\]]", "", entry.name))
        for stream in (True, False):
            asked = body(path, name, stream=stream)
            seconds = 0.05 if "fault-" in name else 5  # only a fault falls silent
            number = sim.log.total + 1
            seen = await post(sim, path, asked, seconds=seconds, limit=1 << 18)
            await sim.log.wait_for(number)
            assert sim.log[-1].model == name
            if seen.data and seen.head and sim.log[-1].status is not None:
                assert seen.status == sim.log[-1].status
            assert seen.data or "fault-" in name, name
