"""What a log line looks like: fields in, one line out. Pure.

Never content: the text of an exception is left out unless its type is known to be safe, because
libraries quote their input in it (promise 13). Must not know loggers or streams.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Mapping
from typing import Any, Literal

from adapters.canonical.faults import Fault
from adapters.canonical.record import record
from adapters.wire.json import dumps

Style = Literal["json", "text"]

LONGEST_TEXT = 500
"""Characters of any one text in a line: a provider's excerpt may not fill the disk."""

FRAMES = 20
"""Innermost stack frames shown of an exception."""

SAFE_ERRORS: tuple[type[BaseException], ...] = (OSError, Fault)
"""Exceptions whose text never quotes a prompt or an answer."""


@record(frozen=True, slots=True)
class Access:
    """One call, as the log tells it; what is ``None`` is left out.

    ``route`` is the route's template and ``alias`` a configured name: what a caller invents
    may hold anything, even a secret. ``key`` is the key's id, never the key. Times are in
    milliseconds.
    """

    request: str
    method: str
    route: str
    status: int
    ms: float
    project: str | None = None
    key: str | None = None
    alias: str | None = None
    deployment: str | None = None
    stream: bool | None = None
    attempts: int | None = None
    fault: str | None = None
    detail: str | None = None
    ttft_ms: float | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_nano: int | None = None
    trace: str | None = None
    original: str | None = None

    def fields(self) -> dict[str, Any]:
        """The fields that are set, in order."""
        return {
            name: bounded(value)
            for name in self.__slots__
            if (value := getattr(self, name)) is not None
        }


def bounded(value: Any) -> Any:
    """``value``, a long text cut."""
    if isinstance(value, str) and len(value) > LONGEST_TEXT:
        return value[:LONGEST_TEXT] + "…"
    return value


def exception_fields(error: BaseException, *, content: bool = False) -> dict[str, Any]:
    """What may be told of an exception: its type, where it arose, its text if that is safe.

    :param content: the operator allows content in this sink.
    """
    fields: dict[str, Any] = {"error": type(error).__qualname__}
    if content or isinstance(error, SAFE_ERRORS):
        fields["error_text"] = bounded(str(error))
    if isinstance(error, Fault) and error.detail is not None:
        fields["detail"] = bounded(error.detail)
    frames = traceback.extract_tb(error.__traceback__)[-FRAMES:]
    if frames:
        fields["frames"] = [f"{f.filename}:{f.lineno} {f.name}" for f in frames]
    return fields


def json_line(at: float, level: str, logger: str, fields: Mapping[str, Any]) -> str:
    """One JSON object; ``at`` is ISO 8601 in UTC, to the millisecond."""
    whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at))
    stamp = f"{whole}.{int(at * 1000) % 1000:03d}Z"
    head = {"at": stamp, "level": level, "logger": logger}
    try:
        return dumps({**head, **fields}).decode()
    except TypeError:  # a field that is no JSON is told by its type alone: its text may be content
        return dumps({**head, **{name: _plain(v) for name, v in fields.items()}}).decode()


def _plain(value: Any) -> Any:
    known = value is None or isinstance(value, str | int | float | list)
    return value if known else f"<{type(value).__qualname__}>"


def text_line(at: float, level: str, logger: str, fields: Mapping[str, Any]) -> str:
    """One line for a person at a terminal, in local time."""
    rest = dict(fields)
    clock = time.strftime("%H:%M:%S", time.localtime(at))
    message = _access_text(rest) if logger == ACCESS else _shown(rest.pop("message", ""))
    tail = "".join(f" {name}={_shown(value)}" for name, value in rest.items())
    return f"{clock} {level:<7} {message}{tail}"


def _access_text(rest: dict[str, Any]) -> str:
    """The head of a call's line; what it tells is taken out of ``rest``."""
    head = f"{rest.pop('status')} {rest.pop('method')} {rest.pop('route')} {rest.pop('ms'):.0f} ms"
    alias, deployment = rest.pop("alias", None), rest.pop("deployment", None)
    if alias is not None:
        head += f" {_shown(alias)}"
    if deployment is not None:
        head += f" -> {_shown(deployment)}"
    return head


def _shown(value: Any) -> str:
    """``value`` on one line: no control character can forge a second one."""
    text = " < ".join(map(str, reversed(value))) if isinstance(value, list) else str(value)
    return text if text.isprintable() else "".join(map(_visible, text))


def _visible(character: str) -> str:
    return character if character.isprintable() else repr(character)[1:-1]


ACCESS = "gateway.access"
"""The logger whose lines are calls."""

RENDERERS: Mapping[Style, Callable[[float, str, str, Mapping[str, Any]], str]] = {
    "json": json_line,
    "text": text_line,
}
