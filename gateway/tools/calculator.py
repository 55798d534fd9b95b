"""Arithmetic on text that a model wrote: no names but the listed ones, no size without a bound.

Whole numbers are exact; all others are decimal with 34 digits, so that 0.1 + 0.2 is 0.3. The
expression is parsed by Python's own grammar and walked by a table: what is not in a table is
refused. Must not evaluate, import or look up anything else.
"""

from __future__ import annotations

import ast
import decimal
import math
import operator
from collections.abc import Callable, Mapping
from decimal import Decimal

Number = int | Decimal

MOST_CHARACTERS = 1000
MOST_BITS = 8192
"""Of a whole number; about 2,466 digits."""
MOST_EXPONENT = 6000

_CONTEXT = decimal.Context(
    prec=34,
    Emin=-MOST_EXPONENT,
    Emax=MOST_EXPONENT,
    rounding=decimal.ROUND_HALF_EVEN,
    traps=[decimal.InvalidOperation, decimal.DivisionByZero, decimal.Overflow],
)


class NoResult(Exception):
    """The expression has no result here; the text says why."""


def evaluate(expression: str) -> str:
    """The value of ``expression`` as text.

    :raises NoResult: for what is no arithmetic, has no value, or is too large.
    """
    if len(expression) > MOST_CHARACTERS:
        raise NoResult(f"The expression has more than {MOST_CHARACTERS} characters.")
    try:
        source = expression.strip()
        tree = ast.parse(source, mode="eval")
        with decimal.localcontext(_CONTEXT):
            return _written(_value(tree.body, source))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise NoResult("This is no arithmetic expression.") from error
    except ZeroDivisionError as error:
        raise NoResult("Division by zero.") from error
    except (decimal.Overflow, OverflowError) as error:
        raise NoResult("The result is too large.") from error
    except decimal.InvalidOperation as error:
        raise NoResult("The result is not a real number.") from error


def _value(node: ast.expr, source: str) -> Number:
    if isinstance(node, ast.Constant):
        return _constant(node, source)
    if isinstance(node, ast.Name) and node.id in CONSTANTS:
        return CONSTANTS[node.id]
    if isinstance(node, ast.UnaryOp) and type(node.op) in UNARY:
        return UNARY[type(node.op)](_value(node.operand, source))
    if isinstance(node, ast.BinOp) and type(node.op) in BINARY:
        left, right = _value(node.left, source), _value(node.right, source)
        return _bounded(BINARY[type(node.op)](left, right))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        arguments = [_value(argument, source) for argument in node.args]
        return _bounded(_called(node.func.id, arguments))
    raise NoResult(
        f"Only numbers, + - * / // % **, parentheses, {', '.join(CONSTANTS)} and the functions "
        f"{', '.join(FUNCTIONS)} can be used."
    )


def _constant(node: ast.Constant, source: str) -> Number:
    """A number as it was written: Python's float would lose digits beyond the 17th."""
    if isinstance(node.value, bool) or not isinstance(node.value, int | float):
        raise NoResult("Only numbers can be used.")
    if isinstance(node.value, int):
        return _bounded(node.value)
    return _bounded(Decimal(ast.get_source_segment(source, node) or ""))


def _bounded(number: Number) -> Number:
    if isinstance(number, int) and number.bit_length() > MOST_BITS:
        raise NoResult("The result is too large.")
    if isinstance(number, Decimal) and not number.is_finite():
        raise NoResult("The result is too large.")
    return number


def _called(name: str, arguments: list[Number]) -> Number:
    if name not in FUNCTIONS:
        raise NoResult(f"There is no function {name!r}; there are {', '.join(FUNCTIONS)}.")
    least, most, function = FUNCTIONS[name]
    if not least <= len(arguments) <= most:
        raise NoResult(f"{name} takes {least if least == most else f'{least} or more'} numbers.")
    return function(*arguments)


def _divided(left: Number, right: Number) -> Number:
    if isinstance(left, int) and isinstance(right, int) and right != 0 and left % right == 0:
        return left // right
    return Decimal(left) / Decimal(right)


def _power(base: Number, exponent: Number) -> Number:
    if isinstance(base, int) and isinstance(exponent, int) and exponent >= 0:
        if base.bit_length() * exponent > MOST_BITS and abs(base) > 1:
            raise NoResult("The result is too large.")
        return int(base**exponent)
    return Decimal(base) ** Decimal(exponent)


def _root(number: Number) -> Number:
    if isinstance(number, int) and number >= 0 and math.isqrt(number) ** 2 == number:
        return math.isqrt(number)
    return Decimal(number).sqrt()


def _rounded(number: Number, digits: Number = 0) -> Number:
    if not isinstance(digits, int) or abs(digits) > 30:
        raise NoResult("round takes a whole number of digits, at most 30.")
    unit = Decimal(1).scaleb(-digits)
    result = (Decimal(number) / unit).to_integral_value(decimal.ROUND_HALF_UP) * unit
    return int(result) if digits <= 0 else result


def _factorial(number: Number) -> Number:
    if not isinstance(number, int) or not 0 <= number <= 800:
        raise NoResult("factorial takes a whole number from 0 to 800.")
    return math.factorial(number)


def _logarithm(number: Number, base: Number | None = None) -> Number:
    natural = Decimal(number).ln()
    return natural if base is None else natural / Decimal(base).ln()


def _float(function: Callable[[float], float]) -> Callable[..., Number]:
    """A function of the standard library, to the 17 digits that it knows."""
    return lambda number: Decimal(repr(function(float(number))))


def _mixed(
    whole: Callable[[int, int], int], broken: Callable[..., Decimal]
) -> Callable[..., Number]:
    """One operator: exact between whole numbers, decimal otherwise."""

    def apply(left: Number, right: Number) -> Number:
        if isinstance(left, int) and isinstance(right, int):
            return whole(left, right)
        return broken(Decimal(left), Decimal(right))

    return apply


def _floored(left: Decimal, right: Decimal) -> Decimal:
    return (left / right).to_integral_value(decimal.ROUND_FLOOR)


CONSTANTS: Mapping[str, Number] = {
    "pi": Decimal("3.141592653589793238462643383279503"),
    "e": Decimal("2.718281828459045235360287471352662"),
}
UNARY: Mapping[type[ast.unaryop], Callable[[Number], Number]] = {
    ast.UAdd: lambda number: +number,
    ast.USub: lambda number: -number,
}
BINARY: Mapping[type[ast.operator], Callable[[Number, Number], Number]] = {
    ast.Add: _mixed(operator.add, operator.add),
    ast.Sub: _mixed(operator.sub, operator.sub),
    ast.Mult: _mixed(operator.mul, operator.mul),
    ast.Div: _divided,
    ast.FloorDiv: _mixed(operator.floordiv, _floored),
    ast.Mod: _mixed(operator.mod, lambda left, right: left - right * _floored(left, right)),
    ast.Pow: _power,
}
FUNCTIONS: Mapping[str, tuple[int, int, Callable[..., Number]]] = {
    "abs": (1, 1, abs),
    "ceil": (1, 1, math.ceil),
    "cos": (1, 1, _float(math.cos)),
    "exp": (1, 1, lambda number: Decimal(number).exp()),
    "factorial": (1, 1, _factorial),
    "floor": (1, 1, math.floor),
    "log": (1, 2, _logarithm),
    "log10": (1, 1, lambda number: Decimal(number).log10()),
    "max": (1, 100, max),
    "min": (1, 100, min),
    "round": (1, 2, _rounded),
    "sin": (1, 1, _float(math.sin)),
    "sqrt": (1, 1, _root),
    "tan": (1, 1, _float(math.tan)),
}
"""Name to the least and the most arguments, and what is done with them."""


def _written(number: Number) -> str:
    if isinstance(number, int):
        return str(number)
    number = number.normalize()
    plain = -20 <= number.adjusted() <= 33
    return f"{number:f}" if plain else f"{number:e}"
