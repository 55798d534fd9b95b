"""Python functions as tools."""

from __future__ import annotations

import asyncio
import datetime as dt
import enum
import json
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import pytest
from pydantic import BaseModel

from adapters.canonical.parts import Inline, Media, Text
from gateway.tools.base import ToolContext, ToolOutcome
from gateway.tools.docstring import read
from gateway.tools.function import BadTool, Declared, PythonTool, ToolFailed, declared, tool
from gateway.tools.threads import Threads

CONTEXT = ToolContext("run-1:call-1", "run-1", "call-1", "default", deadline=0.0)


def made(function: Callable[..., Any], **said: Any) -> PythonTool:
    return PythonTool("made", function, Declared(**said), Threads(2))


async def answer(function: Callable[..., Any], **arguments: Any) -> ToolOutcome:
    return await made(function).call(arguments, CONTEXT)


def text(outcome: ToolOutcome) -> str:
    return "".join(part.text for part in outcome.content if isinstance(part, Text))


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Address(BaseModel):
    street: str
    number: int = 1


def order(
    item: str,
    colour: Colour,
    to: Address,
    on: dt.date | None = None,
    count: int = 2,
    size: Literal["s", "m"] = "m",
) -> dict[str, Any]:
    """Orders something.

    It takes a day,
    or two.

    :param item: what to order,
        by its name
    :param int count: how many
    :returns: the order
    """
    assert isinstance(colour, Colour)
    assert isinstance(to, Address)
    return {"item": item, "on": on, "count": count, "to": to}


def test_the_schema_comes_from_hints_and_docstring() -> None:
    spec = made(order).spec
    assert spec.description == "Orders something.\n\nIt takes a day, or two."
    assert spec.kind == "python"
    schema = json.loads(json.dumps(spec.parameters))
    assert schema["type"] == "object"
    assert schema["required"] == ["item", "colour", "to"]
    assert schema["additionalProperties"] is False
    properties = schema["properties"]
    assert properties["item"] == {"type": "string", "description": "what to order, by its name"}
    assert properties["count"] == {"type": "integer", "description": "how many", "default": 2}
    assert properties["size"]["enum"] == ["s", "m"]
    assert "default" not in properties["on"]
    assert schema["$defs"]["Colour"]["enum"] == ["red", "blue"]
    assert "title" not in schema


async def test_arguments_arrive_in_their_types_and_the_result_is_json() -> None:
    outcome = await answer(order, item="tea", colour="red", to={"street": "a"}, on="2027-01-31")
    expected = {"item": "tea", "on": "2027-01-31", "count": 2, "to": {"street": "a", "number": 1}}
    assert not outcome.is_error
    assert json.loads(text(outcome)) == expected
    assert outcome.structured == expected


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "item"),
        ({"item": 1, "colour": "red", "to": {"street": "a"}}, "item"),
        ({"item": "tea", "colour": "green", "to": {"street": "a"}}, "colour"),
        ({"item": "tea", "colour": "red", "to": {"street": "a"}, "count": "2"}, "count"),
        ({"item": "tea", "colour": "red", "to": {"street": "a"}, "count": True}, "count"),
        ({"item": "tea", "colour": "red", "to": {"street": "a"}, "extra": 1}, "extra"),
        ({"item": "tea", "colour": "red", "to": {}}, "to.street"),
    ],
)
async def test_arguments_that_do_not_fit_never_reach_the_function(
    arguments: dict[str, Any], said: str
) -> None:
    called = []

    def spy(item: str, colour: Colour, to: Address, count: int = 2) -> None:
        called.append(item)

    outcome = await answer(spy, **arguments)
    assert outcome.is_error
    assert said in text(outcome)
    assert not called


async def test_a_default_is_the_function_s_own() -> None:
    marker = object()

    def spy(x: int, y: Any = marker) -> bool:
        return y is marker

    assert text(await answer(spy, x=1)) == "true"


async def test_large_numbers_stay_whole() -> None:
    def double(n: int) -> int:
        return n * 2

    assert text(await answer(double, n=2**70)) == str(2**71)


async def test_the_context_is_handed_in_and_never_asked_of_the_model() -> None:
    async def key(x: int, context: ToolContext) -> str:
        return context.idempotency_key

    assert list(made(key).spec.parameters["properties"]) == ["x"]
    assert text(await answer(key, x=1)) == "run-1:call-1"


async def test_a_tool_without_parameters() -> None:
    def none() -> None:
        """Nothing."""

    assert made(none).spec.parameters["properties"] == {}
    assert text(await answer(none)) == "null"
    assert (await answer(none, x=1)).is_error


@dataclass
class Point:
    x: int


@pytest.mark.parametrize(
    ("value", "content"),
    [
        ("plain", (Text("plain"),)),
        ("", (Text(""),)),
        (Text("part"), (Text("part"),)),
        ([Text("a"), Media("image", Inline("image/png", "AA=="))],) * 2,
        ([], (Text("[]"),)),
        (Point(1), (Text('{"x":1}'),)),
        (1.5, (Text("1.5"),)),
        (ToolOutcome((Text("own"),), is_error=True), (Text("own"),)),
    ],
)
async def test_results_become_parts(value: Any, content: Any) -> None:
    async def give() -> Any:
        return value

    outcome = await answer(give)
    assert outcome.content == tuple(content)
    assert outcome.is_error is isinstance(value, ToolOutcome)


async def test_what_is_no_json_is_an_error() -> None:
    async def give() -> Any:
        return object()

    outcome = await answer(give)
    assert outcome.is_error
    assert "object at 0x" not in text(outcome)


async def test_only_a_failure_that_was_meant_for_the_model_is_shown(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def meant() -> None:
        raise ToolFailed("no customer 17")

    def accident() -> None:
        raise ValueError("password=hunter2")

    assert text(await answer(meant)) == "no customer 17"
    with caplog.at_level(logging.WARNING, "gateway.tools"):
        outcome = await answer(accident)
    assert outcome.is_error
    assert text(outcome) == "made failed: ValueError"
    assert "made raised" in caplog.text


async def test_a_blocking_function_leaves_the_loop_free_and_is_bounded() -> None:
    gate = threading.Event()
    inside: list[str] = []

    def block() -> str:
        inside.append(threading.current_thread().name)
        gate.wait(10)
        return "done"

    threads = Threads(2)
    blocking = PythonTool("block", block, Declared(), threads)
    calls = [asyncio.create_task(blocking.call({}, CONTEXT)) for _ in range(3)]
    while len(inside) < 2:
        await asyncio.sleep(0.005)
    await asyncio.sleep(0.05)
    assert (len(inside), threads.running) == (2, 2)
    gate.set()
    assert {text(outcome) for outcome in await asyncio.gather(*calls)} == {"done"}
    assert set(inside) == {"gateway-tool"}
    assert threads.running == 0


async def test_a_call_that_is_given_up_holds_its_place_until_the_thread_ends() -> None:
    gate = threading.Event()
    threads = Threads(1)
    first = asyncio.create_task(threads.run(lambda: gate.wait(10)))
    await asyncio.sleep(0.02)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    second = asyncio.create_task(threads.run(lambda: "second"))
    await asyncio.sleep(0.05)
    assert not second.done()
    gate.set()
    assert await second == "second"


async def test_a_hanging_thread_is_no_reason_to_stay_alive() -> None:
    flags: list[bool] = []
    await Threads(1).run(lambda: flags.append(threading.current_thread().daemon))
    assert flags == [True]


async def test_cancelling_an_async_tool_stops_it() -> None:
    stopped = asyncio.Event()

    async def forever() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            stopped.set()

    call = asyncio.create_task(answer(forever))
    await asyncio.sleep(0.02)
    began = time.monotonic()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert stopped.is_set()
    assert time.monotonic() - began < 5


def untyped(x) -> None: ...  # type: ignore[no-untyped-def]
def variadic(*xs: int) -> None: ...
def positional(x: int, /) -> None: ...
def unknown(x: Nowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821
def callback(x: Callable[[], int]) -> None: ...
def stranger(x: threading.Thread) -> None: ...


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (untyped, "'x' has no type hint"),
        (variadic, "'xs' can't be passed by name"),
        (positional, "'x' can't be passed by name"),
        (unknown, "Nowhere"),
        (callback, "no JSON Schema"),
        (stranger, "can't be checked"),
    ],
)
def test_a_function_that_can_be_no_tool_says_why(function: Callable[..., Any], said: str) -> None:
    with pytest.raises(BadTool, match=said):
        made(function)


def test_what_the_author_declared() -> None:
    @tool(description="Better words.", idempotent=True, timeout=5, output_cap=100)
    def marked(x: int) -> None:
        """Words."""

    said = declared(marked)
    spec = PythonTool("marked", marked, said, Threads(1)).spec
    assert (spec.description, spec.timeout, spec.output_cap) == ("Better words.", 5, 100)
    assert spec.idempotent
    assert not spec.read_only
    assert spec.repeatable
    assert declared(order) == Declared()


@pytest.mark.parametrize(
    ("docstring", "description", "parameters"),
    [
        (None, "", {}),
        ("One line.", "One line.", {}),
        ("D.\n\n:param a: x\n:param b: y\n:raises E: z", "D.", {"a": "x", "b": "y"}),
        ("D.\n\nArgs:\n    a: x\n        more\n    b (int): y\n\nReturns:\n    z",
         "D.", {"a": "x more", "b": "y"}),
        ("Call it: now.\n\nNote that: this is prose.", "Call it: now.\n\nNote that: this is prose.",
         {}),
    ],
)  # fmt: skip
def test_docstrings_are_read(
    docstring: str | None, description: str, parameters: dict[str, str]
) -> None:
    doc = read(docstring)
    assert (doc.description, doc.parameters) == (description, parameters)
