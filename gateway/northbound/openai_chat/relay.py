"""Same dialect in and out: the provider's own chunks, changed only where the gateway owns a field.

Owned are the id (one for the whole answer), the model's name (by the alias's setting), usage
(one chunk at the end if asked for, else no such field) and the end itself: chunks with a
``finish_reason`` are held until the answer is settled. A chunk in which nothing changes is never
written anew.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from adapters.canonical.events import TextRun, Verbatim
from adapters.wire.json import dumps
from adapters.wire.plain import Retold
from adapters.wire.sse import frame
from gateway.northbound.base import Envelope

_UNCOUNTED = re.compile(rb',\s*"usage"\s*:\s*null')
"""What the gateway's own question for usage puts into every chunk but the last."""


class Relay:
    """The state of one relayed stream."""

    __slots__ = (
        "_alias",
        "_ended",
        "_envelope",
        "_head",
        "_id",
        "_last",
        "_model",
        "_runs",
        "_usage",
    )

    def __init__(self, envelope: Envelope) -> None:
        self._envelope = envelope
        self._alias = envelope.alias if envelope.report_model == "alias" else None
        self._id = ""
        self._model = ""
        self._ended: set[int] = set()
        self._runs = Retold()
        self._head: list[Mapping[str, Any]] = []
        self._last: list[bytes] = []
        self._usage: tuple[Mapping[str, Any], bytes | None] | None = None

    def feed(self, verbatim: Verbatim) -> bytes:
        """The bytes for one of the provider's chunks; empty if it is held or not shown."""
        chunk = verbatim.json
        if not isinstance(chunk, dict) or chunk.get("error") is not None:
            return b""  # Errors are written by whoever ends the stream.
        if chunk.get("usage") is not None:
            return self._counted(chunk, verbatim.data)
        if not self._id:
            return self._first(verbatim, chunk)
        if _ends(chunk.get("choices") or ()):
            self._hold(chunk, verbatim.data)
            return b""
        return self._write(chunk, verbatim.data)

    def run(self, run: TextRun) -> bytes | None:
        """The bytes for plain deltas of text; ``None`` if they have to come frame by frame."""
        return self._runs.write(run, self.feed) if self._id else None

    def _first(self, verbatim: Verbatim, chunk: dict[str, Any]) -> bytes:
        """Chunks before the id is known wait for it: some servers open with an empty one."""
        if not chunk.get("id") and not chunk.get("choices"):
            self._head.append(chunk)
            return b""
        self._id = chunk.get("id") or self._envelope.id
        self._model = chunk.get("model") or self._envelope.alias
        opened = b"".join(self._write(early, None) for early in self._head)
        self._head = []
        return opened + self.feed(verbatim)

    def _counted(self, chunk: dict[str, Any], data: bytes | None) -> bytes:
        """Usage has its own chunk at the end, wherever the provider put it."""
        choices = chunk.get("choices")
        self._usage = ({**chunk, "choices": []}, None) if choices else (chunk, data)
        if not choices or all(self._is_over(choice) for choice in choices):
            return b""
        rest = {**chunk, "usage": None}
        return self.feed(Verbatim("openai-chat", "message", dumps(rest), rest))

    def _is_over(self, choice: Mapping[str, Any]) -> bool:
        """Whether ``choice`` adds nothing to an answer that has its reason already."""
        return choice.get("index", 0) in self._ended and not _says(choice.get("delta"))

    def _hold(self, chunk: dict[str, Any], data: bytes | None) -> None:
        """Keep an ending chunk; of several reasons for one choice only the first is shown."""
        kept = [choice for choice in chunk["choices"] if not self._is_over(choice)]
        if not kept:
            return
        for place, choice in enumerate(kept):
            number = choice.get("index", 0)
            if choice.get("finish_reason") is not None and number in self._ended:
                kept[place] = {**choice, "finish_reason": None}
            elif choice.get("finish_reason") is not None:
                self._ended.add(number)
        if kept != chunk["choices"]:
            chunk, data = {**chunk, "choices": kept}, None
        self._last.append(self._write(chunk, data))

    def _write(self, chunk: Mapping[str, Any], data: bytes | None) -> bytes:
        """``chunk`` as a frame: ``data`` as it came where every owned field is right already."""
        if "usage" in chunk and not self._envelope.style.include_usage:
            chunk, data = _uncounted(chunk, data)
        model = self._alias or chunk.get("model") or self._model
        if chunk.get("id") == self._id and chunk.get("model") == model:
            if data is not None and b"\n" not in data:
                return frame(data)
            return frame(dumps(chunk))
        return frame(dumps({**chunk, "id": self._id, "model": model}))

    def finish(self) -> bytes:
        """The held ending: last chunks, then usage if the caller asked for it."""
        ending = b"".join(self._last)
        if not self._envelope.style.include_usage:
            return ending
        if self._usage is not None:
            return ending + self._write(*self._usage)
        # The provider counted nothing: unknown is null, not zero.
        return ending + self.own({"usage": None})

    def own(self, fields: Mapping[str, Any]) -> bytes:
        """A chunk of the gateway's own, without choices."""
        chunk = {
            "id": self._id,
            "object": "chat.completion.chunk",
            "created": self._envelope.created,
            "model": self._alias or self._model,
            "choices": [],
        }
        return frame(dumps({**chunk, **fields}))


def _uncounted(
    chunk: Mapping[str, Any], data: bytes | None
) -> tuple[Mapping[str, Any], bytes | None]:
    """``chunk`` and its bytes without ``usage``, which OpenAI sends only to who asked for it."""
    if data is not None and data.count(b'"usage"') == 1:
        bare = data.replace(b',"usage":null', b"")
        if len(bare) == len(data):
            bare = _UNCOUNTED.sub(b"", data)
        if len(bare) < len(data):
            return chunk, bare
    return {name: value for name, value in chunk.items() if name != "usage"}, None


def _ends(choices: Sequence[Mapping[str, Any]]) -> bool:
    for choice in choices:  # noqa: SIM110 - a generator would cost as much as all else here
        if choice.get("finish_reason") is not None:
            return True
    return False


def _says(delta: Any) -> bool:
    """Whether a delta has any content; the role and empty strings are none."""
    if not isinstance(delta, Mapping):
        return False
    return any(value for name, value in delta.items() if name not in ("role", "name"))
