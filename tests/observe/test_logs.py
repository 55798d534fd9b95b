"""Logs: one line a call, no secret, no content, never waiting."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import threading
import time
import warnings
from collections.abc import Iterator
from timeit import timeit
from typing import Any
from urllib.parse import quote

import pytest

from adapters.canonical.faults import Fault
from gateway.observe.lines import LONGEST_TEXT, Access, json_line
from gateway.observe.logs import Logs
from gateway.observe.scrub import Scrubber
from gateway.observe.writer import Writer

SECRET = 'CANARY"7f3a/9+KEY'
ACCESS = Access(
    request="req_1",
    method="POST",
    route="/v1/chat/completions",
    status=200,
    ms=1240.5,
    project="default",
    key="key_1",
    alias="smart",
    deployment="openai/gpt",
    attempts=1,
    input_tokens=120,
)


class Sink(io.StringIO):
    """A stream that remembers, and says whether it is a terminal."""

    def __init__(self, terminal: bool = False) -> None:
        super().__init__()
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal


class Rig:
    """Installed logs and what they wrote."""

    def __init__(self, **settings: Any) -> None:
        self.sink = Sink(settings.pop("terminal", False))
        self.logs = Logs(stream=self.sink, **settings)
        self.logs.register(SECRET)
        self.logs.install()

    def text(self) -> str:
        self.logs.close()
        return self.sink.getvalue()

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.text().splitlines()]


@pytest.fixture
def rig() -> Iterator[Rig]:
    made = Rig()
    yield made
    made.logs.close()


def test_a_call_is_one_line_with_only_what_is_known(rig: Rig) -> None:
    rig.logs.access(ACCESS)
    (line,) = rig.lines()
    stamp = line.pop("at")
    assert stamp.endswith("Z")
    assert line == {
        "level": "info",
        "logger": "gateway.access",
        "request": "req_1",
        "method": "POST",
        "route": "/v1/chat/completions",
        "status": 200,
        "ms": 1240.5,
        "project": "default",
        "key": "key_1",
        "alias": "smart",
        "deployment": "openai/gpt",
        "attempts": 1,
        "input_tokens": 120,
    }


def test_on_a_terminal_a_call_is_a_readable_line() -> None:
    rig = Rig(terminal=True)
    rig.logs.access(ACCESS)
    line = rig.text()
    assert "info    200 POST /v1/chat/completions 1240 ms smart -> openai/gpt request=req_1" in line
    assert line.count("\n") == 1


def test_no_text_can_forge_a_second_line() -> None:
    rig = Rig(terminal=True)
    logging.getLogger("gateway.x").warning("first\n12:00:00 info forged\x1b[2J")
    assert rig.text().count("\n") == 1
    assert "\x1b" not in rig.sink.getvalue()


def test_levels(rig: Rig) -> None:
    rig.logs.access(Access("r", "GET", "/healthz", 503, 1.0))
    logging.getLogger("gateway.flow").info("ours")
    logging.getLogger("gateway.flow").debug("too fine")
    logging.getLogger("aiosqlite").info("INSERT INTO responses VALUES ('a prompt')")
    logging.getLogger("uvicorn.access").critical("GET /v1/runs?token=abc")
    told = [(line["level"], line.get("message", line.get("route"))) for line in rig.lines()]
    assert told == [("warning", "/healthz"), ("info", "ours")]


def test_debug_is_for_our_own_loggers_only() -> None:
    rig = Rig(level="debug")
    logging.getLogger("adapters.transport").debug("ours")
    logging.getLogger("asyncio").debug("theirs")
    assert [line["message"] for line in rig.lines()] == ["ours"]


def test_a_quiet_level_keeps_good_calls_out() -> None:
    rig = Rig(level="warning")
    rig.logs.access(ACCESS)
    rig.logs.access(Access("r", "POST", "/v1/responses", 502, 1.0))
    assert [line["status"] for line in rig.lines()] == [502]


def canaries(logs: Logs) -> None:
    """The secret in every place that a line can have."""
    log = logging.getLogger("gateway.test")
    log.warning("in the message %s", SECRET)
    log.warning("as a field", extra={"provider_said": {"nested": [SECRET]}})
    log.warning(f"in a URL https://x/?key={quote(SECRET, safe='')}")
    log.warning("as JSON %s", json.dumps({"k": SECRET}))
    logs.access(Access("r", "POST", "/x", 401, 1.0, detail=f"Incorrect key {SECRET}"))
    for error in (Fault("upstream_auth", "x", detail=SECRET), OSError(SECRET)):
        try:
            raise error
        except (Fault, OSError):
            log.exception("failed")


@pytest.mark.parametrize("terminal", [True, False])
def test_a_registered_secret_is_in_no_line(terminal: bool) -> None:
    rig = Rig(terminal=terminal, content=True)
    canaries(rig.logs)
    text = rig.text()
    assert "CANARY" not in text
    assert text.count("***") >= 7


@pytest.mark.parametrize(
    "text",
    [
        "Authorization: Bearer abc.def-ghi",
        "authorization: bearer abc.def-ghi",
        "Incorrect API key provided: sk-proj-abcdefgh1234",
        "key sk-gw-Zm9vYmFyYmF6",
        "postgresql://user:hunter2@db/x",
    ],
)
def test_what_looks_like_a_key_goes_even_if_nobody_registered_it(text: str) -> None:
    scrubbed = Scrubber().scrub(text)
    assert "***" in scrubbed
    for secret in ("abc.def-ghi", "abcdefgh1234", "Zm9vYmFyYmF6", "hunter2"):
        assert secret not in scrubbed


def test_scrubbing_leaves_ordinary_text_alone_and_takes_the_longest_secret_whole() -> None:
    scrubber = Scrubber()
    for secret in ("demo", "secret1", "secret1-and-more"):
        scrubber.register(secret)
    assert scrubber.scrub("a demo of secret1-and-more, task-list") == "a demo of ***, task-list"


class Oddity:
    """A value that is no JSON and whose text is content."""

    def __repr__(self) -> str:
        return "the user's prompt"


def fail_with_content() -> None:
    json.loads('{"prompt": "the user\'s prompt"')


def test_exceptions_tell_their_type_and_place_but_not_what_they_quote(rig: Rig) -> None:
    log = logging.getLogger("gateway.test")
    try:
        raise ValueError("the user's prompt")
    except ValueError:
        log.exception("broke")
    try:
        fail_with_content()
    except ValueError as error:
        log.error("broke", exc_info=error)
    log.warning("odd", extra={"value": Oddity()})
    text = rig.text()
    assert "the user's prompt" not in text
    first, second, third = (json.loads(line) for line in text.splitlines())
    assert first["error"] == "ValueError"
    assert any("fail_with_content" in frame for frame in second["frames"])
    assert third["value"] == "<Oddity>"


def test_content_is_shown_only_where_the_operator_switched_it_on() -> None:
    rig = Rig(content=True)
    try:
        raise ValueError("the user's prompt")
    except ValueError:
        logging.getLogger("gateway.test").exception("broke")
    assert rig.lines()[0]["error_text"] == "the user's prompt"


def test_a_faults_detail_is_told_and_bounded(rig: Rig) -> None:
    rig.logs.access(Access("r", "POST", "/x", 502, 1.0, fault="upstream_server", detail="x" * 9999))
    assert len(rig.lines()[0]["detail"]) == LONGEST_TEXT + 1


async def test_an_exception_that_nobody_awaited_is_told_without_its_text(rig: Rig) -> None:
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(rig.logs.loop_error)

    async def lost() -> None:
        raise RuntimeError(f"the user's prompt and {SECRET}")

    task = asyncio.create_task(lost())
    await asyncio.wait([task])
    del task
    for _ in range(3):
        await asyncio.sleep(0)
    loop.set_exception_handler(None)
    (line,) = rig.lines()
    assert line["error"] == "RuntimeError"
    assert line["task"].endswith("lost")
    assert "prompt" not in json.dumps(line)


def test_warnings_are_lines_and_everything_is_given_back() -> None:
    root, access = logging.getLogger(), logging.getLogger("uvicorn.access")
    before = (list(root.handlers), root.level, access.disabled, warnings.showwarning)
    rig = Rig()
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(True)
        warnings.warn("old thing", DeprecationWarning, stacklevel=1)
    assert rig.lines()[0]["logger"] == "py.warnings"
    assert (list(root.handlers), root.level, access.disabled) == before[:3]


class Stuck(io.StringIO):
    """A pipe that nobody reads."""

    def __init__(self) -> None:
        super().__init__()
        self.free = threading.Event()

    def write(self, text: str) -> int:
        self.free.wait(5)
        return super().write(text)


def test_a_stuck_stream_drops_and_counts_but_never_blocks() -> None:
    stream, told = Stuck(), []
    writer = Writer(stream, bound=10, on_drop=lambda: told.append(1))
    started = time.monotonic()
    for n in range(1000):
        writer.write(f"line {n}")
    assert time.monotonic() - started < 4, "the stream is stuck for 5 s"
    assert writer.dropped == len(told) >= 900
    stream.free.set()
    writer.close()
    assert stream.getvalue().startswith("line 0\n")
    assert writer.depth() == 0


def test_a_closed_stream_ends_nothing() -> None:
    stream = io.StringIO()
    writer = Writer(stream)
    stream.close()
    writer.write("lost")
    writer.close()
    assert writer.dropped == 1


def test_time_is_utc_to_the_millisecond() -> None:
    assert json.loads(json_line(1.2346, "info", "x", {}))["at"] == "1970-01-01T00:00:01.234Z"


def test_a_line_is_cheap() -> None:
    rig = Rig()
    for n in range(20):
        rig.logs.register(f"another-secret-{n}")
    calls = 5_000
    spent = timeit(lambda: rig.logs.access(ACCESS), number=calls) / calls
    rig.logs.close()
    assert spent < 200e-6  # measured: 8 µs
