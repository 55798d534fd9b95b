"""An operator's HTTP endpoint as a tool: its request is a template, its answer text or JSON.

Must not know settings; the registry reads them.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import logging
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import httpx

from adapters.canonical.parts import Text
from adapters.canonical.record import record
from gateway.tools.base import ToolContext, ToolOutcome, ToolSpec
from gateway.tools.caps import capped_outcome
from gateway.tools.guard import UNREACHABLE, Refused
from gateway.tools.http.door import Broken, Door, Reply, Unreachable
from gateway.tools.http.template import (
    BadArgument,
    BodyTemplate,
    Pieces,
    UrlTemplate,
    fill_header,
    holes,
)

log = logging.getLogger("gateway.tools")

IDEMPOTENCY_KEY = "Idempotency-Key"
LONGEST_KEY = 255
BASE_HEADERS = {
    "User-Agent": "llm-gateway",
    "Accept": "application/json, text/*;q=0.9, */*;q=0.1",
    "Accept-Encoding": "identity",
}
NO_ANSWER = "The endpoint did not answer in full. Whether the call had an effect is not known."


@record(frozen=True, slots=True)
class RequestTemplate:
    """A request with holes. ``body`` is ``None`` where none is sent."""

    method: str
    url: UrlTemplate
    headers: Mapping[str, Pieces]
    body: BodyTemplate | None = None

    @property
    def names(self) -> set[str]:
        """The arguments that go anywhere."""
        found = self.url.names.union(*map(holes, self.headers.values()))
        return found if self.body is None else found | self.body.names

    def fill(self, arguments: Mapping[str, Any], key: str) -> httpx.Request:
        """The request of one call, with its idempotency key.

        :raises BadArgument: where an argument does not go where it belongs.
        """
        own = {name: fill_header(parts, arguments) for name, parts in self.headers.items()}
        headers = httpx.Headers({**BASE_HEADERS, IDEMPOTENCY_KEY: _sendable(key)})
        content = None
        if self.body is not None:
            content = _json(self.body.fill(arguments))
            headers["Content-Type"] = "application/json"
        headers.update({name: value for name, value in own.items() if value is not None})
        return httpx.Request(
            self.method, self.url.fill(arguments), headers=headers, content=content
        )


def _sendable(key: str) -> str:
    """The key, or what stands for one that no header takes: a provider may call its calls anything,
    and endpoints take 255 characters."""
    if key.isascii() and key.isprintable() and len(key) <= LONGEST_KEY:
        return key
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


class HttpTool:
    """Calls one endpoint."""

    __slots__ = ("_door", "_template", "spec")

    def __init__(self, spec: ToolSpec, template: RequestTemplate, door: Door) -> None:
        self.spec = spec
        self._template = template
        self._door = door

    async def call(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolOutcome:
        """Send the request; a status of 400 or more is an error result with the answer's text."""
        try:
            request = self._template.fill(arguments, context.idempotency_key)
        except BadArgument as error:
            return failed(str(error))
        return await answered(self._door, request, self.spec)


async def answered(door: Door, request: httpx.Request, spec: ToolSpec) -> ToolOutcome:
    """Send ``request`` and make its answer, or what went wrong, into an outcome.

    A refused address, one that takes no connection and a redirect read alike (case X04).
    """
    try:
        # Four bytes a character at most, and some over so that a cut shows as one.
        most = 4 * spec.output_cap + 4096
        reply = await door.send(request, silence=spec.timeout, most=most)
    except Refused as refusal:
        log.warning("tool %s: refused: %s", spec.name, refusal)
        return failed(UNREACHABLE)
    except Unreachable as error:
        log.warning("tool %s: not reached: %s", spec.name, error)
        return failed(UNREACHABLE, retryable=True)
    except Broken as error:
        log.warning("tool %s: no whole answer: %s", spec.name, error)
        return failed(NO_ANSWER)
    if 300 <= reply.status < 400:
        log.warning("tool %s: status %d, redirects are not followed", spec.name, reply.status)
        return failed(UNREACHABLE)
    return capped_outcome(_outcome(reply), spec.output_cap)


def _outcome(reply: Reply) -> ToolOutcome:
    is_error = reply.status >= 400
    if not reply.is_text:
        kind = reply.content_type[:100]
        return failed(f"HTTP {reply.status}: the answer is {kind}, which is no text.")
    text = reply.text()
    if reply.cut:
        text += "\n[... the rest was not read ...]"
    if not text or is_error:
        text = f"HTTP {reply.status}\n{text}" if text else f"HTTP {reply.status}, no content"
    structured = _parsed(reply) if reply.is_json and not is_error and not reply.cut else None
    return ToolOutcome((Text(text),), is_error=is_error, structured=structured)


def _parsed(reply: Reply) -> Any:
    """The answer as JSON for programs, or ``None``: the model reads the text in any case."""
    try:
        return json.loads(reply.text())
    except (ValueError, RecursionError):
        return None


def _json(value: Any) -> bytes:
    """JSON of a body; TOML's numbers and dates are written as JSON has them."""
    return json.dumps(value, default=_toml).encode()


def _toml(value: Any) -> Any:
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, dt.date | dt.time):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} is no JSON")


def failed(text: str, *, retryable: bool = False) -> ToolOutcome:
    """An error result."""
    return ToolOutcome((Text(text),), is_error=True, retryable=retryable)
