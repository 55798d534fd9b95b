"""A configuration to start from, and a way to load a text."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.settings.load import NO_OVERRIDES, Overrides, load
from gateway.settings.problems import ConfigError
from gateway.settings.snapshot import Snapshot

ENVIRONMENT = {"OPENAI_API_KEY": "sk-upstream", "GATEWAY_KEY": "sk-caller", "HEADER": "hush"}

BASE = """\
[providers.openai]
dialect = "openai-responses"
base_url = "https://api.openai.com/v1"
api_key = "${OPENAI_API_KEY}"
prices = "none"

[models.smart]
targets = [{ provider = "openai", model = "gpt-5.2" }]

[[keys]]
name = "dev"
key = "${GATEWAY_KEY}"
"""


@pytest.fixture
def base() -> str:
    """The configuration that tests add to."""
    return BASE


@pytest.fixture
def environment() -> dict[str, str]:
    """The variables that it needs."""
    return dict(ENVIRONMENT)


@pytest.fixture
def loaded(tmp_path: Path) -> Callable[..., Snapshot]:
    """Load a text as a file, by default after :data:`BASE`."""

    def run(
        text: str = "",
        *,
        base: str = BASE,
        environment: dict[str, str] | None = None,
        overrides: Overrides = NO_OVERRIDES,
    ) -> Snapshot:
        file = tmp_path / "gateway.toml"
        file.write_text(base + text, encoding="utf-8")
        return load(file, ENVIRONMENT if environment is None else environment, overrides)

    return run


@pytest.fixture
def problems(loaded: Callable[..., Snapshot]) -> Callable[..., dict[str, str]]:
    """Load a text that must not pass; what is wrong, by key path."""

    def run(text: str = "", **more: object) -> dict[str, str]:
        with pytest.raises(ConfigError) as caught:
            loaded(text, **more)
        return {problem.where: problem.message for problem in caught.value.problems}

    return run
