"""The time and the calculator."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.canonical.parts import Text
from gateway.tools.base import ToolContext, ToolOutcome
from gateway.tools.builtin import builtins
from gateway.tools.calculator import NoResult, evaluate

CONTEXT = ToolContext("r:c", "r", "c", "default", deadline=0.0)


class Noon:
    """A clock that stands at 2027-01-31 12:00 UTC."""

    def wall(self) -> float:
        return 1801396800.9

    def monotonic(self) -> float:
        return 0.0

    def new_id(self, prefix: str) -> str:
        return prefix


async def call(name: str, **arguments: Any) -> ToolOutcome:
    tools = {tool.spec.name: tool for tool in builtins(Noon())}
    return await tools[name].call(arguments, CONTEXT)


def text(outcome: ToolOutcome) -> str:
    (part,) = outcome.content
    assert isinstance(part, Text)
    return part.text


def test_both_are_on_and_change_nothing() -> None:
    specs = [tool.spec for tool in builtins(Noon())]
    assert [spec.name for spec in specs] == ["time", "calculator"]
    assert all(spec.read_only and spec.kind == "builtin" for spec in specs)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({}, "Sunday, 2027-01-31T12:00:00+00:00 (UTC)"),
        ({"timezone": "Europe/Berlin"}, "Sunday, 2027-01-31T13:00:00+01:00 (Europe/Berlin)"),
        ({"timezone": "Asia/Kolkata"}, "Sunday, 2027-01-31T17:30:00+05:30 (Asia/Kolkata)"),
    ],
)
async def test_the_time(arguments: dict[str, Any], expected: str) -> None:
    outcome = await call("time", **arguments)
    assert text(outcome) == expected
    assert outcome.structured["unix"] == 1801396800


@pytest.mark.parametrize(
    "name", ["", "Nowhere/Land", "/etc/passwd", "../../etc/passwd", "Europe", "x\0"]
)
async def test_no_such_zone(name: str) -> None:
    outcome = await call("time", timezone=name)
    assert outcome.is_error
    assert "Europe/Berlin" in text(outcome)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("0.1 + 0.2", "0.3"),
        ("(17.5 * 3 - 2) / 4", "12.625"),
        ("2 ** 64", "18446744073709551616"),
        ("2 ** -1", "0.5"),
        ("10 / 5", "2"),
        ("10 / 4", "2.5"),
        ("-7 // 2", "-4"),
        ("-7 % 3", "2"),
        ("-7.5 % 2", "0.5"),
        ("1_000 + 0x10", "1016"),
        ("12345678901234567890.123456789 + 0", "12345678901234567890.123456789"),
        ("sqrt(16) + sqrt(2)", "5.414213562373095048801688724209698"),
        ("round(1.005, 2) + round(2.5)", "4.01"),
        ("round(1234, -2)", "1200"),
        ("log(100, 10) + log10(1000)", "5"),
        ("max(1, 2.5) - min(3, 4)", "-0.5"),
        ("sin(0) + cos(0) + tan(0)", "1"),
        ("floor(-1.5) + ceil(1.2) + abs(-3)", "3"),
        ("factorial(20)", "2432902008176640000"),
        ("0.000000000000000000000000001", "1e-27"),
        (" 1 ", "1"),
    ],
)
async def test_the_calculator(expression: str, expected: str) -> None:
    outcome = await call("calculator", expression=expression)
    assert not outcome.is_error
    assert text(outcome) == expected


@pytest.mark.parametrize(
    "expression",
    [
        "", "1 +", "x", "1 < 2", "True", "'a' * 3", "[1]", "1j", "lambda: 1", "().__class__",
        "__import__('os')", "abs.__self__", "max(*[1])", "max(x=1)", "pow(2, 3)", "max()",
        "1 / 0", "1 % 0", "1.5 // 0", "sqrt(-1)", "log(0)", "(-8) ** (1/3)",
        "9 ** 9 ** 9", "2.5 ** 1000000", "10 ** 5000", "1e9999", "exp(1e9)", "sin(10 ** 400)",
        "factorial(801)", "factorial(800) * factorial(800)", "factorial(2.5)", "round(1, 99)",
        "ceil(1e5999)", "1" * 1001, "(" * 400 + "1" + ")" * 400,
    ],
)  # fmt: skip
async def test_what_has_no_result_says_so_at_once(expression: str) -> None:
    began = time.monotonic()
    outcome = await call("calculator", expression=expression)
    assert outcome.is_error
    assert text(outcome).endswith(".")
    assert time.monotonic() - began < 2


@given(st.text(alphabet="0123456789.+-*/%() e_,sqrtlogexpfactorial", max_size=60))
def test_nothing_but_a_number_or_a_reason_comes_out(expression: str) -> None:
    try:
        result = evaluate(expression)
    except NoResult:
        return
    float(result)


@given(st.integers(), st.integers(), st.sampled_from(["+", "-", "*"]))
def test_whole_numbers_are_exact(left: int, right: int, sign: str) -> None:
    assert evaluate(f"({left}) {sign} ({right})") == str(eval(f"({left}) {sign} ({right})"))
