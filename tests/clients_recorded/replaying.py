"""Recorded requests of real clients, and how each is expected to be answered."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.harness import KEY, Answer, Harness, alias

SHARED = Path(
    os.environ.get("GATEWAY_SHARED", Path(__file__).parents[2].parent / "shared")
).resolve()
CLIENTS = SHARED / "clients"

UPSTREAMS = {
    "openai": ("openai", "gpt-5.2"),
    "claude": ("anthropic", "claude-sonnet-4-6"),
    "chat": ("chat", "some-model"),
}

TABLES = (
    *(alias(f"stub-{name}", target, retries=0) for name, target in UPSTREAMS.items()),
    alias("stub", UPSTREAMS["openai"]),
    """
[models.stub-embed]
kind = "embedding"
targets = [{ provider = "chat", model = "sim-embed" }]
""",
)
"""The upstreams under names of their own, and the name that the clients list."""

EVERYWHERE = tuple(UPSTREAMS)

ERRORS: Mapping[str, Mapping[str, int]] = {
    # a model that is not there
    "claude-code-err404-03": dict.fromkeys(EVERYWHERE, 404),
    "codex-err401-01": dict.fromkeys(EVERYWHERE, 404),
    "openai-py-03-GET": dict.fromkeys(EVERYWHERE, 404),
    # a thread that its own provider keeps
    "anthropic-py-13": {"openai": 400, "chat": 400},
    # a signature that no provider made; elsewhere it is dropped
    "anthropic-py-15": {"claude": 400},
    # JSON asked for without the word
    "misc-02": {"openai": 400, "chat": 400},
    # a field that no provider knows; to another protocol it is dropped
    "openai-py-10": {"chat": 400},
    # what this gateway does not serve
    "openresponses-02": dict.fromkeys(EVERYWHERE, 400),
    "openresponses-08": dict.fromkeys(EVERYWHERE, 405),
}
"""By the beginning of the file's name: the status of the deliberate errors, by upstream."""

KEEPS_MODEL = ("err404", "err401")
AUTH = frozenset({"authorization", "x-api-key"})
HOP = frozenset({"connection", "upgrade", "accept-encoding", "content-length", "host"})


@dataclass(frozen=True)
class Recorded:
    """One request."""

    name: str
    method: str
    path: str
    headers: Mapping[str, str]
    body: Any

    @classmethod
    def read(cls, path: Path) -> Recorded:
        told = json.loads(path.read_text())
        return cls(path.stem, told["method"], told["path"], _headers(told), told["body"])

    def expected(self, upstream: str) -> int:
        """The status that the answer is to have."""
        for name, statuses in ERRORS.items():
            if self.name.startswith(name):
                return statuses.get(upstream, 200)
        return 200

    def asking(self, upstream: str) -> Any:
        """The body with the model of ``upstream``."""
        if not isinstance(self.body, dict) or self.body.get("model") in (None, *KEEPS_MODEL):
            return self.body
        model = "stub-embed" if "embeddings" in self.path else f"stub-{upstream}"
        return {**self.body, "model": model}

    async def replay(self, g: Harness, upstream: str) -> Answer:
        """Send it."""
        body = self.asking(upstream)
        raw = None if body is None else json.dumps(body).encode()
        async with g.http.request(
            self.method, g.url + self.path, headers=self.headers, data=raw
        ) as reply:
            return Answer(reply.status, dict(reply.headers), await reply.read())


def _headers(told: Mapping[str, Any]) -> dict[str, str]:
    """The client's own headers, with a key that is good here."""
    sent: dict[str, str] = {}
    for name, value in told["headers"]:
        lower = name.lower()
        if lower in AUTH:
            sent[name] = KEY if lower == "x-api-key" else f"Bearer {KEY}"
        elif lower not in HOP and not lower.startswith("sec-"):
            sent[name] = value.strip("()")  # long values were put in parentheses
    return sent
