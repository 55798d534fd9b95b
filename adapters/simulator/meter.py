"""Tokens: four bytes of UTF-8 are one, so that every count can be foretold.

Also the providers' prompt caches: a prefix that was seen before under the same key counts as
read, a new one as written (Anthropic) or not at all (OpenAI).
"""

from __future__ import annotations

from collections import OrderedDict

from adapters.simulator.words import Answer, Ask, Call, Part, Think, Usage

MEDIA_TOKENS = 85
"""What one image, file or sound counts."""
_HOUR = 3600


def tokens(text: str) -> int:
    """How many tokens ``text`` has."""
    return -(-len(text.encode("utf-8", "surrogatepass")) // 4)


def part_tokens(part: Part) -> int:
    """How many output tokens a part costs; a call counts its name and its arguments."""
    if isinstance(part, Call):
        return tokens(part.name) + tokens(part.arguments)
    return tokens(part.text)


class PromptCache:
    """Remembers prefixes by key, the least recently used forgotten beyond ``keep``."""

    def __init__(self, keep: int = 4096) -> None:
        self._keep = keep
        self._seen: OrderedDict[str, int] = OrderedDict()

    def look(self, ask: Ask) -> tuple[int, int, int]:
        """Tokens (read, written, written for an hour) of the ask's cacheable prefixes."""
        read = max((min(self._seen.get(key, 0), size) for key, size, _ in ask.cached), default=0)
        written = hour = 0
        for key, size, lifetime in ask.cached:
            if lifetime and size > read + written:
                fresh = size - read - written
                written += fresh
                hour += fresh if lifetime >= _HOUR else 0
            self._seen[key] = size
            self._seen.move_to_end(key)
        while len(self._seen) > self._keep:
            self._seen.popitem(last=False)
        return read, written, hour


def measure(ask: Ask, answer: Answer, cache: PromptCache) -> Usage:
    """The usage of one exchange."""
    if answer.usage is not None:
        return answer.usage
    read, written, hour = cache.look(ask)
    return Usage(
        prompt=ask.tokens,
        output=ask.choices * sum(part_tokens(part) for part in answer.parts),
        reasoning=ask.choices
        * sum(part_tokens(part) for part in answer.parts if isinstance(part, Think)),
        read=read,
        written=written,
        written_1h=hour,
    )
