"""Templates in a sandbox: values go in, text comes out, and nothing else can happen.

A closed language: the nodes, filters and tests that are named here exist, all others are refused
when the template is read. There is no attribute (``a.b`` reads the key ``b`` of a JSON object),
no call, no import, no macro. Values are data: what stands in one is never looked at as a
template. Size and time are capped while the text is made, loops at every turn.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from jinja2 import StrictUndefined, TemplateError, Undefined, nodes, pass_context
from jinja2.exceptions import SecurityError
from jinja2.filters import FILTERS
from jinja2.meta import find_undeclared_variables
from jinja2.runtime import Context, LoopContext
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.tests import TESTS

from adapters.wire.json import dumps
from gateway.policy.prompts.rendering import Limits, RenderingFailed, TemplateRefused, Wrap

NODES: tuple[type[nodes.Node], ...] = (
    *(nodes.Template, nodes.Output, nodes.TemplateData, nodes.If, nodes.For, nodes.With),
    *(nodes.Assign, nodes.Name, nodes.Const, nodes.Tuple, nodes.List, nodes.Dict, nodes.Pair),
    *(nodes.Keyword, nodes.Getattr, nodes.Getitem, nodes.Slice, nodes.CondExpr, nodes.Compare),
    *(nodes.Operand, nodes.And, nodes.Or, nodes.Not, nodes.Filter, nodes.Test, nodes.Add),
    *(nodes.Sub, nodes.Mul, nodes.Div, nodes.FloorDiv, nodes.Mod, nodes.Pos, nodes.Neg),
)
"""All that a template may be made of."""
_FILTERS = (
    *("abs", "capitalize", "count", "d", "default", "dictsort", "first", "float", "int", "items"),
    *("last", "length", "list", "lower", "map", "max", "min", "reject", "rejectattr", "reverse"),
    *("round", "select", "selectattr", "sort", "string", "sum", "title", "trim", "unique"),
    *("upper",),
)
_TESTS = (
    *("boolean", "defined", "divisibleby", "eq", "even", "false", "float", "ge", "gt", "in"),
    *("integer", "iterable", "le", "lower", "lt", "mapping", "ne", "none", "number", "odd"),
    *("sequence", "string", "true", "undefined", "upper", "==", "!=", "<", "<=", ">", ">="),
)
MAX_TOKENS = 8_000
"""Tokens between the brackets of one template: more would take over half a second to read."""
MAX_NESTED = 16
"""Blocks (``for``, ``if``, ``with``) one within the other."""
MAX_BITS = 4_096
"""Bits of a number that a multiplication may make."""
_BLOCKS = (nodes.For, nodes.If, nodes.With)
_LOOP = frozenset({"index", "index0", "revindex", "revindex0", "first", "last", "length", "depth"})
_LIMITS, _FENCE = "_limits", "_fence"
"""Names in a template's context that no variable can have."""


class Template:
    """A template that has been read and proved. ``variables`` are the names that it needs;
    ``loops`` says whether rendering it may take long.

    :raises TemplateRefused: for what is no template of this language.
    """

    __slots__ = ("_compiled", "loops", "source", "variables")

    def __init__(self, source: str) -> None:
        self.source = source
        try:
            _check_length(source)
            tree = _ENVIRONMENT.parse(source)
            _check(tree)
            self.variables = frozenset(find_undeclared_variables(tree))
            self.loops = _count_turns(tree)
            code = _ENVIRONMENT.compile(tree)
        except TemplateError as error:
            line = getattr(error, "lineno", None)
            raise TemplateRefused(error.message or type(error).__name__, line) from error
        except RecursionError as error:
            raise TemplateRefused("it is nested too deeply") from error
        self._compiled = _ENVIRONMENT.template_class.from_code(_ENVIRONMENT, code, {})

    def render(self, values: Mapping[str, Any], limits: Limits, wrap: Wrap | None = None) -> str:
        """The text for ``values``.

        :param wrap: applied to each text that a value adds.
        :raises RenderingFailed: for values that it can't be made of, or that cost too much.
        """
        pieces: list[str] = []
        length = 0
        limits.turn()
        try:
            for piece in self._compiled.generate({**values, _LIMITS: limits, _FENCE: wrap}):
                pieces.append(piece)
                length += len(piece.encode("utf-8", "replace"))
                limits.size(length)
                limits.turn()
        except RenderingFailed:
            raise
        except (TemplateError, ArithmeticError, LookupError, TypeError, ValueError) as error:
            raise RenderingFailed(str(error)[:200]) from error
        except RecursionError as error:
            raise RenderingFailed("a value is nested too deeply") from error
        return "".join(pieces)


# ------------------------------------------------------------------ the sandbox


class _Sandbox(ImmutableSandboxedEnvironment):
    """Reads keys and places of JSON values, and nothing of Python's objects."""

    intercepted_binops = frozenset({"+", "*", "%"})

    def getattr(self, obj: Any, attribute: str) -> Any:
        if isinstance(obj, Mapping) and attribute in obj:
            return obj[attribute]
        if isinstance(obj, LoopContext) and attribute in _LOOP:
            return getattr(obj, attribute)
        return self.undefined(obj=obj, name=attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        if isinstance(obj, Mapping | list | tuple | str):
            try:
                return obj[argument]
            except (LookupError, TypeError):
                pass  # told below, as Jinja tells it
        return self.undefined(obj=obj, name=argument)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        numbers = isinstance(left, int | float) and isinstance(right, int | float)
        if not numbers and operator != "+":
            raise SecurityError(f"{operator} works on numbers only")
        if not numbers:
            _limits(context).size(len(left) + len(right))
        elif _bits(left) + _bits(right) > MAX_BITS:
            raise SecurityError("a number becomes too large")
        return self.binop_table[operator](left, right)


def _bits(number: float) -> int:
    return number.bit_length() if isinstance(number, int) else 0


def _limits(context: Context) -> Limits:
    found = context.get(_LIMITS)
    return found if isinstance(found, Limits) else Limits()


@pass_context
def _finalize(context: Context, value: Any) -> Any:
    """What an expression adds to the text: arrays and objects as JSON, and texts marked as data
    where that is wanted."""
    if isinstance(value, Mapping | list | tuple):
        value = _to_json(value)
    elif not isinstance(value, str | int | float | None | Undefined):
        raise SecurityError("an expression gives no value; put |list or |join behind it")
    wrap = context.get(_FENCE)
    return wrap(value) if wrap is not None and isinstance(value, str) else value


@pass_context
def _turns(context: Context, values: Iterable[Any]) -> Iterator[Any]:
    """``values``, each turn of the loop counted."""
    limits = _limits(context)
    for value in values:
        limits.turn()
        yield value


@pass_context
def _join(context: Context, values: Iterable[Any], between: str = "") -> str:
    texts = [str(value) for value in values]
    _limits(context).size(sum(map(len, texts)) + len(between) * len(texts))
    return between.join(texts)


@pass_context
def _replace(context: Context, text: Any, old: str, new: str) -> str:
    text = str(text)
    _limits(context).size(len(text) + max(0, len(new) - len(old)) * text.count(old))
    changed: str = text.replace(old, new)
    return changed


def _truncate(text: str, length: int = 255, end: str = "...") -> str:
    return text if len(text) <= length else text[: max(0, length - len(end))] + end


def _to_json(value: Any) -> str:
    return dumps(value).decode()


_TURNS = "turns of a loop"
"""A filter's name that no template can write."""
_ENVIRONMENT = _Sandbox(
    undefined=StrictUndefined,
    finalize=_finalize,
    trim_blocks=True,
    lstrip_blocks=True,
    autoescape=False,
    cache_size=0,
)
_ENVIRONMENT.globals.clear()
_ENVIRONMENT.filters = {name: FILTERS[name] for name in _FILTERS} | {
    "join": _join,
    "replace": _replace,
    "tojson": _to_json,
    "truncate": _truncate,
    _TURNS: _turns,
}
_ENVIRONMENT.tests = {name: TESTS[name] for name in _TESTS}


def _check_length(source: str) -> None:
    """:raises TemplateRefused: for more tokens than are read in good time."""
    tokens = (kind for _, kind, _ in _ENVIRONMENT.lex(source) if kind != "data")
    if next(islice(tokens, MAX_TOKENS, None), None) is not None:
        raise TemplateRefused(f"it has more than {MAX_TOKENS} tokens between its brackets")


def _check(tree: nodes.Template) -> None:
    """:raises TemplateRefused: for a node that is not of the language, or nested too deeply."""
    waiting: list[tuple[nodes.Node, int]] = [(tree, 0)]
    while waiting:
        node, depth = waiting.pop()
        if depth > MAX_NESTED:
            raise TemplateRefused("blocks are nested too deeply", node.lineno)
        if not isinstance(node, NODES):
            raise TemplateRefused(f"{_words(node)} can't be used here", node.lineno)
        if isinstance(node, nodes.Name | nodes.Getattr):
            name = node.name if isinstance(node, nodes.Name) else node.attr
            if name.startswith("_") or name == "self":
                raise TemplateRefused(f"the name {name!r} can't be used here", node.lineno)
        inside = depth + isinstance(node, _BLOCKS)
        waiting += ((child, inside) for child in node.iter_child_nodes())


_NODE_WORDS = {"Call": "a call", "Concat": "~", "Pow": "**", "Macro": "a macro"}


def _words(node: nodes.Node) -> str:
    name = type(node).__name__
    return _NODE_WORDS.get(name, name.lower())


def _count_turns(tree: nodes.Template) -> bool:
    """Let every loop of ``tree`` count its turns; whether there is one."""
    loops = list(tree.find_all(nodes.For))
    for loop in loops:
        counted = nodes.Filter(loop.iter, _TURNS, [], [], None, None, lineno=loop.lineno)
        loop.iter = counted
    return bool(loops)
