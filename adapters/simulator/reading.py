"""Following a conversation, whatever protocol it is written in.

Each protocol tells this one listener who said what; it finds out what the model has to answer
to: the last prompt, the tool results after it, the tools called since.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable
from typing import Any

from adapters.simulator.meter import MEDIA_TOKENS, tokens
from adapters.simulator.words import Media, Result, Turn


class Conversation:
    """Hears the messages in order."""

    def __init__(self) -> None:
        self.turns: list[Turn] = []
        self.prompt = ""
        self.results: list[Result] = []
        self.called: list[str] = []
        self.media: list[Media] = []
        self.tokens = 0
        self._names: dict[str, str] = {}

    def say(self, role: str, text: str, media: Iterable[Media] = ()) -> None:
        """A message of text and media."""
        media = list(media)
        self.turns.append(Turn(role, text))
        self.tokens += tokens(text) + MEDIA_TOKENS * len(media)
        if role == "user":
            self.prompt = text
            self.results.clear()
            self.called.clear()
            self.media = media
        elif role == "assistant":
            self.results.clear()

    def call(self, call_id: str, name: str, arguments: str) -> None:
        """A tool call of the model; part of the assistant's last message."""
        if not self.turns or self.turns[-1].role != "assistant":
            self.turns.append(Turn("assistant", ""))
        self._names[call_id] = name
        self.called.append(name)
        self.results.clear()
        self.tokens += tokens(name) + tokens(arguments)

    def result(
        self, call_id: str, text: str, media: Iterable[Media] = (), *, is_error: bool = False
    ) -> None:
        """A tool's result."""
        media = list(media)
        name = self._names.get(call_id, call_id)
        self.turns.append(Turn("tool", text))
        self.results.append(Result(call_id, name, text, is_error))
        self.media.extend(media)
        self.tokens += tokens(text) + MEDIA_TOKENS * len(media)

    def remark(self, text: str) -> None:
        """Text beside the tool results of the same message: no new prompt."""
        self.turns.append(Turn("user", text))
        self.tokens += tokens(text)

    def heard(self) -> dict[str, Any]:
        """The fields of an :class:`Ask` that a conversation decides."""
        return {
            "turns": tuple(self.turns),
            "prompt": self.prompt,
            "results": tuple(self.results),
            "called": tuple(self.called),
            "media": tuple(self.media),
        }


def data_url(kind: str, url: str) -> Media:
    """The medium behind a URL: measured if its data is in the URL, never fetched."""
    if not url.startswith("data:"):
        return Media(kind, url, None)
    head, _, data = url[5:].partition(",")
    mime = head.partition(";")[0] or "text/plain"
    return inline(kind, mime, data) if head.endswith(";base64") else Media(kind, mime, len(data))


def inline(kind: str, mime: str, data: str) -> Media:
    """A medium given as base64.

    :raises ValueError: if it is no base64.
    """
    try:
        return Media(kind, mime, len(base64.b64decode(data, validate=True)))
    except binascii.Error as error:
        raise ValueError(f"the {kind} is no base64: {error}") from error
