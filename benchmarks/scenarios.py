"""What is measured, and the gateway's configuration for it: everything on, as in service."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from benchmarks.load import request

CHAT, RESPONSES, MESSAGES = "/v1/chat/completions", "/v1/responses", "/v1/messages"

CONFIG = """
[server]
port = PORT
[store]
url = "sqlite:///FOLDER.db"
durability = "{durability}"
[observe]
log_level = "{log_level}"
[redaction]
mode = "{redaction}"
[providers.chat]
dialect = "openai-chat"
base_url = "{upstream}/v1"
api_key = "${{UPSTREAM_KEY}}"
pool = 2000
[providers.responses]
dialect = "openai-responses"
base_url = "{upstream}/v1"
api_key = "${{UPSTREAM_KEY}}"
pool = 2000
[providers.messages]
dialect = "anthropic-messages"
base_url = "{upstream}"
api_key = "${{UPSTREAM_KEY}}"
pool = 2000
[[keys]]
name = "bench"
key = "${{BENCH_KEY}}"
limits = {{ {limits} }}
"""
ALIAS = """
[models."{dialect}/{model}"]
targets = [{{ provider = "{dialect}", model = "{model}" }}]
"""
RATES = "rpm = 100000000, tpm = 100000000000, concurrent = 10000"
BUDGET = "usd_per_day = 1000000.0"
EVERYTHING = {
    "durability": "normal",
    "log_level": "error",
    "redaction": "off",
    "limits": f"{RATES}, {BUDGET}",
}
"""Keys, ledger and metrics are always on; these can be chosen."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """One row of the table. ``per`` is what the CPU is divided by; ``bar`` the ratio
    aimed at, where there is one."""

    name: str
    model: str
    southbound: str
    per: str
    bar: float | None
    calls: int
    concurrency: int
    prompt: int = 1_000
    path: str = CHAT

    @property
    def chunks(self) -> int:
        """Deltas an answer has."""
        return int(self.model.split("-")[1]) if "-" in self.model else 1

    @property
    def units(self) -> int:
        """What the CPU is divided by."""
        return self.calls * (self.chunks if self.per == "chunk" else 1)

    @property
    def alias(self) -> str:
        """The model's name at the gateway; the floor passes on the mock's own word."""
        return f"{self.southbound}/{self.model}"

    def payload(self, model: str, headers: Mapping[str, str] | None = None) -> bytes:
        """The call's bytes for ``model``, with ``headers`` that a server wants."""
        text = "word " * (self.prompt // 5)
        body = {
            "model": model,
            "max_tokens": 200,
            "messages": [{"role": "user", "content": text}],
        }
        if self.model != "whole":
            body["stream"] = True
        return request(self.path, json.dumps(body).encode(), headers)


PACED, BURST = "paced-100-10", "burst-500"

SCENARIOS = (
    Scenario("call, same dialect", "whole", "chat", "call", 1.7, 1500, 16),
    Scenario("call, same dialect, c=1", "whole", "chat", "call", None, 600, 1),
    Scenario("call, chat to Messages", "whole", "messages", "call", 1.7, 1500, 16),
    Scenario("call, chat to Responses", "whole", "responses", "call", 1.7, 1500, 16),
    Scenario(
        "call, Messages to Responses", "whole", "responses", "call", 1.7, 1500, 16, path=MESSAGES
    ),
    Scenario("call, 100 kB prompt", "whole", "chat", "call", 1.5, 600, 16, prompt=100_000),
    Scenario("paced chunk, same dialect", PACED, "chat", "chunk", 1.4, 64, 16),
    Scenario("paced chunk, to Messages", PACED, "messages", "chunk", 1.8, 64, 16),
    Scenario("paced chunk, to Responses", PACED, "responses", "chunk", 1.8, 64, 16),
    Scenario("burst chunk, same dialect", BURST, "chat", "chunk", 1.5, 192, 16),
)

MORE = (
    Scenario("call, same dialect, c=64", "whole", "chat", "call", None, 1920, 64),
    Scenario("call, same dialect, c=256", "whole", "chat", "call", None, 2560, 256),
    Scenario(
        "call, 100 kB prompt, to Messages", "whole", "messages", "call", 1.5, 600, 16, 100_000
    ),
    Scenario(
        "call, 100 kB prompt, to Responses", "whole", "responses", "call", 1.5, 600, 16, 100_000
    ),
    Scenario(
        *("paced chunk, Messages to Responses", PACED, "responses", "chunk", 1.8, 64, 16),
        path=MESSAGES,
    ),
    Scenario("burst chunk, to Messages", BURST, "messages", "chunk", None, 192, 16),
    Scenario("burst chunk, to Responses", BURST, "responses", "chunk", None, 192, 16),
)
"""What the whole matrix has beside them. More callers than 16, and bursts across dialects, are
reported without a bar."""


def config(upstream: str, scenarios: Iterable[Scenario], **chosen: str) -> str:
    """A configuration for :func:`benchmarks.servers.gateway`; ``chosen`` as in
    :data:`EVERYTHING`."""
    pairs = dict.fromkeys((s.southbound, s.model) for s in scenarios)
    aliases = "".join(ALIAS.format(dialect=d, model=m) for d, m in pairs)
    return CONFIG.format(upstream=upstream, **{**EVERYTHING, **chosen}) + aliases
