"""Python functions as tools: the schema from type hints and docstring, the call with checked
arguments.

``async`` functions run on the event loop, others in a thread. Must not know where a function
comes from; the registry finds it.
"""

from __future__ import annotations

import inspect
import json
import logging
from collections.abc import Callable, Mapping
from typing import Annotated, Any, NotRequired, TypeVar, get_type_hints

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.errors import PydanticSchemaGenerationError, PydanticUserError
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import PydanticSerializationError
from typing_extensions import TypedDict

from adapters.canonical.parts import Media, Text
from adapters.canonical.record import record
from gateway.tools.base import (
    NO_ARGUMENTS,
    OUTPUT_CAP,
    TIMEOUT,
    ToolContext,
    ToolOutcome,
    ToolSpec,
)
from gateway.tools.docstring import read
from gateway.tools.threads import Threads

log = logging.getLogger("gateway.tools")

F = TypeVar("F", bound=Callable[..., Any])

_DECLARED = "__gateway_tool__"
_ANYTHING: TypeAdapter[Any] = TypeAdapter(Any)
_TYPED_DICT: Any = TypedDict
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class ToolFailed(Exception):
    """Raise it in a tool to tell the model what went wrong: its text is shown, that of any other
    exception is not."""


class BadTool(Exception):
    """A function that can't be a tool; the text says why and what to change."""


@record(frozen=True, slots=True)
class Declared:
    """What a function's author says of it; the configuration may say otherwise."""

    description: str | None = None
    idempotent: bool = False
    read_only: bool = False
    timeout: float = TIMEOUT
    output_cap: int = OUTPUT_CAP


def tool(
    *,
    description: str | None = None,
    idempotent: bool = False,
    read_only: bool = False,
    timeout: float = TIMEOUT,
    output_cap: int = OUTPUT_CAP,
) -> Callable[[F], F]:
    """Mark a function as a tool and say how it behaves. Not needed for the defaults.

    :param description: what the model is told; left out, the docstring.
    :param idempotent: a second call with the same idempotency key has no second effect.
    :param read_only: it has no effect at all.
    :param timeout: seconds that one call may take.
    :param output_cap: characters of its result that the model is shown.
    """

    def mark(function: F) -> F:
        said = Declared(description, idempotent, read_only, timeout, output_cap)
        setattr(function, _DECLARED, said)
        return function

    return mark


def declared(function: Callable[..., Any]) -> Declared:
    """What :func:`tool` was told of ``function``."""
    said = getattr(function, _DECLARED, None)
    return said if isinstance(said, Declared) else Declared()


class PythonTool:
    """A function with its schema.

    :param said: how it behaves, as declared or configured.
    :raises BadTool: where no schema can be made of the function's signature.
    """

    __slots__ = ("_adapter", "_context", "_function", "_threads", "spec")

    def __init__(
        self, name: str, function: Callable[..., Any], said: Declared, threads: Threads
    ) -> None:
        doc = read(inspect.getdoc(function))
        hints, self._context = _hints(function)
        self._function = function
        self._threads = threads
        self._adapter = _adapter(function, hints, doc.parameters)
        self.spec = ToolSpec(
            name=name,
            description=doc.description if said.description is None else said.description,
            parameters=_schema(function, self._adapter) if hints else NO_ARGUMENTS,
            idempotent=said.idempotent,
            read_only=said.read_only,
            timeout=said.timeout,
            output_cap=said.output_cap,
        )

    async def call(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolOutcome:
        """Call the function with ``arguments`` made into the types of its hints."""
        try:
            checked = self._adapter.validate_json(json.dumps(dict(arguments)), strict=True)
        except ValidationError as error:
            return _failed(_explained(error))
        if self._context is not None:
            checked[self._context] = context
        try:
            return _outcome(await self._run(checked))
        except ToolFailed as failure:
            return _failed(str(failure))
        except Exception as error:  # strangers' code may raise anything
            log.warning("tool %s raised", self.spec.name, exc_info=True)
            return _failed(f"{self.spec.name} failed: {type(error).__name__}")

    async def _run(self, arguments: dict[str, Any]) -> Any:
        if inspect.iscoroutinefunction(self._function):
            return await self._function(**arguments)
        result = await self._threads.run(lambda: self._function(**arguments))
        return await result if inspect.isawaitable(result) else result


def _hints(function: Callable[..., Any]) -> tuple[dict[str, Any], str | None]:
    """The parameters that a model fills in, with their types, and the name of the one that takes
    the :class:`ToolContext`."""
    try:
        types = get_type_hints(function, include_extras=True)
        parameters = inspect.signature(function).parameters.values()
    except (NameError, TypeError, ValueError) as error:
        raise BadTool(f"its signature can't be read: {error}") from error
    hints: dict[str, Any] = {}
    context = None
    for parameter in parameters:
        if parameter.kind not in _NAMED:
            raise BadTool(f"its parameter {parameter.name!r} can't be passed by name")
        if parameter.name not in types:
            raise BadTool(f"its parameter {parameter.name!r} has no type hint")
        if types[parameter.name] is ToolContext:
            context = parameter.name
        else:
            hints[parameter.name] = types[parameter.name]
    return hints, context


def _adapter(
    function: Callable[..., Any], hints: Mapping[str, Any], words: Mapping[str, str]
) -> TypeAdapter[dict[str, Any]]:
    """Checks a call's arguments. What a call leaves out stays out: the function's own default
    applies, and none is made up here."""
    parameters = inspect.signature(function).parameters
    fields: dict[str, Any] = {}
    for name, hint in hints.items():
        hint = Annotated[hint, Field(description=words[name])] if name in words else hint
        required = parameters[name].default is inspect.Parameter.empty
        fields[name] = hint if required else NotRequired[hint]
    shape = _TYPED_DICT("Arguments", fields)
    shape.__pydantic_config__ = ConfigDict(extra="forbid")
    try:
        return TypeAdapter(shape)
    except (PydanticSchemaGenerationError, PydanticUserError) as error:
        raise BadTool(f"its type hints can't be checked: {error.message}") from error


class _Plain(GenerateJsonSchema):
    """Without the titles that only repeat a field's name."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def _schema(
    function: Callable[..., Any], adapter: TypeAdapter[dict[str, Any]]
) -> Mapping[str, Any]:
    try:
        schema = adapter.json_schema(schema_generator=_Plain)
    except PydanticUserError as error:
        raise BadTool(f"its type hints have no JSON Schema: {error.message}") from error
    schema.pop("title", None)
    for name, parameter in inspect.signature(function).parameters.items():
        default = parameter.default
        if name in schema["properties"] and isinstance(default, str | int | float | bool):
            schema["properties"][name].setdefault("default", default)
    return schema


def _explained(error: ValidationError) -> str:
    found = error.errors(include_url=False, include_input=False, include_context=False)
    lines = (
        f"{'.'.join(map(str, fault['loc'])) or 'arguments'}: {fault['msg']}" for fault in found
    )
    return "The arguments do not fit. " + "; ".join(lines)


def _outcome(value: Any) -> ToolOutcome:
    """What a function returned, as parts: text and media as they are, all else as JSON."""
    if isinstance(value, ToolOutcome):
        return value
    if isinstance(value, str):
        return ToolOutcome((Text(value),))
    if isinstance(value, Text | Media):
        return ToolOutcome((value,))
    if _all_parts(value):
        return ToolOutcome(tuple(value))
    try:
        text = _ANYTHING.dump_json(value).decode()
        return ToolOutcome((Text(text),), structured=_ANYTHING.dump_python(value, mode="json"))
    except (PydanticSerializationError, ValueError) as error:
        raise TypeError(f"returned a {type(value).__name__}, which is no JSON") from error


def _all_parts(value: Any) -> bool:
    some = isinstance(value, list | tuple) and len(value) > 0
    return some and all(isinstance(part, Text | Media) for part in value)


def _failed(text: str) -> ToolOutcome:
    return ToolOutcome((Text(text),), is_error=True)
