"""Clients that people have, each in a process of its own, over both upstreams.

Their environments are made by ``.ci/clients``. Whatever is not the gateway is out of reach: the
proxy that they are told to use does not exist.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.clients.conftest import UPSTREAMS
from tests.harness import KEY

HERE = Path(__file__).parent
PYTHON = HERE.parents[1] / ".venv-clients" / "bin"
MODULES = HERE / "node_modules"
PROGRAMS = HERE / "programs"

SECONDS = 240
"""Ceiling for one client: they start slowly on a small machine, and answer at once."""

NOWHERE = "http://127.0.0.1:9"

Command = Callable[[str, str, Path], list[str]]


@dataclass(frozen=True)
class Client:
    """A client: its name, and how it is run against ``(url, model)`` from an empty home.

    ``says`` is what a command-line client has to print.
    """

    name: str
    command: Command
    says: str = ""


def python(program: str) -> Command:
    return lambda url, model, home: [str(PYTHON / "python"), str(PROGRAMS / program)]


def node(program: str) -> Command:
    return lambda url, model, home: ["node", str(PROGRAMS / program)]


def langchain(kind: str) -> Command:
    def command(url: str, model: str, home: Path) -> list[str]:
        suite = f"{PROGRAMS / 'langchain_suite.py'}::{kind}"
        return [
            *(str(PYTHON / "python"), "-m", "pytest", suite, "-q", "-c", "/dev/null"),
            *("--rootdir", str(home), "--noconftest", "-p", "no:cacheprovider"),
            # one loop for all tests, because the package keeps its connections between them
            *("-o", "asyncio_mode=auto", "-o", "asyncio_default_test_loop_scope=session"),
            *("-o", "asyncio_default_fixture_loop_scope=session"),
        ]

    return command


def llm(url: str, model: str, home: Path) -> list[str]:
    (home / "extra-openai-models.yaml").write_text(
        f"- model_id: {model}\n  model_name: {model}\n  api_base: {url}/v1\n"
        "  api_key_name: gateway\n"
    )
    return [str(PYTHON / "llm"), "-m", model, "--key", KEY, "--no-log", "hello there"]


def codex(url: str, model: str, home: Path) -> list[str]:
    provider = {
        "name": '"gateway"',
        "base_url": f'"{url}/v1"',
        "env_key": '"OPENAI_API_KEY"',
        "wire_api": '"responses"',
    }
    settings = [f"model_providers.gateway.{name}={value}" for name, value in provider.items()]
    flags = [flag for one in ['model_provider="gateway"', *settings] for flag in ("-c", one)]
    return [
        *(
            str(MODULES / ".bin" / "codex"),
            "exec",
            "--skip-git-repo-check",
            "--sandbox",
            "read-only",
        ),
        *("-m", model, *flags, "hello there"),
    ]


def claude_code(url: str, model: str, home: Path) -> list[str]:
    """The simulated model that only says hello: another would call the tools that it is offered."""
    return _claude("hello there", model.replace("over-", "hello-"))


def claude_tools(url: str, model: str, home: Path) -> list[str]:
    """A model that calls the client's tools, one after the other, and then ends."""
    return _claude("list tasks", model)


def _claude(prompt: str, model: str) -> list[str]:
    wrapper = MODULES / "@anthropic-ai" / "claude-code" / "cli-wrapper.cjs"
    return ["node", str(wrapper), "-p", prompt, "--model", model, "--output-format", "json"]


QUIET = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_TELEMETRY": "1",
    "LANGSMITH_TRACING": "false",
    "OPENAI_AGENTS_DISABLE_TRACING": "1",
}

CLIENTS = (
    Client("OpenAI SDK, Python", python("openai_sdk.py")),
    Client("OpenAI SDK, Node", node("openai_sdk.mjs")),
    Client("Anthropic SDK, Python", python("anthropic_sdk.py")),
    Client("Anthropic SDK, Node", node("anthropic_sdk.mjs")),
    Client("OpenAI Agents SDK", python("openai_agents.py")),
    Client("Pydantic AI", python("pydantic_ai_models.py")),
    Client("LangChain, chat", langchain("TestChat")),
    Client("LangChain, Responses", langchain("TestResponses")),
    Client("LangChain, Anthropic", langchain("TestAnthropic")),
    Client("Vercel AI SDK", node("vercel_ai.mjs")),
    Client("llm", llm, says="hello there"),
    Client("Codex CLI", codex, says="hello there"),
    Client("Claude Code", claude_code, says="hello there"),
    Client("Claude Code, tools", claude_tools, says='"subtype":"success"'),
)


def environment(url: str, model: str, home: Path) -> dict[str, str]:
    """What a client needs to find the gateway, and nothing else."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "CODEX_HOME": str(home),
        "LLM_USER_PATH": str(home),
        "MODEL": model,
        "OPENAI_BASE_URL": f"{url}/v1",
        "OPENAI_API_BASE": f"{url}/v1",
        "OPENAI_API_KEY": KEY,
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": KEY,
        "HTTP_PROXY": NOWHERE,
        "HTTPS_PROXY": NOWHERE,
        "NO_PROXY": "127.0.0.1,localhost",
        **QUIET,
    }


@pytest.mark.all
@pytest.mark.timeout(SECONDS + 60)
@pytest.mark.parametrize("upstream", UPSTREAMS)
@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
def test_client(client: Client, upstream: str, url: str, home: Path) -> None:
    model = f"over-{upstream}"
    done = subprocess.run(
        client.command(url, model, home),
        cwd=home,
        env=environment(url, model, home),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    told = f"{done.stdout[-8000:]}\n{done.stderr[-4000:]}"
    assert done.returncode == 0, told
    assert client.says in done.stdout, told
