"""What a tool is, and how it is called: the words that agents and tools share.

A tool never raises for what goes wrong in its own work: it says so in a :class:`ToolOutcome`.
Whoever calls it keeps time, caps its output and writes down intent and result. Must not know
runs beyond their ids, nor which model asked.
"""

from __future__ import annotations

import asyncio
import difflib
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, Literal, Protocol

from adapters.canonical.faults import Fault
from adapters.canonical.parts import NO_EXTRAS, Media, Text
from adapters.canonical.record import record
from adapters.canonical.request import FunctionTool

Kind = Literal["python", "http", "builtin", "mcp", "agent", "workflow", "client"]
"""Where a tool's work is done. ``agent`` and ``workflow`` are child runs, ``client`` is the
caller's own program: the registry knows none of these three, runs perform them themselves."""

Policy = Literal["allow", "approve", "deny"]

NO_ARGUMENTS: Mapping[str, Any] = {
    "type": "object",
    "properties": {},
    "additionalProperties": False,
}
"""The parameters of a tool that takes none."""

TIMEOUT = 30.0
OUTPUT_CAP = 50_000


@record(frozen=True, slots=True)
class ToolSpec:
    """What is known of a tool before it is called; safe to write down and to show.

    ``parameters`` is the JSON Schema of its arguments, always of an object. ``idempotent``: a
    second call with the same idempotency key has no second effect; ``read_only``: it has no
    effect at all. Either lets a call that a crash cut off be made again. ``timeout`` is in
    seconds, ``output_cap`` in characters of text. ``policy`` is what its own configuration says;
    an agent's word is stronger, a key's ban strongest. ``changed``: it says something else of
    itself than what was pinned, so that ``allow`` counts as ``approve``, whoever said it.
    """

    name: str
    description: str = ""
    parameters: Mapping[str, Any] = field(default_factory=lambda: NO_ARGUMENTS)
    kind: Kind = "python"
    idempotent: bool = False
    read_only: bool = False
    timeout: float = TIMEOUT
    output_cap: int = OUTPUT_CAP
    policy: Policy | None = None
    changed: bool = False

    @property
    def repeatable(self) -> bool:
        """Whether a call of unknown end may be made again."""
        return self.idempotent or self.read_only

    @property
    def schema_hash(self) -> str:
        """Stands for what the tool says of itself; an approval is given to this and no other."""
        said = [self.name, self.description, self.parameters]
        text = json.dumps(said, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()

    def offered(self) -> FunctionTool:
        """The tool as a model is told of it."""
        return FunctionTool(self.name, self.description or None, self.parameters)


def _unheard(message: str, done: float | None) -> None:
    """Progress that nobody follows."""


@record(frozen=True, slots=True)
class ToolContext:
    """One call's surroundings.

    ``idempotency_key`` is ``run_id:call_id``, the same however often the call is made; a tool
    with an effect hands it on to whatever does the work. ``deadline`` is on the event loop's
    clock (``loop.time()``): the caller cancels then. ``progress`` tells of work under way: a short
    text, and how much is done from 0 to 1 where that is known; it never waits.
    """

    idempotency_key: str
    run_id: str
    call_id: str
    project: str
    deadline: float
    progress: Callable[[str, float | None], None] = _unheard


@record(frozen=True, slots=True)
class ToolOutcome:
    """What came of a call. The content is data for the model, never an instruction to us.

    ``structured`` is the result as JSON where the tool has one (MCP's structured content), for
    programs; the model reads ``content``. ``retryable``: the tool was not reached, nothing was
    done, and the same call may be made again.
    """

    content: tuple[Text | Media, ...]
    is_error: bool = False
    structured: Any = None
    retryable: bool = False
    extras: Mapping[str, Any] = NO_EXTRAS


class Tool(Protocol):
    """Something that can be called."""

    @property
    def spec(self) -> ToolSpec:
        """What it is now; an MCP server's tools may change while the gateway runs."""
        ...

    async def call(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolOutcome:
        """Do it. ``arguments`` have passed the schema. Cancellation stops the work and is
        raised again; any other exception is taken for an error result without its text."""
        ...


class Source(Protocol):
    """Something that brings tools which come and go while the gateway runs: an MCP server.

    All its tools' names begin with ``prefix``, and no other's do.
    """

    @property
    def prefix(self) -> str:
        """What its tools' names begin with."""
        ...

    def tools(self) -> Mapping[str, Tool]:
        """Its tools by name, as far as they are known now."""
        ...

    async def ready(self) -> None:
        """Wait until its tools are known, or it is clear that it can't be reached now."""
        ...


def matches(pattern: str, name: str) -> bool:
    """Whether a word of a list of tools means ``name``: the name itself, or its beginning and a
    final ``*``."""
    if pattern.endswith("*"):
        return name.startswith(pattern[:-1])
    return pattern == name


class Registry:
    """The tools that agents may be given, by name. One for the life of the gateway: a reload
    replaces what it holds.

    :param tools: in the order in which they are listed.
    :param sources: the tools of each stand behind those, in this order.
    """

    __slots__ = ("_sources", "_tools")

    def __init__(self, tools: Sequence[Tool] = (), sources: Sequence[Source] = ()) -> None:
        self.replace(tools, sources)

    def replace(self, tools: Sequence[Tool], sources: Sequence[Source] = ()) -> None:
        """Hold these from now on."""
        self._tools = {tool.spec.name: tool for tool in tools}
        self._sources = tuple(sources)

    def get(self, name: str) -> Tool | None:
        """The tool of this name, or ``None``."""
        found = self._tools.get(name)
        if found is not None:
            return found
        return next((s.tools().get(name) for s in self._sources if name.startswith(s.prefix)), None)

    def promised(self, name: str) -> bool:
        """Whether ``name`` is one of a source's, which may bring it sooner or later."""
        return any(name.startswith(source.prefix) for source in self._sources)

    def awaited(self, name: str) -> bool:
        """Whether ``name`` is one of a source's that has not been reached so far."""
        meant = [source for source in self._sources if name.startswith(source.prefix)]
        return bool(meant) and not any(source.tools() for source in meant)

    def names(self) -> list[str]:
        """All names."""
        return [*self._tools, *(name for source in self._sources for name in source.tools())]

    async def ready(self, names: Sequence[str]) -> None:
        """Wait until the tools meant by ``names`` are known as far as they can be: ask before
        :meth:`specs`. Servers that can't be reached are not waited for beyond that."""
        meant = [s for s in self._sources if any(n.startswith(s.prefix) for n in names)]
        await asyncio.gather(*(source.ready() for source in meant))

    def specs(self, names: Sequence[str]) -> list[ToolSpec]:
        """The specs of ``names``, in that order; ``files__*`` stands for all that begin so.

        :raises Fault: ``bad_request`` for an unknown name, with the nearest known one.
        """
        found: dict[str, ToolSpec] = {}
        for name in names:
            meant = [n for n in self.names() if matches(name, n)] if name.endswith("*") else [name]
            for each in meant:
                found.setdefault(each, self._known(each).spec)
        return list(found.values())

    def _known(self, name: str) -> Tool:
        tool = self.get(name)
        if tool is not None:
            return tool
        near = difflib.get_close_matches(name[:200], self.names(), n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise Fault("bad_request", f"There is no tool {name[:200]!r} here.{hint}", param="tools")
