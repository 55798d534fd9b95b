"""The gateways that others make: how each is installed, configured and started.

Tuned kindly: one worker, quiet logs, no telemetry, no retries, no look at the network. Each lives
in a folder of its own, with an environment of its own, and starts in a scratch folder that is also
its home, so that it finds nothing of the user's and leaves nothing there.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.servers import Unfit, free_port, running

KEY, UPSTREAM_KEY = "bench-key", "upstream"
STARTS_WITHIN = 120.0
"""Seconds until a rival has to answer."""
INSTALLS_WITHIN = 1800.0
"""Seconds until a rival has to be installed."""
COMPLETE = "complete"
"""The file that says that an installation was not interrupted."""

Route = tuple[str, str]
"""The upstream's dialect, chat or messages, and its model."""
Config = Callable[[str, int, Sequence[Route]], object]
"""From the upstream's URL, the rival's port and its routes to a configuration, as JSON (and so as
YAML)."""


def alias(route: Route) -> str:
    """A route's name for callers."""
    return "-".join(route)


@dataclass(frozen=True, slots=True)
class Source:
    """A registry: how a package of it gets into a folder, which version is there, and where its
    commands are."""

    install: Callable[[str, Path], None]
    version: Callable[[str, Path], str]
    commands: str


@dataclass(frozen=True, slots=True)
class Rival:
    """One of them. ``command`` may name ``{bin}``, ``{home}``, ``{config}`` and ``{port}``;
    ``headers`` go with each call, from the upstream's URL and its dialect; ``model`` is what
    callers say for a route."""

    name: str
    source: Source
    package: str
    command: tuple[str, ...]
    config: Config
    environment: Mapping[str, str] = field(default_factory=dict)
    model: Callable[[Route], str] = alias
    headers: Callable[[str, str], Mapping[str, str]] = lambda upstream, dialect: {}


def installed(rival: Rival, folder: Path) -> str:
    """Install a rival into its own place in ``folder``, where it is not there yet; its version."""
    home = folder / rival.name
    if not (home / COMPLETE).exists():
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir(parents=True)
        rival.source.install(rival.package, home)
        (home / COMPLETE).touch()
    return rival.source.version(rival.package, home)


@contextlib.contextmanager
def serving(
    rival: Rival, folder: Path, scratch: Path, upstream: str, routes: Sequence[Route]
) -> Iterator[tuple[int, int]]:
    """A rival that was installed into ``folder`` and runs in ``scratch``; its pid and port."""
    port = free_port()
    home, place = folder.resolve() / rival.name, scratch / f"{rival.name}-{port}"
    place.mkdir()
    config = place / "config.json"
    config.write_text(json.dumps(rival.config(upstream, port, routes)))
    known = {"bin": home / rival.source.commands, "home": home, "config": config, "port": port}
    command = [part.format(**known) for part in rival.command]
    settings = {**_environment(), "HOME": str(place), **rival.environment}
    with running(port, command, settings, place, STARTS_WITHIN) as pid:
        yield pid, port


def _environment() -> dict[str, str]:
    """Ours, without our modules, and without a proxy before the upstream."""
    here = {"NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1", "DO_NOT_TRACK": "1"}
    hidden = {"PYTHONPATH", "PYTHONDONTWRITEBYTECODE"}
    return {**{name: text for name, text in os.environ.items() if name not in hidden}, **here}


def _run(home: Path, *command: str) -> None:
    """A step of an installation."""
    try:
        subprocess.run(
            command,
            cwd=home,
            env=_environment(),
            check=True,
            capture_output=True,
            text=True,
            timeout=INSTALLS_WITHIN,
        )
    except subprocess.CalledProcessError as fault:
        said = (fault.stderr or fault.stdout or str(fault)).strip().splitlines()
        raise Unfit(said[-1]) from fault
    except (OSError, subprocess.TimeoutExpired) as fault:
        raise Unfit(str(fault)) from fault


def _from_pypi(package: str, home: Path) -> None:
    _run(home, sys.executable, "-m", "venv", ".")
    pip = (str(home.resolve() / "bin/python"), "-m", "pip", "--disable-pip-version-check")
    _run(home, *pip, "--quiet", "--no-input", "install", package)


def _pypi_version(package: str, home: Path) -> str:
    places = [str(place) for place in home.glob("lib/python*/site-packages")]
    found = importlib.metadata.distributions(name=package.partition("[")[0], path=places)
    return next(iter(found)).version


def _from_npm(package: str, home: Path) -> None:
    manifest = {"private": True, "dependencies": {package: "*"}, "overrides": PINNED_MODULES}
    (home / "package.json").write_text(json.dumps(manifest))
    quiet = ("--no-audit", "--no-fund", "--loglevel=error")
    _run(home, "npm", "install", "--ignore-scripts", *quiet)


def _npm_version(package: str, home: Path) -> str:
    manifest = json.loads((home / "node_modules" / package / "package.json").read_text())
    return str(manifest["version"])


PINNED_MODULES = {"@hono/node-server": "1.14.1"}
"""With a newer one, each of Portkey 1.15's streams is a 500 (TypeError: immutable; its issue
1389)."""

PYPI = Source(_from_pypi, _pypi_version, "bin")
NPM = Source(_from_npm, _npm_version, "node_modules/.bin")


def _litellm(upstream: str, port: int, routes: Sequence[Route]) -> object:
    providers = {"chat": ("openai", f"{upstream}/v1"), "messages": ("anthropic", upstream)}

    def target(dialect: str, model: str) -> dict[str, str]:
        provider, base = providers[dialect]
        return {"model": f"{provider}/{model}", "api_base": base, "api_key": UPSTREAM_KEY}

    return {
        "model_list": [
            {"model_name": alias(route), "litellm_params": target(*route)} for route in routes
        ],
        "litellm_settings": {"telemetry": False, "num_retries": 0},
        "router_settings": {"num_retries": 0, "disable_cooldowns": True},
        "general_settings": {"master_key": KEY},
    }


def _mlflow(upstream: str, port: int, routes: Sequence[Route]) -> object:
    providers = {"chat": "openai", "messages": "anthropic"}

    def target(dialect: str, model: str) -> dict[str, object]:
        provider = providers[dialect]
        keys = {f"{provider}_api_key": UPSTREAM_KEY, f"{provider}_api_base": f"{upstream}/v1"}
        return {"provider": provider, "name": model, "config": keys}

    return {
        "endpoints": [
            {"name": alias(route), "endpoint_type": "llm/v1/chat", "model": target(*route)}
            for route in routes
        ]
    }


def _portkey(upstream: str, port: int, routes: Sequence[Route]) -> object:
    return {}  # its callers' headers say all


def _portkey_headers(upstream: str, dialect: str) -> Mapping[str, str]:
    provider = {"chat": "openai", "messages": "anthropic"}[dialect]
    return {"x-portkey-provider": provider, "x-portkey-custom-host": f"{upstream}/v1"}


def _lm_proxy(upstream: str, port: int, routes: Sequence[Route]) -> object:
    return {
        "host": "127.0.0.1",
        "port": port,
        "connections": {
            "chat": {
                "api_type": "open_ai",
                "api_base": f"{upstream}/v1",
                "api_key": UPSTREAM_KEY,
            },
            "messages": {"api_type": "anthropic", "api_base": upstream, "api_key": UPSTREAM_KEY},
        },
        "routing": {alias(route): ".".join(route) for route in routes},
        "groups": {"default": {"api_keys": [KEY]}},
    }


def _llm_rosetta(upstream: str, port: int, routes: Sequence[Route]) -> object:
    return {
        "providers": {
            "chat": {
                "type": "openai_chat",
                "base_url": f"{upstream}/v1",
                "api_key": UPSTREAM_KEY,
            },
            "messages": {"type": "anthropic", "base_url": upstream, "api_key": UPSTREAM_KEY},
        },
        "models": {
            alias((dialect, model)): {"provider": dialect, "upstream_model": model}
            for dialect, model in routes
        },
        "server": {"host": "127.0.0.1", "port": port, "open_on_no_keys": True, "data_dir": "data"},
        "debug": {"error_dumps": False},
    }


def _quietly(module: str, name: str) -> tuple[str, ...]:
    """A command of a package that logs each call and has no switch for it."""
    code = f"import logging; logging.disable(logging.INFO); from {module} import {name}; {name}()"
    return ("{bin}/python", "-c", code)


RIVALS = (
    Rival(
        "LiteLLM",
        PYPI,
        "litellm[proxy]",
        (
            *("{bin}/litellm", "--config", "{config}", "--host", "127.0.0.1", "--port", "{port}"),
            *("--num_workers", "1", "--telemetry", "False"),
        ),
        _litellm,
        {
            "LITELLM_LOG": "ERROR",
            "LITELLM_MODE": "PRODUCTION",
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        },
    ),
    Rival(
        "MLflow",
        PYPI,
        "mlflow[gateway]",
        (
            *("{bin}/mlflow", "gateway", "start", "--config-path", "{config}"),
            *("--host", "127.0.0.1", "--port", "{port}", "--workers", "1"),
        ),
        _mlflow,
        {"MLFLOW_DISABLE_TELEMETRY": "true", "GUNICORN_CMD_ARGS": "--log-level error"},
    ),
    Rival(
        "Portkey",
        NPM,
        "@portkey-ai/gateway",
        (
            *("node", "{home}/node_modules/@portkey-ai/gateway/build/start-server.js"),
            *("--port={port}", "--headless"),
        ),
        _portkey,
        {"NODE_ENV": "production"},
        model=lambda route: route[1],
        headers=_portkey_headers,
    ),
    Rival(
        "lm-proxy",
        PYPI,
        "lm-proxy[anthropic]",
        (*_quietly("lm_proxy.app", "cli_app"), "--config", "{config}", "--env", ""),
        _lm_proxy,
    ),
    Rival(
        "llm-rosetta",
        PYPI,
        "llm-rosetta",
        (
            *_quietly("llm_rosetta.gateway.cli", "main"),
            *("--config", "{config}", "--port", "{port}", "--no-banner"),
        ),
        _llm_rosetta,
    ),
)
